// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "config/sections.h"

namespace cachewire::config {
namespace {

constexpr Key kPort[] = {{"name"}, {"device"}, {"rxq"},         {"txq"}, {"rxd"},
                         {"txd"},  {"mtu"},    {"promiscuous"}, {"mac"}, {"admin"}};
constexpr Choice<bool> kAdmin[] = {{"up", true}, {"down", false}};
constexpr std::size_t kMaxPorts = 32;  // RTE_MAX_ETHPORTS as distributions build it

bool is_hex(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    });
}

// "0000:03:00.0" or "03:00.0" in its long, lower-case form; empty when it is no PCI address. A bus has 32 devices.
std::string pci_identity(std::string_view text) {
    std::string full = text.size() == 7 ? "0000:" + std::string(text) : std::string(text);
    if (full.size() != 12 || full[4] != ':' || full[7] != ':' || full[10] != '.') return "";
    const std::string_view f = full;
    if (!is_hex(f.substr(0, 4)) || !is_hex(f.substr(5, 2)) || !is_hex(f.substr(8, 2)) || f[11] < '0' || f[11] > '7')
        return "";
    if (f[8] != '0' && f[8] != '1') return "";
    std::transform(full.begin(), full.end(), full.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
    return full;
}

// The vdev's name, what stands before its arguments; empty when it is none, or a comma without arguments follows.
std::string vdev_identity(std::string_view text) {
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    if (text.ends_with(',') || std::any_of(text.begin(), text.end(), is_control)) return "";
    const std::string_view name = text.substr(0, text.find(','));
    const bool right = std::all_of(name.begin(), name.end(),
                                   [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_'; });
    if (!right || !name.starts_with("net_") || name.size() < 5 || name.size() >= 64) return "";
    return std::string(name);
}

// "kernel:eth1": a name of up to 15 letters, digits and ._-@; empty when it is none.
std::string kernel_identity(std::string_view text) {
    if (!text.starts_with("kernel:")) return "";
    const std::string_view name = text.substr(7);
    const bool right = std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
               c == '-' || c == '@';
    });
    if (!right || name.empty() || name.size() > 15 || name == "." || name == "..") return "";
    return std::string(text);
}

// What makes two ports the same device; empty, and reported, when the text is no device.
std::string read_device(Reporter& reporter, const std::optional<Value>& value, std::string& device) {
    constexpr std::string_view kAllowed =
        "a Linux interface such as \"kernel:eth1\", a PCI address such as \"0000:03:00.0\", or a vdev such as "
        "\"net_tap0,iface=cw0\"";
    const auto text = read_scalar(reporter, value, kAllowed);
    if (!text) return "";
    device = *text;
    std::string identity = kernel_identity(*text);
    if (identity.empty()) identity = pci_identity(*text);
    if (identity.empty()) identity = vdev_identity(*text);
    if (identity.empty())
        reporter.error(*value, fmt::format("{} is not a device; allowed: {}", quote(*text), kAllowed));
    return identity;
}

// What the start would find out, of devices that are the same everywhere. Others' limits are known when they are
// opened.
void check_mtu(Reporter& reporter, const std::optional<Value>& value, const Port& port, const Memory& memory) {
    constexpr unsigned kHeaders = 22;    // Ethernet and two tags
    constexpr unsigned kHeadroom = 128;  // in front of each frame, as DPDK is built
    if (!value) return;
    // One buffer a frame: it has no scatter.
    const unsigned needed = port.mtu + kHeaders + kHeadroom;
    if (port.device.starts_with("net_null") && needed > memory.mbuf_size)
        reporter.error(
            *value, fmt::format("frames of {} bytes and {} of headers go over one buffer, and net_null does not spread "
                                "them; allowed: up to {}, or `memory: mbuf_size` of at least {}",
                                port.mtu, kHeaders, memory.mbuf_size - kHeaders - kHeadroom, needed));
}

}  // namespace

void read_ports(Loading& loading, const MapReader& top) {
    Reporter& reporter = loading.reporter;
    std::map<std::string, std::string> owners;  // device -> port
    const auto list = top.require("ports");
    const auto items = read_list(reporter, list);
    if (list && list->node->kind == Node::Kind::sequence && items.empty())
        reporter.error(*list, "no port; allowed: at least one");
    if (items.size() > kMaxPorts)
        reporter.error(*list, fmt::format("{} ports; allowed: 1 to {}", items.size(), kMaxPorts));
    for (const Value& item : items) {
        const MapReader map(reporter, item, kPort);
        Port port;
        const auto name_value = map.require("name");
        port.name = read_name(reporter, name_value).value_or("");
        const auto device = map.require("device");
        const std::string identity = read_device(reporter, device, port.device);
        read_auto_or_number(reporter, map.get("rxq"), port.rxq, 1, 1024);
        read_auto_or_number(reporter, map.get("txq"), port.txq, 1, 1024);
        read_number(reporter, map.get("rxd"), port.rxd, 32, 32768);
        read_number(reporter, map.get("txd"), port.txd, 32, 32768);
        // RFC 791: every link carries 68 bytes.
        read_number(reporter, map.get("mtu"), port.mtu, 68, 65535);
        check_mtu(reporter, map.get("mtu"), port, loading.config.memory);
        read_bool(reporter, map.get("promiscuous"), port.promiscuous);
        read_choice(reporter, map.get("admin"), port.admin_up, kAdmin);
        if (const auto mac = map.get("mac"); !is_auto(mac)) port.mac = read_mac(reporter, mac, "auto, or ");
        if (!identity.empty()) {
            const auto [owner, fresh] = owners.try_emplace(identity, port.name);
            if (!fresh)
                reporter.error(*device, fmt::format("device '{}' is port '{}' already", identity, owner->second));
        }
        if (!port.name.empty()) loading.ports.add(reporter, *name_value, port.name, loading.config.ports.size());
        loading.config.ports.push_back(std::move(port));
    }
}

}  // namespace cachewire::config
