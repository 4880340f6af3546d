#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One list's verdicts for any number of keys, in bulk as a worker asks for them.
#include <algorithm>
#include <vector>

#include "acl/batch.h"

namespace cachewire::test {

inline std::vector<acl::Verdict> judge_all(const acl::Classifier& list, const std::vector<net::FlowKey>& keys) {
    std::vector<acl::Verdict> verdicts(keys.size());
    for (std::size_t at = 0; at < keys.size(); at += acl::Batch::kCapacity) {
        acl::Batch batch;
        const std::size_t n = std::min<std::size_t>(acl::Batch::kCapacity, keys.size() - at);
        for (std::size_t i = 0; i < n; ++i) batch.add(&list, &keys[at + i], static_cast<std::uint8_t>(i));
        batch.judge([&](auto i, const acl::Verdict& verdict) { verdicts[at + i] = verdict; });
    }
    return verdicts;
}

}  // namespace cachewire::test
