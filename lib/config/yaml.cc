// SPDX-License-Identifier: BSD-3-Clause
#include "config/yaml.h"

#include <algorithm>
#include <istream>
#include <streambuf>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "config/text_check.h"

namespace cachewire::config {
namespace {

// Ends the parse from inside an event: yaml-cpp has no other way to stop.
struct Refused {
    unsigned line, column;
    std::string text;
};

class Builder final : public YAML::EventHandler {
  public:
    Builder(Document& document, std::uint16_t file) : document_(document), file_(file) {}

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (documents_++ > 0) {
            throw Refused{position(mark.line), position(mark.column),
                          "a second document starts here; allowed: one document in a file"};
        }
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { close(add(mark, Node::Kind::null, anchor)); }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        Node& node = add(mark, Node::Kind::scalar, anchor);
        node.plain = tag == "?";
        node.text = value;
        if (!node.plain && tag != "!") refuse_tag(node);
        close(node);
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value style) override {
        open(mark, Node::Kind::sequence, tag, anchor, style);
    }
    void OnSequenceEnd() override { close_open(); }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value style) override {
        open(mark, Node::Kind::map, tag, anchor, style);
    }
    void OnMapEnd() override { close_open(); }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto found = anchors_.find(anchor);
        const unsigned line = position(mark.line), column = position(mark.column);
        if (found == anchors_.end() || is_open(found->second))
            throw Refused{line, column, "an alias inside the value that it stands for"};
        const Node& node = *found->second;
        alias_nodes_ += node.expanded;
        if (alias_nodes_ > kMaxAliasNodes) {
            throw Refused{line, column, fmt::format("aliases stand for more than {} values in all", kMaxAliasNodes)};
        }
        check_depth(stack_.size() + node.height, line, column);
        attach(node);
    }

    // The innermost bracket that is open, of a text that stops being YAML here; null: none.
    [[nodiscard]] const Node* open_bracket() const {
        return !stack_.empty() && stack_.back()->flow ? stack_.back() : nullptr;
    }

  private:
    // yaml-cpp counts from 0, and from -1 where it knows no position.
    static unsigned position(int zero_based) { return static_cast<unsigned>(std::max(zero_based, 0)) + 1; }

    static void check_depth(std::size_t depth, unsigned line, unsigned column) {
        if (depth >= kMaxDepth) throw Refused{line, column, fmt::format("nested deeper than {} levels", kMaxDepth)};
    }

    static void refuse_tag(const Node& node) {
        throw Refused{node.line, node.column, "tags are not used here; write the value without one"};
    }

    [[nodiscard]] bool is_open(const Node* node) const {
        return std::find(stack_.begin(), stack_.end(), node) != stack_.end();
    }

    Node& add(const YAML::Mark& mark, Node::Kind kind, YAML::anchor_t anchor) {
        const unsigned line = position(mark.line), column = position(mark.column);
        if (document_.nodes.size() >= kMaxNodes)
            throw Refused{line, column, fmt::format("more than {} values in one file", kMaxNodes)};
        check_depth(stack_.size(), line, column);
        Node& node = document_.nodes.emplace_back();
        node.kind = kind;
        node.line = line;
        node.column = column;
        node.file = file_;
        if (anchor != 0) anchors_[anchor] = &node;
        return node;
    }

    void open(const YAML::Mark& mark, Node::Kind kind, const std::string& tag, YAML::anchor_t anchor,
              YAML::EmitterStyle::value style) {
        Node& node = add(mark, kind, anchor);
        node.flow = style == YAML::EmitterStyle::Flow;
        if (!tag.empty() && tag != "?" && tag != "!") refuse_tag(node);
        stack_.push_back(&node);
    }

    void close_open() {
        Node& node = *stack_.back();
        stack_.pop_back();
        close(node);
    }

    void close(Node& node) {
        // A value left out stands nowhere: its key's place is what a person looks for.
        if (node.kind == Node::Kind::null && awaits_value()) {
            node.line = stack_.back()->children.back()->line;
            node.column = stack_.back()->children.back()->column;
        }
        attach(node);
    }

    [[nodiscard]] bool awaits_value() const {
        return !stack_.empty() && stack_.back()->kind == Node::Kind::map && stack_.back()->children.size() % 2 == 1;
    }

    void attach(const Node& node) {
        if (stack_.empty()) {
            document_.root = &node;
            return;
        }
        Node& parent = *stack_.back();
        parent.children.push_back(&node);
        parent.expanded += node.expanded;  // no wrap: kMaxNodes + kMaxAliasNodes at most
        parent.height = std::max<std::uint8_t>(parent.height, static_cast<std::uint8_t>(node.height + 1));
    }

    Document& document_;
    std::uint16_t file_;
    std::vector<Node*> stack_;
    std::unordered_map<YAML::anchor_t, const Node*> anchors_;
    std::size_t alias_nodes_ = 0;
    unsigned documents_ = 0;
};

// The text as a stream, without the copy that a stringstream makes of 64 MiB.
class ViewBuffer final : public std::streambuf {
  public:
    explicit ViewBuffer(std::string_view text) {
        char* begin = const_cast<char*>(text.data());  // never written: this buffer has no put area
        setg(begin, begin, begin + text.size());
    }
};

struct Place {
    unsigned line, column;
    friend auto operator<=>(const Place&, const Place&) = default;
};

struct Bracket {
    char text;
    Place at;
};

// The brackets that are open at `end`, from `begin` on, where one opens: yaml-cpp reads ahead, so the parser may not
// know the innermost ones yet. A quote begins a quoted text where a value may begin, and is a letter elsewhere.
std::vector<Bracket> brackets_between(std::string_view text, Place begin, Place end) {
    std::vector<Bracket> open;
    Place at{1, 1};
    char quote = 0, before = 0;
    for (const char c : text) {
        if (at >= end) break;
        if (at >= begin) {
            const bool value_may_begin = before != 0 && std::string_view("[{,:").find(before) != std::string_view::npos;
            if (quote != 0) {
                if (c == quote) quote = 0;
            } else if ((c == '\'' || c == '"') && value_may_begin) {
                quote = c;
            } else if (c == '[' || c == '{') {
                open.push_back({c, at});
            } else if ((c == ']' || c == '}') && !open.empty()) {
                open.pop_back();
            }
            if (c != ' ' && c != '\n') before = c;
        }
        at = c == '\n' ? Place{at.line + 1, 1} : Place{at.line, at.column + 1};
    }
    return open;
}

char character_at(std::string_view text, Place place) {
    for (; place.line > 1; --place.line) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) return '\0';
        text.remove_prefix(end + 1);
    }
    return place.column <= text.size() ? text[place.column - 1] : '\0';
}

// yaml-cpp has a dozen names for a bracket too few or too many, none of which says which bracket.
void report_fault(Reporter& reporter, std::uint16_t file, std::string_view text, Place fault, const Node* open,
                  const std::string& why) {
    const char found = character_at(text, fault);
    const bool closes = found == ']' || found == '}';
    if (open == nullptr)
        return reporter.error(fault.line, fault.column, "",
                              closes ? fmt::format("a '{}' that closes nothing", found) : "not YAML: " + why, file);
    Bracket bracket{open->kind == Node::Kind::map ? '{' : '[', {open->line, open->column}};
    if (const auto inner = brackets_between(text, bracket.at, fault); !inner.empty()) bracket = inner.back();
    const char wanted = bracket.text == '{' ? '}' : ']';
    // At the file's end, or where yaml-cpp names the bracket's own line, there is no better place than the bracket.
    if (found == '\0' || fault <= bracket.at)
        return reporter.error(bracket.at.line, bracket.at.column, "",
                              fmt::format("the '{}' is never closed", bracket.text), file);
    reporter.error(fault.line, fault.column, "",
                   fmt::format("{} where the '{}' of line {}, column {} is still open; allowed: ',' or '{}'",
                               closes ? fmt::format("a '{}'", found) : "not YAML", bracket.text, bracket.at.line,
                               bracket.at.column, wanted),
                   file);
}

void parse_events(std::string_view text, Builder& builder) {
    ViewBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
}

}  // namespace

std::unique_ptr<const Document> parse_yaml(std::string_view text, Reporter& reporter, std::uint16_t file) {
    if (const auto problem = check_text(text)) {
        reporter.error(problem->line, problem->column, "", problem->text, file);
        return nullptr;
    }
    auto document = std::make_unique<Document>();
    Builder builder(*document, file);
    try {
        parse_events(text, builder);
    } catch (const Refused& refused) {
        reporter.error(refused.line, refused.column, "", refused.text, file);
        return nullptr;
    } catch (const YAML::Exception& fault) {
        const auto at = [](int zero_based) { return static_cast<unsigned>(std::max(zero_based, 0)) + 1; };
        const Place place{at(fault.mark.line), at(fault.mark.column)};
        report_fault(reporter, file, text, place, builder.open_bracket(), fault.msg);
        return nullptr;
    }
    if (document->root == nullptr) {
        document->nodes.emplace_back().file = file;
        document->root = &document->nodes.back();
    }
    return document;
}

}  // namespace cachewire::config
