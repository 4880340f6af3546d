// SPDX-License-Identifier: BSD-3-Clause
// What the kernel is asked about interfaces, on real ones: lo, which everybody has, and a TAP where one can be made.
#include "port/kernel_side.h"

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "port/claim.h"
#include "port/tap_signals.h"
#include "port/xdp_program.h"
#include "support/catch.h"
#include "support/skip.h"

using namespace cachewire;
using namespace cachewire::port;

namespace {

// Down and without an address, as net_tap finds it. -1: none can be made here.
int make_tap(std::string& name) {
    const int tap = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    std::strncpy(request.ifr_name, "cwside%d", IFNAMSIZ - 1);
    if (tap >= 0 && ioctl(tap, TUNSETIFF, &request) != 0) {
        close(tap);
        return -1;
    }
    name = request.ifr_name;
    return tap;
}

bool shell(const std::string& command) { return std::system((command + " 2> /dev/null").c_str()) == 0; }

}  // namespace

TEST_CASE("kernel side: frames that never reached a ring are counted once, whoever counts them", "[port]") {
    struct Case {
        const char* what;
        KernelDrops drops;
        std::uint64_t missed;
    };
    const LinkFacts before{.rx_dropped = 100, .rx_missed = 50, .tx_dropped = 10};
    const LinkFacts after{.rx_dropped = 107, .rx_missed = 53, .tx_dropped = 12};
    const LinkFacts fresh{};  // the interface was made again under the same name
    const Case cases[] = {
        {"veth counts what its sockets refuse", {"net_af_xdp", "veth", 4, 3, before, after}, 7},
        {"a NIC does not, and counts what it had no descriptor for", {"net_af_xdp", "ice", 4, 3, before, after}, 10},
        {"AF_PACKET: its ring, and the queue before it", {"net_af_packet", "veth", 5, 2, before, after}, 17},
        {"a TAP: what its Linux end could not send", {"net_tap", "", 0, 0, before, after}, 2},
        {"counters that begin anew", {"net_af_xdp", "veth", 0, 0, before, fresh}, 0},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        CHECK(missed_frames(c.drops) == c.missed);
    }
}

TEST_CASE("kernel side: lo has a link, and nobody is told of an interface that isn't there", "[port]") {
    LinkReader reader;
    CHECK_FALSE(reader.read("cwnothere0").has_value());
    CHECK_FALSE(reader.read("").has_value());
    CHECK_FALSE(reader.read("a-name-that-is-too-long").has_value());
    const auto lo = reader.read("lo");
    REQUIRE(lo.has_value());
    CHECK(lo->xdp_program == 0);
    KernelSide unknown("net_af_packet", "cwnothere0", -1, {});
    CHECK(unknown.link());  // not known: taken for up
    CHECK_FALSE(unknown.lost_xdp_program());
    CHECK(unknown.missed(3) == 3);
}

TEST_CASE("kernel side: a TAP is followed into another namespace and under another name", "[port]") {
    std::string name;
    const int tap = make_tap(name);
    const std::string space = "cwside" + std::to_string(getpid());
    if (tap < 0 || !shell("ip netns add " + space)) {
        if (tap >= 0) close(tap);
        return test::say_skipped("no TAP and no network namespace can be made here");
    }
    KernelSide side("net_tap", name, tap, {});
    CHECK_FALSE(side.link());
    CHECK(shell("ip link set " + name + " up"));
    side.look();
    CHECK(side.link());
    CHECK(shell("ip link set " + name + " netns " + space));  // which sets it down
    side.look();
    CHECK(side.facts().has_value());
    CHECK_FALSE(side.link());
    CHECK(shell("ip -n " + space + " link set " + name + " name cwmoved up"));
    side.look();
    CHECK(side.link());
    static_cast<void>(side.take_flap());
    CHECK_FALSE(side.take_flap());
    CHECK(shell("ip -n " + space + " link set cwmoved down"));
    CHECK(shell("ip -n " + space + " link set cwmoved up"));
    side.look();
    CHECK(side.link());
    CHECK(side.take_flap());
    CHECK_FALSE(side.take_flap());
    CHECK(shell("ip netns del " + space));
    close(tap);
}

TEST_CASE("kernel side: an interface has one claimant, and is free when that goes", "[port]") {
    constexpr unsigned kIndex = 0x7fffffff;  // of no interface
    {
        const InterfaceClaim first(kIndex);
        CHECK(first.holder().empty());
        const InterfaceClaim second(kIndex);
        CHECK(second.holder() == "pid " + std::to_string(getpid()));
        const InterfaceClaim other(kIndex - 1);
        CHECK(other.holder().empty());
    }
    const InterfaceClaim third(kIndex);
    CHECK(third.holder().empty());
}

TEST_CASE("kernel side: real-time signals are taken for as long as TAPs are opened, somebody's handler stays",
          "[port]") {
    const auto handler_of = [](int signal) {
        struct sigaction now {};
        REQUIRE(sigaction(signal, nullptr, &now) == 0);
        return now.sa_handler;
    };
    struct sigaction own {};
    own.sa_handler = [](int) {};
    REQUIRE(sigaction(SIGRTMIN + 3, &own, nullptr) == 0);
    {
        const NoTapSignals during;
        for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) CHECK(handler_of(signal) != SIG_DFL);
        CHECK(handler_of(SIGRTMIN + 3) == own.sa_handler);
        CHECK(handler_of(SIGIO) == SIG_DFL);
    }
    CHECK(handler_of(SIGRTMIN) == SIG_DFL);
    CHECK(handler_of(SIGRTMAX) == SIG_DFL);
    CHECK(handler_of(SIGRTMIN + 3) == own.sa_handler);
    own.sa_handler = SIG_DFL;
    sigaction(SIGRTMIN + 3, &own, nullptr);
}

TEST_CASE("kernel side: XDP programs by name", "[port]") {
    CHECK(is_xdp_socket_program("xsk_def_prog"));
    CHECK_FALSE(is_xdp_socket_program("firewall"));
    CHECK_FALSE(is_xdp_socket_program(""));
    CHECK(xdp_program_name(0).empty());
    CHECK(xdp_program_holder(0).empty());
}
