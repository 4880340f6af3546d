// SPDX-License-Identifier: BSD-3-Clause
// A rule that covers another has the other's prefixes or shorter ones. So earlier rules stand by source and then by
// destination, and only those under the few prefixes that hold the rule's own are compared with it.
#include "config/rule_coverage.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>

namespace cachewire::config {

namespace {

using OptionalPrefix = std::optional<net::Prefix>;

std::optional<net::Family> family_of(const AclRule& rule) {
    if (rule.src) return rule.src->family;
    if (rule.dst) return rule.dst->family;
    return std::nullopt;
}

// `family`: of the later rule, which may have it from its other prefix.
bool covers_prefix(const OptionalPrefix& earlier, const OptionalPrefix& later, std::optional<net::Family> family) {
    if (!earlier) return true;
    if (earlier->family != family) return false;
    if (earlier->length == 0) return true;
    return later && earlier->length <= later->length && earlier->contains(later->address);
}

bool covers_ports(const std::optional<PortRange>& earlier, const std::optional<PortRange>& later) {
    return !earlier || (later && earlier->first <= later->first && later->last <= earlier->last);
}

bool covers_fragment(FragmentMatch earlier, FragmentMatch later) {
    return earlier == FragmentMatch::any_packet || earlier == later ||
           (earlier == FragmentMatch::any_fragment && (later == FragmentMatch::first || later == FragmentMatch::later));
}

template <class T>
bool covers_value(const std::optional<T>& earlier, const std::optional<T>& later) {
    return !earlier || earlier == later;
}

bool covers_name(const std::string& earlier, const std::string& later) { return earlier.empty() || earlier == later; }

struct PrefixHash {
    std::size_t operator()(const OptionalPrefix& prefix) const noexcept {
        if (!prefix) return 0;
        std::uint64_t high, low;
        std::memcpy(&high, prefix->address.bytes.data(), 8);
        std::memcpy(&low, prefix->address.bytes.data() + 8, 8);
        const std::uint64_t mixed = (high ^ (low * 0x9e3779b97f4a7c15u)) + prefix->length * 0xff51afd7ed558ccdu +
                                    static_cast<std::uint64_t>(prefix->family);
        return mixed ^ mixed >> 29;
    }
};

template <class T>
using ByPrefix = std::unordered_map<OptionalPrefix, T, PrefixHash>;

net::Prefix shortened(const net::Prefix& prefix, unsigned length) {
    net::Prefix out{prefix.address, static_cast<std::uint8_t>(length), prefix.family};
    const unsigned kept = (prefix.family == net::Family::ip4 ? 96u : 0u) + length;
    for (unsigned byte = 0; byte < 16; ++byte) {
        const unsigned bits = std::min(kept > byte * 8 ? kept - byte * 8 : 0, 8u);
        out.address.bytes[byte] &= static_cast<std::uint8_t>(0xff00u >> bits);
    }
    return out;
}

class Lengths {
  public:
    void add(const OptionalPrefix& prefix) {
        if (prefix) seen_[static_cast<unsigned>(prefix->family)].set(prefix->length);
    }
    // use(prefix) for all that may hold this one, among those that have occurred; true ends the walk.
    template <class Use>
    bool for_each_holder(const OptionalPrefix& prefix, std::optional<net::Family> family, Use&& use) const {
        if (use(OptionalPrefix{})) return true;
        if (!family) return false;
        const net::Prefix own = prefix.value_or(net::Prefix{net::Address{}, 0, *family});
        const auto& seen = seen_[static_cast<unsigned>(*family)];
        for (unsigned length = 0; length <= own.length; ++length) {
            if (!seen[length]) continue;
            net::Prefix holder = shortened(own, length);
            // A prefix of length 0 of IPv4 stands with its mapped form's leading bytes.
            if (*family == net::Family::ip4) holder.address.bytes[10] = holder.address.bytes[11] = 0xff;
            if (use(OptionalPrefix{holder})) return true;
        }
        return false;
    }

  private:
    std::bitset<129> seen_[2];
};

class Search {
  public:
    Search(std::span<const AclRule> rules, std::chrono::milliseconds budget)
        : rules_(rules), end_(std::chrono::steady_clock::now() + budget) {}

    Coverage run() {
        Coverage coverage;
        for (std::size_t i = 0; i < rules_.size(); ++i) {
            const std::size_t by = first_that_covers(i);
            if (out_of_time_) return coverage;
            ++coverage.looked_at;
            if (by != kNone) {
                coverage.found.push_back({i, by, covers(rules_[i], rules_[by])});
            } else {
                // What is covered covers nothing that its coverer doesn't.
                sources_[rules_[i].src][rules_[i].dst].push_back(i);
                source_lengths_.add(rules_[i].src);
                destination_lengths_.add(rules_[i].dst);
            }
        }
        return coverage;
    }

  private:
    static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

    std::size_t first_that_covers(std::size_t rule) {
        const AclRule& later = rules_[rule];
        const auto family = family_of(later);
        std::size_t first = kNone;
        source_lengths_.for_each_holder(later.src, family, [&](const OptionalPrefix& src) {
            const auto destinations = sources_.find(src);
            if (destinations == sources_.end()) return false;
            return destination_lengths_.for_each_holder(later.dst, family, [&](const OptionalPrefix& dst) {
                const auto bucket = destinations->second.find(dst);
                if (bucket != destinations->second.end()) look_at(bucket->second, later, first);
                return out_of_time_;
            });
        });
        return first;
    }

    void look_at(const std::vector<std::size_t>& bucket, const AclRule& later, std::size_t& first) {
        for (const std::size_t earlier : bucket) {
            if (earlier >= first) return;
            if ((++steps_ & 0xff) == 0 && std::chrono::steady_clock::now() >= end_) {
                out_of_time_ = true;
                return;
            }
            if (covers(rules_[earlier], later)) {
                first = earlier;
                return;
            }
        }
    }

    std::span<const AclRule> rules_;
    std::chrono::steady_clock::time_point end_;
    std::size_t steps_ = 0;
    bool out_of_time_ = false;
    ByPrefix<ByPrefix<std::vector<std::size_t>>> sources_;
    Lengths source_lengths_, destination_lengths_;
};

}  // namespace

bool covers(const AclRule& earlier, const AclRule& later) {
    const auto family = family_of(later);
    const std::uint8_t flags = earlier.tcp_flags_mask;
    return covers_name(earlier.in, later.in) && covers_name(earlier.out, later.out) &&
           covers_value(earlier.proto, later.proto) && covers_prefix(earlier.src, later.src, family) &&
           covers_prefix(earlier.dst, later.dst, family) && covers_ports(earlier.src_ports, later.src_ports) &&
           covers_ports(earlier.dst_ports, later.dst_ports) && (flags & ~later.tcp_flags_mask) == 0 &&
           ((earlier.tcp_flags.value_or(0) ^ later.tcp_flags.value_or(0)) & flags) == 0 &&
           covers_value(earlier.icmp_type, later.icmp_type) && covers_value(earlier.icmp_code, later.icmp_code) &&
           covers_value(earlier.dscp, later.dscp) && covers_fragment(earlier.fragment, later.fragment);
}

Coverage find_covered(std::span<const AclRule> rules, std::chrono::milliseconds budget) {
    return Search(rules, budget).run();
}

}  // namespace cachewire::config
