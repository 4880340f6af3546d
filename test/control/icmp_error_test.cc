// SPDX-License-Identifier: BSD-3-Clause
// ICMP and ICMPv6 errors through the whole path: what quotes a session of the tenant passes with it, what doesn't is
// judged alone, what quotes nonsense is dropped by name.
#include "control/memo_rig.h"
#include "support/catch.h"

namespace cachewire {
namespace {

using test::Arrival;
using test::Bytes;
using test::PacketBuilder;

constexpr net::Mac kMacs[] = {{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}, {{2, 0, 0, 0, 0, 3}}, {{2, 0, 0, 0, 0, 4}}};

// Two tenants with the same addresses; only red has a session.
std::string config_text(const std::string& action) {
    std::string text = R"(version: 1
ports:
  - {name: inside, device: "net_null0"}
  - {name: outside, device: "net_null1"}
  - {name: blue-inside, device: "net_null2"}
  - {name: blue-outside, device: "net_null3"}
tenants:
  - {name: red, id: 1, match: [{port: inside}, {port: outside}], acl: edge}
  - {name: blue, id: 2, match: [{port: blue-inside}, {port: blue-outside}], acl: edge}
interfaces:
)";
    std::string neighbors = "neighbors:\n";
    for (const std::string tenant : {"red", "blue"}) {
        const std::string prefix = tenant == "red" ? "" : "blue-";
        text += "  - {name: " + tenant + "-lan, port: " + prefix +
                "inside, addresses: [\"10.0.0.1/24\", \"2001:db8:a::1/64\"]}\n";
        text += "  - {name: " + tenant + "-wan, port: " + prefix +
                "outside, addresses: [\"10.0.1.1/24\", \"2001:db8:b::1/64\"]}\n";
        for (const char* host :
             {"10.0.0.9", "10.0.0.10", "10.0.1.9", "2001:db8:a::9", "2001:db8:a::10", "2001:db8:b::9"})
            neighbors += "  - {tenant: " + tenant + ", address: \"" + host + "\", mac: \"02:00:00:00:00:99\"}\n";
    }
    return text + neighbors + "acl:\n  - name: edge\n    stateful: true\n    rules: [{action: " + action +
           ", src: 10.0.0.0/24}, {action: " + action + ", src: \"2001:db8:a::/64\"}]\n";
}

struct ErrorRig {
    test::Builder builder{{{"inside", {0, 1, kMacs[0]}},
                           {"outside", {1, 1, kMacs[1]}},
                           {"blue-inside", {2, 1, kMacs[2]}},
                           {"blue-outside", {3, 1, kMacs[3]}}}};
    std::unique_ptr<pipeline::Snapshot> snapshot = builder.build(config_text("permit"));
    test::Runner runner;

    // One session each: TCP, UDP, echo, an unknown protocol; both families.
    explicit ErrorRig() {
        for (const bool v6 : {false, true})
            for (const std::uint8_t proto : {6, 17, 1, 47})
                CHECK(fate({builder.port("inside"), flow(v6, proto, false)}) == "passes");
        REQUIRE(runner.worker->sessions->stats().active == 8);
    }

    // The packet as it came in from the client, or its reply.
    static Bytes flow(bool v6, std::uint8_t proto, bool reply, const Bytes& options = {}, std::uint16_t port = 1000) {
        PacketBuilder p;
        p.eth(reply ? kMacs[1] : kMacs[0]);
        const bool icmp = proto == 1;
        const std::uint8_t number = icmp && v6 ? 58 : proto;
        if (v6) {
            const char *a = "2001:db8:a::9", *b = "2001:db8:b::9";
            test::Ip6Fields fields;
            if (options.empty()) fields.next_header = number;
            p.ip6(reply ? b : a, reply ? a : b, fields);
            if (!options.empty()) p.destination_options(options);
        } else {
            p.ip4(reply ? "10.0.1.9" : "10.0.0.9", reply ? "10.0.0.9" : "10.0.1.9",
                  {.options = options, .proto = number});
        }
        const std::uint16_t from = reply ? 80 : port, to = reply ? port : 80;
        if (proto == 6) p.tcp(from, to, {.flags = 2});
        if (proto == 17) p.udp(from, to).payload(16);
        if (icmp && v6) p.icmp6(reply ? 129 : 128, 0, port, 1).payload(8);
        if (icmp && !v6) p.icmp(reply ? 0 : 8, 0, port, 1).payload(8);
        if (proto == 47) p.payload(Bytes(16, 1));
        return p.bytes();
    }
    // `quoted` without its Ethernet header, at most `bytes` of it.
    static Bytes quote(const Bytes& quoted, std::size_t bytes = 1000) {
        Bytes inner(quoted.begin() + 14, quoted.end());
        inner.resize(std::min(inner.size(), bytes));
        return inner;
    }
    // From the far side (or the near one) to a client.
    static Bytes error(bool v6, const Bytes& inner, const net::Mac& mac, const char* src, const char* dst,
                       std::uint8_t type = 0) {
        PacketBuilder p;
        p.eth(mac);
        if (v6) return p.ip6(src, dst).icmp6(type != 0 ? type : 1, 0).payload(inner).bytes();
        return p.ip4(src, dst).icmp(type != 0 ? type : 3, 0).payload(inner).bytes();
    }
    std::string fate(const Arrival& arrival) {
        const std::string fate = runner.run_one(*snapshot, arrival);
        return fate.starts_with("to ") ? "passes" : fate;
    }
    // An error that reaches the client from a router outside.
    std::string from_outside(bool v6, const Bytes& inner, std::uint8_t type = 0) {
        return fate({builder.port("outside"), error(v6, inner, kMacs[1], v6 ? "2001:db8:b::77" : "10.0.1.77",
                                                    v6 ? "2001:db8:a::9" : "10.0.0.9", type)});
    }
    session::HotEntry entry(bool v6, std::uint8_t proto) {
        for (std::uint32_t i = 0; i < runner.worker->sessions->used_end(); ++i) {
            const auto& hot = runner.worker->sessions->hot(i);
            const std::uint8_t number = proto == 1 && v6 ? 58 : proto;
            if (hot.proto == number && hot.src.is_v4() != v6) return hot;
        }
        return {};
    }
};

constexpr std::uint8_t kProtocols[] = {6, 17, 1, 47};
std::size_t least(bool v6) { return v6 ? 48 : 28; }  // IP header and 8 bytes

}  // namespace

TEST_CASE("icmp errors: a quote of 8 bytes behind the header is enough, of any protocol", "[memo]") {
    ErrorRig rig;
    for (const bool v6 : {false, true}) {
        for (const std::uint8_t proto : kProtocols) {
            for (const std::size_t bytes : {least(v6), least(v6) + 4, std::size_t{1000}}) {
                INFO((v6 ? "IPv6" : "IPv4") << ", protocol " << int{proto} << ", " << bytes << " bytes");
                CHECK(rig.from_outside(v6, ErrorRig::quote(ErrorRig::flow(v6, proto, false), bytes)) == "passes");
            }
        }
    }
    for (const std::uint8_t type : {3, 4, 5, 11, 12})
        CHECK(rig.from_outside(false, ErrorRig::quote(ErrorRig::flow(false, 17, false)), type) == "passes");
    for (const std::uint8_t type : {1, 2, 3, 4})
        CHECK(rig.from_outside(true, ErrorRig::quote(ErrorRig::flow(true, 17, false)), type) == "passes");
    CHECK(rig.runner.worker->memo.bypass_icmp_error.read() == 33);
}

// B27
TEST_CASE("icmp errors: options and extension headers in the quote are stepped over", "[memo]") {
    ErrorRig rig;
    for (const std::uint8_t proto : kProtocols) {
        const Bytes options4(40, 1);
        CHECK(rig.from_outside(false, ErrorRig::quote(ErrorRig::flow(false, proto, false, options4), 68)) == "passes");
        CHECK(rig.from_outside(false, ErrorRig::quote(ErrorRig::flow(false, proto, false, options4), 67)) ==
              "icmp_quote");
        CHECK(rig.from_outside(false, ErrorRig::quote(ErrorRig::flow(false, proto, false, options4), 28)) ==
              "icmp_quote");
    }
    const Bytes options6 = {1, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    for (const std::uint8_t proto : {6, 17, 1}) {
        CHECK(rig.from_outside(true, ErrorRig::quote(ErrorRig::flow(true, proto, false, options6), 72)) == "passes");
        for (const std::size_t bytes : {41u, 47u, 48u, 63u, 71u})
            CHECK(rig.from_outside(true, ErrorRig::quote(ErrorRig::flow(true, proto, false, options6), bytes)) ==
                  "icmp_quote");
    }
}

TEST_CASE("icmp errors: a quote that is cut short or no packet is dropped by name", "[memo]") {
    ErrorRig rig;
    for (const bool v6 : {false, true}) {
        for (std::size_t bytes = 0; bytes < least(v6); ++bytes) {
            INFO((v6 ? "IPv6 " : "IPv4 ") << bytes);
            CHECK(rig.from_outside(v6, ErrorRig::quote(ErrorRig::flow(v6, 17, false), bytes)) == "icmp_quote");
        }
        Bytes other = ErrorRig::quote(ErrorRig::flow(!v6, 17, false));
        CHECK(rig.from_outside(v6, other) == "icmp_quote");  // the other family
        Bytes version = ErrorRig::quote(ErrorRig::flow(v6, 17, false));
        version[0] = 0x55;
        CHECK(rig.from_outside(v6, version) == "icmp_quote");
    }
    Bytes header = ErrorRig::quote(ErrorRig::flow(false, 17, false));
    for (const std::uint8_t words : {0, 4, 15}) {
        header[0] = static_cast<std::uint8_t>(0x40 | words);
        CHECK(rig.from_outside(false, header) == "icmp_quote");
    }
}

TEST_CASE("icmp errors: what quotes no session of this tenant is judged by its own key", "[memo]") {
    ErrorRig rig;
    for (const bool v6 : {false, true}) {
        INFO((v6 ? "IPv6" : "IPv4"));
        // Another flow; a later fragment; an ICMP error; to somebody else than the quoted packet's source.
        CHECK(rig.from_outside(v6, ErrorRig::quote(ErrorRig::flow(v6, 17, false, {}, 1001))) == "acl_default");
        CHECK(rig.from_outside(
                  v6, ErrorRig::quote(ErrorRig::error(v6, Bytes(48, 0x45), kMacs[0], v6 ? "2001:db8:a::9" : "10.0.0.9",
                                                      v6 ? "2001:db8:b::9" : "10.0.1.9"))) == "acl_default");
        CHECK(rig.fate({rig.builder.port("outside"),
                        ErrorRig::error(v6, ErrorRig::quote(ErrorRig::flow(v6, 17, false)), kMacs[1],
                                        v6 ? "2001:db8:b::77" : "10.0.1.77", v6 ? "2001:db8:a::10" : "10.0.0.10")}) ==
              "acl_default");
        // The same bytes in another tenant.
        CHECK(rig.fate({rig.builder.port("blue-outside"),
                        ErrorRig::error(v6, ErrorRig::quote(ErrorRig::flow(v6, 17, false)), kMacs[3],
                                        v6 ? "2001:db8:b::77" : "10.0.1.77", v6 ? "2001:db8:a::9" : "10.0.0.9")}) ==
              "acl_default");
        // From inside the list permits it without any session.
        CHECK(rig.fate({rig.builder.port("inside"),
                        ErrorRig::error(v6, ErrorRig::quote(ErrorRig::flow(v6, 17, true, {}, 1001)), kMacs[0],
                                        v6 ? "2001:db8:a::9" : "10.0.0.9", v6 ? "2001:db8:b::9" : "10.0.1.9")}) ==
              "passes");
    }
    Bytes later = ErrorRig::quote(ErrorRig::flow(false, 17, false));
    later[6] = 0;
    later[7] = 3;
    CHECK(rig.from_outside(false, later) == "acl_default");
}

TEST_CASE("icmp errors: one about a reply goes the other way, and none changes the session", "[memo]") {
    ErrorRig rig;
    for (const bool v6 : {false, true}) {
        for (const std::uint8_t proto : kProtocols) {
            const session::HotEntry before = rig.entry(v6, proto);
            rig.runner.advance(*rig.snapshot, 0.5);
            CHECK(rig.from_outside(v6, ErrorRig::quote(ErrorRig::flow(v6, proto, false))) == "passes");
            CHECK(rig.fate({rig.builder.port("inside"),
                            ErrorRig::error(v6, ErrorRig::quote(ErrorRig::flow(v6, proto, true)), kMacs[0],
                                            v6 ? "2001:db8:a::9" : "10.0.0.9", v6 ? "2001:db8:b::9" : "10.0.1.9")}) ==
                  "passes");
            const session::HotEntry after = rig.entry(v6, proto);
            CHECK(after.state() == before.state());
            CHECK(after.last_seen == before.last_seen);
            CHECK(after.packets[0] == before.packets[0]);
            CHECK(after.packets[1] == before.packets[1]);
        }
    }
}

TEST_CASE("icmp errors: a policy that turns against the session turns against its errors", "[memo]") {
    ErrorRig rig;
    rig.snapshot = rig.builder.build(config_text("deny"));
    CHECK(rig.from_outside(false, ErrorRig::quote(ErrorRig::flow(false, 17, false))) == "acl_deny");
    CHECK(rig.fate({rig.builder.port("inside"), ErrorRig::flow(false, 17, false)}) == "acl_deny");
    rig.snapshot = rig.builder.build(config_text("permit"));
    CHECK(rig.from_outside(false, ErrorRig::quote(ErrorRig::flow(false, 17, false))) == "passes");
}

}  // namespace cachewire
