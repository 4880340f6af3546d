// SPDX-License-Identifier: BSD-3-Clause
#include "control/lcore_usage.h"

#include "handoff_rig.h"

namespace cachewire {

TEST_CASE("lcore usage: DPDK is told what the worker there counts, and nothing of other lcores", "[handoff]") {
    test::HandoffRig rig(1);
    rig.begin();
    rig.turn(0);
    const unsigned lcore = rig.state(0).lcore;
    const auto idle = control::usage_of(rig.all(), lcore);
    REQUIRE(idle);
    CHECK(idle->busy_cycles == 0);
    CHECK(idle->total_cycles > 0);
    rig.send(rig.west, test::PacketBuilder().eth().ip4("10.1.0.1", "198.18.0.1").udp(1024, 53).payload(8).bytes());
    rig.turn(0);
    const auto worked = control::usage_of(rig.all(), lcore);
    CHECK(worked->busy_cycles > 0);
    CHECK(worked->busy_cycles <= worked->total_cycles - idle->total_cycles);
    CHECK(!control::usage_of(rig.all(), lcore + 1));
    control::LcoreUsageAnswers answers(rig.all());  // DPDK >= 23.03 asks it from here on
}

}  // namespace cachewire
