// SPDX-License-Identifier: BSD-3-Clause
#include "port/removal.h"

#include <cerrno>
#include <filesystem>

#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include "base/log.h"
#include "port/own_descriptors.h"

namespace cachewire::port {

void Removal::watch(std::uint16_t ethdev, const std::string& device, bool pci) {
    forget();
    seen_.store(false, std::memory_order_relaxed);
    device_ = device;
    ethdev_ = ethdev;
    rte_eth_dev_callback_register(ethdev, RTE_ETH_EVENT_INTR_RMV, on_ethdev, this);
    rte_dev_event_callback_register(device_.c_str(), on_device, this);
    // What the kernel says of the bus, and a handler that turns an access to a NIC that is gone into reads of ones.
    if (pci && (rte_dev_event_monitor_start() != 0 || rte_dev_hotplug_handle_enable() != 0))
        base::log_warning("device {}: EAL can't follow it being pulled out", device_);
}

void Removal::forget() noexcept {
    if (device_.empty()) return;
    rte_eth_dev_callback_unregister(ethdev_, RTE_ETH_EVENT_INTR_RMV, on_ethdev, this);
    // -EAGAIN: it runs just now, on EAL's thread, and is over in a moment.
    while (rte_dev_event_callback_unregister(device_.c_str(), on_device, this) == -EAGAIN) {
    }
    device_.clear();
}

int Removal::on_ethdev(std::uint16_t, rte_eth_event_type, void* self, void*) {
    static_cast<Removal*>(self)->seen_.store(true, std::memory_order_relaxed);
    return 0;
}

void Removal::on_device(const char*, rte_dev_event_type event, void* self) {
    if (event == RTE_DEV_EVENT_REMOVE) static_cast<Removal*>(self)->seen_.store(true, std::memory_order_relaxed);
}

int tap_descriptor(const std::string& interface) {
    namespace fs = std::filesystem;
    std::error_code error;
    for (const int descriptor : own_descriptors()) {
        if (fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor), error) != "/dev/net/tun") continue;
        ifreq request{};
        if (ioctl(descriptor, TUNGETIFF, &request) == 0 && interface == request.ifr_name) return descriptor;
    }
    return -1;
}

bool tap_deleted(int descriptor) noexcept {
    ifreq request{};
    return ioctl(descriptor, TUNGETIFF, &request) != 0 && errno == EBADFD;
}

}  // namespace cachewire::port
