// SPDX-License-Identifier: BSD-3-Clause
// Virtual reassembly through the whole path: later pieces follow their first one, in any order and with anything that a
// sender may do to the pieces. Nothing is held at any time.
#include <algorithm>

#include "control/memo_rig.h"
#include "support/catch.h"

namespace cachewire {
namespace {

using test::Arrival;
using test::Bytes;
using test::PacketBuilder;

using test::kInside;
using test::kOutside;

// DNS may be asked from inside, and nothing else: what is not known to be port 53 is dropped by default.
const std::string kConfig = test::two_sides() + R"(acl:
  - name: edge
    stateful: true
    rules:
      - {action: permit, in: lan, proto: udp, dst_ports: 53}
      - {action: permit, in: lan, proto: tcp, dst_ports: 80}
)";

struct FragmentRig {
    test::Builder builder{{{"inside", {0, 1, kInside}}, {"outside", {1, 1, kOutside}}}};
    std::unique_ptr<pipeline::Snapshot> snapshot = builder.build(kConfig);
    test::Runner runner;
    std::uint16_t inside = builder.port("inside"), outside = builder.port("outside");
    bool v6 = false;

    // A piece of a datagram from inside (or back), `offset` in bytes. The first one begins with a UDP header.
    Arrival piece(std::uint16_t offset, bool more, std::uint16_t id = 7, std::uint16_t dst_port = 53,
                  bool reply = false, std::uint8_t proto = 17) const {
        PacketBuilder p;
        p.eth(reply ? kOutside : kInside);
        const auto units = static_cast<std::uint16_t>(offset / 8);
        if (v6) {
            const char *a = "2001:db8:a::9", *b = "2001:db8:b::9";
            p.ip6(reply ? b : a, reply ? a : b).fragment(units, more, id);
        } else {
            test::Ip4Fields fields{.id = id, .proto = proto};
            fields.fragment = static_cast<std::uint16_t>((more ? 0x2000 : 0) | units);
            p.ip4(reply ? "10.0.1.9" : "10.0.0.9", reply ? "10.0.0.9" : "10.0.1.9", fields);
        }
        const std::uint16_t client = 1000;
        const std::uint16_t from = reply ? dst_port : client, to = reply ? client : dst_port;
        if (offset != 0) {
            p.payload(16);
        } else if (proto == 17) {
            p.udp(from, to, {.length = 500}).payload(24);
        } else {
            p.tcp(from, to, {.flags = 2}).payload(12);
        }
        Arrival arrival{reply ? outside : inside, p.bytes()};
        if (v6) arrival.frame[54] = proto;
        return arrival;
    }
    std::string send(const Arrival& arrival) {
        const std::string fate = runner.run_one(*snapshot, arrival);
        return fate.starts_with("to ") ? "passes" : fate;
    }
    std::uint64_t sessions() const { return runner.worker->sessions->stats().active; }
};

}  // namespace

TEST_CASE("fragments: later pieces follow their first one, in either family and direction", "[memo]") {
    for (const bool v6 : {false, true}) {
        INFO((v6 ? "IPv6" : "IPv4"));
        FragmentRig rig;
        rig.v6 = v6;
        CHECK(rig.send(rig.piece(0, true)) == "passes");
        CHECK(rig.sessions() == 1);
        CHECK(rig.send(rig.piece(64, true)) == "passes");
        CHECK(rig.send(rig.piece(32, false)) == "passes");  // out of order
        CHECK(rig.send(rig.piece(0, true, 9, 53, true)) == "passes");
        CHECK(rig.send(rig.piece(32, false, 9, 53, true)) == "passes");
        CHECK(rig.sessions() == 1);
        CHECK(rig.runner.worker->memo.bypass_fragment.read() == 5);
        CHECK(rig.runner.worker->memo.hits.read() == 0);
    }
}

TEST_CASE("fragments: the pieces of one burst find each other", "[memo]") {
    FragmentRig rig;
    const auto fates = rig.runner.run(*rig.snapshot, {rig.piece(32, true), rig.piece(0, true), rig.piece(64, false)});
    CHECK(fates[0] == "acl_default");  // before its first piece
    CHECK(fates[1].starts_with("to "));
    CHECK(fates[2].starts_with("to "));
    CHECK(rig.sessions() == 1);
}

TEST_CASE("fragments: a piece whose first one is not known has no ports and matches no port rule", "[memo]") {
    for (const bool v6 : {false, true}) {
        INFO((v6 ? "IPv6" : "IPv4"));
        FragmentRig rig;
        rig.v6 = v6;
        CHECK(rig.send(rig.piece(32, true)) == "acl_default");
        CHECK(rig.send(rig.piece(0, true)) == "passes");
        struct Case {
            const char* what;
            Arrival piece;
        };
        const Case cases[] = {
            {"another id", rig.piece(32, false, 8)},
            {"the other direction", rig.piece(32, false, 7, 53, true)},
            {"another protocol", rig.piece(32, false, 7, 80, false, 6)},
        };
        for (const Case& c : cases) {
            INFO(c.what);
            CHECK(rig.send(c.piece) == "acl_default");
        }
        CHECK(rig.sessions() == 1);
    }
}

TEST_CASE("fragments: the first piece is judged by its ports, and the later ones by the same", "[memo]") {
    FragmentRig rig;
    CHECK(rig.send(rig.piece(0, true, 7, 54)) == "acl_default");
    CHECK(rig.send(rig.piece(32, false, 7, 54)) == "acl_default");
    CHECK(rig.sessions() == 0);
    CHECK(rig.send(rig.piece(0, true, 8, 53, true)) == "acl_default");  // nobody has asked
    CHECK(rig.send(rig.piece(32, true, 8, 53, true)) == "acl_default");
}

// B16: a list that forbids a port and permits the rest. Bytes of a later piece that look like that port are no port;
// what is known of the first piece decides, and without sessions nothing is.
TEST_CASE("fragments: the bytes at the place of the ports are never a later piece's ports", "[memo]") {
    struct Mode {
        const char* sessions;
        const char* stateful;
        bool follows;  // the later pieces their first one
    };
    for (const Mode& mode : {Mode{"track", "true", true}, {"cache", "false", true}, {"none", "false", false}}) {
        for (const bool v6 : {false, true}) {
            INFO(mode.sessions << (v6 ? ", IPv6" : ", IPv4"));
            FragmentRig rig;
            rig.v6 = v6;
            std::string text = kConfig.substr(0, kConfig.find("acl:\n"));
            text.replace(text.find("acl: edge"), 9, std::string("acl: edge, sessions: ") + mode.sessions);
            rig.snapshot =
                rig.builder.build(text + "acl: [{name: edge, stateful: " + mode.stateful +
                                  ", default: permit, rules: [{action: deny, proto: udp, dst_ports: 53}]}]\n");
            const auto looking_like = [&](std::uint16_t id, std::uint16_t port) {
                Arrival later = rig.piece(32, false, id);
                const std::size_t at = later.frame.size() - 16;  // of 16 bytes of payload
                const Bytes ports = {0x03, 0xe8, static_cast<std::uint8_t>(port >> 8), static_cast<std::uint8_t>(port)};
                std::copy(ports.begin(), ports.end(), later.frame.begin() + static_cast<std::ptrdiff_t>(at));
                return later;
            };
            CHECK(rig.send(rig.piece(0, true, 1, 53)) == "acl_deny");
            CHECK(rig.send(looking_like(1, 54)) == (mode.follows ? "acl_deny" : "passes"));
            CHECK(rig.send(rig.piece(0, true, 2, 54)) == "passes");
            CHECK(rig.send(looking_like(2, 53)) == "passes");
            CHECK(rig.send(looking_like(3, 53)) == "passes");  // of no first piece
        }
    }
}

// B21: a second first piece, for another port, speaks for what follows it, and is judged itself.
TEST_CASE("fragments: duplicates change nothing, and another first piece takes over", "[memo]") {
    const bool v6 = GENERATE(false, true);
    FragmentRig rig;
    rig.v6 = v6;
    for (int i = 0; i < 3; ++i) CHECK(rig.send(rig.piece(0, true)) == "passes");
    for (int i = 0; i < 3; ++i) CHECK(rig.send(rig.piece(32, true)) == "passes");
    CHECK(rig.sessions() == 1);
    CHECK(rig.send(rig.piece(0, true, 7, 23)) == "acl_default");
    CHECK(rig.send(rig.piece(32, false)) == "acl_default");
}

// B18, B21: nothing may begin inside the header that the first piece was judged by.
TEST_CASE("fragments: a piece over the upper-layer header is dropped by name", "[memo]") {
    for (const bool v6 : {false, true}) {
        INFO((v6 ? "IPv6" : "IPv4"));
        FragmentRig rig;
        rig.v6 = v6;
        CHECK(rig.send(rig.piece(0, true)) == "passes");
        CHECK(rig.send(rig.piece(8, true)) == "passes");  // right behind UDP's header
        CHECK(rig.send(rig.piece(0, true, 8, 80, false, 6)) == "passes");
        CHECK(rig.send(rig.piece(8, true, 8, 80, false, 6)) == "fragment_offset");   // RFC 1858, by the parser
        CHECK(rig.send(rig.piece(16, true, 8, 80, false, 6)) == "fragment_offset");  // checksum and urgent pointer
        CHECK(rig.send(rig.piece(24, false, 8, 80, false, 6)) == "passes");
    }
    FragmentRig rig;
    rig.v6 = true;
    // Destination options between fragment and UDP header: the header ends at 16.
    Arrival first{rig.inside, PacketBuilder()
                                  .eth(kInside)
                                  .ip6("2001:db8:a::9", "2001:db8:b::9")
                                  .fragment(0, true, 5)
                                  .destination_options()
                                  .udp(1000, 53, {.length = 500})
                                  .payload(16)
                                  .bytes()};
    CHECK(rig.send(first) == "passes");
    Arrival later = rig.piece(8, false, 5);
    CHECK(rig.send(later) == "fragment_offset");
    CHECK(rig.send(rig.piece(16, false, 5)) == "passes");
}

// B25: what is late is a piece without ports again.
TEST_CASE("fragments: a first piece is forgotten after five seconds", "[memo]") {
    const bool v6 = GENERATE(false, true);
    FragmentRig rig;
    rig.v6 = v6;
    CHECK(rig.send(rig.piece(0, true)) == "passes");
    rig.runner.advance(*rig.snapshot, 4.9);
    CHECK(rig.send(rig.piece(32, true)) == "passes");
    rig.runner.advance(*rig.snapshot, 0.2);
    CHECK(rig.send(rig.piece(64, false)) == "acl_default");
}

// B20, B25: bounded whatever comes, no packet waits, and nothing comes out when time is over. Three times 50 000 first
// pieces without an end, some of them twice, some with a piece over another.
TEST_CASE("fragments: a flood of first pieces takes no memory and no mbuf", "[memo]") {
    FragmentRig rig;
    const unsigned before = test::mbufs_in_use();
    const std::size_t entries = rig.runner.worker->fragments.capacity();
    constexpr unsigned kDatagrams = 50000;
    std::uint64_t sent = 0;
    for (int round = 0; round < 3; ++round) {
        for (unsigned i = 0; i < kDatagrams; ++i) {
            const auto id = static_cast<std::uint16_t>(i);
            std::vector<Arrival> pieces = {rig.piece(0, true, id)};
            if (i % 7 == 0) pieces.push_back(pieces[0]);
            if (i % 5 == 0) pieces.insert(pieces.end(), {rig.piece(32, true, id), rig.piece(40, true, id)});
            for (const std::string& fate : rig.runner.run(*rig.snapshot, pieces)) sent += fate.starts_with("to ");
        }
        CHECK(rig.runner.worker->fragments.capacity() == entries);
        CHECK(test::mbufs_in_use() == before);
        CHECK(rig.sessions() == 1);
        CHECK(rig.send(rig.piece(32, false, kDatagrams - 1)) == "passes");
        rig.runner.advance(*rig.snapshot, 6);
        CHECK(rig.send(rig.piece(32, false, kDatagrams - 1)) == "acl_default");
    }
    CHECK(sent == std::size_t{3} * (kDatagrams + (kDatagrams + 6) / 7 + 2 * (kDatagrams / 5)));
}

TEST_CASE("fragments: fragment rules judge the pieces of a session, both ways", "[memo]") {
    FragmentRig rig;
    const std::string open = "rules:\n";
    std::string text = kConfig;
    text.replace(text.find(open), open.size(), open + "      - {name: whole, action: deny, fragment: later}\n");
    const Arrival ask{rig.inside,
                      PacketBuilder().eth(kInside).ip4("10.0.0.9", "10.0.1.9").udp(1000, 53).payload(8).bytes()};
    CHECK(rig.send(ask) == "passes");
    CHECK(rig.send(rig.piece(0, true, 9, 53, true)) == "passes");
    CHECK(rig.send(rig.piece(32, true, 9, 53, true)) == "passes");
    rig.snapshot = rig.builder.build(text);
    CHECK(rig.send(ask) == "passes");
    CHECK(rig.send(rig.piece(0, true, 9, 53, true)) == "passes");
    CHECK(rig.send(rig.piece(32, true, 9, 53, true)) == "acl_deny");
    CHECK(rig.send(rig.piece(0, true)) == "passes");
    CHECK(rig.send(rig.piece(32, true)) == "acl_deny");
    CHECK(rig.send(ask) == "passes");
}

// A session that a fragment has begun is judged for whole packets at the first whole packet.
TEST_CASE("fragments: a session begun by a piece that alone was permitted does not open the flow", "[memo]") {
    FragmentRig rig;
    std::string text = kConfig;
    const std::string rule = "{action: permit, in: lan, proto: udp, dst_ports: 53}";
    text.replace(text.find(rule), rule.size(), "{action: permit, in: lan, proto: udp, fragment: first}");
    rig.snapshot = rig.builder.build(text);
    CHECK(rig.send(rig.piece(0, true)) == "passes");
    CHECK(rig.sessions() == 1);
    const Arrival whole{rig.inside,
                        PacketBuilder().eth(kInside).ip4("10.0.0.9", "10.0.1.9").udp(1000, 53).payload(8).bytes()};
    CHECK(rig.send(whole) == "acl_default");
    CHECK(rig.send(whole) == "acl_default");
    CHECK(rig.send(rig.piece(0, true)) == "passes");
}

}  // namespace cachewire
