// SPDX-License-Identifier: BSD-3-Clause
// Which hash gives sessions their owner, from what the ports' devices can do; and packets that a device places well or
// badly.
#include "control/rss_dispatch.h"

#include <set>

#include "handoff_rig.h"
#include "support/fake_rss.h"

namespace cachewire {
namespace {

using control::RssDispatch;
using control::RssPort;
using test::FakeRss;

struct DispatchChoice {
    explicit DispatchChoice(unsigned workers, bool wanted = true)
        : dispatch(wanted, workers, {}, [this](const std::string& text) { said += text + "\n"; }), workers_(workers) {}

    // `queues` receive queues, which go to workers in turn.
    FakeRss& add(const std::string& name, std::uint16_t queues, std::uint16_t table,
                 std::uint64_t fields = FakeRss::kAll) {
        auto device = std::make_unique<FakeRss>(port::RssDevice::Offer{queues, table, 40, fields});
        FakeRss& result = *device;
        RssPort port{name, "net_fake", std::move(device), {}};
        port.queues.resize(workers_);
        for (std::uint16_t q = 0; q < queues; ++q) port.queues[q % workers_].push_back(q);
        ports.push_back(std::move(port));
        return result;
    }
    [[nodiscard]] bool says(const std::string& text) const { return said.find(text) != std::string::npos; }
    void choose() { dispatch.choose(ports); }

    RssDispatch dispatch;
    std::vector<RssPort> ports;
    std::string said;

  private:
    unsigned workers_;
};

}  // namespace

TEST_CASE("dispatch: a device that gives the owner is used, whatever the others do", "[handoff]") {
    DispatchChoice choice(4);
    FakeRss& good = choice.add("wan", 4, 128);
    choice.add("lan", 1, 0);
    choice.add("bad", 4, 512).own_key = true;
    choice.choose();
    INFO(choice.said);
    CHECK(choice.dispatch.uses_rss());
    CHECK(choice.says("rss on port wan (net_fake)"));
    CHECK(choice.says("rss is not used on port lan (net_fake): it has one receive queue"));
    CHECK(choice.says("rss is not used on port bad (net_fake)"));
    // The smallest table decides which buckets can be told apart.
    CHECK(choice.dispatch.granularity() == 128);
    for (unsigned bucket = 0; bucket < pipeline::kOwnerBuckets; ++bucket) {
        CHECK(choice.dispatch.owners()[bucket] == choice.dispatch.owners()[bucket % 128]);
        CHECK(good.table[bucket % 128] == choice.dispatch.owners()[bucket]);
    }
}

TEST_CASE("dispatch: without such a device, or without the wish, the keyed hash stays", "[handoff]") {
    const auto stays = [](DispatchChoice& choice) {
        choice.choose();
        INFO(choice.said);
        CHECK(!choice.dispatch.uses_rss());
        CHECK(choice.dispatch.owners() == pipeline::spread_owners(4));
        CHECK(choice.dispatch.granularity() == pipeline::kOwnerBuckets);
    };
    DispatchChoice none(4), wrong(4), small(4), unwanted(4, false);
    none.add("wan", 4, 0);
    stays(none);
    CHECK(none.says("rss is not used on port wan (net_fake): its driver has no redirection table"));
    wrong.add("wan", 4, 64).own_table = true;
    stays(wrong);
    CHECK(wrong.says("not on its owner's"));
    small.add("wan", 2, 2);
    stays(small);
    CHECK(small.says("2 entries for 4 workers"));
    unwanted.add("wan", 4, 512);
    stays(unwanted);
    CHECK(unwanted.said.empty());
}

TEST_CASE("dispatch: with fewer queues than workers the device places for those that have one", "[handoff]") {
    DispatchChoice choice(4);
    FakeRss& device = choice.add("wan", 2, 512);
    choice.choose();
    INFO(choice.said);
    CHECK(choice.dispatch.uses_rss());
    CHECK(choice.says("2 of 4 workers have a queue there"));
    std::set<unsigned> others;
    for (unsigned bucket = 0; bucket < pipeline::kOwnerBuckets; ++bucket) {
        const unsigned owner = choice.dispatch.owners()[bucket];
        if (owner < 2) CHECK(device.table[bucket] == owner);
        if (owner >= 2) others.insert(device.table[bucket]);
    }
    CHECK(others == std::set<unsigned>{0, 1});
}

TEST_CASE("dispatch: a port that comes later is told what was chosen", "[handoff]") {
    DispatchChoice choice(2);
    choice.add("wan", 2, 512);
    choice.choose();
    REQUIRE(choice.dispatch.uses_rss());
    choice.said.clear();
    FakeRss& later = choice.add("new", 2, 1024);
    choice.dispatch.tell(choice.ports[1]);
    CHECK(choice.said.empty());
    for (unsigned i = 0; i < 1024; ++i) CHECK(later.table[i] == choice.dispatch.owners()[i % 512]);
    choice.add("small", 2, 64);
    choice.dispatch.tell(choice.ports[2]);
    CHECK(choice.says("64 entries, and the running dispatch tells 512 buckets apart"));
}

}  // namespace cachewire
