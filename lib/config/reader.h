#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Strict reading of a YAML tree by schema. A MapReader is made with the table of every key its object may have; making
// it reports unknown, repeated and not yet supported keys, so no section can forget to. The read_* functions do nothing
// for an absent value, report a wrong one and leave `out` alone: the struct's initial values are the defaults.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/diagnostics.h"
#include "config/yaml.h"
#include "net/mac.h"
#include "net/prefix.h"

namespace cachewire::config {

struct Key {
    std::string_view name;
    bool supported = true;  // false: a later version brings it; refused, never ignored
};
inline constexpr bool kLater = false;

class MapReader {
  public:
    static constexpr std::size_t kMaxKeys = 40;

    // `description` is a key of every object and need not be in the table. A value that is no map is reported and reads
    // as an empty one; valid() tells.
    MapReader(Reporter& reporter, const Value& map, std::span<const Key> keys);

    [[nodiscard]] bool valid() const noexcept { return map_.node != nullptr; }
    [[nodiscard]] std::optional<Value> get(std::string_view key) const;
    // Reports when absent.
    [[nodiscard]] std::optional<Value> require(std::string_view key) const;
    // It has a key that was refused as not supported yet: what else it lacks may follow from that.
    [[nodiscard]] bool has_later_keys() const noexcept { return has_later_keys_; }
    // The object itself, for what is wrong with it as a whole.
    [[nodiscard]] const Value& self() const noexcept { return self_; }

  private:
    void take(const Node& key, const Node& value);
    [[nodiscard]] std::string why_without_value(std::string_view word) const;
    void report_unknown(const Node& key, const Node& value) const;

    Reporter& reporter_;
    Value self_;
    Value map_{};
    const Path* path_ = nullptr;
    std::span<const Key> keys_;
    std::array<const Node*, kMaxKeys> values_{};
    bool has_description_ = false;
    bool has_later_keys_ = false;
};

// Items of a list; empty when absent, and when it is no list, which is reported.
std::vector<Value> read_list(Reporter& reporter, const std::optional<Value>& value);

// A scalar's text. `wanted` says what is allowed when it is none ("text", "a prefix such as 10.0.0.0/8").
std::optional<std::string_view> read_scalar(Reporter& reporter, const std::optional<Value>& value,
                                            std::string_view wanted);

// A scalar in a notation of its own. `parse(text, why)`: the value, or why there is none; `fault(value)`: what is wrong
// with one that was understood, as said after the quoted text (" is out of range"), or "".
template <class Parse, class Fault>
auto read_parsed(Reporter& reporter, const std::optional<Value>& value, std::string_view allowed, Parse parse,
                 Fault fault) -> decltype(parse(std::string_view{}, std::declval<std::string&>())) {
    const auto text = read_scalar(reporter, value, allowed);
    if (!text) return std::nullopt;
    std::string why;
    auto parsed = parse(*text, why);
    if (parsed) {
        const std::string_view wrong = fault(*parsed);
        if (wrong.empty()) return parsed;
        why = quote(*text).append(wrong);
    }
    reporter.error(*value, fmt::format("{}; allowed: {}", why, allowed));
    return std::nullopt;
}
inline constexpr std::string_view kOutOfRange = " is out of range";

std::optional<std::uint64_t> read_integer(Reporter& reporter, const std::optional<Value>& value, std::uint64_t min,
                                          std::uint64_t max, std::string_view or_else = "");

// Plain decimal in min..max.
template <class T>
void read_number(Reporter& reporter, const std::optional<Value>& value, T& out, std::uint64_t min, std::uint64_t max) {
    if (const auto number = read_integer(reporter, value, min, max)) out = static_cast<T>(*number);
}
// The same, or "auto", which stays `out`'s initial value.
bool is_auto(const std::optional<Value>& value);
template <class T>
void read_auto_or_number(Reporter& reporter, const std::optional<Value>& value, T& out, std::uint64_t min,
                         std::uint64_t max) {
    if (is_auto(value)) return;
    if (const auto number = read_integer(reporter, value, min, max, "auto or ")) out = static_cast<T>(*number);
}

void read_bool(Reporter& reporter, const std::optional<Value>& value, bool& out);
// [a-z][a-z0-9_.-]{0,30}
std::optional<std::string> read_name(Reporter& reporter, const std::optional<Value>& value);
std::optional<net::ParsedAddress> read_address(Reporter& reporter, const std::optional<Value>& value);
// A network: host bits are an error that names the normal form.
std::optional<net::Prefix> read_prefix(Reporter& reporter, const std::optional<Value>& value);
// An address with its prefix length, host bits welcome.
std::optional<net::ParsedPrefix> read_interface_address(Reporter& reporter, const std::optional<Value>& value);
// Unicast and not zero.
std::optional<net::Mac> read_mac(Reporter& reporter, const std::optional<Value>& value, std::string_view or_else = "");

template <class E>
struct Choice {
    std::string_view text;
    std::optional<E> value;  // nullopt: a later version brings it
};

// Index of the word that the value is, among words; reports others.
std::optional<std::size_t> read_word(Reporter& reporter, const std::optional<Value>& value,
                                     std::span<const std::string_view> words, std::span<const bool> supported);

template <class E, std::size_t N>
bool read_choice(Reporter& reporter, const std::optional<Value>& value, E& out, const Choice<E> (&choices)[N]) {
    std::array<std::string_view, N> words;
    std::array<bool, N> supported;
    for (std::size_t i = 0; i < N; ++i) {
        words[i] = choices[i].text;
        supported[i] = choices[i].value.has_value();
    }
    const auto index = read_word(reporter, value, words, supported);
    if (index) out = *choices[*index].value;
    return index.has_value();
}

}  // namespace cachewire::config
