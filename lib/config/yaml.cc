// SPDX-License-Identifier: BSD-3-Clause
#include "config/yaml.h"

#include <algorithm>
#include <istream>
#include <streambuf>
#include <unordered_map>

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
    explicit Builder(Document& document) : document_(document) {}

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

void parse_events(std::string_view text, Document& document) {
    ViewBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    Builder builder(document);
    while (parser.HandleNextDocument(builder)) {
    }
}

}  // namespace

std::unique_ptr<const Document> parse_yaml(std::string_view text, Reporter& reporter) {
    if (const auto problem = check_text(text)) {
        reporter.error(problem->line, problem->column, "", problem->text);
        return nullptr;
    }
    auto document = std::make_unique<Document>();
    try {
        parse_events(text, *document);
    } catch (const Refused& refused) {
        reporter.error(refused.line, refused.column, "", refused.text);
        return nullptr;
    } catch (const YAML::Exception& fault) {
        const auto at = [](int zero_based) { return static_cast<unsigned>(std::max(zero_based, 0)) + 1; };
        reporter.error(at(fault.mark.line), at(fault.mark.column), "", "not YAML: " + fault.msg);
        return nullptr;
    }
    if (document->root == nullptr) document->root = &document->nodes.emplace_back();
    return document;
}

}  // namespace cachewire::config
