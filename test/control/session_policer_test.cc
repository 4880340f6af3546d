// SPDX-License-Identifier: BSD-3-Clause
// Policers with a bucket for each session through the whole path, from the file to what leaves.
#include <algorithm>
#include <cmath>
#include <map>

#include "control/memo_rig.h"
#include "control/policers.h"
#include "support/catch.h"

namespace cachewire {
namespace {

using test::Arrival;
using test::PacketBuilder;

// Two frames of 50 bytes (42 of headers, 8 of payload) and no third, for 64 ms.
constexpr const char* kTwoEach = "policers: [{name: each, rate: 8kbit, burst: 100B, per_session: true}]";

struct SessionParts {
    std::string qos = kTwoEach, tenant, rule, list = "stateful: true", more;
};

class SessionRig {
  public:
    explicit SessionRig(const SessionParts& parts, std::uint32_t capacity = 4096) : runner(capacity) { reload(parts); }

    void reload(const SessionParts& parts) {
        const config::Config config = test::config_of(
            test::two_sides(parts.tenant) + "routes: [{tenant: red, prefix: 198.18.0.0/15, via: 10.0.1.9}]\n" +
            "qos: {" + parts.qos + "}\nacl: [{name: edge, " + parts.list + ", rules: [{action: permit, in: lan" +
            parts.rule + "}]}]\n" + parts.more);
        control::make_session_buckets(config, *runner.worker->sessions);
        snapshot = builder.build(config);
    }
    Arrival packet(std::uint16_t flow, bool reply = false, std::size_t payload = 8) const {
        PacketBuilder b;
        if (reply)
            b.eth(test::kOutside).ip4("198.18.0.1", "10.0.0.9").udp(53, flow);
        else
            b.eth(test::kInside).ip4("10.0.0.9", "198.18.0.1").udp(flow, 53);
        return {builder.port(reply ? "outside" : "inside"), b.payload(payload).bytes()};
    }
    // "passed", or the drop reason.
    std::string fate(std::uint16_t flow, bool reply = false) { return fates({packet(flow, reply)})[0]; }
    std::vector<std::string> fates(const std::vector<Arrival>& arrivals) {
        auto all = runner.run(*snapshot, arrivals);
        for (std::string& fate : all)
            if (fate.starts_with("to ")) fate = "passed";
        return all;
    }
    // How many of so many at once pass.
    unsigned pass(std::uint16_t flow, unsigned packets, bool reply = false) {
        unsigned passed = 0;
        for (const std::string& fate : fates(std::vector(packets, packet(flow, reply)))) passed += fate == "passed";
        return passed;
    }
    const qos::PolicerState& counts(control::PolicerUse use, const std::string& name = "") const {
        const std::uint16_t owner = use == control::PolicerUse::rule ? 0 : builder.tenant("red");
        return runner.worker->policers.states[*builder.registry().policers.find({use, owner, name})];
    }

    test::Builder builder{{{"inside", {0, 1, test::kInside}}, {"outside", {1, 1, test::kOutside}}}};
    test::Runner runner;
    std::unique_ptr<pipeline::Snapshot> snapshot;
};

const char* const kTenantIn = ", policer: {in: each}";

}  // namespace

TEST_CASE("session policer: arrays are made where a session can come to one, and counted before", "[qos]") {
    struct Case {
        const char* what;
        std::string tenants, rule;
        std::vector<pipeline::PolicerPlace> places;
    };
    using enum pipeline::PolicerPlace;
    const Case cases[] = {
        {"none at all", "{name: red, id: 1}", "", {}},
        {"named by nobody but a list that no tenant has", "{name: red, id: 1}", ", policer: each", {}},
        {"a list that one tenant has", "{name: red, id: 1}, {name: blue, id: 2, acl: edge}", ", policer: each", {rule}},
        {"a list without one", "{name: red, id: 1, acl: edge}", "", {}},
        {"in", "{name: red, id: 1, sessions: cache, policer: {in: each}}", "", {tenant_in}},
        {"all of them, by two tenants",
         "{name: red, id: 1, acl: edge, policer: {in: each}}, {name: blue, id: 2, sessions: track, policer: {out: "
         "each}}",
         ", policer: each",
         {tenant_in, rule, tenant_out}},
        {"another policer", "{name: red, id: 1, sessions: cache, policer: {in: all}}", "", {}},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        const config::Config config = test::config_of(
            "version: 1\nports: [{name: p, device: net_null0}]\nqos: {policers: [{name: each, rate: 8kbit, burst: "
            "100B, per_session: true}, {name: all, rate: 8kbit}]}\nacl: [{name: edge, stateful: true, "
            "rules: [{action: permit" +
            c.rule + "}]}]\ntenants: [" + c.tenants + "]\n");
        std::uint8_t bits = 0;
        for (const auto place : c.places) bits |= static_cast<std::uint8_t>(1u << static_cast<unsigned>(place));
        CHECK(control::session_policer_places(config) == bits);
        session::Table table(4096, -1, 1'000'000'000, {});
        const std::size_t before = table.stats().memory_bytes;
        const std::size_t needed = control::session_buckets_needed(config, 4096);
        CHECK(needed == c.places.size() * 4096 * 32);
        CHECK(control::session_buckets_missing(config, table) == needed);
        control::make_session_buckets(config, table);
        CHECK(table.stats().memory_bytes == before + needed);
        CHECK(control::session_buckets_missing(config, table) == 0);
        for (const auto place : {tenant_in, rule, tenant_out})
            CHECK((table.beside(pipeline::beside_of(place)) != nullptr) == (std::ranges::count(c.places, place) != 0));
    }
}

TEST_CASE("session policer: each session is held at the rate, whatever the others send", "[qos]") {
    for (const bool rule : {false, true}) {
        INFO("of a rule: " << rule);
        SessionRig rig({.qos = "policers: [{name: each, rate: 800kbit, burst: 10kB, per_session: true}]",
                        .tenant = rule ? "" : kTenantIn,
                        .rule = rule ? ", policer: each" : ""});
        // Frames of 1000 bytes, so the rate is 100 a second. Flow 1 sends thrice, flow 2 ten times as much, flow 3
        // half.
        std::map<std::uint16_t, unsigned> sent, passed;
        constexpr unsigned kSeconds = 20;
        for (unsigned ms = 0; ms < 1000 * kSeconds; ++ms) {
            const double t = 1e-3 * ms;
            std::vector<Arrival> burst;
            for (const auto& [flow, rate] : {std::pair<std::uint16_t, double>{1, 300}, {2, 1000}, {3, 50}})
                while (sent[flow] < rate * t) {
                    ++sent[flow];
                    burst.push_back(rig.packet(flow, false, 958));
                }
            const auto fates = burst.empty() ? std::vector<std::string>{} : rig.fates(burst);
            for (std::size_t i = 0; i < burst.size(); ++i) {
                const auto flow = static_cast<std::uint16_t>(burst[i].frame[34] << 8 | burst[i].frame[35]);
                passed[flow] += fates[i] == "passed";
            }
            rig.runner.advance(*rig.snapshot, 1e-3);
        }
        const double held = 100 * kSeconds + 10;  // and a full bucket
        CHECK(std::abs(passed[1] / held - 1) < 0.01);
        CHECK(std::abs(passed[2] / held - 1) < 0.01);
        CHECK(passed[3] == sent[3]);
    }
}

TEST_CASE("session policer: miss, hits and replies of a session have one bucket, another session its own", "[qos]") {
    SessionRig rig({.rule = ", policer: each"});
    CHECK(rig.fate(1) == "passed");
    CHECK(rig.fate(1, true) == "passed");
    CHECK(rig.fate(1) == "policer");
    CHECK(rig.fate(1, true) == "policer");
    CHECK(rig.pass(2, 5) == 2);  // in one burst, the first of which begins the session
    CHECK(rig.pass(2, 5, true) == 0);
    CHECK(rig.fate(1) == "policer");
    // What is left over the rate is counted at the rule, for all of them.
    CHECK(rig.counts(control::PolicerUse::rule, "edge/#0").conform_packets.read() == 4);
    CHECK(rig.counts(control::PolicerUse::rule, "edge/#0").violate_packets.read() == 11);
}

TEST_CASE("session policer: in and out are two buckets of a session, and beside a tenant's and a rule's", "[qos]") {
    SessionRig rig({.qos = "policers: [{name: each, rate: 8kbit, burst: 150B, per_session: true}, {name: narrow, rate: "
                           "8kbit, burst: 100B, per_session: true}, {name: all, rate: 8kbit, burst: 250B}]",
                    .tenant = ", policer: {in: each, out: narrow}",
                    .rule = ", policer: all"});
    CHECK(rig.pass(1, 5) == 2);
    CHECK(rig.counts(control::PolicerUse::tenant_in).conform_packets.read() == 3);
    CHECK(rig.counts(control::PolicerUse::tenant_out).conform_packets.read() == 2);
    CHECK(rig.pass(2, 5) == 2);
    CHECK(rig.pass(3, 5) == 0);  // five have passed the rule's
    CHECK(rig.counts(control::PolicerUse::tenant_in).conform_packets.read() == 9);
    CHECK(rig.counts(control::PolicerUse::rule, "edge/#0").conform_packets.read() == 5);
}

TEST_CASE("session policer: an entry that is used again begins with a full bucket", "[qos]") {
    SessionRig rig({.tenant = kTenantIn});
    for (std::uint16_t flow = 1; flow < 50; ++flow) {
        INFO("flow " << flow);
        CHECK(rig.pass(flow, 3) == 2);
        auto& sessions = *rig.runner.worker->sessions;
        REQUIRE(sessions.used_end() == 1);  // always the same entry
        sessions.erase(0, rig.runner.worker->outcomes);
    }
    // The same tuple again: another session, as good as new.
    CHECK(rig.pass(49, 3) == 2);
}

TEST_CASE("session policer: packets without a session share the attachment's bucket", "[qos]") {
    SessionRig rig({.tenant = ", sessions: cache, policer: {in: each}", .list = "stateful: false, default: permit"}, 1);
    // The only session that there is room for. It has seen a reply, so it stays.
    CHECK(rig.fate(1) == "passed");
    CHECK(rig.fate(1, true) == "passed");
    CHECK(rig.pass(1, 3) == 0);
    CHECK(rig.pass(2, 1) == 1);
    CHECK(rig.pass(3, 3) == 1);
    CHECK(rig.pass(2, 3) == 0);
    rig.runner.advance(*rig.snapshot, 0.051);  // a frame's time, and theirs
    CHECK(rig.pass(1, 3) == 1);
    CHECK(rig.pass(4, 3) == 1);
}

TEST_CASE("session policer: reloads change from the attachment's bucket to the sessions' and back", "[qos]") {
    const std::string shared_by_all = "policers: [{name: each, rate: 8kbit, burst: 100B}]";
    SessionRig rig({.qos = shared_by_all, .tenant = kTenantIn});
    CHECK(rig.runner.worker->sessions->beside(0) == nullptr);
    CHECK(rig.pass(1, 3) == 2);
    CHECK(rig.pass(2, 3) == 0);
    rig.reload({.tenant = kTenantIn});
    CHECK(rig.pass(1, 3) == 2);
    CHECK(rig.pass(2, 3) == 2);
    rig.reload({.qos = "policers: [{name: each, rate: 8kbit, burst: 200B, per_session: true}]", .tenant = kTenantIn});
    CHECK(rig.pass(1, 3) == 0);  // a wider bucket is not a fuller one
    CHECK(rig.pass(3, 5) == 4);
    rig.reload({.qos = shared_by_all, .tenant = kTenantIn});
    CHECK(rig.pass(3, 3) == 0);
    CHECK(rig.pass(4, 3) == 0);
    rig.runner.advance(*rig.snapshot, 0.2);
    CHECK(rig.pass(4, 3) == 2);
    CHECK(rig.pass(5, 3) == 0);
}

TEST_CASE("session policer: with and without the memo, and what exceeds is remarked", "[qos]") {
    for (const bool memoize : {true, false}) {
        SessionRig rig({.qos =
                            "policers: [{name: each, type: trtcm_4115, cir: 8kbit, eir: 8kbit, cbs: 100B, ebs: 100B, "
                            "yellow: {dscp: af12}, per_session: true}]",
                        .rule = ", policer: each",
                        .more = memoize ? "" : "pipeline: {memoize: false}\n"});
        for (const std::uint16_t flow : {1, 2}) {
            const auto fates = rig.runner.run(*rig.snapshot, std::vector(6, rig.packet(flow)));
            for (unsigned n = 0; n < 6; ++n) {
                INFO("memoize " << memoize << ", flow " << flow << ", packet " << n << ": " << fates[n]);
                if (n < 4) {
                    REQUIRE(fates[n].starts_with("to "));
                    CHECK(fates[n].substr(fates[n].find(':') + 47, 2) == (n < 2 ? "00" : "30"));
                } else {
                    CHECK(fates[n] == "policer");
                }
            }
        }
    }
}

}  // namespace cachewire
