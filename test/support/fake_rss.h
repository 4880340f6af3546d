#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A device's RSS that a test shapes: what it offers, what it refuses, and what it makes of what it is told.
#include <algorithm>
#include <vector>

#include <rte_ethdev.h>

#include "port/rss.h"

namespace cachewire::test {

class FakeRss final : public port::RssDevice {
  public:
    static constexpr std::uint64_t kAll = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP;

    explicit FakeRss(const Offer& offer) : offered(offer) {}
    [[nodiscard]] Offer offer() const override { return offered; }
    int set_hash(const Hash& hash) override {
        if (hash_rc == 0) kept = hash;
        if (own_key)
            for (std::size_t i = 1; i < kept.key.size(); i += 2) kept.key[i] ^= 0x10;
        return hash_rc;
    }
    int get_hash(Hash& hash) const override {
        if (get_hash_rc == 0) hash = {kept.key, kept.fields & kept_fields};
        return get_hash_rc;
    }
    int set_table(std::span<const std::uint16_t> queues) override {
        if (table_rc == 0) table.assign(queues.begin(), queues.end());
        if (own_table)
            for (std::size_t i = 0; i < table.size(); ++i)
                table[i] = static_cast<std::uint16_t>(i / 2 % offered.queues);
        return table_rc;
    }
    int get_table(std::span<std::uint16_t> queues) const override {
        if (get_table_rc == 0) std::copy(table.begin(), table.end(), queues.begin());
        return get_table_rc;
    }

    Offer offered;
    bool own_key = false, own_table = false;  // keeps others than it is told
    std::uint64_t kept_fields = UINT64_MAX;
    int hash_rc = 0, get_hash_rc = 0, table_rc = 0, get_table_rc = 0;
    Hash kept;
    std::vector<std::uint16_t> table;
};

}  // namespace cachewire::test
