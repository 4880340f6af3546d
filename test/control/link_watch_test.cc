// SPDX-License-Identifier: BSD-3-Clause
#include "control/link_watch.h"

#include "support/catch.h"

namespace cachewire {
namespace {

using control::LinkPair;

struct WatchRig {
    std::array<std::optional<bool>, 2> links = {true, true};
    LinkPair pair;
    std::uint64_t now_ms = 1000;

    // What has changed, as "a down"; the link reads so afterwards.
    std::string look(std::uint64_t later_ms = 100) {
        now_ms += later_ms;
        const auto change = pair.look(links, now_ms);
        if (!change) return "";
        if (!change->up) links[change->side] = false;
        return std::string(change->side == 0 ? "a" : "b") + (change->up ? " up" : " down");
    }
};

TEST_CASE("link pair: the other side goes down with one, and comes back with it", "[control]") {
    WatchRig rig;
    CHECK(rig.look().empty());
    rig.links[0] = false;
    CHECK(rig.look() == "b down");
    CHECK(rig.look(60000).empty());
    rig.links[0] = true;
    CHECK(rig.look() == "b up");
    CHECK(rig.look().empty());  // it takes a while, and is no fault meanwhile
    rig.links[1] = true;
    CHECK(rig.look().empty());
    rig.links[1] = false;
    CHECK(rig.look() == "a down");
}

TEST_CASE("link pair: both gone at once come back one after the other", "[control]") {
    WatchRig rig;
    rig.links = {false, false};
    CHECK(rig.look() == "b down");
    rig.links[0] = true;
    CHECK(rig.look() == "b up");
    CHECK(rig.look(LinkPair::kSettleMs - 1).empty());
    CHECK(rig.look(1) == "a down");  // nobody is there still
    rig.links[1] = true;
    CHECK(rig.look() == "a up");
}

TEST_CASE("link pair: what can't be read changes nothing", "[control]") {
    WatchRig rig;
    rig.links[0] = std::nullopt;
    CHECK(rig.look().empty());
    rig.links[1] = false;
    CHECK(rig.look() == "a down");
}

}  // namespace
}  // namespace cachewire
