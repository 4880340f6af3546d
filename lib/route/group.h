#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// ECMP: several next hops behind one prefix, each with as many of the group's buckets as its weight says. A flow's hash
// picks a bucket, so a flow stays where it is while the buckets do; a session stays with its member even when they
// don't. Immutable; the control plane makes a new one when a member goes down or comes back, and moves no bucket that
// it doesn't have to: losing one of n members moves its own share and nothing else.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace cachewire::route {

struct Member {
    std::uint16_t next_hop = 0;  // index in the snapshot
    std::uint16_t weight = 1;
    bool up = true;
    friend bool operator==(const Member&, const Member&) = default;
};

class Group {
  public:
    static constexpr unsigned kBuckets = 1024;

    // `members`: 1 to kBuckets of them, whose weights add up to at most kBuckets. Where all are down all are used:
    // there is no better place to send to. `before`: the same group as it was, or null.
    Group(std::vector<Member> members, const Group* before);

    [[nodiscard]] std::uint16_t pick(std::uint32_t hash) const noexcept { return buckets_[bucket(hash)]; }
    // May a session that has this next hop keep it?
    [[nodiscard]] bool has(std::uint16_t next_hop) const noexcept {
        return std::find(live_.begin(), live_.end(), next_hop) != live_.end();
    }
    [[nodiscard]] const std::vector<Member>& members() const noexcept { return members_; }
    [[nodiscard]] const std::array<std::uint16_t, kBuckets>& buckets() const noexcept { return buckets_; }

    // Not the bits that pick the session's bucket and worker: a multiplication spreads all of them upwards.
    static unsigned bucket(std::uint32_t hash) noexcept { return hash * 0x9e3779b1u >> 22; }

  private:
    std::array<std::uint16_t, kBuckets> buckets_{};
    std::vector<std::uint16_t> live_;  // next hops in use
    std::vector<Member> members_;
};
static_assert(Group::kBuckets == 1u << (32 - 22));

}  // namespace cachewire::route
