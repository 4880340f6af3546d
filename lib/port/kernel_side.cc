// SPDX-License-Identifier: BSD-3-Clause
#include "port/kernel_side.h"

#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/kernel_interface.h"
#include "port/own_descriptors.h"
#include "port/xdp_buffers.h"

#ifndef TUNGETDEVNETNS
#define TUNGETDEVNETNS _IO('T', 227)
#endif

namespace cachewire::port {

namespace {

// The driver's, by the interface that they are bound to.
std::vector<int> find_packet_sockets(const std::string& interface) {
    std::vector<int> sockets;
    const int index = static_cast<int>(if_nametoindex(interface.c_str()));
    for (const int fd : own_descriptors()) {
        sockaddr_ll address{};
        socklen_t size = sizeof address;
        if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
        if (address.sll_family == AF_PACKET && address.sll_ifindex == index) sockets.push_back(fd);
    }
    return sockets;
}

}  // namespace

// veth counts as dropped whatever a socket did not take, so the sockets' counters would be the same frames again. What
// other interfaces make of a full socket differs by driver, and none is known to count it as missed.
std::uint64_t missed_frames(const KernelDrops& drops) noexcept {
    const auto since = [](std::uint64_t now, std::uint64_t then) { return now > then ? now - then : 0; };
    const std::uint64_t rx_dropped = since(drops.now.rx_dropped, drops.at_open.rx_dropped);
    const std::uint64_t rx_missed = since(drops.now.rx_missed, drops.at_open.rx_missed);
    if (drops.driver == "net_af_xdp")
        return drops.interface_driver == "veth" ? rx_dropped : drops.by_driver + drops.ring_full + rx_missed;
    if (drops.driver == "net_af_packet") return drops.by_driver + drops.ring_full + rx_dropped + rx_missed;
    return drops.by_driver + since(drops.now.tx_dropped, drops.at_open.tx_dropped);
}

KernelSide::KernelSide(std::string driver, std::string interface, int tap, std::vector<std::uint64_t> xdp_sockets)
    : driver_(std::move(driver)), interface_(std::move(interface)), tap_(tap), xdp_sockets_(std::move(xdp_sockets)) {
    if (tap_ < 0) {
        reader_.emplace();
        interface_driver_ = driver_below(interface_);
    }
    if (driver_ == "net_af_packet") packet_sockets_ = find_packet_sockets(interface_);
    look();
    at_open_ = now_;
}

KernelSide::~KernelSide() = default;

void KernelSide::look() noexcept {
    if (tap_ >= 0) follow_tap();
    now_ = reader_ ? reader_->read(interface_) : std::nullopt;
    if (!at_open_) at_open_ = now_;
    collect_packet_drops();
}

// Each answer begins the kernel's counter anew, so whatever a driver asked for itself is in by_driver and not here.
void KernelSide::collect_packet_drops() noexcept {
    for (const int fd : packet_sockets_) {
        tpacket_stats statistics{};
        socklen_t size = sizeof statistics;
        if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0)
            packet_drops_ += statistics.tp_drops;
    }
}

bool KernelSide::take_flap() noexcept { return reader_ && reader_->was_away(interface_); }

// Its name and its namespace now. The reader stays as long as both do.
void KernelSide::follow_tap() noexcept {
    ifreq request{};
    if (ioctl(tap_, TUNGETIFF, &request) == 0) interface_ = request.ifr_name;
    const int space = ioctl(tap_, TUNGETDEVNETNS);
    if (space < 0) return;
    struct stat status {};
    if (fstat(space, &status) == 0 && (status.st_ino != namespace_ || !reader_)) {
        namespace_ = status.st_ino;
        reader_.emplace(space);
    }
    close(space);
}

bool KernelSide::lost_xdp_program() const noexcept {
    return at_open_ && now_ && at_open_->xdp_program != 0 && now_->xdp_program != at_open_->xdp_program;
}

std::uint64_t KernelSide::missed(std::uint64_t by_driver) noexcept {
    look();
    KernelDrops drops{driver_, interface_driver_, by_driver, 0, {}, {}};
    drops.ring_full = driver_ == "net_af_xdp" ? xdp_ring_full(xdp_sockets_) : packet_drops_;
    if (now_) drops.now = *now_;
    if (at_open_) drops.at_open = *at_open_;
    return missed_frames(drops);
}

}  // namespace cachewire::port
