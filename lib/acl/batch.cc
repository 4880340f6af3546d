// SPDX-License-Identifier: BSD-3-Clause
#include "acl/batch.h"

#include <algorithm>
#include <utility>

namespace cachewire::acl {

// Moves the keys of the list at `begin` to the front of the rest; returns their end.
unsigned Batch::gather_list(unsigned begin) noexcept {
    unsigned end = begin + 1;
    for (unsigned k = end; k < size_; ++k) {
        if (lists_[k] != lists_[begin]) continue;
        std::swap(lists_[k], lists_[end]);
        std::swap(keys_[k], keys_[end]);
        std::swap(tags_[k], tags_[end]);
        ++end;
    }
    return end;
}

void Batch::classify() noexcept {
    for (unsigned begin = 0; begin < size_;) {
        const unsigned end = gather_list(begin);
        const std::span verdicts(verdicts_.data() + begin, end - begin);
        if (lists_[begin] == nullptr) {
            std::fill(verdicts.begin(), verdicts.end(), Verdict{kDefaultRule, Action::permit});
        } else {
            lists_[begin]->classify({keys_.data() + begin, end - begin}, verdicts);
        }
        begin = end;
    }
}

}  // namespace cachewire::acl
