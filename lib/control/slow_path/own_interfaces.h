#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The router's own interfaces as the slow path sees them: addresses, networks, and the Ethernet header that leaves by
// each. Rebuilt from the configuration after each publication; control thread only.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "control/registry.h"
#include "net/mac.h"
#include "net/prefix.h"
#include "pipeline/snapshot.h"

namespace cachewire::control {

struct OwnInterface {
    std::string name;
    std::uint16_t index = pipeline::kNoInterface;  // kNoInterface: no such interface now
    std::uint16_t tenant = pipeline::kNoTenant;
    std::uint16_t port = 0;  // kNoPort: a loopback
    net::Mac mac;
    std::array<std::uint8_t, 8> tags{};  // as they stand behind the MAC addresses
    std::uint8_t tag_bytes = 0;
    std::vector<config::InterfaceAddress> addresses;
    std::size_t configured = 0;  // so many of them come first
    bool up = false;             // its port sends; a loopback is always up

    [[nodiscard]] bool is_loopback() const noexcept { return port == pipeline::kNoPort; }

    // To those on its link.
    [[nodiscard]] bool looks_like(const OwnInterface& other) const noexcept;
    [[nodiscard]] bool has(const net::Address& address) const noexcept;
    // A host's address in one of its networks: none of ours, no network's own or broadcast address.
    [[nodiscard]] bool is_neighbor(const net::Address& address) const noexcept;
    // The address that speaks for it: in the network of `towards`, else its first of the family.
    [[nodiscard]] std::optional<net::Address> address_towards(const net::Address& towards) const noexcept;

    [[nodiscard]] unsigned l2_bytes() const noexcept { return 14u + tag_bytes; }
    // l2_bytes() of them.
    void write_ethernet(const net::Mac& destination, std::uint16_t ether_type, std::uint8_t* out) const noexcept;
};

class OwnInterfaces {
  public:
    void configure(const config::Config& config, const Registry& registry, const pipeline::Snapshot& snapshot);

    // Beside the configured ones, by interface; kept over configure().
    void set_learned(const std::map<std::uint16_t, std::vector<config::InterfaceAddress>>& addresses);

    // nullptr: none now.
    [[nodiscard]] const OwnInterface* find(std::uint16_t index) const noexcept;
    // The tenant's address for a message that goes to `towards` and speaks of what came in by `index`: of that
    // interface, else of the tenant's first one in the file that has the family (RFC 1812 4.3.2.4, RFC 4443 2.2).
    [[nodiscard]] std::optional<net::Address> source(std::uint16_t index, std::uint16_t tenant,
                                                     const net::Address& towards) const noexcept;
    [[nodiscard]] bool is_own(std::uint16_t tenant, const net::Address& address) const noexcept;
    // The interface whose network of the tenant the address is in, longest first.
    [[nodiscard]] const OwnInterface* towards(std::uint16_t tenant, const net::Address& address) const noexcept;
    [[nodiscard]] const std::vector<OwnInterface>& all() const noexcept { return interfaces_; }

  private:
    void add_learned();

    std::map<std::uint16_t, std::vector<config::InterfaceAddress>> learned_;
    std::vector<OwnInterface> interfaces_;  // in the file's order
    std::vector<std::size_t> by_index_;     // -> interfaces_; interfaces_.size(): none
};

}  // namespace cachewire::control
