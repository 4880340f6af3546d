#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One configuration file as plain structs: units resolved, references checked, defaults filled in, nothing derived.
// Written by config::load, read by app, port and control; never seen by a worker.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/mac.h"
#include "net/prefix.h"

namespace cachewire::config {

enum class Rpf { none, loose, strict };
enum class SessionMode { none, cache, track };
enum class AclAction { permit, deny, reject };
enum class Metadata { session, mbuf_dynfield };
enum class OnPolicyChange { revalidate, keep, kill };
enum class OnFull { evict_embryonic, deny_new };
enum class Midstream { deny, allow };
enum class Accounting { l1, l2, l3 };
enum class PolicerType { single, srtcm_2697, trtcm_2698, trtcm_4115 };
enum class FragmentMatch { any_packet, none, first, later, any_fragment };

enum class Dispatch { rss, software };
enum class Idle { poll, adaptive };
enum class Placement { strict, warn, ignore };

struct FilePlace {  // in the file, from 1
    unsigned line = 0, column = 0;
    std::uint16_t file = 0;  // in Config::sources
};

struct Workers {
    std::vector<unsigned> lcores;  // empty: auto, every lcore but the main one
    FilePlace lcores_at;           // which of them EAL has is judged by app
    Dispatch dispatch = Dispatch::rss;
    Idle idle = Idle::poll;
    Placement placement = Placement::warn;
};

struct Memory {
    std::uint32_t mbufs = 0;  // 0: auto
    std::uint16_t mbuf_size = 2176;
    std::uint16_t mempool_cache = 256;
};

struct Pipeline {
    std::uint16_t burst = 32;            // 1-256
    std::uint16_t prefetch_header = 8;   // lanes ahead
    std::uint16_t prefetch_session = 0;  // lanes ahead; 0: auto
    Metadata metadata = Metadata::session;
    bool memoize = true;
    std::uint32_t shadow_check = 0;  // 1 in so many memo hits; 0: none
};

struct Port {
    std::string name;
    std::string device;
    std::uint16_t rxq = 0;  // 0: auto
    std::uint16_t txq = 0;
    std::uint16_t rxd = 1024;
    std::uint16_t txd = 1024;
    std::uint16_t mtu = 1500;
    bool promiscuous = false;
    bool admin_up = true;
    std::optional<net::Mac> mac;  // nullopt: the device's own
};

// A transparent pair: what comes in by one port leaves by the other as it is.
struct CrossConnect {
    std::string name;
    std::array<std::size_t, 2> ports{};  // indices into Config::ports; promiscuous, and in no other pair
    bool forward_non_ip = true;          // ARP and neighbor discovery too
    bool link_follow = false;
};

struct Match {  // port index; vlan 0: untagged or priority-tagged, nullopt: any
    std::size_t port;
    std::optional<std::uint16_t> vlan;
    std::optional<std::uint16_t> inner_vlan;
};

struct Quota {  // nullopt: no limit
    std::optional<std::uint32_t> sessions;
    std::optional<std::uint32_t> new_sessions_per_second;
};

struct Tenant {
    std::string name;
    std::uint16_t id = 0;
    std::vector<Match> match;
    SessionMode sessions = SessionMode::none;
    Quota quota;
    Midstream midstream = Midstream::deny;
    Rpf rpf = Rpf::none;
    std::optional<std::size_t> acl;         // index into Config::acls
    std::optional<std::size_t> policer_in;  // index into Config::policers
    std::optional<std::size_t> policer_out;
};

inline constexpr std::uint16_t kMssClampAuto = 0xffff;

struct InterfaceAddress {
    net::Address address;  // with host bits
    net::Prefix prefix;    // the connected network
};

// The interface as the kernel has it: a TAP in another network namespace.
struct KernelTwin {
    std::string ifname;
    std::string netns;
    friend bool operator==(const KernelTwin&, const KernelTwin&) = default;
};

inline constexpr std::size_t kNoPort = SIZE_MAX;

struct Interface {
    std::string name;
    std::size_t port;        // index into Config::ports; kNoPort: a loopback, addresses of the tenant on no link
    std::uint16_t vlan = 0;  // 0: untagged
    std::uint16_t inner_vlan = 0;
    std::size_t tenant;  // index into Config::tenants
    std::uint16_t mtu = 1500;
    std::uint16_t mss_clamp = 0;            // 0: none; kMssClampAuto: by MTU
    std::optional<std::size_t> policer_in;  // index into Config::policers
    std::optional<std::size_t> policer_out;
    std::vector<InterfaceAddress> addresses;
    std::optional<KernelTwin> kernel;

    [[nodiscard]] bool is_loopback() const noexcept { return port == kNoPort; }
};

// What goes to the twins, packets a second for each tenant: over all its ports, and all workers.
struct KernelPunt {
    std::uint32_t bgp_pps = 1000;
    std::uint32_t ospf_pps = 1000;
    std::uint32_t bfd_pps = 2000;
    std::uint32_t other_pps = 100;
};

struct Neighbor {
    std::size_t tenant;
    net::Address address;
    net::Mac mac;
    std::optional<std::size_t> interface;  // index into Config::interfaces; always there with a link-local address
};

// Where a route leads. With an interface and no address the destination itself is on that link; with a tenant and no
// address that tenant's routes decide.
struct RouteVia {
    std::optional<net::Address> address;
    std::optional<std::size_t> interface;  // index into Config::interfaces; always there with a link-local address
    std::optional<std::size_t> tenant;     // another one than the route's
    std::uint16_t weight = 1;
    friend bool operator==(const RouteVia&, const RouteVia&) = default;
};

struct Route {
    std::size_t tenant;
    net::Prefix prefix;
    std::vector<RouteVia> via;  // several: ECMP; none with drop
    bool drop = false;
};

struct FileRoute {
    net::Prefix prefix;
    std::uint16_t via;  // index into RouteFile::vias, or kFileDrop
    std::uint32_t line;
};
inline constexpr std::uint16_t kFileDrop = 0xffff;

struct RouteFile {
    std::size_t tenant;
    std::string path;
    std::vector<RouteVia> vias;                            // distinct
    std::shared_ptr<const std::vector<FileRoute>> routes;  // sorted by prefix, each once
};

struct PortRange {
    std::uint16_t first = 0;
    std::uint16_t last = 65535;
};

struct AclRule {
    std::string name;   // may be empty
    unsigned line = 0;  // in the file it came from
    unsigned column = 1;
    AclAction action = AclAction::deny;
    std::string in;   // interface or port name; empty: any
    std::string out;  // the same, of the egress
    std::optional<std::uint8_t> proto;
    std::optional<net::Prefix> src;  // nullopt: any address of any family
    std::optional<net::Prefix> dst;
    std::optional<PortRange> src_ports;
    std::optional<PortRange> dst_ports;
    std::optional<std::uint8_t> tcp_flags;  // value ...
    std::uint8_t tcp_flags_mask = 0;        // ... under this mask
    std::optional<std::uint8_t> icmp_type;
    std::optional<std::uint8_t> icmp_code;
    std::optional<std::uint8_t> dscp;
    FragmentMatch fragment = FragmentMatch::any_packet;
    // What else becomes of a permitted packet.
    std::optional<std::size_t> traffic_class;  // index into Config::classes
    std::optional<std::size_t> policer;        // index into Config::policers
    std::optional<net::ParsedAddress> next_hop;
};

struct Acl {
    std::string name;
    AclAction default_action = AclAction::deny;
    bool stateful = false;
    std::string file;  // that the rules came from; empty: this one
    std::vector<AclRule> rules;
};

struct Timeouts {  // seconds
    std::uint32_t fresh = 5;
    std::uint32_t established_udp = 30;
    std::uint32_t established_tcp = 7200;
    std::uint32_t half_close = 120;
    std::uint32_t time_wait = 30;
    std::uint32_t closed = 5;
    std::uint32_t icmp = 10;
};

struct Sessions {
    std::uint32_t capacity = 1048576;          // in all, split over the workers
    std::uint8_t high_watermark_percent = 90;  // of the capacity
    OnFull on_full = OnFull::evict_embryonic;
    Timeouts timeouts;
    OnPolicyChange on_policy_change = OnPolicyChange::revalidate;
};

struct ColourAction {
    enum class Kind { pass, remark, drop };
    Kind kind = Kind::pass;
    std::uint8_t dscp = 0;  // with remark
};

struct Policer {
    std::string name;
    PolicerType type = PolicerType::single;
    std::uint64_t rate_bps = 0;     // bit/s; CIR where there are two
    std::uint64_t burst_bytes = 0;  // 0: auto
    Accounting accounting = Accounting::l2;
    std::uint64_t excess_rate_bps = 0;     // PIR of RFC 2698, EIR of RFC 4115
    std::uint64_t excess_burst_bytes = 0;  // PBS or EBS; 0: auto
    bool colour_aware = false;
    bool shared = false;       // one bucket for all attachments
    bool per_session = false;  // one for each session, at each attachment
    ColourAction yellow, red{ColourAction::Kind::drop};
};

struct TrafficClass {
    std::string name;
    std::optional<std::uint8_t> dscp;
    std::optional<std::uint8_t> pcp;
    std::optional<std::size_t> policer;
    std::optional<std::uint8_t> priority;  // in schedulers that say neither priority nor weight
};

inline constexpr unsigned kStrictClasses = 12, kWeightedClasses = 4;  // of a scheduler, at most
struct ScheduledClass {
    std::size_t traffic_class;             // index into Config::classes
    std::optional<std::uint8_t> priority;  // below kStrictClasses, 0 first, each once
    std::uint32_t weight = 0;              // without a priority
};

struct Scheduler {
    std::size_t port = 0;  // index into Config::ports, each at most once
    std::uint64_t rate_bps = 0;
    std::uint64_t burst_bytes = 0;           // 0: auto
    Accounting accounting = Accounting::l2;  // or l1
    std::vector<ScheduledClass> classes;
};

inline constexpr std::size_t kMaxKeptBytes = std::size_t{4} << 20;

// A file that the configuration was read from.
struct SourceFile {
    std::string path;
    std::string sha256;
    std::shared_ptr<const std::string> text;  // null: a file of rules or routes, or all texts are over kMaxKeptBytes
};

struct Config {
    std::string path;
    std::string sha256;               // of the bytes of all `sources`, one behind the other
    std::vector<SourceFile> sources;  // the file itself, what it includes, then files of rules and routes, as named
    std::vector<std::string> eal;
    std::vector<FilePlace> eal_at;  // where each of them stands; EAL's options are judged by app
    Workers workers;
    Memory memory;
    Pipeline pipeline;
    std::vector<Port> ports;
    std::vector<Tenant> tenants;  // at least one: "default", id 0, when the file has none
    std::vector<CrossConnect> cross_connects;
    std::vector<Interface> interfaces;
    KernelPunt kernel_punt;
    std::vector<Neighbor> neighbors;
    std::vector<Route> routes;
    std::vector<RouteFile> route_files;
    std::vector<Acl> acls;
    Sessions sessions;
    std::vector<Policer> policers;
    std::vector<TrafficClass> classes;
    std::vector<Scheduler> schedulers;
};

}  // namespace cachewire::config
