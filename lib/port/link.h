#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What Linux says of an interface: its link, its XDP program, what it dropped. One question over netlink (rtnetlink(7),
// RTM_GETLINK by name), about 10 us. Control thread only.
#include <cstdint>
#include <optional>
#include <string>

namespace cachewire::port {

struct LinkFacts {
    bool link = false;              // set up, and with a carrier
    std::uint32_t xdp_program = 0;  // its id; 0: none
    bool xdp_generic = false;       // it runs behind the driver, not in it
    // Since the interface was made. A TAP's are seen from its Linux end: what goes to us is sent there.
    std::uint64_t rx_dropped = 0, rx_missed = 0, tx_dropped = 0;
};

class LinkReader {
  public:
    LinkReader();                                // in this thread's network namespace
    explicit LinkReader(int network_namespace);  // in that one, by its descriptor
    ~LinkReader();
    LinkReader(const LinkReader&) = delete;
    LinkReader& operator=(const LinkReader&) = delete;

    // nullopt: no such interface, or nobody to ask.
    [[nodiscard]] std::optional<LinkFacts> read(const std::string& interface) noexcept;
    // The interface had no link at some moment since the last call, however short; true as well when too much happened
    // to be told.
    [[nodiscard]] bool was_away(const std::string& interface) noexcept;

  private:
    int fd_ = -1;      // questions and answers
    int events_ = -1;  // what happens to any interface
    std::uint32_t sequence_ = 0;
};

// Whether there is a link is known of no interface that can't be asked.
inline bool has_link(const std::optional<LinkFacts>& facts) noexcept { return !facts || facts->link; }

}  // namespace cachewire::port
