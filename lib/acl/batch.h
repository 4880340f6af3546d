#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Keys of a burst whose lists differ from key to key: each list classifies its keys in one bulk call. On the stack of
// the caller, for one use.
#include <array>
#include <cassert>
#include <cstdint>

#include "acl/classifier.h"

namespace cachewire::acl {

class Batch {
  public:
    static constexpr unsigned kCapacity = 64;

    // `list` null: every packet is permitted, as by a default. `tag` comes back with the verdict.
    void add(const Classifier* list, const net::FlowKey* key, std::uint8_t tag) noexcept {
        assert(size_ < kCapacity);
        lists_[size_] = list;
        keys_[size_] = key;
        tags_[size_++] = tag;
    }

    // Once, after the last add(). Brings keys of one list together, so the order changes.
    void classify() noexcept;

    template <class Use>  // use(tag, verdict)
    void for_each(Use&& use) const noexcept {
        for (unsigned k = 0; k < size_; ++k) use(tags_[k], verdicts_[k]);
    }

  private:
    unsigned gather_list(unsigned begin) noexcept;

    std::array<const Classifier*, kCapacity> lists_;
    std::array<const net::FlowKey*, kCapacity> keys_;
    std::array<std::uint8_t, kCapacity> tags_;
    std::array<Verdict, kCapacity> verdicts_;
    unsigned size_ = 0;
};
static_assert(Batch::kCapacity <= kMaxBulk);

}  // namespace cachewire::acl
