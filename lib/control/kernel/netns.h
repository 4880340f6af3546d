#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A named network namespace, entered by the calling thread for a moment: what it opens there (a TAP, a netlink socket)
// stays there. Control thread only.
#include <cstdint>
#include <string>

namespace cachewire::control {

// Device and inode of /run/netns/NAME: another namespace may come to have the name. 0: there is none.
std::uint64_t netns_identity(const std::string& name) noexcept;

class InNetns {
  public:
    // Throws base::MachineError that says what a person can do.
    explicit InNetns(const std::string& name);
    ~InNetns();
    InNetns(const InNetns&) = delete;
    InNetns& operator=(const InNetns&) = delete;

  private:
    int back_ = -1;
};

}  // namespace cachewire::control
