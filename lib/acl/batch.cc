// SPDX-License-Identifier: BSD-3-Clause
#include "acl/batch.h"

#include <utility>

namespace cachewire::acl {

unsigned Batch::gather_list(Part& part, unsigned begin) noexcept {
    unsigned end = begin + 1;
    for (unsigned k = end; k < part.size; ++k) {
        if (part.lists[k] != part.lists[begin]) continue;
        std::swap(part.lists[k], part.lists[end]);
        std::swap(part.keys[k], part.keys[end]);
        std::swap(part.tags[k], part.tags[end]);
        ++end;
    }
    return end;
}

}  // namespace cachewire::acl
