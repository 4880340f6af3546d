// SPDX-License-Identifier: BSD-3-Clause
// Random rules, routes and traffic with reloads between bursts, through workers that differ in one thing only: whether
// they use the memo. Packet by packet they do the same.
#include <algorithm>
#include <array>
#include <map>

#include "control/memo_rig.h"
#include "support/catch.h"
#include "support/random.h"

namespace cachewire {
namespace {

using test::Arrival;
using test::Bytes;
using test::PacketBuilder;

struct TenantPlan {
    const char* name;
    bool has_list;
    bool stateful;
    const char* sessions;
};
constexpr TenantPlan kTenants[] = {
    {"red", true, true, "track"},
    {"blue", true, false, "cache"},
    {"green", true, false, "track"},
    {"grey", false, true, "track"},
};
constexpr unsigned kTenantCount = 4;

net::Mac port_mac(unsigned tenant, unsigned side) {
    return {{2, 0, 0, 0, static_cast<std::uint8_t>(tenant + 1), static_cast<std::uint8_t>(side + 1)}};
}
std::string port_name(unsigned tenant, unsigned side) {
    return fmt::format("{}-{}", kTenants[tenant].name, side == 0 ? "in" : "out");
}
std::map<std::string, control::PortInfo> ports() {
    std::map<std::string, control::PortInfo> ports;
    for (unsigned t = 0; t < kTenantCount; ++t)
        for (unsigned side = 0; side < 2; ++side)
            ports[port_name(t, side)] = {static_cast<std::uint16_t>(2 * t + side), 1, port_mac(t, side)};
    return ports;
}

class World {
  public:
    explicit World(std::mt19937_64& engine) : engine_(engine) {
        for (unsigned t = 0; t < kTenantCount; ++t) {
            lists_.push_back(random_list(t));
            routes_.push_back(random_routes(t));
        }
    }

    unsigned below(unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(engine_); }
    bool chance(unsigned percent) { return below(100) < percent; }
    template <class T>
    T pick(std::initializer_list<T> from) {
        return from.begin()[below(static_cast<unsigned>(from.size()))];
    }

    // What a reload may bring: new rules, new routes, either, or the same again.
    void change() {
        const unsigned t = below(kTenantCount);
        if (chance(60)) lists_[t] = random_list(t);
        if (chance(40)) routes_[t] = random_routes(t);
    }

    std::string plan(unsigned t) const { return kTenants[t].name + (": " + lists_[t]) + routes_[t]; }
    std::string text(const std::string& policy) const {
        std::string ports, tenants, interfaces, neighbors, routes, lists;
        for (unsigned t = 0; t < kTenantCount; ++t) {
            const TenantPlan& plan = kTenants[t];
            const std::string in = port_name(t, 0), out = port_name(t, 1);
            for (unsigned side = 0; side < 2; ++side)
                ports += fmt::format("  - {{name: {}, device: \"net_null{}\"}}\n", port_name(t, side), 2 * t + side);
            tenants += fmt::format(
                "  - {{name: {0}, id: {1}, match: [{{port: {2}}}, {{port: {3}}}], sessions: {4}{5}}}\n", plan.name,
                t + 1, in, out, plan.sessions, plan.has_list ? fmt::format(", acl: {}-list", plan.name) : "");
            interfaces += fmt::format(
                "  - {{name: {0}, port: {0}, addresses: [\"10.0.0.1/24\", \"2001:db8:a::1/64\"]}}\n"
                "  - {{name: {1}, port: {1}, addresses: [\"10.0.1.1/24\", \"2001:db8:b::1/64\"]}}\n",
                in, out);
            for (const char* host :
                 {"10.0.0.9", "10.0.0.10", "10.0.1.9", "10.0.1.10", "2001:db8:a::9", "2001:db8:b::9", "2001:db8:b::10"})
                neighbors += fmt::format("  - {{tenant: {}, address: \"{}\", mac: \"02:00:00:00:{:02x}:{:02x}\"}}\n",
                                         plan.name, host, t + 0x10, std::hash<std::string>{}(host)&0xff);
            routes += routes_[t];
            if (plan.has_list)
                lists += fmt::format("  - {{name: {}-list, stateful: {}, {}", plan.name, plan.stateful, lists_[t]);
        }
        return "version: 1\npipeline: {memoize: true}\nsessions: {capacity: 4096, on_policy_change: " + policy +
               "}\nports:\n" + ports + "tenants:\n" + tenants + "interfaces:\n" + interfaces + "neighbors:\n" +
               neighbors + (routes.empty() ? "" : "routes:\n" + routes) + "acl:\n" + lists;
    }

    struct Packet {
        unsigned tenant;  // index in kTenants
        Arrival arrival;
        bool later_fragment;
    };
    Packet packet(const test::Builder& builder);

  private:
    std::string random_rule(unsigned t);
    std::string random_list(unsigned t);
    std::string random_routes(unsigned t);
    struct Flow {
        unsigned tenant;
        bool v6;
        std::string src, dst;
        std::uint16_t src_port, dst_port;
        enum Proto { tcp, udp, icmp, gre } proto;
        unsigned side;  // where its first packet came in
    };
    Flow random_flow();
    static std::uint8_t protocol_of(const Flow& flow) {
        switch (flow.proto) {
            case Flow::tcp:
                return 6;
            case Flow::udp:
                return 17;
            case Flow::icmp:
                return flow.v6 ? 58 : 1;
            case Flow::gre:
                break;
        }
        return 47;
    }
    PacketBuilder& add_l4(PacketBuilder& p, const Flow& flow, bool reverse, bool whole_words = false);
    Bytes error_about(const Flow& flow, bool about_reverse, const net::Mac& mac);

    std::mt19937_64& engine_;
    std::vector<std::string> lists_, routes_;
    std::vector<Flow> flows_;
    std::uint16_t datagram_id_ = 0;
};

std::string World::random_rule(unsigned t) {
    std::string rule = fmt::format("{{action: {}", chance(70) ? "permit" : "deny");
    if (chance(30)) rule += ", in: " + port_name(t, below(2));
    if (chance(20)) rule += ", dscp: " + pick<std::string>({"ef", "0", "af11"});
    if (chance(12)) rule += ", fragment: " + pick<std::string>({"none", "first", "later", "any"});
    if (chance(30))
        rule += fmt::format(", {}: {}", pick<const char*>({"src", "dst"}),
                            pick<const char*>({"10.0.0.0/24", "10.0.1.0/24", "198.18.0.0/16", "\"2001:db8:a::/64\"",
                                               "\"2001:db8:ff::/48\"", "198.18.0.1/32"}));
    switch (below(5)) {
        case 0:
            rule += ", proto: tcp";
            if (chance(50))
                rule += ", tcp_flags: " + pick<std::string>({"\"syn/syn,ack\"", "\"ack/ack\"", "\"rst/rst\""});
            if (chance(40)) rule += fmt::format(", dst_ports: {}", pick<const char*>({"80", "53-80", "1000-2000"}));
            break;
        case 1:
            rule += ", proto: udp";
            if (chance(50)) rule += fmt::format(", dst_ports: {}", pick<const char*>({"80", "53-80", "1000-2000"}));
            if (chance(30)) rule += fmt::format(", src_ports: {}", pick<const char*>({"80", "53-80", "1000-2000"}));
            break;
        case 2:
            rule += pick<std::string>({", proto: icmp, icmp: {type: 8, code: 0}", ", proto: icmp, icmp: {type: 0}",
                                       ", proto: icmpv6, icmp: {type: 128}", ", proto: icmp"});
            break;
        default:
            break;
    }
    return rule + "}";
}

// A rule that no packet can match is refused by the loader, so each is tried alone first.
std::string World::random_list(unsigned t) {
    std::string rules;
    for (unsigned n = below(6); n > 0; --n) {
        std::string rule = random_rule(t);
        const std::string alone = "version: 1\nports:\n  - {name: " + port_name(t, 0) +
                                  ", device: net_null0}\n  - {name: " + port_name(t, 1) +
                                  ", device: net_null1}\nacl: [{name: a, rules: [" + rule + "]}]\n";
        if (config::load_text(alone, "rule.yaml").config) rules += (rules.empty() ? "" : ", ") + rule;
    }
    return fmt::format("default: {}, rules: [{}]}}\n", chance(50) ? "permit" : "deny", rules);
}

std::string World::random_routes(unsigned t) {
    std::string routes;
    const auto add = [&](const char* prefix, const char* via) {
        routes += fmt::format("  - {{tenant: {}, prefix: \"{}\", via: \"{}\"}}\n", kTenants[t].name, prefix, via);
    };
    if (chance(80)) add("198.18.0.0/15", pick<const char*>({"10.0.1.9", "10.0.1.10"}));
    if (chance(50)) add("198.18.0.1/32", pick<const char*>({"10.0.1.9", "10.0.1.10", "10.0.0.10"}));
    if (chance(40)) add("198.18.1.0/24", pick<const char*>({"10.0.1.9", "10.0.0.10"}));
    if (chance(80)) add("2001:db8:ff::/48", pick<const char*>({"2001:db8:b::9", "2001:db8:b::10"}));
    if (chance(40)) add("2001:db8:ff::1/128", pick<const char*>({"2001:db8:b::9", "2001:db8:b::10"}));
    return routes;
}

World::Flow World::random_flow() {
    Flow flow;
    flow.tenant = below(kTenantCount);
    flow.v6 = chance(35);
    flow.side = chance(80) ? 0 : 1;
    const char* inside = flow.v6 ? "2001:db8:a::9" : pick<const char*>({"10.0.0.9", "10.0.0.10"});
    const char* outside = flow.v6 ? pick<const char*>({"2001:db8:ff::1", "2001:db8:ff::2", "2001:db8:b::9"})
                                  : pick<const char*>({"198.18.0.1", "198.18.0.2", "198.18.1.1", "10.0.1.9"});
    flow.src = flow.side == 0 ? inside : outside;
    flow.dst = flow.side == 0 ? outside : inside;
    flow.src_port = pick<std::uint16_t>({1000, 1001, 1500, 3000});
    flow.dst_port = pick<std::uint16_t>({53, 80, 443});
    flow.proto = pick<Flow::Proto>({Flow::tcp, Flow::tcp, Flow::tcp, Flow::udp, Flow::udp, Flow::icmp, Flow::gre});
    return flow;
}

// `whole_words`: a multiple of 8 bytes in all, as a first piece has to be.
PacketBuilder& World::add_l4(PacketBuilder& p, const Flow& flow, bool reverse, bool whole_words) {
    const std::uint16_t from = reverse ? flow.dst_port : flow.src_port, to = reverse ? flow.src_port : flow.dst_port;
    constexpr std::uint8_t F = 1, S = 2, R = 4, A = 16;
    switch (flow.proto) {
        case Flow::tcp: {
            test::TcpFields fields;
            fields.flags = reverse ? pick<std::uint8_t>({S | A, A, A, A, F | A, R, R | A, S})
                                   : pick<std::uint8_t>({S, S, S, A, A, A, F | A, R});
            return p.tcp(from, to, fields).payload(whole_words ? 12 : below(20));
        }
        case Flow::udp:
            return p.udp(from, to).payload(whole_words ? 16 : below(20));
        case Flow::icmp:
            if (flow.v6) return p.icmp6(reverse ? 129 : 128, 0, flow.src_port, 1).payload(8);
            return p.icmp(reverse ? 0 : 8, 0, flow.src_port, 1).payload(8);
        case Flow::gre:
            return p.payload(Bytes(16, 0x11));
    }
    return p;
}

// "Unreachable" from somewhere on the way, to the quoted packet's source; sometimes to somebody else.
Bytes World::error_about(const Flow& flow, bool about_reverse, const net::Mac& mac) {
    const std::string& src = about_reverse ? flow.dst : flow.src;
    const std::string& dst = about_reverse ? flow.src : flow.dst;
    PacketBuilder inner;
    inner.eth();
    if (flow.v6) {
        inner.ip6(src, dst, {.next_header = protocol_of(flow)});
    } else {
        inner.ip4(src, dst, {.options = chance(20) ? Bytes{1, 1, 1, 1} : Bytes{}, .proto = protocol_of(flow)});
    }
    const Bytes whole = add_l4(inner, flow, about_reverse).bytes();
    Bytes quote(whole.begin() + 14, whole.end());
    if (chance(50)) quote.resize(std::min<std::size_t>(quote.size(), chance(80) ? (flow.v6 ? 48u : 28u) : below(48)));
    const std::string to = chance(90) ? src : flow.v6 ? "2001:db8:a::9" : "10.0.0.9";
    PacketBuilder p;
    p.eth(mac);
    if (flow.v6) return p.ip6(dst, to).icmp6(1, below(2) != 0, 0, 0).payload(quote).bytes();
    return p.ip4(chance(50) ? "198.18.0.2" : dst, to).icmp(3, 1, 0, 0).payload(quote).bytes();
}

World::Packet World::packet(const test::Builder& builder) {
    if (flows_.size() < 60 || chance(8)) {
        if (flows_.size() >= 60) flows_.erase(flows_.begin() + below(60));
        flows_.push_back(random_flow());
    }
    const Flow& flow = flows_[below(static_cast<unsigned>(flows_.size()))];
    const bool reverse = chance(45);
    unsigned side = reverse ? 1 - flow.side : flow.side;
    if (chance(4)) side = 1 - side;  // by another way than the first
    const net::Mac mac = port_mac(flow.tenant, side);
    Packet packet{flow.tenant, {builder.port(port_name(flow.tenant, side)), {}}, false};
    if (chance(6)) {
        packet.arrival.frame = error_about(flow, chance(50), mac);
        return packet;
    }
    const bool fragmented = chance(15);
    packet.later_fragment = fragmented && chance(60);
    if (fragmented && !packet.later_fragment) ++datagram_id_;
    const std::uint16_t id =
        packet.later_fragment && chance(30) ? static_cast<std::uint16_t>(datagram_id_ + below(3)) : datagram_id_;
    const std::uint16_t offset = packet.later_fragment ? pick<std::uint16_t>({2, 3, 4, 100}) : 0;
    const bool more = fragmented && !(packet.later_fragment && chance(50));
    const bool options = chance(5);
    const std::uint8_t tos = pick<std::uint8_t>({0, 0, 0, 0xb8});
    const std::uint8_t ttl = chance(2) ? 1 : 64;
    const std::string &src = reverse ? flow.dst : flow.src, &dst = reverse ? flow.src : flow.dst;
    // Of a later piece no builder knows the protocol.
    const std::uint8_t proto = protocol_of(flow);
    const bool named = packet.later_fragment || flow.proto == Flow::gre;
    PacketBuilder p;
    p.eth(mac);
    if (flow.v6) {
        p.ip6(src, dst, {.traffic_class = tos, .hop_limit = ttl});
        if (options) p.destination_options({1, 4, 0, 0, 0, 0});
        if (fragmented) p.fragment(offset, more, id);
    } else {
        test::Ip4Fields fields{.tos = tos, .id = id, .ttl = ttl};
        fields.fragment = static_cast<std::uint16_t>((more ? 0x2000 : 0) | offset);
        if (options) fields.options = {7, 3, 4, 0};
        if (named) fields.proto = proto;
        p.ip4(src, dst, fields);
    }
    if (packet.later_fragment) {
        p.payload(16);
    } else {
        add_l4(p, flow, reverse, fragmented);
    }
    packet.arrival.frame = p.bytes();
    if (flow.v6 && named) packet.arrival.frame[fragmented ? 54u + (options ? 8 : 0) : options ? 54u : 20u] = proto;
    return packet;
}

// Counted over a whole run, so that no case can stay out of it unnoticed.
std::map<std::string, unsigned> kinds(const std::vector<std::string>& fates, std::map<std::string, unsigned> seen) {
    for (const auto& fate : fates) ++seen[fate.substr(0, fate.find(' '))];
    return seen;
}

// Stateless lists: each packet counts once, for the rule that judges it, whoever remembers the verdict.
void compare_rule_hits(const pipeline::Snapshot& snapshot, const test::Builder& builder, test::Runner& memo,
                       test::Runner& plain) {
    for (const char* name : {"blue", "green"}) {
        const pipeline::Tenant& tenant = snapshot.tenants[builder.tenant(name)];
        for (std::uint32_t rule = tenant.rule_base; rule <= tenant.default_rule; ++rule) {
            INFO("seed " << test::seed() << ", " << name << ", rule " << rule - tenant.rule_base);
            REQUIRE(memo.rule_hits(rule) == plain.rule_hits(rule));
        }
    }
}

// Replies of stateless sessions that the memo has answered: what is judged alone leaves no counts in the hot entry.
void count_memoised_replies(const test::Builder& builder, const test::Runner& memo, std::array<unsigned, 2>& seen) {
    const session::Table& sessions = *memo.worker->sessions;
    for (std::uint32_t i = 0; i < sessions.used_end(); ++i) {
        const session::HotEntry& entry = sessions.hot(i);
        if (entry.state() == session::State::free || entry.packets[1] == 0) continue;
        if (entry.tenant == builder.tenant("blue") || entry.tenant == builder.tenant("green"))
            ++seen[entry.dst.is_v4() ? 0 : 1];
    }
}

void compare_runs(const std::string& policy, std::uint32_t capacity, unsigned bursts) {
    auto engine = test::random_engine();
    World world(engine);
    test::Builder builder(ports());
    test::Runner memo(capacity), plain(capacity), shadow(capacity), none(capacity);
    std::map<std::string, unsigned> seen;
    std::array<unsigned, 2> replies{};  // by family
    for (test::Runner* runner : {&memo, &plain}) builder.count_hits_of(*runner);
    std::unique_ptr<pipeline::Snapshot> snapshot = builder.build(world.text(policy));
    for (unsigned round = 0; round < bursts; ++round) {
        if (world.chance(15)) {
            compare_rule_hits(*snapshot, builder, memo, plain);
            world.change();
            snapshot = builder.build(world.text(policy));
        }
        pipeline::Snapshot off = *snapshot, checked = *snapshot, no_sessions = *snapshot;
        off.memoize = false;
        checked.shadow_check = 1 + world.below(4);
        no_sessions.tenants[builder.tenant("blue")].sessions = pipeline::SessionMode::none;

        std::vector<World::Packet> packets;
        std::vector<Arrival> arrivals;
        for (unsigned n = 1 + world.below(24); n > 0; --n) {
            packets.push_back(world.packet(builder));
            arrivals.push_back(packets.back().arrival);
        }
        const auto with_memo = memo.run(*snapshot, arrivals);
        const auto without = plain.run(off, arrivals);
        const auto with_checks = shadow.run(checked, arrivals);
        const auto alone = none.run(no_sessions, arrivals);
        for (unsigned i = 0; i < packets.size(); ++i) {
            // A stateless list in cache mode is a cache and nothing else; only ports of later pieces are new.
            const bool is_cache = policy == "revalidate" && packets[i].tenant == 1 && !packets[i].later_fragment;
            if (with_memo[i] == without[i] && with_memo[i] == with_checks[i] && (!is_cache || with_memo[i] == alone[i]))
                continue;
            std::string frame;
            for (const std::uint8_t byte : arrivals[i].frame) frame += fmt::format(" {:02x}", byte);
            FAIL("seed " << test::seed() << ", burst " << round << ", packet " << i << " of " << packets.size() << ":"
                         << frame << "\nwith memo:    " << with_memo[i] << "\nwithout:      " << without[i]
                         << "\nwith checks:  " << with_checks[i] << "\nno sessions:  " << alone[i] << "\n"
                         << world.plan(packets[i].tenant));
        }
        seen = kinds(with_memo, std::move(seen));
        count_memoised_replies(builder, memo, replies);
        const double seconds = world.chance(5) ? 40 : world.chance(30) ? 0.5 * world.below(8) : 0.001;
        for (test::Runner* runner : {&memo, &plain, &shadow, &none}) runner->advance(*snapshot, seconds);
    }
    const pipeline::MemoCounters& counters = memo.worker->memo;
    for (const auto* counter : {&counters.hits, &counters.misses, &counters.stale, &counters.bypass_fragment,
                                &counters.bypass_icmp_error, &counters.bypass_options, &counters.bypass_other})
        CHECK(counter->read() > 0);
    CHECK((replies[0] > 0 && replies[1] > 0));
    CHECK(plain.worker->memo.hits.read() == 0);
    CHECK(shadow.worker->memo.shadow_checked.read() > 0);
    CHECK(shadow.worker->memo.shadow_mismatch.read() == 0);
    for (const char* kind : {"acl_deny", "acl_default", "session_state", "ttl_exceeded", "no_route"}) {
        INFO(kind);
        CHECK(seen[kind] > 0);
    }
}

TEST_CASE("memo: with it and without it every packet fares the same, whatever is reloaded", "[memo]") {
    compare_runs("revalidate", 4096, 3000);
}

TEST_CASE("memo: the same with a table that runs full", "[memo]") { compare_runs("revalidate", 24, 1500); }

TEST_CASE("memo: the same where sessions keep their verdicts", "[memo]") { compare_runs("keep", 4096, 1500); }

TEST_CASE("memo: the same where a new policy ends sessions", "[memo]") { compare_runs("kill", 4096, 1500); }

}  // namespace
}  // namespace cachewire
