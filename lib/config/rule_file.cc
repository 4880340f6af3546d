// SPDX-License-Identifier: BSD-3-Clause
#include "config/rule_file.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "net/prefix.h"

namespace cachewire::config {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::uint8_t kIcmpProto = 1, kTcp = 6, kIcmpv6 = 58;  // IANA protocol numbers

struct Token {
    std::string_view text;
    unsigned column = 0;
};

// As strtoul with base 0 reads it, which dpdk-l3fwd uses: 0x10, 020 and 16 are the same.
std::optional<std::uint32_t> parse_c_number(std::string_view text, std::uint32_t max) {
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text.remove_prefix(2);
    } else if (text.size() > 1 && text[0] == '0') {
        base = 8;
    }
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value > max) return std::nullopt;
    return value;
}

struct Masked {
    std::uint32_t value, mask;
};

std::optional<Masked> parse_masked(std::string_view text, std::uint32_t max) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto value = parse_c_number(text.substr(0, slash), max);
    const auto mask = parse_c_number(text.substr(slash + 1), max);
    if (!value || !mask) return std::nullopt;
    return Masked{*value, *mask};
}

// One line. Each read_* takes the next token and ends the line's reading when it is wrong.
class RuleLine {
  public:
    RuleLine(std::string_view text, unsigned number, RuleFormat format, Reporter& reporter)
        : text_(text), line_(number), format_(format), reporter_(reporter) {}

    std::optional<AclRule> read() {
        rule_.line = line_;
        rule_.action = text_[0] == 'R' ? AclAction::permit : AclAction::deny;
        at_ = 1;
        const bool right = read_prefix("source", rule_.src) && read_prefix("destination", rule_.dst) &&
                           check_families() && read_ports("source", rule_.src_ports) &&
                           read_ports("destination", rule_.dst_ports) && read_protocol() && read_rest();
        if (!right) return std::nullopt;
        return rule_;
    }

  private:
    Token next() {
        const std::size_t begin = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
        const std::size_t end = std::min(text_.find_first_of(kBlanks, begin), text_.size());
        at_ = end;
        return {text_.substr(begin, end - begin), static_cast<unsigned>(begin + 1)};
    }
    Token peek() {
        const std::size_t at = at_;
        const Token token = next();
        at_ = at;
        return token;
    }

    bool fail(const Token& token, const std::string& allowed) {
        const std::string what = token.text.empty() ? "the line ends here" : quote(token.text) + " is wrong";
        reporter_.error(line_, token.column, "", fmt::format("{}; allowed: {}", what, allowed));
        return false;
    }

    // Host bits are cleared, as rte_acl does. A length of 0 still names a family.
    bool read_prefix(std::string_view which, std::optional<net::Prefix>& out) {
        const Token token = next();
        const std::size_t slash = token.text.find('/');
        if (slash != std::string_view::npos) {
            const auto length = parse_c_number(token.text.substr(slash + 1), 128);
            const auto prefix =
                length ? net::parse_prefix(fmt::format("{}/{}", token.text.substr(0, slash), *length)) : std::nullopt;
            if (prefix) {
                out = prefix->prefix;
                return true;
            }
        }
        return fail(token, fmt::format("a {} prefix such as 10.0.0.0/8 or 2001:db8::/32", which));
    }

    bool check_families() {
        if (rule_.src->family == rule_.dst->family) return true;
        reporter_.error(line_, 1, "", "source and destination are of different families");
        return false;
    }

    bool read_ports(std::string_view which, std::optional<PortRange>& out) {
        const std::string allowed = fmt::format("{} ports as LOW : HIGH, 0 to 65535, blanks around the colon", which);
        const Token low = next(), colon = next(), high = next();
        const auto first = parse_c_number(low.text, 65535), last = parse_c_number(high.text, 65535);
        if (!first) return fail(low, allowed);
        if (colon.text != ":") return fail(colon, allowed);
        if (!last || *last < *first) return fail(high, allowed);
        if (*first != 0 || *last != 65535)
            out = PortRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
        return true;
    }

    bool read_protocol() {
        const Token token = next();
        const auto proto = parse_masked(token.text, 255);
        if (!proto || (proto->mask != 0 && proto->mask != 0xff))
            return fail(token, "PROTOCOL/MASK such as 0x06/0xFF, 0x00 as the mask for any");
        if (proto->mask != 0) rule_.proto = static_cast<std::uint8_t>(proto->value);
        return true;
    }

    bool read_rest() {
        if (format_ == RuleFormat::classbench && peek().text.find('/') != std::string_view::npos && !read_flags())
            return false;
        if (rule_.action == AclAction::deny && format_ == RuleFormat::l3fwd_acl) return true;
        const Token token = next();
        if (rule_.action == AclAction::permit) {
            // ClassBench's own files have no such column.
            if (token.text.empty() && format_ == RuleFormat::classbench) return true;
            if (!parse_c_number(token.text, 0xffffffff))
                return fail(token, "the number of a port at the end of R lines");
        } else if (!token.text.empty()) {
            return fail(token, "nothing behind PROTOCOL/MASK and FLAGS/MASK");
        }
        return true;
    }

    bool read_flags() {
        const Token token = next();
        const auto flags = parse_masked(token.text, 0xffff);
        if (!flags || (flags->mask & 0xff) != 0)
            return fail(token, "FLAGS/MASK such as 0x0200/0x1200, of the upper byte");
        const auto value = static_cast<std::uint8_t>(flags->value >> 8),
                   mask = static_cast<std::uint8_t>(flags->mask >> 8);
        if (mask == 0) return true;
        if (rule_.proto == kTcp) {
            rule_.tcp_flags = value & mask;
            rule_.tcp_flags_mask = mask;
            return true;
        }
        if ((rule_.proto == kIcmpProto || rule_.proto == kIcmpv6) && mask == 0xff) {
            rule_.icmp_type = value;
            return true;
        }
        return fail(token, "a mask other than 0 for TCP's flags, or 0xff00 for ICMP's type");
    }

    std::string_view text_;
    unsigned line_;
    RuleFormat format_;
    Reporter& reporter_;
    std::size_t at_ = 0;
    AclRule rule_;
};

}  // namespace

std::vector<AclRule> parse_rule_file(std::string_view text, RuleFormat format, Reporter& reporter) {
    std::vector<AclRule> rules;
    rules.reserve(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1);
    unsigned number = 0;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        ++number;
        const std::size_t begin = line.find_first_not_of(kBlanks);
        if (begin == std::string_view::npos || line[begin] == '#') continue;
        if (line[0] != '@' && line[0] != 'R') {
            reporter.error(number, static_cast<unsigned>(begin + 1), "",
                           "a line begins with @ (deny), R (permit) or # (a comment)");
            continue;
        }
        if (auto rule = RuleLine(line, number, format, reporter).read()) rules.push_back(std::move(*rule));
    }
    return rules;
}

}  // namespace cachewire::config
