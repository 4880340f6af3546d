#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What the drivers of Linux interfaces (net_af_xdp, net_af_packet, net_tap) don't tell of an open port: whether there
// is a link, whether its XDP program is on it still, and what the kernel dropped on the way to us. look() asks, the
// rest answers from the last look. Control thread only.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "port/link.h"

namespace cachewire::port {

// Frames that were meant for us and reached no ring, by who counts them.
struct KernelDrops {
    std::string driver;            // DPDK's
    std::string interface_driver;  // Linux's
    std::uint64_t by_driver = 0;   // ethdev's imissed
    std::uint64_t ring_full = 0;   // AF_XDP or AF_PACKET sockets, where ethdev leaves that out
    LinkFacts at_open, now;        // the interface's counters
};
std::uint64_t missed_frames(const KernelDrops& drops) noexcept;

class KernelSide {
  public:
    // `tap`: net_tap's descriptor, or -1. A TAP is looked for where it is: it may be moved to another namespace.
    KernelSide(std::string driver, std::string interface, int tap, std::vector<std::uint64_t> xdp_sockets);
    ~KernelSide();
    KernelSide(const KernelSide&) = delete;
    KernelSide& operator=(const KernelSide&) = delete;

    void look() noexcept;
    [[nodiscard]] bool link() const noexcept { return has_link(now_); }
    // There was none for a moment since the last call, and nobody may have seen it.
    [[nodiscard]] bool take_flap() noexcept;
    // The interface is there, and the XDP program of when the port was opened is not on it.
    [[nodiscard]] bool lost_xdp_program() const noexcept;
    [[nodiscard]] const std::optional<LinkFacts>& facts() const noexcept { return now_; }
    // `by_driver`: ethdev's imissed. Asks anew, so that no frame is in none of two counters.
    [[nodiscard]] std::uint64_t missed(std::uint64_t by_driver) noexcept;

  private:
    void follow_tap() noexcept;
    void collect_packet_drops() noexcept;

    std::string driver_, interface_, interface_driver_;
    int tap_;
    std::uint64_t namespace_ = 0;  // the TAP's, by inode
    std::optional<LinkReader> reader_;
    std::vector<std::uint64_t> xdp_sockets_;
    std::vector<int> packet_sockets_;
    std::uint64_t packet_drops_ = 0;
    std::optional<LinkFacts> at_open_, now_;
};

}  // namespace cachewire::port
