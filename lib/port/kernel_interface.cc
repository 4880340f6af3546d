// SPDX-License-Identifier: BSD-3-Clause
#include "port/kernel_interface.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <rte_build_config.h>
#include <rte_ether.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port/link.h"
#include "port/xdp_program.h"

namespace cachewire::port {

namespace {

namespace fs = std::filesystem;

// AF_XDP puts mbuf, headroom and frame into one page: what is left of it for the frame, as the driver reckons.
constexpr unsigned kXdpMaxMtu = 3498;
constexpr unsigned kPage = 4096;
constexpr unsigned kHeadersAndTags = RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;
// In front of the frame in a slot; the kernel keeps 16 bytes for the link header and aligns what follows.
constexpr unsigned kSlotHeader = TPACKET_ALIGN(TPACKET2_HDRLEN) + 16;

class ControlSocket {
  public:
    ControlSocket() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
    ~ControlSocket() {
        if (fd_ >= 0) close(fd_);
    }
    ControlSocket(const ControlSocket&) = delete;
    ControlSocket& operator=(const ControlSocket&) = delete;

    bool ask(unsigned long request, const std::string& interface, ifreq& answer) const noexcept {
        interface.copy(answer.ifr_name, IFNAMSIZ - 1);
        return ioctl(fd_, request, &answer) == 0;
    }

  private:
    int fd_;
};

// Empty, or what a socket of that family fails with.
std::string why_no_socket(int family) {
    const int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        close(fd);
        return "";
    }
    if (errno == EAFNOSUPPORT) return "the kernel was built without it";
    return std::strerror(errno);
}

bool has_plugin(const char* driver) {
    std::error_code error;
    return fs::exists(fs::path(RTE_EAL_PMD_PATH) / fmt::format("librte_{}.so", driver), error);
}

// Of a virtual interface ethtool alone knows the driver; of a real one too.
std::string driver_of(const ControlSocket& control, const std::string& interface) {
    ethtool_drvinfo info{};
    info.cmd = ETHTOOL_GDRVINFO;
    ifreq request{};
    request.ifr_data = reinterpret_cast<char*>(&info);
    if (!control.ask(SIOCETHTOOL, interface, request)) return "";
    return {info.driver, strnlen(info.driver, sizeof info.driver)};
}

unsigned active_rx_queues(const std::string& interface) {
    unsigned count = 0;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/sys/class/net/" + interface + "/queues", error))
        count += entry.path().filename().string().starts_with("rx-") ? 1 : 0;
    return std::max(count, 1u);
}

// Empty: AF_XDP it is.
std::string why_no_xdp(const KernelWish& wish, const KernelFacts& facts) {
    if (wish.xdp_failed) return "AF_XDP did not start on it, see the driver's messages above";
    if (wish.xdp_too_dear)
        return "AF_XDP's driver keeps the buffers of its ring whenever the interface goes, and the pool runs low: "
               "raise "
               "`memory: {mbufs: N}`";
    if (wish.pool_has_gaps)
        return "AF_XDP wants buffers in one piece of memory, and beside a NIC (a PCI address in `ports`) they have "
               "gaps";
    if (!facts.xdp_plugin) return fmt::format("DPDK's driver net_af_xdp is not in {}", RTE_EAL_PMD_PATH);
    if (!facts.no_xdp_socket.empty()) return fmt::format("AF_XDP sockets: {}", facts.no_xdp_socket);
    if (std::string taken = why_xdp_is_taken(wish.interface, facts); !taken.empty()) return taken;
    if (facts.driver == "veth" && facts.rx_queues != 1)
        return fmt::format(
            "AF_XDP on veth needs one active queue and it has {}; `ethtool -L {} rx 1 tx 1` before the start gives "
            "AF_XDP",
            facts.rx_queues, wish.interface);
    if (facts.rx_queues != wish.queues)
        return fmt::format(
            "its {} receive queues and the port's {} would have to be as many for AF_XDP, which sees one queue each; "
            "set `rxq: {}`, or `ethtool -L {} combined {}`",
            facts.rx_queues, wish.queues, facts.rx_queues, wish.interface, wish.queues);
    if (wish.mtu > kXdpMaxMtu)
        return fmt::format("an mtu of {} is above the {} that AF_XDP has room for", wish.mtu, kXdpMaxMtu);
    return "";
}

// Of this network namespace.
void probe_xdp(const std::string& name, KernelFacts& facts) {
    const auto link = LinkReader().read(name);
    if (!link || link->xdp_program == 0) return;
    facts.xdp_program = xdp_program_name(link->xdp_program);
    if (facts.xdp_program.empty()) facts.xdp_program = fmt::format("number {}", link->xdp_program);
    if (is_xdp_socket_program(facts.xdp_program)) facts.xdp_holder = xdp_program_holder(link->xdp_program);
}

}  // namespace

// A program of libxdp's that nobody holds was left by a process that was killed: the next one takes it over.
std::string why_xdp_is_taken(const std::string& interface, const KernelFacts& facts) {
    if (!facts.xdp_holder.empty())
        return fmt::format("{} receives by {} through AF_XDP, and two can't share an interface", facts.xdp_holder,
                           interface);
    if (facts.xdp_program.empty() || is_xdp_socket_program(facts.xdp_program)) return "";
    return fmt::format("the XDP program {} is on it; `ip link set dev {} xdp off` before the start gives AF_XDP",
                       facts.xdp_program, interface);
}

std::string why_no_interface_name(std::string_view name) {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@";
    if (name.empty()) return "names no interface";
    if (name.size() >= IFNAMSIZ)
        return fmt::format("the name has {} characters; Linux allows {}", name.size(), IFNAMSIZ - 1);
    if (name == "." || name == ".." || name.find_first_not_of(kAllowed) != std::string_view::npos)
        return "the name may hold letters, digits and ._-@";
    return "";
}

std::string driver_below(const std::string& name) { return driver_of(ControlSocket(), name); }

KernelFacts probe_interface(const std::string& name) {
    KernelFacts facts;
    facts.index = if_nametoindex(name.c_str());
    if (facts.index == 0) return facts;
    const ControlSocket control;
    ifreq answer{};
    facts.up = control.ask(SIOCGIFFLAGS, name, answer) && (answer.ifr_flags & IFF_UP) != 0;
    facts.ethernet = control.ask(SIOCGIFHWADDR, name, answer) && answer.ifr_hwaddr.sa_family == ARPHRD_ETHER;
    facts.driver = driver_of(control, name);
    facts.rx_queues = active_rx_queues(name);
    probe_xdp(name, facts);
    facts.no_xdp_socket = why_no_socket(AF_XDP);
    facts.no_packet_socket = why_no_socket(AF_PACKET);
    facts.xdp_plugin = has_plugin("net_af_xdp");
    facts.packet_plugin = has_plugin("net_af_packet");
    return facts;
}

std::optional<KernelChoice> choose_driver(const KernelWish& wish, const KernelFacts& facts, std::string& error) {
    if (facts.index == 0) {
        error = fmt::format("this machine has no interface {} in this network namespace; `ip -br link` lists them",
                            wish.interface);
        return std::nullopt;
    }
    if (!facts.ethernet) {
        error = fmt::format("the interface {} carries no Ethernet frames", wish.interface);
        return std::nullopt;
    }
    if (!facts.xdp_holder.empty()) {  // AF_PACKET would see nothing of what goes there
        error = why_xdp_is_taken(wish.interface, facts);
        return std::nullopt;
    }
    const std::string why = why_no_xdp(wish, facts);
    if (why.empty())
        return KernelChoice{KernelDriver::af_xdp, fmt::format("kernel, driver {} and {} queue{} allow it",
                                                              facts.driver.empty() ? "(unknown)" : facts.driver,
                                                              wish.queues, wish.queues == 1 ? "" : "s")};
    if (!facts.packet_plugin) {
        error = fmt::format("{}; and AF_PACKET's driver net_af_packet is not in {} either", why, RTE_EAL_PMD_PATH);
        return std::nullopt;
    }
    if (!facts.no_packet_socket.empty()) {
        error = fmt::format("{}; AF_PACKET sockets: {}: run as root, or with `setcap cap_net_raw,cap_net_admin+ep`",
                            why, facts.no_packet_socket);
        return std::nullopt;
    }
    // The driver refuses mbufs that could not hold a full slot.
    const unsigned slot = packet_slot_bytes(wish.mtu);
    if (slot + RTE_PKTMBUF_HEADROOM > wish.mbuf_size + 0u + (TPACKET2_HDRLEN - sizeof(sockaddr_ll))) {
        error = fmt::format(
            "{}; and AF_PACKET carries an mtu of {} in slots of {} bytes, which need `memory: mbuf_size` {}, not {}",
            why, wish.mtu, slot, slot + RTE_PKTMBUF_HEADROOM, wish.mbuf_size);
        return std::nullopt;
    }
    return KernelChoice{KernelDriver::af_packet, why};
}

Device kernel_device(const KernelWish& wish, KernelDriver driver) {
    if (driver == KernelDriver::af_xdp)
        return {DeviceKind::vdev, "net_af_xdp_" + wish.interface,
                fmt::format("iface={},queue_count={}", wish.interface, wish.queues)};
    const unsigned slot = packet_slot_bytes(wish.mtu);
    return {DeviceKind::vdev, "net_af_packet_" + wish.interface,
            fmt::format("iface={},qpairs={},framesz={},blocksz={}", wish.interface, wish.queues, slot,
                        std::max(slot, kPage))};
}

std::string interface_below(const Device& device) {
    if (device.kind == DeviceKind::kernel) return device.name;
    if (device.kind != DeviceKind::vdev) return "";
    if (!device.name.starts_with("net_af_packet") && !device.name.starts_with("net_af_xdp")) return "";
    const std::string arguments = "," + device.arguments;
    const auto at = arguments.find(",iface=");
    if (at == std::string::npos) return "";
    const auto begin = at + 7;
    return arguments.substr(begin, arguments.find(',', begin) - begin);
}

unsigned packet_slot_bytes(std::uint16_t mtu) noexcept {
    const unsigned wanted = mtu + kHeadersAndTags + kSlotHeader;
    unsigned slot = 2048;
    while (slot < wanted) slot += slot < kPage ? slot : kPage;
    return slot;
}

namespace {

bool change_flags(const std::string& interface, int set, int clear) noexcept {
    const ControlSocket control;
    ifreq request{};
    if (!control.ask(SIOCGIFFLAGS, interface, request)) return false;
    request.ifr_flags = static_cast<short>((request.ifr_flags | set) & ~clear);
    return control.ask(SIOCSIFFLAGS, interface, request);
}

}  // namespace

std::optional<InterfaceState> read_interface(const std::string& interface) noexcept {
    const ControlSocket control;
    InterfaceState state;
    ifreq answer{};
    if (!control.ask(SIOCGIFFLAGS, interface, answer)) return std::nullopt;
    state.promiscuous = (answer.ifr_flags & IFF_PROMISC) != 0;
    if (!control.ask(SIOCGIFMTU, interface, answer)) return std::nullopt;
    state.mtu = static_cast<std::uint16_t>(std::min(answer.ifr_mtu, 65535));
    if (!control.ask(SIOCGIFHWADDR, interface, answer)) return std::nullopt;
    std::memcpy(state.mac.bytes.data(), answer.ifr_hwaddr.sa_data, state.mac.bytes.size());
    return state;
}

void restore_interface(const std::string& interface, const InterfaceState& to) noexcept {
    const auto now = read_interface(interface);
    if (!now) return;
    const ControlSocket control;
    ifreq request{};
    if (now->promiscuous != to.promiscuous && control.ask(SIOCGIFFLAGS, interface, request)) {
        request.ifr_flags =
            static_cast<short>(to.promiscuous ? request.ifr_flags | IFF_PROMISC : request.ifr_flags & ~IFF_PROMISC);
        control.ask(SIOCSIFFLAGS, interface, request);
    }
    if (now->mtu != to.mtu) set_interface_mtu(interface, to.mtu);
    if (now->mac != to.mac && control.ask(SIOCGIFHWADDR, interface, request)) {
        std::memcpy(request.ifr_hwaddr.sa_data, to.mac.bytes.data(), to.mac.bytes.size());
        control.ask(SIOCSIFHWADDR, interface, request);
    }
}

bool bring_up(const std::string& interface) noexcept { return change_flags(interface, IFF_UP, 0); }

bool take_down(const std::string& interface) noexcept { return change_flags(interface, 0, IFF_UP); }

bool set_interface_mtu(const std::string& interface, std::uint16_t mtu) noexcept {
    const ControlSocket control;
    ifreq request{};
    request.ifr_mtu = mtu;
    return control.ask(SIOCSIFMTU, interface, request);
}

}  // namespace cachewire::port
