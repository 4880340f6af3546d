// SPDX-License-Identifier: BSD-3-Clause
#include "config/sources.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <glob.h>
#include <openssl/evp.h>

#include "config/load.h"
#include "config/text_file.h"

namespace cachewire::config {

namespace {

constexpr std::string_view kInclude = "include";

std::string hex_of(EVP_MD_CTX* context) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    // Can't fail but for lack of memory; the sum is for people to compare files by, so an empty one does no harm.
    if (context == nullptr || EVP_DigestFinal_ex(context, digest.data(), &length) != 1) return "";
    std::string hex;
    for (unsigned i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
    return hex;
}

struct ContextDelete {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, ContextDelete>;

Context begin_digest() {
    Context context(EVP_MD_CTX_new());
    if (context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) context.reset();
    return context;
}

void add_to(const Context& context, std::string_view bytes) {
    if (context != nullptr) EVP_DigestUpdate(context.get(), bytes.data(), bytes.size());
}

// What glob(3) takes literally: a folder may be named "[old]".
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (std::string_view("*?[]\\").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

bool has_wildcard(std::string_view pattern) { return pattern.find_first_of("*?[") != std::string_view::npos; }

// Files that the pattern names, by their bytes' order and not the locale's. Files that begin with a dot only where the
// pattern does.
std::vector<std::string> matches(const std::string& main, std::string_view pattern) {
    const std::string path = beside(main, pattern);
    const std::string folder = path.substr(0, path.size() - pattern.size());
    std::vector<std::string> found;
    glob_t result{};
    if (glob((escaped(folder) + std::string(pattern)).c_str(), GLOB_NOSORT, nullptr, &result) == 0)
        found.assign(result.gl_pathv, result.gl_pathv + result.gl_pathc);
    globfree(&result);
    std::sort(found.begin(), found.end());
    return found;
}

// The value of a map's key; null: it has none.
const Node* find(const Node& map, std::string_view key) {
    for (std::size_t i = 0; i + 1 < map.children.size(); i += 2)
        if (map.children[i]->kind == Node::Kind::scalar && map.children[i]->text == key) return map.children[i + 1];
    return nullptr;
}

std::size_t place_of(const Node& map, std::string_view key) {
    for (std::size_t i = 0; i + 1 < map.children.size(); i += 2)
        if (map.children[i]->kind == Node::Kind::scalar && map.children[i]->text == key) return i + 1;
    return map.children.size();
}

}  // namespace

struct Sources::Digest {
    Context all = begin_digest();
};

Sources::Sources(Reporter& reporter) : reporter_(reporter), digest_(std::make_unique<Digest>()) {}

Sources::~Sources() = default;

std::string Sources::sha256() const {
    Context copy(EVP_MD_CTX_new());
    if (copy == nullptr || digest_->all == nullptr || EVP_MD_CTX_copy_ex(copy.get(), digest_->all.get()) != 1)
        return "";
    return hex_of(copy.get());
}

void Sources::add(const std::string& path, std::string_view text, bool keep) {
    add_to(digest_->all, text);
    const Context own = begin_digest();
    add_to(own, text);
    SourceFile& file = files_.emplace_back(SourceFile{path, hex_of(own.get()), nullptr});
    if (!keep) return;
    kept_bytes_ += text.size();
    if (kept_bytes_ <= kMaxKeptBytes) {
        file.text = std::make_shared<const std::string>(text);
    } else {  // all or none: half a configuration would look like a whole one
        for (SourceFile& each : files_) each.text.reset();
    }
}

void Sources::add_data(const std::string& path, std::string_view text) { add(path, text, false); }

const Node* Sources::parse(std::string_view text, std::uint16_t file) {
    auto document = parse_yaml(text, reporter_, file);
    if (document == nullptr) return nullptr;
    nodes_ += std::max<std::size_t>(document->nodes.size(), document->root->expanded);
    if (nodes_ > kMaxNodes + kMaxAliasNodes) {
        reporter_.error(0, 0, "", fmt::format("more than {} values in all files", kMaxNodes + kMaxAliasNodes), file);
        return nullptr;
    }
    documents_.push_back(std::move(document));
    return documents_.back()->root;
}

const Node* Sources::read(std::string_view text) {
    bytes_ = text.size();
    add(reporter_.path(0), text, true);
    const Node* root = parse(text, 0);
    if (root == nullptr || root->kind != Node::Kind::map) return root;
    const Node* const includes = find(*root, kInclude);
    if (includes == nullptr) return root;
    const Path top{};
    const Value value{includes, {&top, kInclude}};
    if (includes->kind != Node::Kind::sequence) {
        reporter_.error(value, "is no list; allowed: a list of files or patterns such as [tenants.d/*.yaml]");
        return nullptr;
    }
    std::vector<const Node*> roots;
    bool right = true;
    for (std::size_t i = 0; i < includes->children.size(); ++i)
        right &= include(Value{includes->children[i], {&value.path, {}, i}}, roots);
    if (!right) return nullptr;
    Node& merged = copy(*root);
    for (const Node* from : roots) merge(merged, *from, top);
    return &merged;
}

// False, and reported: a file can't be read, and what it holds would be missing everywhere.
bool Sources::include(const Value& value, std::vector<const Node*>& roots) {
    if (value.node->kind != Node::Kind::scalar || value.node->text.empty()) {
        reporter_.error(value, "is no file; allowed: a path, or a pattern such as tenants.d/*.yaml");
        return false;
    }
    const std::string& pattern = value.node->text;
    const auto paths =
        has_wildcard(pattern) ? matches(reporter_.path(0), pattern) : std::vector{beside(reporter_.path(0), pattern)};
    if (paths.empty())
        reporter_.warning(value.node->line, value.node->column, value.path.text(), quote(pattern) + " matches no file",
                          value.node->file);
    return std::all_of(paths.begin(), paths.end(),
                       [&](const std::string& path) { return read_included(path, value, roots); });
}

bool Sources::read_included(const std::string& path, const Value& pattern, std::vector<const Node*>& roots) {
    const auto is_this = [&path](const SourceFile& file) {
        std::error_code error;
        return file.path == path || std::filesystem::equivalent(file.path, path, error);
    };
    if (is_this(files_.front())) {
        reporter_.error(pattern, fmt::format("{} is this very file", path));
        return false;
    }
    if (std::any_of(files_.begin(), files_.end(), is_this)) return true;  // two patterns fit it
    if (roots.size() == kMaxIncluded) {
        reporter_.error(pattern, fmt::format("more than {} files are included", kMaxIncluded));
        return false;
    }
    std::string why;
    const auto text = read_text_file(path, kMaxFileBytes, why);
    if (!text) {
        reporter_.error(pattern, fmt::format("{}: {}", path, why));
        return false;
    }
    bytes_ += text->size();
    if (bytes_ > kMaxFileBytes) {
        reporter_.error(pattern,
                        fmt::format("{}: with it all files are larger than {} MiB", path, kMaxFileBytes >> 20));
        return false;
    }
    const std::uint16_t file = reporter_.add_file(path);
    add(path, *text, true);
    const Node* root = parse(*text, file);
    if (root == nullptr) return false;
    if (root->kind == Node::Kind::null) {
        reporter_.warning(0, 0, "", "is empty", file);
        return true;
    }
    if (root->kind != Node::Kind::map) {
        reporter_.error(Value{root, {}}, "is no map; allowed: keys as in the file that includes it");
        return false;
    }
    roots.push_back(root);
    return true;
}

Node& Sources::copy(const Node& node) { return merged_.emplace_back(node); }

// `into` is a node of merged_.
void Sources::merge(Node& into, const Node& from, const Path& path) {
    const bool top = path.parent == nullptr && path.key.empty();
    for (std::size_t i = 0; i + 1 < from.children.size(); i += 2) {
        const Node& key = *from.children[i];
        const Node& value = *from.children[i + 1];
        const Value at_key{&key, {&path, key.text}};
        if (top && key.text == kInclude) {
            reporter_.error(at_key, "an included file includes nothing; allowed: in the first file only");
            continue;
        }
        if (top && key.text == "description" && value.kind == Node::Kind::scalar) continue;  // each file may have one
        const std::size_t place = key.kind == Node::Kind::scalar ? place_of(into, key.text) : into.children.size();
        const bool again =
            key.kind == Node::Kind::scalar && place_of(from, key.text) != i + 1;  // in one file: an error
        if (again || place == into.children.size()) {
            into.children.push_back(&key);
            into.children.push_back(&value);
            continue;
        }
        const Node& there = *into.children[place];
        const bool lists = there.kind == Node::Kind::sequence && value.kind == Node::Kind::sequence;
        const bool maps = there.kind == Node::Kind::map && value.kind == Node::Kind::map;
        if (!lists && !maps) {
            reporter_.error(at_key, fmt::format("is set twice; the first stands in {}",
                                                reporter_.say(origin(*into.children[place - 1]), at_key)));
            continue;
        }
        Node& both = copy(there);
        into.children[place] = &both;
        if (maps) {
            merge(both, value, *reporter_.keep(at_key.path));
        } else {
            both.children.insert(both.children.end(), value.children.begin(), value.children.end());
        }
    }
}

}  // namespace cachewire::config
