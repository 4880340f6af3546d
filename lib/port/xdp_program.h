#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// XDP programs on interfaces: whose one is, and how one that isn't ours outlives net_af_xdp. That driver takes any
// program off when it closes, also after a start that failed because another process holds the interface, which is deaf
// from then on. So whoever opens it looks first. bpf(2), without a library. Control thread only.
#include <cstdint>
#include <string>

#include "port/link.h"

namespace cachewire::port {

// As `ip -d link` shows it; empty when it can't be asked.
std::string xdp_program_name(std::uint32_t id);
// libxdp's, which hands frames to AF_XDP sockets: ours, or another AF_XDP program's.
bool is_xdp_socket_program(const std::string& name);
// "cachewire (pid 4711)": another process that has it open; empty: none that can be seen.
std::string xdp_program_holder(std::uint32_t id);

// Holds a program while something takes it off the interface, then puts it on again.
class KeptXdpProgram {
  public:
    KeptXdpProgram(unsigned interface_index, const LinkFacts& facts);
    ~KeptXdpProgram();
    KeptXdpProgram(const KeptXdpProgram&) = delete;
    KeptXdpProgram& operator=(const KeptXdpProgram&) = delete;

    // False, and errno, when the kernel refuses.
    bool put_back() noexcept;

  private:
    unsigned index_;
    bool generic_;
    int program_;
};

}  // namespace cachewire::port
