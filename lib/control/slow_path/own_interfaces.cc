// SPDX-License-Identifier: BSD-3-Clause
#include "control/slow_path/own_interfaces.h"

#include <algorithm>
#include <cstring>

#include "net/nd.h"

namespace cachewire::control {

bool OwnInterface::looks_like(const OwnInterface& other) const noexcept {
    const auto same = [](const auto& a, const auto& b) { return a.address == b.address; };
    return index == other.index && port == other.port && up == other.up && mac == other.mac && tags == other.tags &&
           std::equal(addresses.begin(), addresses.end(), other.addresses.begin(), other.addresses.end(), same);
}

bool OwnInterface::has(const net::Address& address) const noexcept {
    return std::any_of(addresses.begin(), addresses.end(), [&](const auto& own) { return own.address == address; });
}

bool OwnInterface::is_neighbor(const net::Address& address) const noexcept {
    if (has(address)) return false;
    return std::any_of(addresses.begin(), addresses.end(), [&](const auto& own) {
        if (!own.prefix.contains(address)) return false;
        if (own.prefix.family != net::Family::ip4 || own.prefix.length > 30) return true;
        const std::uint32_t mask = own.prefix.length == 0 ? ~0u : (1u << (32 - own.prefix.length)) - 1;
        const std::uint32_t host = address.v4() & mask;
        return host != 0 && host != mask;
    });
}

std::optional<net::Address> OwnInterface::address_towards(const net::Address& towards) const noexcept {
    std::optional<net::Address> first;
    for (const auto& own : addresses) {
        if (own.address.is_v4() != towards.is_v4()) continue;
        if (own.prefix.contains(towards)) return own.address;
        if (!first) first = own.address;
    }
    return first;
}

void OwnInterface::write_ethernet(const net::Mac& destination, std::uint16_t ether_type,
                                  std::uint8_t* out) const noexcept {
    std::memcpy(out, destination.bytes.data(), 6);
    std::memcpy(out + 6, mac.bytes.data(), 6);
    std::memcpy(out + 12, tags.data(), tag_bytes);
    out[12 + tag_bytes] = static_cast<std::uint8_t>(ether_type >> 8);
    out[13 + tag_bytes] = static_cast<std::uint8_t>(ether_type);
}

void OwnInterfaces::configure(const config::Config& config, const Registry& registry,
                              const pipeline::Snapshot& snapshot) {
    interfaces_.clear();
    for (const config::Interface& from : config.interfaces) {
        OwnInterface& own = interfaces_.emplace_back();
        own.name = from.name;
        own.index = *registry.interfaces.find(from.name);
        const pipeline::Interface& built = snapshot.interfaces[own.index];
        own.tenant = built.tenant;
        own.port = built.port;
        own.mac = built.mac;
        own.addresses = from.addresses;
        own.configured = own.addresses.size();
        own.up = from.is_loopback() || snapshot.ports[built.port].sends;
        const auto push_tag = [&own](std::uint16_t tpid, std::uint16_t vlan) {
            for (const std::uint16_t word : {tpid, vlan}) {
                own.tags[own.tag_bytes++] = static_cast<std::uint8_t>(word >> 8);
                own.tags[own.tag_bytes++] = static_cast<std::uint8_t>(word);
            }
        };
        // As routes.cc has it for what is forwarded.
        if (from.vlan != 0) push_tag(from.inner_vlan != 0 ? 0x88a8 : 0x8100, from.vlan);
        if (from.inner_vlan != 0) push_tag(0x8100, from.inner_vlan);
    }
    by_index_.assign(snapshot.interfaces.size(), interfaces_.size());
    for (std::size_t i = 0; i < interfaces_.size(); ++i) by_index_[interfaces_[i].index] = i;
    add_learned();
}

void OwnInterfaces::set_learned(const std::map<std::uint16_t, std::vector<config::InterfaceAddress>>& addresses) {
    learned_ = addresses;
    add_learned();
}

void OwnInterfaces::add_learned() {
    for (OwnInterface& own : interfaces_) {
        own.addresses.resize(own.configured);
        if (const auto more = learned_.find(own.index); more != learned_.end())
            own.addresses.insert(own.addresses.end(), more->second.begin(), more->second.end());
    }
}

const OwnInterface* OwnInterfaces::find(std::uint16_t index) const noexcept {
    if (index >= by_index_.size() || by_index_[index] == interfaces_.size()) return nullptr;
    return &interfaces_[by_index_[index]];
}

std::optional<net::Address> OwnInterfaces::source(std::uint16_t index, std::uint16_t tenant,
                                                  const net::Address& towards) const noexcept {
    if (const OwnInterface* in = find(index))
        if (const auto address = in->address_towards(towards)) return address;
    for (const OwnInterface& own : interfaces_) {
        if (own.tenant != tenant) continue;
        if (const auto address = own.address_towards(towards)) return address;
    }
    return std::nullopt;
}

bool OwnInterfaces::is_own(std::uint16_t tenant, const net::Address& address) const noexcept {
    return std::any_of(interfaces_.begin(), interfaces_.end(),
                       [&](const auto& own) { return own.tenant == tenant && own.has(address); });
}

const OwnInterface* OwnInterfaces::towards(std::uint16_t tenant, const net::Address& address) const noexcept {
    const OwnInterface* best = nullptr;
    unsigned best_length = 0;
    for (const OwnInterface& own : interfaces_) {
        if (own.tenant != tenant) continue;
        for (const auto& network : own.addresses) {
            if (!network.prefix.contains(address) || (best != nullptr && network.prefix.length <= best_length))
                continue;
            best = &own;
            best_length = network.prefix.length;
        }
    }
    return best;
}

}  // namespace cachewire::control
