// SPDX-License-Identifier: BSD-3-Clause
#include "config/route_file.h"

#include <array>

#include <fmt/format.h>

#include "config/diagnostics.h"

namespace cachewire::config {

namespace {

struct Word {
    std::string_view text;
    unsigned column;
};

struct Words {
    std::array<Word, 8> word;
    std::size_t count = 0;  // may be more than are kept
};

Words split(std::string_view line) {
    Words words;
    for (std::size_t at = 0; at < line.size();) {
        const std::size_t first = line.find_first_not_of(" \t\r", at);
        if (first == std::string_view::npos) break;
        const std::size_t end = std::min(line.find_first_of(" \t\r", first), line.size());
        if (words.count < words.word.size())
            words.word[words.count] = {line.substr(first, end - first), static_cast<unsigned>(first + 1)};
        ++words.count;
        at = end;
    }
    return words;
}

bool fail(RouteLine& out, unsigned column, std::string text) {
    out.column = column;
    out.error = std::move(text);
    return false;
}

bool read_prefix_word(const Word& word, RouteLine& out) {
    const auto parsed = net::parse_prefix(word.text);
    if (!parsed)
        return fail(out, word.column,
                    fmt::format("{} is not a prefix; allowed: ADDRESS/LENGTH such as 10.0.0.0/8 or 2001:db8::/32",
                                quote(word.text)));
    if (parsed->host_bits_set)
        return fail(out, word.column,
                    fmt::format("{} has host bits set; allowed: the network, {}", quote(word.text),
                                net::to_string(parsed->prefix)));
    out.prefix = parsed->prefix;
    return true;
}

void read_prefixes_line(const Words& words, RouteLine& out) {
    constexpr std::string_view kForm = "PREFIX via ADDRESS, or PREFIX drop";
    if (!read_prefix_word(words.word[0], out)) return;
    out.drop = words.count == 2 && words.word[1].text == "drop";
    if (out.drop) return;
    if (words.count != 3 || words.word[1].text != "via") {
        const Word& wrong = words.word[words.count > 3 && words.word[1].text == "via" ? 3 : words.count > 1 ? 1 : 0];
        fail(out, wrong.column, fmt::format("not a route; allowed: {}", kForm));
        return;
    }
    out.target = words.word[2].text;
    out.column = words.word[2].column;
}

void read_l3fwd_line(const Words& words, RouteLine& out) {
    Word first = words.word[0];
    std::size_t next = 1;
    if (first.text[0] != 'R') {
        fail(out, first.column, fmt::format("{} does not begin with R; allowed: RPREFIX PORT", quote(first.text)));
        return;
    }
    first.text.remove_prefix(1);
    ++first.column;
    if (first.text.empty() && words.count > 1) first = words.word[next++];  // "R 10.0.0.0/8 0"
    if (words.count >= next + 4) {
        fail(out, first.column, "a 5-tuple of l3fwd's exact-match mode, which is no route; allowed: RPREFIX PORT");
        return;
    }
    if (!read_prefix_word(first, out)) return;
    if (words.count != next + 1) {
        fail(out, words.count <= next ? first.column : words.word[next + 1].column,
             "not a route; allowed: RPREFIX PORT");
        return;
    }
    out.target = words.word[next].text;
    out.column = words.word[next].column;
}

}  // namespace

void for_each_route_line(std::string_view text, RouteFormat format, const std::function<bool(const RouteLine&)>& each) {
    for (unsigned number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        line = line.substr(0, line.find('#'));
        const Words words = split(line);
        if (words.count == 0) continue;
        RouteLine out;
        out.line = number;
        if (format == RouteFormat::prefixes) {
            read_prefixes_line(words, out);
        } else {
            read_l3fwd_line(words, out);
        }
        if (!each(out)) return;
    }
}

}  // namespace cachewire::config
