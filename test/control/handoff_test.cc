// SPDX-License-Identifier: BSD-3-Clause
// Sessions over several workers: both directions find the same owner, order inside a session holds, nothing is lost
// when a worker stalls, tenants go or workers end.
#include <cstring>
#include <map>
#include <random>

#include <fmt/format.h>
#include <rte_ring.h>

#include "handoff_rig.h"
#include "support/random.h"

namespace cachewire {
namespace {

using pipeline::DropReason;
using test::Bytes;
using test::HandoffRig;
using test::PacketBuilder;

struct Flow {
    std::string client, server;
    std::uint16_t port;
};

Flow flow(unsigned i) {
    return {fmt::format("10.1.{}.{}", i / 250 % 250, 1 + i % 250),
            fmt::format("198.18.{}.{}", i % 199, 1 + i / 199 % 250), static_cast<std::uint16_t>(1024 + i)};
}

Bytes numbered(std::uint32_t flow_number, std::uint32_t sequence) {
    Bytes bytes(8);
    std::memcpy(bytes.data(), &flow_number, 4);
    std::memcpy(bytes.data() + 4, &sequence, 4);
    return bytes;
}
Bytes there(unsigned i, std::uint32_t sequence = 0) {
    const Flow f = flow(i);
    return PacketBuilder().eth().ip4(f.client, f.server).udp(f.port, 53).payload(numbered(i, sequence)).bytes();
}
Bytes back(unsigned i, std::uint32_t sequence = 0) {
    const Flow f = flow(i);
    return PacketBuilder()
        .eth(test::kEastMac)
        .ip4(f.server, f.client)
        .udp(53, f.port)
        .payload(numbered(i, sequence))
        .bytes();
}
std::pair<std::uint32_t, std::uint32_t> number_of(const Bytes& frame) {
    std::uint32_t a, b;
    std::memcpy(&a, frame.data() + 42, 4);
    std::memcpy(&b, frame.data() + 46, 4);
    return {a, b};
}

// By which hash sessions find their owner: the keyed one, or one that devices can compute.
const net::HashSeed kDispatchSeeds[] = {{}, {.rss = net::RssHash(0x6d5a)}};

void check_closed(const pipeline::LedgerLine& l) {
    INFO("rx " << l.rx << " tx " << l.tx << " dropped " << l.dropped << " held " << l.held);
    CHECK(control::unaccounted(l) == 0);
}

// Each flow's frame of one sequence number, then all of the next.
std::vector<Bytes> in_turn(unsigned flows, unsigned each) {
    std::vector<Bytes> frames;
    for (std::uint32_t sequence = 0; sequence < each; ++sequence)
        for (unsigned i = 0; i < flows; ++i) frames.push_back(there(i, sequence));
    return frames;
}

}  // namespace

TEST_CASE("owner: every TX queue has one sender, and every worker a way to one", "[handoff]") {
    for (unsigned workers = 1; workers <= 9; ++workers)
        for (unsigned txq = 1; txq <= 10; ++txq)
            for (unsigned port = 0; port < 12; ++port) {
                INFO(workers << " workers, " << txq << " queues, port " << port);
                std::map<std::uint16_t, unsigned> holders;
                for (unsigned w = 0; w < workers; ++w) {
                    const auto place = pipeline::tx_place(w, port, txq, workers);
                    CHECK(place.queue < txq);
                    CHECK(pipeline::tx_place(place.holder, port, txq, workers) == place);
                    if (const auto [at, fresh] = holders.emplace(place.queue, place.holder); !fresh)
                        CHECK(at->second == place.holder);
                }
                CHECK(holders.size() == std::min(workers, txq));
            }
}

TEST_CASE("owner: queues go to workers in turn, none twice", "[handoff]") {
    const control::PortQueues ports[] = {{0, 10, 3, 1}, {1, 11, 2, 1}};
    for (unsigned workers = 1; workers <= 7; ++workers) {
        std::map<std::pair<int, int>, int> seen;
        std::size_t least = 99, most = 0;
        for (const auto& queues : control::assign_queues(ports, workers)) {
            least = std::min(least, queues.size());
            most = std::max(most, queues.size());
            for (const auto& queue : queues) ++seen[{queue.ethdev, queue.queue}];
        }
        INFO(workers);
        CHECK(seen.size() == 5);
        for (const auto& [queue, times] : seen) CHECK(times == 1);
        CHECK(most - least <= 1);
    }
}

TEST_CASE("owner: random flows are spread evenly, and both directions alike", "[handoff]") {
    INFO("seed " << test::seed());
    auto random = test::random_engine();
    for (const unsigned workers : {2u, 3u, 4u, 7u}) {
        const pipeline::Owners owners = pipeline::spread_owners(workers);
        std::vector<unsigned> count(workers);
        for (unsigned i = 0; i < 20000; ++i) {
            net::FlowKey key;
            key.src = net::Address::from_v4(static_cast<std::uint32_t>(random()));
            key.dst = net::Address::from_v4(static_cast<std::uint32_t>(random()));
            key.src_port_be = static_cast<std::uint16_t>(random());
            key.tenant = 1;
            key.proto = 17;
            net::FlowKey reply = key;
            std::swap(reply.src, reply.dst);
            std::swap(reply.src_port_be, reply.dst_port_be);
            const auto owner = owners[pipeline::owner_bucket(net::flow_hash(key, {}))];
            CHECK(owner == owners[pipeline::owner_bucket(net::flow_hash(reply, {}))]);
            ++count[owner];
        }
        for (const unsigned n : count) CHECK(n > 20000 / workers * 9 / 10);
    }
}

TEST_CASE("handoff: every reply finds its session, whichever worker received it", "[handoff]") {
    constexpr unsigned kFlows = 10000;
    const unsigned workers = GENERATE(1u, 2u, 4u);
    for (const net::HashSeed& seed : kDispatchSeeds) {
        INFO(workers << " workers, rss " << seed.rss.in_use());
        HandoffRig rig(workers, test::handoff_config(), 65536, seed);
        rig.start();
        std::vector<Bytes> forward, reverse;
        for (unsigned i = 0; i < kFlows; ++i) forward.push_back(there(i));
        for (unsigned i = 0; i < kFlows; ++i) reverse.push_back(back(i));
        CHECK(rig.exchange(rig.west, rig.east, forward).size() == kFlows);
        CHECK(rig.sessions() == kFlows);
        // The list permits nothing that begins at east: what comes out has hit.
        CHECK(rig.exchange(rig.east, rig.west, reverse).size() == kFlows);
        CHECK(rig.sessions() == kFlows);
        rig.stop();
        std::uint64_t hits = 0;
        for (unsigned w = 0; w < workers; ++w) {
            hits += rig.state(w).memo.hits.read();
            CHECK(rig.state(w).sessions->stats().active > kFlows / workers / 2);
        }
        CHECK(hits == kFlows);
        const auto ledger = rig.ledger();
        check_closed(ledger);
        CHECK(ledger.tx == std::size_t{2} * kFlows);
        CHECK(ledger.held == 0);
        CHECK(rig.mbufs_out() == 0);
    }
}

TEST_CASE("handoff: what a device places at its owner takes no ring, what it misplaces does", "[handoff]") {
    constexpr unsigned kFlows = 1000;
    const net::HashSeed& seed = kDispatchSeeds[1];
    HandoffRig rig(2, test::handoff_config(), 65536, seed);  // west's queue is the first worker's
    rig.start();
    std::vector<Bytes> placed, misplaced;
    for (unsigned i = 0; i < kFlows; ++i) {
        const Flow f = flow(i);
        net::FlowKey key;
        const auto address = [](const std::string& text) { return net::parse_address(text).value().address; };
        key.src = address(f.client);
        key.dst = address(f.server);
        key.src_port_be = rte_cpu_to_be_16(f.port);
        key.dst_port_be = rte_cpu_to_be_16(53);
        key.proto = 17;
        const bool owned = pipeline::spread_owners(2)[pipeline::owner_bucket(net::flow_hash(key, seed))] == 0;
        (owned ? placed : misplaced).push_back(there(i));
    }
    CHECK(rig.exchange(rig.west, rig.east, placed).size() == placed.size());
    CHECK(rig.state(0).handoff_counters.given.read() == 0);
    CHECK(rig.exchange(rig.west, rig.east, misplaced).size() == misplaced.size());
    rig.stop();
    CHECK(rig.state(0).handoff_counters.given.read() == misplaced.size());
    CHECK(placed.size() > kFlows / 3);
    CHECK(misplaced.size() > kFlows / 3);
    check_closed(rig.ledger());
}

TEST_CASE("handoff: replies to sessions that leak come to their worker by another tenant", "[handoff]") {
    constexpr unsigned kFlows = 2000;
    const unsigned workers = GENERATE(2u, 4u);
    for (const net::HashSeed& seed : kDispatchSeeds) {
        INFO(workers << " workers, rss " << seed.rss.in_use());
        HandoffRig rig(workers, test::leaking_config(), 65536, seed);
        rig.start();
        std::vector<Bytes> forward, reverse;
        for (unsigned i = 0; i < kFlows; ++i) forward.push_back(there(i));
        for (unsigned i = 0; i < kFlows; ++i) reverse.push_back(back(i));
        CHECK(rig.exchange(rig.west, rig.east, forward).size() == kFlows);
        // Uplink permits nothing and has no route there: what comes through has found red's session.
        CHECK(rig.exchange(rig.east, rig.west, reverse).size() == kFlows);
        CHECK(rig.sessions() == kFlows);
        rig.stop();
        check_closed(rig.ledger());
    }
}

TEST_CASE("handoff: order inside a session holds", "[handoff]") {
    constexpr unsigned kFlows = 100, kEach = 100;
    HandoffRig rig(4);
    rig.start();
    const auto frames = in_turn(kFlows, kEach);
    const auto out = rig.exchange(
        rig.west, rig.east, frames, [] {}, 400);
    CHECK(out.size() == frames.size());
    std::map<std::uint32_t, std::uint32_t> next;
    unsigned wrong = 0;
    for (const Bytes& frame : out) {
        const auto [number, sequence] = number_of(frame);
        wrong += next[number]++ != sequence;
    }
    CHECK(wrong == 0);
    CHECK(next.size() == kFlows);
}

TEST_CASE("handoff: pieces and ICMP errors reach the owner of the session they belong to", "[handoff]") {
    constexpr unsigned kFlows = 500;
    const unsigned workers = GENERATE(2u, 4u);
    for (const net::HashSeed& seed : kDispatchSeeds) {
        HandoffRig rig(workers, test::handoff_config(), 65536, seed);
        rig.start();
        std::vector<Bytes> forward, pieces, errors;
        for (unsigned i = 0; i < kFlows; ++i) {
            const Flow f = flow(i);
            forward.push_back(there(i));
            const auto piece = [&](std::uint16_t field) {
                test::Ip4Fields ip;
                ip.id = static_cast<std::uint16_t>(i + 1);
                ip.fragment = field;
                return ip;
            };
            pieces.push_back(PacketBuilder()
                                 .eth(test::kEastMac)
                                 .ip4(f.server, f.client, piece(0x2000))
                                 .udp(53, f.port)
                                 .payload(24)
                                 .bytes());
            test::Ip4Fields later = piece(0x2000 | 4);
            later.proto = 17;
            pieces.push_back(PacketBuilder().eth(test::kEastMac).ip4(f.server, f.client, later).payload(32).bytes());
            later.fragment = 8;
            pieces.push_back(PacketBuilder().eth(test::kEastMac).ip4(f.server, f.client, later).payload(32).bytes());
            Bytes quote = there(i);
            quote.erase(quote.begin(), quote.begin() + 14);
            errors.push_back(
                PacketBuilder().eth(test::kEastMac).ip4("198.19.255.1", f.client).icmp(3, 1).payload(quote).bytes());
        }
        INFO(workers << " workers, rss " << seed.rss.in_use());
        CHECK(rig.exchange(rig.west, rig.east, forward).size() == kFlows);
        CHECK(rig.exchange(rig.east, rig.west, pieces).size() == std::size_t{3} * kFlows);
        CHECK(rig.exchange(rig.east, rig.west, errors).size() == kFlows);
        CHECK(rig.sessions() == kFlows);
        rig.stop();
        check_closed(rig.ledger());
        CHECK(rig.ledger().dropped == 0);
    }
}

TEST_CASE("handoff: a worker that stands still costs packets by name, and nothing else", "[handoff]") {
    constexpr unsigned kFlows = 4000;
    HandoffRig rig(2);
    rig.begin();
    for (unsigned i = 0; i < kFlows; ++i) {
        rig.send(rig.west, there(i));
        if (i % 32 == 31) rig.turn(0);  // polls west; 1 stands still
    }
    for (unsigned i = 0; i < 8; ++i) rig.turn(0);
    const auto lost = rig.drops(DropReason::handoff_full);
    const auto given = rig.state(0).handoff_counters.given.read();
    CHECK(given == pipeline::kHandoffSlots);
    CHECK(lost > 100);
    CHECK(rig.state(0).tenants[1].drops[static_cast<unsigned>(DropReason::handoff_full)].read() == lost);
    auto ledger = rig.ledger();
    check_closed(ledger);
    CHECK(ledger.rx == kFlows);
    CHECK(ledger.held >= given);
    std::vector<Bytes> out;
    for (unsigned i = 0; i < 200; ++i) {
        rig.turn(1);
        rig.turn(0);
        HandoffRig::collect(rig.east, out);
    }
    ledger = rig.ledger();
    check_closed(ledger);
    CHECK(ledger.held == 0);
    CHECK(ledger.tx == out.size());
    CHECK(ledger.tx + ledger.dropped == kFlows);
    CHECK(rig.mbufs_out() == 0);
}

TEST_CASE("handoff: what lies in a ring when its tenant goes is judged by the new configuration", "[handoff]") {
    const std::string blue = R"(  - {name: blue, id: 2, match: [{port: west, vlan: 7}]}
)";
    const std::string more = R"(  - {name: open, default: permit, rules: []}
)";
    const auto with_blue = [&] {
        std::string text = test::handoff_config(more, blue);
        const std::string place = "neighbors:\n";
        text.insert(text.find(place), "  - {name: in7, port: west, vlan: 7, addresses: [\"10.9.0.1/24\"]}\n");
        return text;
    }();
    HandoffRig rig(2, with_blue);
    rig.begin();
    constexpr unsigned kPackets = 64;
    for (unsigned i = 0; i < kPackets; ++i)
        rig.send(rig.west, PacketBuilder()
                               .eth()
                               .vlan(7)
                               .ip4(fmt::format("10.9.0.{}", 2 + i), "10.9.0.77")
                               .udp(1000, 53)
                               .payload(8)
                               .bytes());
    rig.turn(0);
    const auto given = rig.state(0).handoff_counters.given.read();
    REQUIRE(given > 0);
    rig.publish(test::handoff_config());
    rig.turn(1);
    CHECK(rig.drops(DropReason::no_interface) == given);  // red has every tag of west, and no interface there
    check_closed(rig.ledger());
}

TEST_CASE("handoff: workers that end leave no mbuf behind", "[handoff]") {
    HandoffRig rig(4);
    rig.begin();
    for (unsigned i = 0; i < 640; ++i) rig.send(rig.west, there(i));
    for (unsigned i = 0; i < 20; ++i) rig.turn(0);
    CHECK(rig.ledger().held != 0);
    rig.start();  // they see `stopped` at once
    rig.stop();
    const auto ledger = rig.ledger();
    check_closed(ledger);
    CHECK(ledger.held == 0);
    CHECK(ledger.rx == 640);
    CHECK(rig.drops(DropReason::shutdown) > 0);
    std::vector<Bytes> out;
    HandoffRig::collect(rig.east, out);
    CHECK(out.size() == ledger.tx);
    CHECK(rig.mbufs_out() == 0);
}

TEST_CASE("handoff: 200 reloads under load lose nothing", "[handoff]") {
    constexpr unsigned kFlows = 200, kEach = 150;
    HandoffRig rig(4);
    rig.start();
    const auto frames = in_turn(kFlows, kEach);
    unsigned reloads = 0;
    const auto reload = [&] {
        if (reloads == 200) return;
        rig.wait_grace();
        ++reloads;
        // Tenants, lists and routes come and go.
        const bool odd = reloads % 2 != 0;
        rig.publish(
            odd ? test::handoff_config("  - {name: other, default: permit, rules: [{action: deny, proto: tcp}]}\n",
                                       "  - {name: blue, id: 2, match: [{port: west, vlan: 7}]}\n")
                : test::handoff_config());
        check_closed(rig.ledger());
    };
    const auto out = rig.exchange(rig.west, rig.east, frames, reload);
    CHECK(out.size() == frames.size());
    CHECK(reloads == 200);
    rig.stop();
    const auto ledger = rig.ledger();
    check_closed(ledger);
    CHECK(ledger.rx == frames.size());
    CHECK(ledger.tx == frames.size());
    CHECK(ledger.dropped == 0);
    CHECK(rig.mbufs_out() == 0);
}

}  // namespace cachewire
