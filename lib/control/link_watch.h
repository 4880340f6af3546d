#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Links of transparent pairs with `link_follow`, ten looks a second: the other side is taken down with the one that
// went, so that whoever stands behind it finds another way. Control thread only.
//
//   a up, b up --a goes--> b taken down --a is back--> b let up, and not looked at until it is up or kSettleMs are over
//
// A link that we took down says nothing of its own side; so where both sides go at once, the second is found out when
// the first one is back.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "control/ports.h"

namespace cachewire::control {

// One pair's part of it: pure. Says which side's link is to be changed.
class LinkPair {
  public:
    static constexpr std::uint64_t kSettleMs = 3000;
    struct Change {
        unsigned side;
        bool up;
    };
    // `links`: as read, nullopt: not known now.
    std::optional<Change> look(std::array<std::optional<bool>, 2> links, std::uint64_t now_ms);
    [[nodiscard]] std::optional<unsigned> taken_down() const noexcept { return taken_down_; }
    // The device can't, or was opened anew.
    void forget() noexcept { taken_down_.reset(); }

  private:
    std::optional<unsigned> taken_down_;
    std::array<std::optional<std::uint64_t>, 2> settles_ms_;  // until then a link that is down may be coming up
};

class LinkWatch {
  public:
    // The pairs from now on. Links of those that go are let up.
    void follow(std::span<const config::CrossConnect> pairs, const config::Config& config, Ports& ports);
    void look(Ports& ports, std::uint64_t now_ms);

  private:
    struct Followed {
        std::string name;
        std::array<std::string, 2> ports;
        LinkPair pair;
        bool complained = false;
    };
    void look_at(Followed& followed, Ports& ports, std::uint64_t now_ms);

    std::vector<Followed> followed_;
};

}  // namespace cachewire::control
