#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The sections of the file, read in the order of what refers to what, so that every reference is checked where it
// stands. Loading is what they share: the Config being filled and the names known so far. A thing with a wrong detail
// still enters its name, or one mistake would make a flood of dangling references. Lives for one load.
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/config.h"
#include "config/reader.h"
#include "config/sources.h"

namespace cachewire::config {

// The names of one kind of thing: unique, and what references are resolved against.
class Names {
  public:
    explicit Names(std::string_view kind) : kind_(kind) {}
    // Reports a name that stands already.
    void add(Reporter& reporter, const Value& where, const std::string& name, std::size_t index);
    // Reports a name that nothing has. nullopt also for an absent value.
    std::optional<std::size_t> resolve(Reporter& reporter, const std::optional<Value>& value);
    [[nodiscard]] std::optional<std::size_t> find(const std::string& name) const;
    [[nodiscard]] std::vector<std::string_view> all() const;
    // Warns of each that nothing has asked for: it does nothing, and perhaps that was not meant.
    void warn_of_unused(Reporter& reporter) const;

  private:
    struct Entry {
        std::size_t index;
        Origin origin;
        unsigned column;
        bool used = false;
    };
    std::string_view kind_;
    std::unordered_map<std::string, Entry> entries_;
};

// One tenant's connected networks, for "is this gateway on a network of ours".
class Networks {
  public:
    // Index of the interface that has this very network already.
    std::optional<std::size_t> add(const net::Prefix& prefix, std::size_t interface);
    [[nodiscard]] bool contains(const net::ParsedAddress& address) const;
    // The network's own or its broadcast address (RFC 1812 4.2.3.1): no host has it.
    [[nodiscard]] bool is_broadcast(const net::ParsedAddress& address) const;

  private:
    std::map<net::Prefix, std::size_t> prefixes_;
    std::set<std::pair<net::Family, std::uint8_t>> lengths_;  // that occur: so many look-ups at most
};

// What stands inside a tenant and is read once all tenants are known.
struct Nested {
    std::size_t tenant;
    std::vector<Value> interfaces;
    std::vector<Value> routes;
};

// `defaults: {tenant: ...}`: what a tenant is before its own keys are read.
struct TenantDefaults {
    Tenant tenant;
    std::optional<Value> sessions;  // where it stands; else a stateful list decides
};

// port, vlan, inner_vlan; nullopt: any
using MatchKey = std::tuple<std::size_t, std::optional<std::uint16_t>, std::optional<std::uint16_t>>;

struct Loading {
    Reporter& reporter;
    Config& config;
    Sources& sources;
    bool has_tenants = false;  // the file declares some; else there is one, "default"
    Names ports{"port"};
    Names policers{"policer"};
    std::vector<Value> per_session_rules;  // of the list that is being read: policers with a bucket for each session
    Names classes{"class"};
    Names acls{"acl"};
    Names tenants{"tenant"};
    Names interfaces{"interface"};
    TenantDefaults tenant_defaults;
    std::vector<Nested> nested;
    std::map<MatchKey, std::size_t> matches;          // -> tenant
    bool interfaces_are_right = true;                 // else a gateway's network may be missing because of that
    std::vector<Networks> networks;                   // by tenant
    std::vector<std::map<net::Address, Origin>> own;  // by tenant: own addresses, and where each stands
    // Rules' `in` and `out`, resolved last: interfaces are known only then, and they need the tenants, which need the
    // lists.
    std::vector<Value> rule_ports;
    // Rules' `next_hop`, checked last too: against the networks of every tenant that has the list.
    struct RuleNextHop {
        Value value;
        std::size_t acl;
        net::ParsedAddress address;
    };
    std::vector<RuleNextHop> rule_next_hops;
};

void read_machine(Loading& loading, const MapReader& top);  // eal, workers, memory, pipeline
void read_sessions(Loading& loading, const MapReader& top);
void read_ports(Loading& loading, const MapReader& top);
void read_qos(Loading& loading, const MapReader& top);
void read_acls(Loading& loading, const MapReader& top);
void read_defaults(Loading& loading, const MapReader& top);
void read_tenants(Loading& loading, const MapReader& top);
void read_interfaces(Loading& loading, const MapReader& top);      // tenants' own ones too; completes their `match`
void read_cross_connects(Loading& loading, const MapReader& top);  // `ports:`, promiscuous, too
void read_kernel(Loading& loading, const MapReader& top);
void read_neighbors(Loading& loading, const MapReader& top);
void read_routes(Loading& loading, const MapReader& top);
void resolve_rule_ports(Loading& loading);
void check_rule_next_hops(Loading& loading);

// `tenant:` of an object outside of tenants: needed where tenants are declared, "default" or absent elsewhere.
std::optional<std::size_t> read_tenant_reference(Loading& loading, const MapReader& object);

// `kernel:` of an interface; nullopt, and reported, when it is none.
std::optional<KernelTwin> read_kernel_twin(Reporter& reporter, const Value& value);

// Of a rule, and of a list for what no rule matches.
inline constexpr Choice<AclAction> kAclActions[] = {
    {"permit", AclAction::permit}, {"deny", AclAction::deny}, {"reject", AclAction::reject}};

// One rule of a list.
AclRule read_acl_rule(Loading& loading, const Value& value);

// Of a place that packets of one session do not all have alike: `why`, and what is allowed.
void refuse_per_session(Loading& loading, const std::optional<Value>& value, const std::optional<std::size_t>& policer,
                        std::string_view why);
// One of `qos.policers`; enters its name.
Policer read_policer(Loading& loading, const Value& item);
// {in: POLICER, out: POLICER}. `no_sessions`: why it can be none with a bucket for each session; empty: it can.
void read_policers_of(Loading& loading, const std::optional<Value>& value, std::optional<std::size_t>& in,
                      std::optional<std::size_t>& out, std::string_view no_sessions = {});
// One of `qos.schedulers`. Behind the classes.
void read_scheduler(Loading& loading, const Value& item);
// Bits a second, 8kbit to 1Tbit.
void read_bit_rate(Reporter& reporter, const std::optional<Value>& value, std::uint64_t& rate_bps);
// A name such as ef, or 0 to 63.
std::optional<std::uint8_t> read_dscp(Reporter& reporter, const std::optional<Value>& value);

}  // namespace cachewire::config
