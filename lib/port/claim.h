#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One cachewire for each Linux interface: two on the same one would both answer, forward and change it, and AF_XDP's
// driver would take the XDP program from the first. A claim is an abstract UNIX socket named after the interface, so it
// counts in the interface's network namespace and ends with its process, however that ends. Control thread only.
#include <string>

namespace cachewire::port {

class InterfaceClaim {
  public:
    explicit InterfaceClaim(unsigned interface_index);
    ~InterfaceClaim();
    InterfaceClaim(const InterfaceClaim&) = delete;
    InterfaceClaim& operator=(const InterfaceClaim&) = delete;

    // "pid 4711" of the other cachewire; empty: the interface is ours.
    [[nodiscard]] const std::string& holder() const noexcept { return holder_; }

  private:
    int fd_;
    std::string holder_;
};

}  // namespace cachewire::port
