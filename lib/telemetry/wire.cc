// SPDX-License-Identifier: BSD-3-Clause
#include "telemetry/wire.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

namespace cachewire::telemetry {

namespace {

bool is_key_character(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '/';
}

std::string wire_key(std::string_view key) {
    std::string out(key.substr(0, kMaxKeyBytes));
    for (char& c : out) {
        if (!is_key_character(c)) c = '_';
    }
    return out.empty() ? "_" : out;
}

// Next code point of UTF-8 text, removed from its front; U+FFFD for a byte that begins none (RFC 3629: no surrogates,
// no overlong forms).
char32_t take_code_point(std::string_view& text) {
    const auto first = static_cast<unsigned char>(text[0]);
    const unsigned length = first < 0x80   ? 1
                            : first < 0xc2 ? 0
                            : first < 0xe0 ? 2
                            : first < 0xf0 ? 3
                            : first < 0xf5 ? 4
                                           : 0;
    char32_t c = length == 1 ? first : first & (0x7fU >> length);
    bool good = length != 0 && length <= text.size();
    for (unsigned i = 1; good && i < length; ++i) {
        const auto next = static_cast<unsigned char>(text[i]);
        good = (next & 0xc0) == 0x80;
        c = c << 6 | (next & 0x3f);
    }
    static constexpr char32_t kLowest[] = {0, 0, 0x80, 0x800, 0x10000};
    good = good && c >= kLowest[length] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
    text.remove_prefix(good ? length : 1);
    return good ? c : 0xfffd;
}

// One character as the socket may carry it. Newline, return and tab are the control characters that the library
// escapes.
std::string wire_character(char32_t c) {
    if ((c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t') return {static_cast<char>(c)};
    if (c <= 0xffff) return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    return fmt::format("\\U{:08x}", static_cast<unsigned>(c));
}

bool is_unsigned(const Json& v) {
    return v.is_number_unsigned() || v.is_boolean() || (v.is_number_integer() && v.get<std::int64_t>() >= 0);
}

bool is_small_signed(const Json& v) {
    if (is_unsigned(v))
        return !v.is_number_unsigned() || v.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
    return v.is_number_integer() && v.get<std::int64_t>() >= std::numeric_limits<std::int32_t>::min();
}

Json wire_scalar(const Json& v) {
    if (v.is_string()) return wire_string(v.get_ref<const std::string&>());
    if (v.is_boolean()) return v.get<bool>() ? 1U : 0U;
    if (v.is_null()) return "none";
    if (is_unsigned(v)) return v.get<std::uint64_t>();
    if (is_small_signed(v)) return v;
    if (v.is_number_integer()) return std::to_string(v.get<std::int64_t>());
    if (v.is_number_float()) return fmt::format("{}", v.get<double>());
    return "binary";
}

std::string too_large(const char* what, std::size_t have, std::size_t limit) {
    return fmt::format("the answer has {} {}, the telemetry socket takes {}; ask for a page: ,CURSOR,N", have, what,
                       limit);
}

// Throws std::length_error with the text for the client.
Json convert(const Json& v);

Json convert_array(const Json& array) {
    const bool scalars = std::none_of(array.begin(), array.end(), [](const Json& e) { return e.is_structured(); });
    if (!scalars) {
        Json object = Json::object();
        for (std::size_t i = 0; i < array.size(); ++i) object[std::to_string(i)] = array[i];
        return convert(object);
    }
    if (array.size() > kMaxArrayEntries)
        throw std::length_error(too_large("array elements", array.size(), kMaxArrayEntries));
    // Elements of one type: the library's arrays have one.
    const bool unsigned_only = std::all_of(array.begin(), array.end(), is_unsigned);
    const bool signed_only = std::all_of(array.begin(), array.end(), is_small_signed);
    Json out = Json::array();
    for (const Json& e : array) {
        Json scalar = wire_scalar(e);
        if (!unsigned_only && !signed_only && !scalar.is_string()) scalar = scalar.dump();
        out.push_back(std::move(scalar));
    }
    return out;
}

Json convert(const Json& v) {
    if (v.is_array()) return convert_array(v);
    if (!v.is_object()) return wire_scalar(v);
    if (v.size() > kMaxEntries) throw std::length_error(too_large("entries", v.size(), kMaxEntries));
    Json out = Json::object();
    for (const auto& [key, value] : v.items()) out[wire_key(key)] = convert(value);
    return out;
}

}  // namespace

bool is_wire_key(std::string_view key) {
    return !key.empty() && key.size() <= kMaxKeyBytes && std::all_of(key.begin(), key.end(), is_key_character);
}

std::vector<std::string> unfit_keys(const Json& value) {
    std::vector<std::string> unfit;
    if (!value.is_structured()) return unfit;
    for (const auto& [key, child] : value.items()) {
        if (value.is_object() && !is_wire_key(key)) unfit.push_back(key);
        const auto below = unfit_keys(child);
        unfit.insert(unfit.end(), below.begin(), below.end());
    }
    return unfit;
}

std::string wire_string(std::string_view text) {
    constexpr std::string_view kCut = "...";
    std::string out;
    std::size_t room_for_cut = 0;  // longest prefix of whole characters that leaves room for the mark
    while (!text.empty()) {
        out += wire_character(take_code_point(text));
        if (out.size() > kMaxStringBytes) return out.substr(0, room_for_cut).append(kCut);
        if (out.size() <= kMaxStringBytes - kCut.size()) room_for_cut = out.size();
    }
    return out;
}

std::size_t wire_bytes(const Json& wire_value) { return wire_value.dump().size(); }

Json to_wire(const Json& value) {
    std::string problem;
    try {
        Json out = convert(value.is_structured() ? value : Json{{"value", value}});
        const std::size_t bytes = wire_bytes(out);
        if (bytes <= kMaxAnswerBytes) return out;
        problem = too_large("bytes", bytes, kMaxAnswerBytes);
    } catch (const std::length_error& e) {
        problem = e.what();
    }
    return {{"error", wire_string(problem)}};
}

}  // namespace cachewire::telemetry
