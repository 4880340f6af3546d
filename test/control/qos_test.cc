// SPDX-License-Identifier: BSD-3-Clause
// Classes, policers and next hops of rules through the whole path, from the file to the bytes that leave: with a fresh
// memo, without one, and over reloads.
#include <cstring>

#include "control/memo_rig.h"
#include "net/checksum.h"
#include "support/catch.h"
#include "support/random.h"

namespace cachewire {
namespace {

using test::Arrival;
using test::PacketBuilder;

using test::kInside;
using test::kOutside;
constexpr const char* kGateway = "02 00 00 00 00 19";  // 10.0.1.9, where the routes lead
constexpr const char* kDetour = "02 00 00 00 00 20";   // 10.0.1.10
constexpr const char* kHost = "02 00 00 00 00 09";     // 10.0.0.9

struct Parts {
    std::string qos, list = "stateful: true, rules: [{action: permit, in: lan}]", tenant, lan, wan, global, neighbor;
};

std::string text_of(const Parts& parts) {
    return "version: 1\n" + parts.global + R"(ports:
  - {name: inside, device: "net_null0"}
  - {name: outside, device: "net_null1"}
qos: {)" + parts.qos +
           R"(}
tenants:
  - {name: red, id: 1, match: [{port: inside, vlan: 7}, {port: outside, vlan: 100}], acl: edge, sessions: track)" +
           parts.tenant + R"(}
interfaces:
  - {name: lan, port: inside, vlan: 7, addresses: ["10.0.0.1/24", "2001:db8::1/64"])" +
           parts.lan + R"(}
  - {name: wan, port: outside, vlan: 100, addresses: ["10.0.1.1/24", "2001:db8:1::1/64"])" +
           parts.wan + R"(}
neighbors:
  - {tenant: red, address: 10.0.0.9, mac: "02:00:00:00:00:09"}
  - {tenant: red, address: 10.0.1.9, mac: "02:00:00:00:00:19"}
  - {tenant: red, address: 10.0.1.10, mac: "02:00:00:00:00:20"}
  - {tenant: red, address: "2001:db8:1::9", mac: "02:00:00:00:00:19"}
)" + parts.neighbor +
           R"(routes:
  - {tenant: red, prefix: 198.18.0.0/15, via: 10.0.1.9}
  - {tenant: red, prefix: "2001:db8:ffff::/48", via: "2001:db8:1::9"}
acl:
  - {name: edge, )" +
           parts.list + "}\n";
}

struct Packet {
    std::uint8_t tos = 0, pcp = 0;
    std::uint16_t port = 1000;
    bool reply = false;
    std::size_t payload = 8;
    const char* to = "198.18.0.1";
};

struct Rig {
    test::Builder builder{{{"inside", {0, 1, kInside}}, {"outside", {1, 1, kOutside}}}};
    std::unique_ptr<pipeline::Snapshot> snapshot;
    test::Runner runner;

    explicit Rig(const Parts& parts) { reload(parts); }
    void reload(const Parts& parts) { snapshot = builder.build(text_of(parts)); }

    Arrival arrival(const Packet& p) const {
        PacketBuilder b;
        if (p.reply) {
            b.eth(kOutside).vlan(100, 0x8100, p.pcp).ip4(p.to, "10.0.0.9", {.tos = p.tos}).udp(53, p.port);
            return {builder.port("outside"), b.payload(p.payload).bytes()};
        }
        b.eth(kInside).vlan(7, 0x8100, p.pcp).ip4("10.0.0.9", p.to, {.tos = p.tos}).udp(p.port, 53);
        return {builder.port("inside"), b.payload(p.payload).bytes()};
    }
    std::string send(const Packet& p) { return runner.run_one(*snapshot, arrival(p)); }
    // "MAC pcp N tos N", or the drop reason.
    std::string face(const Packet& p) {
        const std::string fate = send(p);
        if (!fate.starts_with("to ")) return fate;
        std::vector<std::uint8_t> bytes;
        for (std::size_t at = fate.find(':') + 2; at < fate.size(); at += 3)
            bytes.push_back(static_cast<std::uint8_t>(std::stoul(fate.substr(at, 2), nullptr, 16)));
        REQUIRE(net::checksum({bytes.data() + 18, 20}) == 0);
        return fmt::format("{} pcp {} tos {}", fate.substr(fate.find(':') + 2, 17), bytes[14] >> 5, bytes[19]);
    }
    std::string way(const Packet& p) { return face(p).substr(0, 17); }
    qos::Policers& policers() { return runner.worker->policers; }
    std::uint16_t policer(control::PolicerUse use, const std::string& name = "", std::uint16_t owner = 0) const {
        return *builder.registry().policers.find({use, owner, name});
    }
};

std::string expect(const char* mac, unsigned pcp, unsigned tos) {
    return fmt::format("{} pcp {} tos {}", mac, pcp, tos);
}

// Two frames of 54 bytes and no third, for hours.
constexpr const char* kTwo = "policers: [{name: two, rate: 8kbit, burst: 128B}]";

}  // namespace

TEST_CASE("qos path: a rule's class marks DSCP and PCP, keeps ECN, and is memoised", "[qos]") {
    Rig rig({.qos = "classes: [{name: gold, dscp: ef, pcp: 5}]",
             .list = "stateful: true, rules: [{action: permit, in: lan, class: gold}]"});
    for (unsigned i = 0; i < 3; ++i) {
        INFO("packet " << i);
        CHECK(rig.face({.tos = 3}) == expect(kGateway, 5, 46 << 2 | 3));
        CHECK(rig.face({.tos = 0x20 | 1, .reply = true}) == expect(kHost, 5, 46 << 2 | 1));
    }
    CHECK(rig.runner.worker->memo.hits.read() == 5);
}

TEST_CASE("qos path: DSCP and PCP name a class, a rule goes before both, what has none is left as it came", "[qos]") {
    Rig rig({.qos = "classes: [{name: gold, dscp: ef, pcp: 5}, {name: low, dscp: cs1}, {name: net, pcp: 6}]",
             .list = "stateful: true, rules: [{action: permit, in: lan, proto: udp, dst_ports: 54, class: low}, "
                     "{action: permit, in: lan}]"});
    CHECK(rig.face({}) == expect(kGateway, 0, 0));
    CHECK(rig.face({.tos = 0x28, .pcp = 3}) == expect(kGateway, 0, 0x28));  // af11 is no class's
    CHECK(rig.face({.tos = 46 << 2 | 2}) == expect(kGateway, 5, 46 << 2 | 2));
    CHECK(rig.face({.tos = 0, .pcp = 5}) == expect(kGateway, 5, 46 << 2));
    CHECK(rig.face({.tos = 8 << 2, .pcp = 5}) == expect(kGateway, 0, 8 << 2));  // DSCP goes before PCP
    CHECK(rig.face({.tos = 0x50, .pcp = 6}) == expect(kGateway, 6, 0x50));      // a class without DSCP marks none
    CHECK(rig.face({.tos = 46 << 2, .reply = true}) == expect(kHost, 5, 46 << 2));
}

TEST_CASE("qos path: a rule's policer sees misses, hits and replies alike", "[qos]") {
    Rig rig({.qos = kTwo, .list = "stateful: true, rules: [{name: slow, action: permit, in: lan, policer: two}]"});
    CHECK(rig.way({}) == kGateway);
    CHECK(rig.way({.reply = true}) == kHost);
    CHECK(rig.send({}) == "policer");
    CHECK(rig.send({.port = 2000}) == "policer");
    const auto index = rig.policer(control::PolicerUse::rule, "edge/slow");
    CHECK(rig.policers().states[index].conform_packets.read() == 2);
    CHECK(rig.policers().states[index].violate_packets.read() == 2);
}

TEST_CASE("qos path: interfaces police what comes in and what leaves by them", "[qos]") {
    for (const bool in : {true, false}) {
        Parts parts{.qos = kTwo};
        (in ? parts.lan : parts.wan) = in ? ", policer: {in: two}" : ", policer: {out: two}";
        Rig rig(parts);
        CHECK(rig.way({}) == kGateway);
        CHECK(rig.way({.reply = true}) == kHost);  // the other way round by that interface
        CHECK(rig.way({}) == kGateway);
        CHECK(rig.way({.reply = true}) == kHost);
        CHECK(rig.send({}) == "policer");
        CHECK(rig.way({.reply = true}) == kHost);
    }
}

TEST_CASE("qos path: a class's policer takes all packets of the class and no others", "[qos]") {
    Rig rig({.qos = std::string(kTwo) + ", classes: [{name: gold, dscp: ef, policer: two}]"});
    for (unsigned i = 0; i < 4; ++i) {
        CHECK(rig.send({.tos = 46 << 2}).starts_with(i < 2 ? "to" : "policer"));
        CHECK(rig.way({}) == kGateway);
    }
}

TEST_CASE("qos path: a shared policer is one bucket wherever it stands, others are one each", "[qos]") {
    for (const bool shared : {false, true}) {
        const std::string qos = fmt::format("policers: [{{name: two, rate: 8kbit, burst: 128B, shared: {}}}]", shared);
        Rig rig({.qos = qos, .tenant = ", policer: {out: two}", .lan = ", policer: {in: two}"});
        CHECK(rig.way({}) == kGateway);  // once at each place
        CHECK(rig.send({}).starts_with(shared ? "policer" : "to"));
        CHECK(rig.send({}) == "policer");
    }
}

TEST_CASE("qos path: what exceeds is remarked, what violates dropped, and the checksum stays right", "[qos]") {
    Rig rig({.qos = "policers: [{name: p, type: trtcm_2698, cir: 8kbit, pir: 8kbit, cbs: 64B, pbs: 192B, yellow: "
                    "{dscp: af12}, red: drop}]",
             .tenant = ", policer: {in: p}"});
    CHECK(rig.face({.tos = 0x28 | 1}) == expect(kGateway, 0, 0x28 | 1));
    CHECK(rig.face({.tos = 0x28 | 1}) == expect(kGateway, 0, 12 << 2 | 1));
    CHECK(rig.face({.tos = 0x28 | 2}) == expect(kGateway, 0, 12 << 2 | 2));
    CHECK(rig.send({}) == "policer");
    const auto index = rig.policer(control::PolicerUse::tenant_in, "", rig.builder.tenant("red"));
    CHECK(rig.policers().states[index].conform_packets.read() == 1);
    CHECK(rig.policers().exceeds[index].packets.read() == 2);
    CHECK(rig.policers().exceeds[index].bytes.read() == 108);
    CHECK(rig.policers().states[index].violate_packets.read() == 1);
}

TEST_CASE("qos path: a colour-aware policer takes AF's drop precedence for the colour", "[qos]") {
    Rig rig({.qos = "policers: [{name: p, type: trtcm_4115, cir: 1Gbit, eir: 1Gbit, colour_aware: true, yellow: {dscp: "
                    "af22}, red: {dscp: cs1}}]",
             .tenant = ", policer: {in: p}"});
    CHECK(rig.face({.tos = 18 << 2}) == expect(kGateway, 0, 18 << 2));  // af21
    CHECK(rig.face({.tos = 28 << 2}) == expect(kGateway, 0, 20 << 2));  // af32: yellow
    CHECK(rig.face({.tos = 30 << 2}) == expect(kGateway, 0, 8 << 2));   // af33: red
    CHECK(rig.face({.tos = 46 << 2}) == expect(kGateway, 0, 46 << 2));  // ef has none: green
}

TEST_CASE("qos path: a rule's next hop goes before the route's, in its own direction", "[qos]") {
    for (const bool memoize : {true, false}) {
        Rig rig({.list = "stateful: true, rules: [{action: permit, in: lan, proto: udp, src_ports: 2000, next_hop: "
                         "10.0.1.10}, {action: permit, in: lan}]",
                 .global = memoize ? "" : "pipeline: {memoize: false}\n"});
        for (unsigned i = 0; i < 3; ++i) {
            INFO("packet " << i << ", memoize " << memoize);
            CHECK(rig.way({.port = 2000}) == kDetour);
            CHECK(rig.way({.port = 2000, .reply = true}) == kHost);
            CHECK(rig.way({.port = 1000}) == kGateway);
            CHECK(rig.way({.port = 2000, .to = "192.0.2.55"}) == kDetour);  // where no route leads
            CHECK(rig.send({.port = 1000, .to = "192.0.2.55"}) == "no_route");
            CHECK(rig.send({.port = 2000, .to = "10.0.1.1"}) == "local");
        }
    }
}

TEST_CASE("qos path: a next hop of the other family is none", "[qos]") {
    Rig rig({.list = "stateful: true, rules: [{action: permit, in: lan, next_hop: 10.0.1.10}]"});
    const Arrival v6{rig.builder.port("inside"),
                     PacketBuilder().eth(kInside).vlan(7).ip6("2001:db8::9", "2001:db8:ffff::1").udp(1, 2).bytes()};
    for (unsigned i = 0; i < 3; ++i) CHECK(rig.runner.run_one(*rig.snapshot, v6).substr(6, 17) == kGateway);
    CHECK(rig.way({}) == kDetour);
}

TEST_CASE("qos path: reloads move sessions to the rule's next hop and back", "[qos]") {
    const auto list = [](const char* next_hop) {
        return Parts{.list = std::string("stateful: true, rules: [{action: permit, in: lan") + next_hop + "}]",
                     .neighbor = "  - {tenant: red, address: 10.0.1.11, mac: \"02:00:00:00:00:21\"}\n"};
    };
    Rig rig(list(""));
    CHECK(rig.way({}) == kGateway);
    rig.reload(list(", next_hop: 10.0.1.10"));
    CHECK(rig.way({}) == kDetour);
    CHECK(rig.way({.reply = true}) == kHost);
    CHECK(rig.way({}) == kDetour);
    rig.reload(list(", next_hop: 10.0.1.11"));
    CHECK(rig.way({}) == "02 00 00 00 00 21");
    CHECK(rig.way({}) == "02 00 00 00 00 21");
    rig.reload(list(""));
    CHECK(rig.way({}) == kGateway);
    CHECK(rig.way({.reply = true}) == kHost);
}

TEST_CASE("qos path: an unknown neighbor that a rule names is asked for and waited for like a route's", "[qos]") {
    Rig rig({.list = "stateful: true, rules: [{action: permit, in: lan, next_hop: 10.0.1.77}]"});
    CHECK(rig.send({}) == "no_neighbor");
    rig.reload({.list = "stateful: true, rules: [{action: permit, in: lan, next_hop: 10.0.1.77}]",
                .neighbor = "  - {tenant: red, address: 10.0.1.77, mac: \"02:00:00:00:00:77\"}\n"});
    CHECK(rig.way({}) == "02 00 00 00 00 77");
}

TEST_CASE("qos path: a stateless list's rules decide packet by packet, whatever the session remembers", "[qos]") {
    for (const bool memoize : {true, false}) {
        Rig rig({.list = "default: permit, rules: [{action: permit, in: lan, dscp: ef, next_hop: 10.0.1.10}]",
                 .global = memoize ? "" : "pipeline: {memoize: false}\n"});
        for (unsigned i = 0; i < 3; ++i) {
            INFO("packet " << i << ", memoize " << memoize);
            CHECK(rig.way({.tos = 46 << 2}) == kDetour);
            CHECK(rig.way({}) == kGateway);
            CHECK(rig.way({.reply = true}) == kHost);
            CHECK(rig.way({.port = 2000}) == kGateway);
            CHECK(rig.way({.tos = 46 << 2, .port = 2000}) == kDetour);
        }
    }
}

TEST_CASE("qos path: on_policy_change keep goes on with the rule's word, also when it is gone", "[qos]") {
    const char* keep = "sessions: {on_policy_change: keep}\n";
    Rig rig({.qos = kTwo,
             .list = "stateful: true, rules: [{action: permit, in: lan, next_hop: 10.0.1.10, policer: two}]",
             .global = keep});
    CHECK(rig.way({}) == kDetour);
    rig.reload({.global = keep});
    for (unsigned i = 0; i < 5; ++i) CHECK(rig.way({}) == kDetour);  // nothing is attached to that bucket any more
    CHECK(rig.way({.port = 3000}) == kGateway);
}

TEST_CASE("qos path: with and without the memo the same packets leave with the same bytes", "[qos]") {
    auto engine = test::random_engine();
    const auto below = [&engine](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(engine); };
    const std::string qos =
        "policers: [{name: p, type: trtcm_4115, cir: 8kbit, eir: 16kbit, cbs: 2000B, ebs: 2000B, yellow: {dscp: af12}, "
        "red: {dscp: le}}], classes: [{name: gold, dscp: ef, pcp: 5, policer: p}, {name: low, dscp: cs1, pcp: 1}]";
    const auto rules = [&] {
        std::string text;
        for (unsigned i = 0; i < 12; ++i) {
            const bool permit = below(5) != 0;
            text += fmt::format("{}{{action: {}, proto: udp, src_ports: {}-{}", i == 0 ? "" : ", ",
                                permit ? "permit" : "deny", 1000 + below(5), 1004 + below(8));
            if (below(3) == 0) text += ", dscp: cs" + std::to_string(below(3));
            if (permit && below(2) == 0) text += below(2) == 0 ? ", class: gold" : ", class: low";
            if (permit && below(2) == 0) text += ", policer: p";
            if (permit && below(2) == 0) text += below(2) == 0 ? ", next_hop: 10.0.1.10" : ", next_hop: 10.0.1.9";
            text += "}";
        }
        return text;
    };
    for (unsigned round = 0; round < 40; ++round) {
        const bool stateful = below(2) == 0;
        const auto parts = [&](const std::string& list, bool memoize) {
            return Parts{.qos = qos,
                         .list = fmt::format("stateful: {}, default: {}, rules: [{}]", stateful,
                                             stateful ? "deny" : "permit", list),
                         .global = memoize ? "" : "pipeline: {memoize: false}\n"};
        };
        std::string list = rules();
        Rig with(parts(list, true)), without(parts(list, false));
        for (unsigned burst = 0; burst < 40; ++burst) {
            if (below(10) == 0) {
                list = rules();
                with.reload(parts(list, true));
                without.reload(parts(list, false));
            }
            std::vector<Arrival> arrivals;
            for (unsigned n = 1 + below(16); n > 0; --n)
                arrivals.push_back(with.arrival({.tos = static_cast<std::uint8_t>(below(3) * 32),
                                                 .pcp = static_cast<std::uint8_t>(below(8)),
                                                 .port = static_cast<std::uint16_t>(1000 + below(12)),
                                                 .reply = below(4) == 0}));
            INFO("round " << round << ", burst " << burst << ", stateful " << stateful << ": " << list);
            REQUIRE(with.runner.run(*with.snapshot, arrivals) == without.runner.run(*without.snapshot, arrivals));
            with.runner.worker->now_tsc += base::tsc_hz() / 100;
            without.runner.worker->now_tsc += base::tsc_hz() / 100;
        }
    }
}

}  // namespace cachewire
