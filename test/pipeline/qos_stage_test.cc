// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/stages/6_qos.h"

#include "pipeline/stage_rig.h"
#include "support/catch.h"

namespace cachewire::pipeline {

namespace {

// Bursts of 250 bytes that refill within hours: two frames of 100 bytes pass and no more.
struct QosRig : test::StageRig {
    explicit QosRig(unsigned policers) {
        for (unsigned i = 0; i < policers; ++i) {
            snapshot.policers.push_back(
                qos::make_profile({.name = "p", .rate_bps = 1, .burst_bytes = 250}, test::kRigHz));
        }
        worker->policers = qos::Policers(policers);
    }
    // Policer `index` stands there.
    void attach(PolicerPlace place, std::uint16_t& where, std::uint16_t index) {
        where = index;
        snapshot.policer_places |= static_cast<std::uint8_t>(1u << static_cast<unsigned>(place));
    }
    void pass(const std::vector<std::uint16_t>& tenants) {
        std::vector<net::FlowKey> keys(tenants.size());
        for (std::size_t i = 0; i < keys.size(); ++i) keys[i].tenant = tenants[i];
        begin(keys);
        run<stages::Qos>();
    }
};

}  // namespace

TEST_CASE("qos stage: without policers all lanes go on, green", "[pipeline]") {
    QosRig rig(0);
    rig.pass({1, 2, 3});
    for (unsigned i = 0; i < 3; ++i) {
        CHECK(rig.fate(i) == "live");
        CHECK(rig.worker->burst.lane(static_cast<Burst::LaneIndex>(i)).colour == 0);
    }
}

TEST_CASE("qos stage: each attachment is its own bucket, and what is over it is dropped in order", "[pipeline]") {
    QosRig rig(2);
    rig.attach(PolicerPlace::tenant_in, rig.snapshot.tenants[1].policer_in, 0);
    rig.attach(PolicerPlace::tenant_out, rig.snapshot.tenants[2].policer_out, 1);
    rig.pass({1, 2, 3, 1, 1, 2, 3, 2, 3, 3});
    const char* fates[] = {"live", "live", "live", "live", "policer", "live", "live", "policer", "live", "live"};
    for (unsigned i = 0; i < 10; ++i) {
        INFO("lane " << i);
        CHECK(rig.fate(i) == fates[i]);
    }
    for (const qos::PolicerState& state : rig.worker->policers.states) {
        CHECK(state.conform_packets.read() == 2);
        CHECK(state.conform_bytes.read() == 200);
        CHECK(state.violate_packets.read() == 1);
        CHECK(state.violate_bytes.read() == 100);
    }
}

TEST_CASE("qos stage: what the ingress policer drops never reaches the egress policer", "[pipeline]") {
    QosRig rig(2);
    rig.attach(PolicerPlace::tenant_in, rig.snapshot.tenants[1].policer_in, 0);
    rig.attach(PolicerPlace::tenant_out, rig.snapshot.tenants[1].policer_out, 1);
    rig.pass({1, 1, 1, 1});
    CHECK(rig.worker->burst.size() == 2);
    CHECK(rig.worker->policers.states[0].violate_packets.read() == 2);
    CHECK(rig.worker->policers.states[1].conform_packets.read() == 2);
    CHECK(rig.worker->policers.states[1].violate_packets.read() == 0);
}

TEST_CASE("qos stage: time is the burst's", "[pipeline]") {
    QosRig rig(1);
    rig.snapshot.policers[0] = qos::make_profile(
        {.name = "p", .rate_bps = 8'000, .burst_bytes = 250, .accounting = qos::Accounting::l3}, test::kRigHz);
    rig.attach(PolicerPlace::tenant_in, rig.snapshot.tenants[1].policer_in, 0);
    rig.pass({1, 1, 1});  // 86 bytes of IP each
    CHECK(rig.worker->burst.size() == 2);
    rig.worker->now_tsc += test::kRigHz / 10;  // 100 bytes more
    rig.pass({1, 1});
    CHECK(rig.worker->burst.size() == 2);
    rig.pass({1});
    CHECK(rig.worker->burst.size() == 0);
    CHECK(rig.worker->policers.states[0].conform_bytes.read() == 344);
}

}  // namespace cachewire::pipeline
