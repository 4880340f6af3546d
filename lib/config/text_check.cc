// SPDX-License-Identifier: BSD-3-Clause
#include "config/text_check.h"

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace cachewire::config {
namespace {

// yaml-cpp holds every token of an open bracket in memory (about 150 bytes each) until it is closed.
constexpr std::size_t kMaxBrackets = 8'000'000;

// Bytes of the UTF-8 sequence at the front, 0 when it is none (RFC 3629: shortest form, no surrogates, up to U+10FFFF).
std::size_t utf8_length(std::string_view s) {
    const auto byte = [s](std::size_t i) { return i < s.size() ? static_cast<std::uint8_t>(s[i]) : std::uint8_t{0}; };
    const auto tail = [&byte](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
    const std::uint8_t lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead <= 0xdf) return tail(1) ? 2 : 0;
    if (lead >= 0xe0 && lead <= 0xef) {
        const bool shortest = lead != 0xe0 || byte(1) >= 0xa0;
        const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
        return tail(1) && tail(2) && shortest && !surrogate ? 3 : 0;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        const bool in_range = (lead != 0xf0 || byte(1) >= 0x90) && (lead != 0xf4 || byte(1) < 0x90);
        return tail(1) && tail(2) && tail(3) && in_range ? 4 : 0;
    }
    return 0;
}

// What is wrong with the byte at the front of `rest`; empty when nothing is.
std::string byte_problem(std::string_view rest, bool in_indentation) {
    const auto byte = static_cast<std::uint8_t>(rest.front());
    if (byte == '\t') return in_indentation ? "a tab in the indentation; allowed: spaces" : "";
    if (byte == '\n') return "";
    if (byte == '\r') return "a carriage return; allowed: lines that end in LF (dos2unix FILE)";
    if (byte < 0x20 || byte == 0x7f) return fmt::format("byte 0x{:02x} is not text; allowed: UTF-8 text", byte);
    if (utf8_length(rest) == 0) return fmt::format("byte 0x{:02x} is not UTF-8; allowed: UTF-8 text", byte);
    return "";
}

}  // namespace

std::optional<TextProblem> check_text(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) return TextProblem{1, 1, "a byte order mark; allowed: UTF-8 without one"};
    // JSON may be indented with tabs; YAML's blocks may not.
    const std::size_t first = text.find_first_not_of(" \t\n");
    const bool is_json = first != std::string_view::npos && text[first] == '{';
    unsigned line = 1;
    std::size_t line_start = 0, brackets = 0;
    bool in_indentation = true;
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        std::string problem = byte_problem(text.substr(i), in_indentation && !is_json);
        if (problem.empty() && (c == '[' || c == '{' || c == ',') && ++brackets > kMaxBrackets) {
            problem = fmt::format("more than {} brackets and commas in one file", kMaxBrackets);
        }
        if (!problem.empty()) return TextProblem{line, static_cast<unsigned>(i - line_start) + 1, std::move(problem)};
        in_indentation = c == '\n' || (in_indentation && (c == ' ' || c == '\t'));
        i += utf8_length(text.substr(i));
        if (c == '\n') {
            ++line;
            line_start = i;
        }
    }
    return std::nullopt;
}

}  // namespace cachewire::config
