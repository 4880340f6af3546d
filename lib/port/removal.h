#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A device that leaves while it is in use: EAL tells of a NIC pulled out or unbound (RTE_ETH_EVENT_INTR_RMV from its
// driver, RTE_DEV_EVENT_REMOVE from vfio or the kernel), and a TAP whose interface was deleted answers its descriptor
// with an error. EAL's interrupt thread writes the flag, the control thread reads it.
#include <atomic>
#include <cstdint>
#include <string>

#include <rte_dev.h>
#include <rte_ethdev.h>

namespace cachewire::port {

class Removal {
  public:
    Removal() = default;
    ~Removal() { forget(); }
    Removal(const Removal&) = delete;
    Removal& operator=(const Removal&) = delete;

    // `device`: EAL's name. `pci`: the kernel's messages on it are listened to as well.
    void watch(std::uint16_t ethdev, const std::string& device, bool pci);
    void forget() noexcept;
    [[nodiscard]] bool seen() const noexcept { return seen_.load(std::memory_order_relaxed); }

  private:
    static int on_ethdev(std::uint16_t, rte_eth_event_type, void* self, void*);
    static void on_device(const char*, rte_dev_event_type event, void* self);

    std::string device_;
    std::uint16_t ethdev_ = 0;
    std::atomic<bool> seen_{false};
};

// The descriptor that net_tap has open for this interface; -1: none. The interface may be in another namespace by now.
int tap_descriptor(const std::string& interface);
// The interface behind the descriptor was deleted.
bool tap_deleted(int descriptor) noexcept;

}  // namespace cachewire::port
