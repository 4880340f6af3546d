// SPDX-License-Identifier: BSD-3-Clause
#include "config/reader.h"

#include <algorithm>
#include <cassert>

#include "config/units.h"

namespace cachewire::config {
namespace {

constexpr std::string_view kCommaHint = "quote the value: it contains a comma";

std::string_view kind_name(const Node& node) {
    switch (node.kind) {
        case Node::Kind::null:
            return "no value";
        case Node::Kind::scalar:
            return "a single value";
        case Node::Kind::sequence:
            return "a list";
        case Node::Kind::map:
            return "a map";
    }
    return "";
}

std::string wrong_kind(const Node& node, std::string_view wanted) {
    if (node.kind == Node::Kind::null) return fmt::format("has no value; allowed: {}", wanted);
    return fmt::format("is {}; allowed: {}", kind_name(node), wanted);
}

}  // namespace

MapReader::MapReader(Reporter& reporter, const Value& map, std::span<const Key> keys)
    : reporter_(reporter), self_(map), path_(reporter.keep(map.path)), keys_(keys) {
    assert(keys.size() <= kMaxKeys);
    if (map.node->kind != Node::Kind::map) {
        reporter.error(map, wrong_kind(*map.node, "a map of keys"));
        return;
    }
    map_ = map;
    const auto& children = map.node->children;
    for (std::size_t i = 0; i + 1 < children.size(); i += 2) take(*children[i], *children[i + 1]);
}

void MapReader::take(const Node& key, const Node& value) {
    if (key.kind != Node::Kind::scalar) {
        reporter_.error(Value{&key, *path_}, fmt::format("a key that is {}; allowed: a word", kind_name(key)));
        return;
    }
    const Value at_key{&key, {path_, key.text}};
    if (key.text == "description") {
        if (has_description_) reporter_.error(at_key, "this key stands twice");
        has_description_ = true;
        read_scalar(reporter_, Value{&value, at_key.path}, "text");
        return;
    }
    const auto found = std::find_if(keys_.begin(), keys_.end(), [&key](const Key& k) { return k.name == key.text; });
    if (found == keys_.end()) {
        report_unknown(key, value);
    } else if (!found->supported) {
        has_later_keys_ = true;
        reporter_.error(at_key, "not supported yet");
    } else if (const Node*& slot = values_[static_cast<std::size_t>(found - keys_.begin())]; slot != nullptr) {
        reporter_.error(at_key, "this key stands twice");
    } else {
        slot = &value;
    }
}

// {name:a} and {name = a} are one word each to YAML; {device: net_tap0,iface=cw0} ends at the comma, and the rest is a
// key.
std::string MapReader::why_without_value(std::string_view word) const {
    const std::size_t end = word.find_first_of(" :=");
    const std::string_view name = word.substr(0, end);
    const bool is_key = name == "description" ||
                        std::any_of(keys_.begin(), keys_.end(), [name](const Key& k) { return k.name == name; });
    if (end == std::string_view::npos || !is_key) return std::string(kCommaHint);
    const std::size_t value = word.find_first_not_of(" :=", end);
    const std::string_view text = value == std::string_view::npos ? "VALUE" : word.substr(value);
    std::string hint = fmt::format("write {}, with a space after the colon", quote(fmt::format("{}: {}", name, text)));
    if (word[end] == '=') hint += fmt::format(", or {}", kCommaHint);  // net_tap0,mac=fixed
    return hint;
}

void MapReader::report_unknown(const Node& key, const Node& value) const {
    const Value at_key{&key, {path_, key.text}};
    if (key.text == "<<") {
        reporter_.error(at_key,
                        "merging is not allowed; what tenants have in common belongs into `defaults: {tenant: {...}}`");
        return;
    }
    if (map_.node->flow && value.kind == Node::Kind::null) {
        reporter_.error(at_key, "a key without a value; " + why_without_value(key.text));
        return;
    }
    if (reporter_.is_full()) return reporter_.error(at_key, "unknown key");
    std::vector<std::string_view> names;
    for (const Key& k : keys_) names.push_back(k.name);
    names.push_back("description");
    const std::string_view near = nearest(key.text, names);
    if (!near.empty()) {
        reporter_.error(at_key, fmt::format("unknown key; did you mean '{}'?", near));
        return;
    }
    std::erase_if(names, [this](std::string_view name) {
        return std::any_of(keys_.begin(), keys_.end(), [name](const Key& k) { return k.name == name && !k.supported; });
    });
    reporter_.error(at_key, fmt::format("unknown key; allowed: {}", join(names)));
}

std::optional<Value> MapReader::get(std::string_view key) const {
    const auto found = std::find_if(keys_.begin(), keys_.end(), [key](const Key& k) { return k.name == key; });
    assert(found != keys_.end());
    const Node* node = values_[static_cast<std::size_t>(found - keys_.begin())];
    if (node == nullptr) return std::nullopt;
    return Value{node, {path_, found->name}};
}

std::optional<Value> MapReader::require(std::string_view key) const {
    auto value = get(key);
    if (!value && valid()) reporter_.error(Value{map_.node, {path_, key}}, "this key is missing");
    return value;
}

std::vector<Value> read_list(Reporter& reporter, const std::optional<Value>& value) {
    std::vector<Value> items;
    if (!value) return items;
    if (value->node->kind != Node::Kind::sequence) {
        reporter.error(*value, wrong_kind(*value->node, "a list"));
        return items;
    }
    const Path* path = reporter.keep(value->path);
    items.reserve(value->node->children.size());
    for (const Node* child : value->node->children) items.push_back({child, {path, {}, items.size()}});
    return items;
}

std::optional<std::string_view> read_scalar(Reporter& reporter, const std::optional<Value>& value,
                                            std::string_view wanted) {
    if (!value) return std::nullopt;
    if (value->node->kind != Node::Kind::scalar) {
        reporter.error(*value, wrong_kind(*value->node, wanted));
        return std::nullopt;
    }
    return value->node->text;
}

std::optional<std::uint64_t> read_integer(Reporter& reporter, const std::optional<Value>& value, std::uint64_t min,
                                          std::uint64_t max, std::string_view or_else) {
    const std::string wanted = fmt::format("{}{} to {}", or_else, min, max);
    const auto text = read_scalar(reporter, value, wanted);
    if (!text) return std::nullopt;
    std::string why;
    auto number = parse_decimal(*text, why);
    if (number && !value->node->plain) {
        why = quote(*text) + " is quoted and so is text, not a number";
        number.reset();
    } else if (number && (*number < min || *number > max)) {
        why = quote(*text) + " is out of range";
        number.reset();
    }
    if (!number) reporter.error(*value, fmt::format("{}; allowed: {}", why, wanted));
    return number;
}

bool is_auto(const std::optional<Value>& value) {
    return value && value->node->kind == Node::Kind::scalar && value->node->text == "auto";
}

void read_bool(Reporter& reporter, const std::optional<Value>& value, bool& out) {
    const auto text = read_scalar(reporter, value, "true | false");
    if (!text) return;
    if (value->node->plain && (*text == "true" || *text == "false")) {
        out = *text == "true";
        return;
    }
    reporter.error(*value, fmt::format("{} is not a boolean{}; allowed: true | false", quote(*text),
                                       value->node->plain ? "" : " but quoted text"));
}

std::optional<std::string> read_name(Reporter& reporter, const std::optional<Value>& value) {
    constexpr std::string_view kAllowed = "[a-z][a-z0-9_.-]{0,30}";
    const auto text = read_scalar(reporter, value, kAllowed);
    if (!text) return std::nullopt;
    const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
    const auto inner = [&lower](char c) {
        return lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
    };
    if (text->empty() || text->size() > 31 || !lower(text->front()) ||
        !std::all_of(text->begin(), text->end(), inner)) {
        reporter.error(*value, fmt::format("{} is not a name; allowed: {}", quote(*text), kAllowed));
        return std::nullopt;
    }
    return std::string(*text);
}

std::optional<std::size_t> read_word(Reporter& reporter, const std::optional<Value>& value,
                                     std::span<const std::string_view> words, std::span<const bool> supported) {
    std::string allowed;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (supported[i]) allowed += (allowed.empty() ? "" : " | ") + std::string(words[i]);
    }
    const auto text = read_scalar(reporter, value, allowed);
    if (!text) return std::nullopt;
    const auto found = std::find(words.begin(), words.end(), *text);
    const auto index = static_cast<std::size_t>(found - words.begin());
    if (found != words.end() && supported[index]) return index;
    reporter.error(*value, fmt::format("{} is {}; allowed: {}", quote(*text),
                                       found != words.end() ? "not supported yet" : "not known", allowed));
    return std::nullopt;
}

}  // namespace cachewire::config
