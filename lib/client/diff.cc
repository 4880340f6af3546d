// SPDX-License-Identifier: BSD-3-Clause
#include "client/diff.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

namespace cachewire::client {

namespace {

constexpr std::size_t kContext = 3;
// Lines of both sides multiplied, past equal beginnings and ends: beyond that all of one side stands before all of the
// other.
constexpr std::size_t kMaxCells = 4'000'000;

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

struct Line {
    char sign;  // ' ', '-' or '+'
    std::string_view text;
};

// Longest common subsequence, by the table of what is left.
void compare(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b, std::size_t begin,
             std::size_t a_end, std::size_t b_end, std::vector<Line>& out) {
    const std::size_t n = a_end - begin, m = b_end - begin;
    std::vector<std::uint32_t> left;
    const bool fits = n * m <= kMaxCells;
    if (fits) left.resize((n + 1) * (m + 1));
    const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& { return left[i * (m + 1) + j]; };
    for (std::size_t i = fits ? n : 0; i-- > 0;)
        for (std::size_t j = m; j-- > 0;)
            at(i, j) = a[begin + i] == b[begin + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    std::size_t i = 0, j = 0;
    while (i < n || j < m) {
        if (fits && i < n && j < m && a[begin + i] == b[begin + j]) {
            out.push_back({' ', a[begin + i]});
            ++i, ++j;
        } else if (i < n && (!fits || j == m || at(i + 1, j) >= at(i, j + 1))) {
            out.push_back({'-', a[begin + i++]});
        } else {
            out.push_back({'+', b[begin + j++]});
        }
    }
}

// "@@ -3,7 +3,8 @@": both sides' first line and number of lines.
std::string hunk(const std::vector<Line>& lines, std::size_t from, std::size_t to) {
    std::size_t before = 1, after = 1, removed = 0, added = 0;
    for (std::size_t k = 0; k < from; ++k) {
        before += lines[k].sign != '+';
        after += lines[k].sign != '-';
    }
    std::string text;
    for (std::size_t k = from; k < to; ++k) {
        removed += lines[k].sign != '+';
        added += lines[k].sign != '-';
        text += fmt::format("{}{}\n", lines[k].sign, lines[k].text);
    }
    return fmt::format("@@ -{},{} +{},{} @@\n{}", removed == 0 ? before - 1 : before, removed,
                       added == 0 ? after - 1 : after, added, text);
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, std::string_view before_name,
                         std::string_view after_name) {
    if (before == after) return "";
    const auto a = lines_of(before), b = lines_of(after);
    std::size_t begin = 0, a_end = a.size(), b_end = b.size();
    while (begin < a_end && begin < b_end && a[begin] == b[begin]) ++begin;
    while (a_end > begin && b_end > begin && a[a_end - 1] == b[b_end - 1]) --a_end, --b_end;
    std::vector<Line> lines;
    for (std::size_t k = 0; k < begin; ++k) lines.push_back({' ', a[k]});
    compare(a, b, begin, a_end, b_end, lines);
    for (std::size_t k = a_end; k < a.size(); ++k) lines.push_back({' ', a[k]});
    std::string text = fmt::format("--- {}\n+++ {}\n", before_name, after_name);
    if (a == b) return text + "\\ only the line feed at the end of the file\n";
    const auto differs = [](const Line& line) { return line.sign != ' '; };
    for (auto at = std::find_if(lines.begin(), lines.end(), differs); at != lines.end();) {
        // As far as no more than twice the context lies between one difference and the next.
        auto last = at;
        for (auto next = at; next != lines.end() && static_cast<std::size_t>(next - last) <= 2 * kContext; ++next)
            if (differs(*next)) last = next;
        const auto from = static_cast<std::size_t>(at - lines.begin()),
                   to = static_cast<std::size_t>(last - lines.begin()) + 1;
        text += hunk(lines, from - std::min(from, kContext), std::min(to + kContext, lines.size()));
        at = std::find_if(last + 1, lines.end(), differs);
    }
    return text;
}

}  // namespace cachewire::client
