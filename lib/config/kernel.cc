// SPDX-License-Identifier: BSD-3-Clause
// Twins of interfaces in the kernel, and what goes to them how fast.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "config/sections.h"
#include "config/units.h"

namespace cachewire::config {
namespace {

constexpr Key kTwin[] = {{"ifname"}, {"netns"}};
constexpr Key kKernel[] = {{"punt"}};
constexpr Key kPunt[] = {{"bgp"}, {"ospf"}, {"bfd"}, {"other"}};
constexpr std::uint64_t kMostPps = 1'000'000;

bool is_plain(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
               c == '-';
    });
}

// A name as the kernel takes it for an interface (IFNAMSIZ) or a file in /run/netns.
std::string read_plain(Reporter& reporter, const std::optional<Value>& value, std::size_t most) {
    const auto text = read_scalar(reporter, value, "a name");
    if (!text) return "";
    if (text->empty() || text->size() > most || !is_plain(*text) || *text == "." || *text == "..") {
        reporter.error(*value,
                       fmt::format("{} is no name; allowed: up to {} letters, digits and ._-", quote(*text), most));
        return "";
    }
    return std::string(*text);
}

void read_pps(Reporter& reporter, const std::optional<Value>& value, std::uint32_t& out) {
    const auto rate = read_parsed(reporter, value, "1pps to 1Mpps", parse_rate, [](const Rate& r) {
        const bool right = r.kind == RateKind::packets && r.per_second >= 1 && r.per_second <= kMostPps;
        return right ? "" : " is no rate of packets";
    });
    if (rate) out = static_cast<std::uint32_t>(rate->per_second);
}

// A tenant's twins have a namespace of their own, or its routes and addresses would mix with another's.
void check_namespaces(Loading& loading, const MapReader& top) {
    std::map<std::string, const Interface*> owners;                         // netns -> the first one in it
    std::map<std::pair<std::string, std::string>, const Interface*> names;  // netns and ifname
    const Value where = top.get("interfaces").value_or(top.self());
    for (const Interface& interface : loading.config.interfaces) {
        if (!interface.kernel) continue;
        const auto& [ifname, netns] = *interface.kernel;
        const auto [owner, fresh] = owners.try_emplace(netns, &interface);
        if (!fresh && owner->second->tenant != interface.tenant)
            loading.reporter.error(
                where,
                fmt::format("interfaces '{}' and '{}' are of two tenants, and both have their twin in netns '{}'; "
                            "allowed: one netns a tenant",
                            owner->second->name, interface.name, netns));
        const auto [other, fresh_name] = names.try_emplace({netns, ifname}, &interface);
        if (!fresh_name)
            loading.reporter.error(where,
                                   fmt::format("interfaces '{}' and '{}' have twins of one name, {} in netns '{}'",
                                               other->second->name, interface.name, ifname, netns));
    }
}

}  // namespace

std::optional<KernelTwin> read_kernel_twin(Reporter& reporter, const Value& value) {
    const MapReader map(reporter, value, kTwin);
    if (!map.valid()) return std::nullopt;
    KernelTwin twin{read_plain(reporter, map.require("ifname"), 15), read_plain(reporter, map.require("netns"), 64)};
    if (twin.ifname.empty() || twin.netns.empty()) return std::nullopt;
    return twin;
}

void read_kernel(Loading& loading, const MapReader& top) {
    Reporter& reporter = loading.reporter;
    if (const auto value = top.get("kernel")) {
        const MapReader kernel(reporter, *value, kKernel);
        if (const auto punt_value = kernel.get("punt")) {
            const MapReader punt(reporter, *punt_value, kPunt);
            KernelPunt& rates = loading.config.kernel_punt;
            read_pps(reporter, punt.get("bgp"), rates.bgp_pps);
            read_pps(reporter, punt.get("ospf"), rates.ospf_pps);
            read_pps(reporter, punt.get("bfd"), rates.bfd_pps);
            read_pps(reporter, punt.get("other"), rates.other_pps);
        }
    }
    check_namespaces(loading, top);
}

}  // namespace cachewire::config
