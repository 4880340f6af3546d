// SPDX-License-Identifier: BSD-3-Clause
// One rule: its keys, and what can't stand together because no packet has both.
#include <algorithm>

#include <fmt/format.h>

#include "config/sections.h"
#include "config/units.h"

namespace cachewire::config {
namespace {

constexpr Key kRule[] = {{"name"},      {"action"},    {"in"},        {"proto"},    {"src"},    {"dst"},
                         {"src_ports"}, {"dst_ports"}, {"tcp_flags"}, {"icmp"},     {"dscp"},   {"fragment"},
                         {"out"},       {"class"},     {"policer"},   {"next_hop"}, {"capture"}};
constexpr Key kIcmp[] = {{"type"}, {"code"}};
constexpr Choice<FragmentMatch> kFragments[] = {{"none", FragmentMatch::none},
                                                {"first", FragmentMatch::first},
                                                {"later", FragmentMatch::later},
                                                {"any", FragmentMatch::any_fragment}};

struct Named {
    std::string_view name;
    std::uint8_t value;
};
constexpr std::uint8_t kIcmpProto = 1, kTcp = 6, kUdp = 17, kIcmpv6 = 58, kSctp = 132;  // IANA protocol numbers
constexpr Named kProtocols[] = {
    {"tcp", kTcp}, {"udp", kUdp}, {"icmp", kIcmpProto}, {"icmpv6", kIcmpv6}, {"sctp", kSctp}};
constexpr Named kTcpFlags[] = {{"fin", 1},  {"syn", 2},  {"rst", 4},  {"psh", 8},
                               {"ack", 16}, {"urg", 32}, {"ece", 64}, {"cwr", 128}};
// RFC 2474, 2597, 3246, 5865, 8622
constexpr Named kDscps[] = {{"cs0", 0},   {"cs1", 8},   {"cs2", 16},  {"cs3", 24},  {"cs4", 32},  {"cs5", 40},
                            {"cs6", 48},  {"cs7", 56},  {"af11", 10}, {"af12", 12}, {"af13", 14}, {"af21", 18},
                            {"af22", 20}, {"af23", 22}, {"af31", 26}, {"af32", 28}, {"af33", 30}, {"af41", 34},
                            {"af42", 36}, {"af43", 38}, {"ef", 46},   {"va", 44},   {"le", 1},    {"be", 0}};

std::optional<std::uint8_t> find_named(std::span<const Named> table, std::string_view name) {
    const auto found = std::find_if(table.begin(), table.end(), [name](const Named& n) { return n.name == name; });
    if (found == table.end()) return std::nullopt;
    return found->value;
}

// A word of the table or a number up to `max`.
std::optional<std::uint8_t> read_named(Reporter& reporter, const std::optional<Value>& value,
                                       std::span<const Named> table, std::uint64_t max, std::string_view allowed) {
    const auto text = read_scalar(reporter, value, allowed);
    if (!text) return std::nullopt;
    if (const auto named = find_named(table, *text)) return named;
    std::string why;
    const auto number = parse_decimal(*text, why);
    if (number && *number <= max) return static_cast<std::uint8_t>(*number);
    if (number) why = quote(*text) + " is out of range";
    if (!text->empty() && (*text)[0] >= 'A') why = quote(*text) + " is not known";
    reporter.error(*value, fmt::format("{}; allowed: {}", why, allowed));
    return std::nullopt;
}

std::optional<PortRange> read_port_range(Reporter& reporter, const std::optional<Value>& value) {
    const auto range = read_parsed(reporter, value, "a port or a range such as 80-443, from 0 to 65535", parse_range,
                                   [](const Range& r) { return r.last > 65535 ? kOutOfRange : ""; });
    if (!range) return std::nullopt;
    return PortRange{static_cast<std::uint16_t>(range->first), static_cast<std::uint16_t>(range->last)};
}

// "syn,ack" or "none"; nullopt with the word that is no flag in `wrong`.
std::optional<std::uint8_t> parse_flag_set(std::string_view text, std::string_view& wrong) {
    if (text == "none") return std::uint8_t{0};
    std::uint8_t set = 0;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        wrong = text.substr(begin, end - begin);
        const auto flag = find_named(kTcpFlags, wrong);
        if (!flag) return std::nullopt;
        set |= *flag;
        begin = end + 1;
    }
    return set;
}

void read_tcp_flags(Reporter& reporter, const std::optional<Value>& value, AclRule& rule) {
    constexpr std::string_view kAllowed =
        "SET/MASK such as \"syn/syn,ack\", of fin syn rst psh ack urg ece cwr, or none as SET";
    const auto text = read_scalar(reporter, value, kAllowed);
    if (!text) return;
    const std::size_t slash = text->find('/');
    if (slash == std::string_view::npos) {
        reporter.error(*value, fmt::format("{} has no mask; allowed: {}", quote(*text), kAllowed));
        return;
    }
    std::string_view wrong;
    const auto set = parse_flag_set(text->substr(0, slash), wrong);
    const auto mask = set ? parse_flag_set(text->substr(slash + 1), wrong) : std::nullopt;
    if (!mask) {
        reporter.error(*value, fmt::format("{} is no TCP flag; allowed: {}", quote(wrong), kAllowed));
    } else if (*mask == 0 || (*set & ~*mask) != 0) {
        reporter.error(*value,
                       fmt::format("{} asks for a flag outside of its mask; allowed: {}", quote(*text), kAllowed));
    } else {
        rule.tcp_flags = set;
        rule.tcp_flags_mask = *mask;
    }
}

void read_icmp(Reporter& reporter, const std::optional<Value>& value, AclRule& rule) {
    if (!value) return;
    const MapReader map(reporter, *value, kIcmp);
    if (!map.valid()) return;
    const auto type = map.require("type");
    if (const auto number = read_integer(reporter, type, 0, 255)) rule.icmp_type = static_cast<std::uint8_t>(*number);
    if (const auto number = read_integer(reporter, map.get("code"), 0, 255))
        rule.icmp_code = static_cast<std::uint8_t>(*number);
}

bool is_one_of(std::optional<std::uint8_t> proto, std::initializer_list<std::uint8_t> protocols) {
    return proto && std::find(protocols.begin(), protocols.end(), *proto) != protocols.end();
}

void check_families(Reporter& reporter, const MapReader& map, const AclRule& rule) {
    if (rule.src && rule.dst && rule.src->family != rule.dst->family) {
        reporter.error(*map.get("dst"), "`src` and `dst` are of different families");
        return;
    }
    const auto& prefix = rule.dst ? rule.dst : rule.src;
    if (prefix && rule.next_hop && prefix->family != rule.next_hop->family) {
        reporter.error(*map.get("next_hop"), "`next_hop` and the prefixes are of different families");
        return;
    }
    if (!prefix || !rule.proto) return;
    if (*rule.proto == kIcmpProto && prefix->family == net::Family::ip6) {
        reporter.error(*map.get("proto"), "icmp is IPv4's and the prefix is IPv6; allowed: icmpv6");
    }
    if (*rule.proto == kIcmpv6 && prefix->family == net::Family::ip4) {
        reporter.error(*map.get("proto"), "icmpv6 is IPv6's and the prefix is IPv4; allowed: icmp");
    }
}

void check_protocol(Reporter& reporter, const MapReader& map, const AclRule& rule) {
    // A proto that could not be read is reported already.
    if (map.get("proto") && !rule.proto) return;
    for (const std::string_view key : {"src_ports", "dst_ports"}) {
        const auto value = map.get(key);
        if (value && !is_one_of(rule.proto, {kTcp, kUdp, kSctp}))
            reporter.error(*value, "ports need a protocol that has them; allowed: with proto tcp, udp or sctp");
    }
    const auto flags = map.get("tcp_flags");
    if (flags && !is_one_of(rule.proto, {kTcp})) reporter.error(*flags, "TCP flags need TCP; allowed: with proto tcp");
    const auto icmp = map.get("icmp");
    if (icmp && !is_one_of(rule.proto, {kIcmpProto, kIcmpv6}))
        reporter.error(*icmp, "ICMP keys need ICMP; allowed: with proto icmp or icmpv6");
}

// Fragments behind the first carry no L4 header.
void check_fragment(Reporter& reporter, const MapReader& map, const AclRule& rule) {
    if (rule.fragment != FragmentMatch::later) return;
    for (const std::string_view key : {"src_ports", "dst_ports", "tcp_flags", "icmp"}) {
        if (const auto value = map.get(key))
            reporter.error(*value, "later fragments have no L4 header; allowed: without `fragment: later`");
    }
}

// What becomes of a packet beside being let through.
void read_treatment(Loading& loading, const MapReader& map, AclRule& rule) {
    Reporter& reporter = loading.reporter;
    rule.traffic_class = loading.classes.resolve(reporter, map.get("class"));
    rule.policer = loading.policers.resolve(reporter, map.get("policer"));
    if (rule.policer && loading.config.policers[*rule.policer].per_session)
        loading.per_session_rules.push_back(*map.get("policer"));
    const auto next_hop = map.get("next_hop");
    rule.next_hop = read_address(reporter, next_hop);
    if (rule.next_hop) loading.rule_next_hops.push_back({*next_hop, loading.config.acls.size(), *rule.next_hop});
    if (const auto capture = map.get("capture"))
        reporter.error(*capture, "there are no capture subscriptions to name yet; not supported yet");
    if (rule.action == AclAction::permit || !map.get("action")) return;
    for (const std::string_view key : {"class", "policer", "next_hop"})
        if (const auto value = map.get(key))
            reporter.error(*value, "the rule lets nothing pass; allowed: with `action: permit`");
}

std::string read_port_reference(Loading& loading, const std::optional<Value>& value) {
    const auto name = read_scalar(loading.reporter, value, "the name of an interface or a port");
    if (!name) return "";
    loading.rule_ports.push_back(*value);
    return std::string(*name);
}

}  // namespace

std::optional<std::uint8_t> read_dscp(Reporter& reporter, const std::optional<Value>& value) {
    return read_named(reporter, value, kDscps, 63, "0 to 63, or a name such as ef, af11, cs6");
}

AclRule read_acl_rule(Loading& loading, const Value& value) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, value, kRule);
    AclRule rule;
    rule.line = value.node->line;
    rule.column = value.node->column;
    if (const auto name = map.get("name")) rule.name = read_name(reporter, name).value_or("");
    read_choice(reporter, map.require("action"), rule.action, kAclActions);
    rule.in = read_port_reference(loading, map.get("in"));
    rule.out = read_port_reference(loading, map.get("out"));
    rule.proto =
        read_named(reporter, map.get("proto"), kProtocols, 255, "tcp | udp | icmp | icmpv6 | sctp, or 0 to 255");
    rule.src = read_prefix(reporter, map.get("src"));
    rule.dst = read_prefix(reporter, map.get("dst"));
    rule.src_ports = read_port_range(reporter, map.get("src_ports"));
    rule.dst_ports = read_port_range(reporter, map.get("dst_ports"));
    read_tcp_flags(reporter, map.get("tcp_flags"), rule);
    read_icmp(reporter, map.get("icmp"), rule);
    rule.dscp = read_dscp(reporter, map.get("dscp"));
    read_choice(reporter, map.get("fragment"), rule.fragment, kFragments);
    read_treatment(loading, map, rule);
    check_families(reporter, map, rule);
    check_protocol(reporter, map, rule);
    check_fragment(reporter, map, rule);
    return rule;
}

}  // namespace cachewire::config
