#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Keys of a burst whose lists and families differ from key to key: each list classifies its keys of a family in one
// bulk call. On the stack of the caller, for one use.
#include <array>
#include <cassert>
#include <cstdint>

#include "acl/classifier.h"

namespace cachewire::acl {

class Batch {
  public:
    static constexpr unsigned kCapacity = kMaxBulk;

    // `list` null: every packet is permitted, as by a default. `tag` comes back with the verdict.
    void add(const Classifier* list, const net::FlowKey* key, std::uint8_t tag) noexcept {
        Part& part = parts_[key->is_v4() ? 0 : 1];
        assert(part.size < kCapacity);
        part.lists[part.size] = list;
        part.keys[part.size] = reinterpret_cast<const std::uint8_t*>(key);
        part.tags[part.size++] = tag;
        part.is_mixed |= list != part.lists[0];
    }

    // use(tag, verdict) for each key, in any order. Once, after the last add().
    template <class Use>
    void judge(Use&& use) noexcept {
        for (unsigned n = 0; n < 2; ++n) {  // one loop, so that `use` stands in the code once
            Part& part = parts_[n];
            for (unsigned begin = 0; begin < part.size;) {
                const unsigned end = part.is_mixed ? gather_list(part, begin) : part.size;
                const Classifier* list = part.lists[begin];
                std::array<std::uint32_t, kCapacity> found;
                if (list != nullptr) list->find(kFamilies[n], part.keys.data() + begin, found.data(), end - begin);
                for (unsigned k = begin; k < end; ++k)
                    use(part.tags[k], list == nullptr ? kPermitted : list->verdict(found[k - begin]));
                begin = end;
            }
        }
    }

  private:
    static constexpr std::array<net::Family, 2> kFamilies = {net::Family::ip4, net::Family::ip6};
    static constexpr Verdict kPermitted{.action = Action::permit};

    struct Part {
        std::array<const Classifier*, kCapacity> lists;
        std::array<const std::uint8_t*, kCapacity> keys;
        std::array<std::uint8_t, kCapacity> tags;
        unsigned size = 0;
        bool is_mixed = false;  // there is a second list
    };
    // Moves the keys of the list at `begin` to the front of the rest; returns their end.
    static unsigned gather_list(Part& part, unsigned begin) noexcept;

    std::array<Part, 2> parts_;  // IPv4, IPv6
};

}  // namespace cachewire::acl
