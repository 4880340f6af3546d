#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Everything of the configuration that a worker reads, immutable from publication until the grace period after its
// successor. Built by control::SnapshotBuilder, published by control::Publisher; a worker takes the pointer once per
// iteration.
//
// Indices (port, interface, tenant, next hop, policer attachment) are stable over reloads for the objects that stay,
// because sessions and per-worker state hold them.
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "acl/classifier.h"
#include "base/cache_line.h"
#include "net/flow_hash.h"
#include "net/mac.h"
#include "net/prefix.h"
#include "pipeline/descriptor.h"
#include "pipeline/punt.h"
#include "qos/policer.h"
#include "route/fib.h"
#include "route/group.h"
#include "route/next_hop.h"
#include "session/beside.h"
#include "session/settings.h"

namespace cachewire::pipeline {

inline constexpr std::uint16_t kMaxPorts = 64;
inline constexpr std::uint16_t kMaxTenants = 4096;  // slots; slot 0 is "", what belongs to no tenant
inline constexpr std::uint16_t kMaxInterfaces = 8192;
inline constexpr std::uint16_t kNoInterface = 0xffff;
inline constexpr std::uint16_t kNoPort = 0xffff;
inline constexpr std::uint16_t kNoTenant = 0;

enum class SessionMode : std::uint8_t { none, cache, track };

// What a new policy means for the sessions that are there: each is judged anew by what its first packet was, keeps the
// verdict it has, or ends.
enum class OnPolicyChange : std::uint8_t { revalidate, keep, kill };

// Reverse path: whether a source has to have a route before its first packet may pass, and which (RFC 3704).
enum class Rpf : std::uint8_t { none, loose, strict };

inline constexpr std::uint16_t kNoMssClamp = 0;
inline constexpr std::uint16_t kMssClampAuto = 0xffff;

// What a port and tag stack map to: the tenant, and the interface whose L3 it is (kNoInterface: none there). Where
// there is an interface there is a tenant.
struct Attachment {
    std::uint16_t tenant = kNoTenant;
    std::uint16_t interface = kNoInterface;
};

// Tag stack -> attachment. `outer` 0 stands for untagged and priority-tagged. Most ports have no tags at all, so the
// untagged answer stands beside the pointer to the table of tagged ones.
struct TaggedAttachment {
    std::uint16_t outer, inner;  // inner 0: one tag
    Attachment attachment;
};

struct alignas(2 * base::kCacheLine) Port {  // numbers become addresses by a shift
    net::Mac mac;                            // frames for other unicast addresses are dropped
    bool admin_up = true;
    bool attached = true;            // false: the device is gone; no worker touches it, and admin_up is false too
    bool sends = true;               // up, and its link is; else why_not_sent() (port_state.h) is what TX drops as
    bool partial_checksums = false;  // peers in this machine leave L4 checksums to a NIC that isn't there
    bool sends_chains = true;        // the device takes packets in several buffers
    std::uint32_t max_frame_bytes = UINT32_MAX;  // the device hands over longer frames too, perhaps cut
    std::uint16_t ethdev = 0;                    // DPDK port id
    std::uint16_t txq = 1;                       // queues; worker w uses w % txq
    std::uint16_t tag_bytes_stripped = 0;
    // Of a port in a transparent pair, which has no interfaces: where its frames leave, and what lists know it by.
    std::uint16_t wire_next_hop = kNoNextHop;
    std::uint16_t wire_interface = kNoInterface;
    bool wire_non_ip = false;  // frames that are no IP pass
    Attachment untagged;
    std::vector<TaggedAttachment> tagged;     // sorted by (outer, inner)
    std::vector<TaggedAttachment> wildcards;  // by specificity: match port + vlan with any inner; outer 0xffff: any
    // By VLAN ID, what the two above say of a frame with one tag: one line for each 16 neighboring IDs in use instead
    // of a search. Empty, or kVlanIds long (attachment.h).
    std::vector<Attachment> by_vlan;
};
static_assert(sizeof(Port) == 2 * base::kCacheLine);

inline constexpr std::uint8_t kMaxClasses = 65;  // slots; slot 0 is no class
inline constexpr std::uint8_t kKeepDscp = 0xff;

// What the packets of a class leave with. Slot 0: as they came, and with priority 0 where they are tagged.
struct TrafficClass {
    std::uint8_t dscp = kKeepDscp;
    std::uint8_t pcp = 0;
    std::uint16_t policer = kNoPolicer;
};

// Where a policer may stand, in the order in which a packet meets them: passes of the QoS stage.
enum class PolicerPlace : std::uint8_t { interface_in, tenant_in, rule, traffic_class, tenant_out, interface_out };

// Where a session's own bucket stands (session::Besides), for the places whose policer all its packets have alike.
inline constexpr std::size_t kNoBeside = session::Besides::kUses;
constexpr std::size_t beside_of(PolicerPlace place) noexcept {
    switch (place) {
        case PolicerPlace::tenant_in:
            return 0;
        case PolicerPlace::rule:
            return 1;
        case PolicerPlace::tenant_out:
            return 2;
        default:
            return kNoBeside;
    }
}

struct Interface {
    net::Mac mac;
    std::uint16_t port = 0;  // kNoPort: a loopback, which no packet comes in by or leaves by
    std::uint16_t tenant = kNoTenant;
    std::uint16_t mtu = 1500;
    std::uint16_t vlan = 0;  // 0: untagged; what frames leave with
    std::uint16_t inner_vlan = 0;
    std::uint16_t mss_clamp = kNoMssClamp;   // or bytes, or kMssClampAuto: by MTU
    std::uint16_t wire_peer = kNoInterface;  // of a port in a pair: the other one's
    bool twin = false;                       // the kernel has one too, and what is for it
    std::uint16_t policer_in = kNoPolicer;
    std::uint16_t policer_out = kNoPolicer;
};

inline std::uint64_t end_bit(const net::Address& address) noexcept {
    return std::uint64_t{1} << (address.bytes[15] & 63);
}

struct Tenant {
    SessionMode sessions = SessionMode::none;
    bool stateful = false;                  // the session's verdict holds for replies too; without a list as well
    std::uint16_t policy_generation = 0;    // bumped when anything that a verdict depends on changes
    std::uint16_t route_generation = 0;     // of its VRF
    std::uint16_t list_generation = 0;      // the policy generation that its list came with; later ones are of routes
    std::uint16_t policer_in = kNoPolicer;  // index into Snapshot::policers and WorkerState's states
    std::uint16_t policer_out = kNoPolicer;
    bool midstream = false;  // TCP may be picked up without its SYN
    bool twins = false;      // of any of its interfaces
    Rpf rpf = Rpf::none;
    session::Quota quota;
    const acl::Classifier* acl = nullptr;  // null: permit
    // Numbers of the list's rules and of its default, under which their hits are counted (session/rule_counters.h).
    std::uint32_t rule_base = 0;  // kNoRule: not counted
    std::uint32_t default_rule = kNoRule;
    const route::FibView* fib = nullptr;  // never null for a tenant in use
    // Of a list that is not stateful: which bits of a packet's own first-packet fields (FlowKey from in_interface_be
    // on, as one word) its rules look at. A memo answers only for packets that agree with the session's first one
    // there.
    std::uint64_t own_fields = 0;
    // What its own addresses end with (end_bit): where a bit is not set, an address that ends so is none of them.
    std::uint64_t local_ends = ~std::uint64_t{0};
    // Next hops that the list's rules name, by Treatment::next_hop; [0] is kNoNextHop. Null: none does.
    const std::uint16_t* policy_hops = nullptr;

    // `rule`: as Lane::rule.
    [[nodiscard]] std::uint32_t rule_id(std::uint32_t rule) const noexcept {
        if (rule == kNoRule || rule_base == kNoRule) return default_rule;
        return rule_base + rule;
    }
};

struct Snapshot {
    std::uint64_t generation = 0;  // config_generation it came from
    net::HashSeed hash_seed;
    std::uint16_t burst = 32;
    std::uint8_t prefetch_header = 8;
    std::uint8_t prefetch_session = 6;
    bool memoize = true;             // false: every packet takes the slow path
    std::uint32_t shadow_check = 0;  // 1 in so many memo hits is derived anew and compared; 0: none
    OnPolicyChange on_policy_change = OnPolicyChange::revalidate;
    session::Settings sessions;
    bool partial_checksums = false;                          // of any port
    bool mss_clamps = false;                                 // of any interface
    bool rpf = false;                                        // of any tenant
    std::array<PuntInterval, kKernelClasses> kernel_punt{};  // by class, from the first one on
    std::vector<Port> ports;
    std::vector<Interface> interfaces;
    std::vector<Tenant> tenants;  // by slot
    bool leaks = false;           // a route of one tenant leads to another
    std::vector<route::NextHop> next_hops;
    std::vector<std::shared_ptr<const route::Group>> groups;  // by NextHop::group; null where there is none now
    std::vector<qos::PolicerProfile> policers;                // by attachment
    std::uint8_t policer_places = 0;                          // a bit a PolicerPlace: some packet may meet one there
    std::uint8_t session_policer_places = 0;                  // the same of those with a bucket for each session
    bool classes = false;                                     // there are any
    bool schedulers = false;                                  // of any port
    std::array<TrafficClass, kMaxClasses> traffic_classes;
    std::array<std::uint8_t, 64> class_of_dscp{};  // 0: none
    std::array<std::uint8_t, 8> class_of_pcp{};

    [[nodiscard]] bool polices(PolicerPlace place) const noexcept {
        return (policer_places >> static_cast<unsigned>(place) & 1) != 0;
    }
    [[nodiscard]] bool polices_sessions(PolicerPlace place) const noexcept {
        return (session_policer_places >> static_cast<unsigned>(place) & 1) != 0;
    }
    // What an operator has blocked for a time, in either direction, by tenant slot. Empty: nothing at all is.
    std::vector<std::vector<net::Prefix>> blocks;

    // What keeps the raw pointers above alive.
    std::vector<std::shared_ptr<const acl::Classifier>> classifiers;
    std::vector<std::shared_ptr<const void>> rule_numbers;
    std::vector<std::shared_ptr<const std::vector<std::uint16_t>>> policy_hops;
    std::vector<std::shared_ptr<const route::FibView>> fibs;  // by tenant slot
};

}  // namespace cachewire::pipeline
