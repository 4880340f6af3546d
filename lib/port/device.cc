// SPDX-License-Identifier: BSD-3-Clause
#include "port/port.h"

#include "port/kernel_interface.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_pci.h>

namespace cachewire::port {

namespace {

constexpr std::string_view kAllowed =
    "allowed is a Linux interface (\"kernel:eth1\"), a PCI address (\"0000:03:00.0\") or a virtual device with its "
    "arguments (\"net_tap0,iface=cw0\")";

constexpr std::string_view kKernel = "kernel:";

bool consists_of(std::string_view text, std::string_view characters) {
    return text.find_first_not_of(characters) == std::string_view::npos;
}

// With or without domain; the way EAL itself writes it, or empty. EAL's parser alone would take signs, and device
// numbers that no bus has.
std::string pci_name(const std::string& text) {
    if (!consists_of(text, "0123456789abcdefABCDEF:.")) return {};
    rte_pci_addr address{};
    if (rte_pci_addr_parse(text.c_str(), &address) != 0) return {};
    if (address.devid > 0x1f || address.function > 7) return {};
    std::array<char, PCI_PRI_STR_SIZE> name{};
    rte_pci_device_name(&address, name.data(), name.size());
    return name.data();
}

bool is_vdev_name(std::string_view name) {
    return name.starts_with("net_") && name.size() > 4 && consists_of(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
}

std::string why_not(const std::string& text, const std::string& name) {
    if (text.empty()) return fmt::format("is empty; {}", kAllowed);
    if (name.size() >= RTE_DEV_NAME_MAX_LEN)
        return fmt::format("the device's name has {} characters; DPDK allows {}", name.size(),
                           RTE_DEV_NAME_MAX_LEN - 1);
    if (consists_of(name, "0123456789abcdefABCDEF:.") && name.find(':') != std::string::npos)
        return fmt::format(
            "\"{}\" is not a PCI address (domain:bus:device.function, device up to 1f, function up to 7)", name);
    if (name.starts_with("net_"))
        return fmt::format("\"{}\" is not the name of a virtual device: net_ and then a-z, 0-9 and _", name);
    return fmt::format("\"{}\" is no device; {}", text, kAllowed);
}

}  // namespace

std::optional<Device> parse_device(const std::string& text, std::string& why) {
    if (text.starts_with(kKernel)) {
        const std::string interface = text.substr(kKernel.size());
        const std::string wrong = why_no_interface_name(interface);
        if (wrong.empty()) return Device{DeviceKind::kernel, interface, ""};
        why = fmt::format("\"{}\": {}", text, wrong);
        return std::nullopt;
    }
    const auto comma = text.find(',');
    const std::string name = text.substr(0, comma);
    const std::string arguments = comma == std::string::npos ? "" : text.substr(comma + 1);
    if (comma != std::string::npos && arguments.empty()) {
        why = fmt::format("\"{}\" ends in a comma: arguments are missing", text);
        return std::nullopt;
    }
    const bool has_control =
        std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (has_control) {
        why = fmt::format("holds a control character; {}", kAllowed);
        return std::nullopt;
    }
    if (name.size() < RTE_DEV_NAME_MAX_LEN) {
        if (auto pci = pci_name(name); !pci.empty()) return Device{DeviceKind::pci, std::move(pci), arguments};
        if (is_vdev_name(name)) return Device{DeviceKind::vdev, name, arguments};
    }
    why = why_not(text, name);
    return std::nullopt;
}

std::vector<std::string> eal_arguments(const std::vector<Device>& devices) {
    std::vector<std::string> arguments;
    const auto with_arguments = [](const Device& d) {
        return d.arguments.empty() ? d.name : d.name + "," + d.arguments;
    };
    for (const Device& device : devices)
        if (device.kind == DeviceKind::pci) arguments.insert(arguments.end(), {"-a", with_arguments(device)});
    // Without an allow list EAL would take every NIC that it finds. Linux interfaces are plugged in later, by their
    // port.
    if (arguments.empty()) arguments.emplace_back("--no-pci");
    for (const Device& device : devices)
        if (device.kind == DeviceKind::vdev) arguments.push_back("--vdev=" + with_arguments(device));
    return arguments;
}

}  // namespace cachewire::port
