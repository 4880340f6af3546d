// SPDX-License-Identifier: BSD-3-Clause
#include "route/group.h"

#include <cassert>
#include <cmath>

namespace cachewire::route {

namespace {

constexpr unsigned kNobody = ~0u;

// Buckets for each member in use, by its weight: the largest remainders get what is left over, and everybody one.
std::vector<unsigned> shares(const std::vector<Member>& members, const std::vector<bool>& used) {
    std::uint64_t sum = 0;
    for (std::size_t m = 0; m < members.size(); ++m) sum += used[m] ? members[m].weight : 0;
    std::vector<unsigned> out(members.size(), 0);
    std::vector<std::pair<std::uint64_t, std::size_t>> remainders;
    unsigned left = Group::kBuckets;
    for (std::size_t m = 0; m < members.size(); ++m) {
        if (!used[m]) continue;
        const std::uint64_t exact = std::uint64_t{Group::kBuckets} * members[m].weight;
        out[m] = static_cast<unsigned>(exact / sum);
        left -= out[m];
        remainders.emplace_back(exact % sum, m);
    }
    std::stable_sort(remainders.begin(), remainders.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t i = 0; left > 0; ++i, --left) ++out[remainders[i].second];
    return out;
}

// How much a member wants a bucket: rendezvous hashing, so that groups with common members agree on most buckets.
double liking(std::uint16_t next_hop, unsigned weight, unsigned bucket) {
    std::uint64_t x = (std::uint64_t{next_hop} << 32 | bucket) + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;  // splitmix64
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    const double u = (static_cast<double>(x >> 11) + 0.5) * 0x1p-53;
    return -static_cast<double>(weight) / std::log(u);
}

}  // namespace

Group::Group(std::vector<Member> members, const Group* before) : members_(std::move(members)) {
    assert(!members_.empty() && members_.size() <= kBuckets);
    std::vector<bool> used(members_.size());
    for (std::size_t m = 0; m < members_.size(); ++m) used[m] = members_[m].up;
    if (std::none_of(used.begin(), used.end(), [](bool up) { return up; })) used.assign(members_.size(), true);
    const std::vector<unsigned> share = shares(members_, used);

    std::array<unsigned, kBuckets> owner;
    owner.fill(kNobody);
    std::vector<unsigned> have(members_.size(), 0);
    if (before != nullptr) {
        for (unsigned b = 0; b < kBuckets; ++b) {
            for (unsigned m = 0; m < members_.size(); ++m) {
                if (!used[m] || members_[m].next_hop != before->buckets_[b]) continue;
                owner[b] = m;
                ++have[m];
            }
        }
    }
    const auto give = [&](unsigned b) {
        double best = -1;
        for (unsigned m = 0; m < members_.size(); ++m) {
            if (!used[m] || have[m] >= share[m]) continue;
            const double likes = liking(members_[m].next_hop, members_[m].weight, b);
            if (likes <= best) continue;
            best = likes;
            owner[b] = m;
        }
        if (owner[b] != kNobody) ++have[owner[b]];
    };
    for (unsigned b = 0; b < kBuckets; ++b)
        if (owner[b] == kNobody) give(b);
    // Only who is new or has come back takes from those with more than their share: after a mere loss a share may have
    // been rounded down, and that alone moves nothing.
    bool joined = false;
    for (unsigned m = 0; m < members_.size(); ++m)
        joined |= used[m] && before != nullptr && !before->has(members_[m].next_hop);
    for (unsigned b = 0; joined && b < kBuckets; ++b) {
        const unsigned m = owner[b];
        if (have[m] <= share[m]) continue;
        --have[m];
        owner[b] = kNobody;
        give(b);
    }
    for (unsigned b = 0; b < kBuckets; ++b) buckets_[b] = members_[owner[b]].next_hop;
    for (std::size_t m = 0; m < members_.size(); ++m)
        if (used[m]) live_.push_back(members_[m].next_hop);
}

}  // namespace cachewire::route
