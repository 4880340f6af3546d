// SPDX-License-Identifier: BSD-3-Clause
// Rule files of dpdk-l3fwd's ACL mode. l3fwd drops what no rule matches, so does the list.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "app/import.h"
#include "config/rule_file.h"
#include "config/text_file.h"

namespace cachewire::app {

namespace {

using config::AclRule;

constexpr std::uint8_t kIcmp = 1, kTcp = 6, kUdp = 17, kIcmpv6 = 58, kSctp = 132;  // IANA protocol numbers

// What a list can be called: the file's name without its ending, in our alphabet.
std::string list_name(const std::string& path, std::set<std::string>& used) {
    std::string stem = path.substr(path.rfind('/') + 1);
    stem = stem.substr(0, stem.find('.'));
    std::string name;
    for (const char c : stem) {
        const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        const bool allowed = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') || lower == '_';
        name += allowed ? lower : '-';
    }
    if (name.empty() || name[0] < 'a') name = "l" + name;
    name = name.substr(0, 26);
    std::string unique = name;
    for (unsigned n = 2; !used.insert(unique).second; ++n) unique = fmt::format("{}-{}", name, n);
    return unique;
}

std::string ports_text(const char* key, const std::optional<config::PortRange>& ports) {
    if (!ports) return "";
    if (ports->first == ports->last) return fmt::format(", {}: {}", key, ports->first);
    return fmt::format(", {}: {}-{}", key, ports->first, ports->last);
}

std::string rule_text(const AclRule& rule, std::optional<std::uint8_t> proto) {
    return fmt::format("      - {{action: {}{}, src: \"{}\", dst: \"{}\"{}{}}}\n",
                       rule.action == config::AclAction::permit ? "permit" : "deny",
                       proto ? fmt::format(", proto: {}", *proto) : "", net::to_string(*rule.src),
                       net::to_string(*rule.dst), ports_text("src_ports", rule.src_ports),
                       ports_text("dst_ports", rule.dst_ports));
}

// Empty: it can stand in the list, as the protocols in `protos`.
std::string why_not(const AclRule& rule, std::vector<std::optional<std::uint8_t>>& protos) {
    const bool ports = rule.src_ports || rule.dst_ports;
    if (ports && !rule.proto) {
        protos = {kTcp, kUdp, kSctp};
        return "";
    }
    if (ports && *rule.proto != kTcp && *rule.proto != kUdp && *rule.proto != kSctp)
        return fmt::format("protocol {} has no ports", *rule.proto);
    const std::uint8_t foreign = rule.src->family == net::Family::ip4 ? kIcmpv6 : kIcmp;
    if (rule.proto == foreign) return fmt::format("protocol {} is of the other family", foreign);
    protos = {rule.proto};
    return "";
}

void import_file(const std::string& path, std::set<std::string>& names, Imported& out) {
    std::string why;
    const auto text = config::read_text_file(path, std::size_t{64} << 20, why);
    if (!text) {
        out.notes.push_back(fmt::format("{}: {}", path, why));
        out.complete = false;
        return;
    }
    config::Reporter reporter(path);
    const auto rules = config::parse_rule_file(*text, config::RuleFormat::l3fwd_acl, reporter);
    for (const auto& diagnostic : reporter.take()) {
        out.notes.push_back(config::to_string(diagnostic) + "; left out");
        out.complete = false;
    }
    out.yaml += fmt::format("  - name: {}  # from {}\n    default: deny\n    rules:{}\n", list_name(path, names), path,
                            rules.empty() ? " []" : "");
    std::size_t forwarding = 0;
    for (const AclRule& rule : rules) {
        std::vector<std::optional<std::uint8_t>> protos;
        if (const std::string reason = why_not(rule, protos); !reason.empty()) {
            out.notes.push_back(fmt::format("{}:{}:1: {}; left out", path, rule.line, reason));
            out.complete = false;
        }
        if (protos.size() > 1)
            out.notes.push_back(
                fmt::format("{}:{}:1: ports of any protocol: three rules, for tcp, udp and sctp", path, rule.line));
        for (const auto& proto : protos) out.yaml += rule_text(rule, proto);
        forwarding += rule.action == config::AclAction::permit;
    }
    if (forwarding != 0)
        out.notes.push_back(
            fmt::format("{}: {} R lines name an egress port; here routes decide that", path, forwarding));
}

}  // namespace

Imported import_l3fwd_acl(const std::vector<std::string>& files) {
    Imported out;
    out.yaml = "acl:\n";
    std::set<std::string> names;
    for (const std::string& file : files) import_file(file, names, out);
    return out;
}

}  // namespace cachewire::app
