// SPDX-License-Identifier: BSD-3-Clause
#include "session/fragments.h"

#include <algorithm>
#include <bit>

namespace cachewire::session {

FragmentTable::FragmentTable(std::size_t entries, std::uint64_t timeout_cycles)
    : sets_(std::bit_ceil(std::max(entries, kWays)) / kWays), timeout_cycles_(timeout_cycles) {}

std::size_t FragmentTable::set_of(std::uint32_t id, std::uint32_t hash) const noexcept {
    const std::uint64_t mixed = (hash ^ std::uint64_t{id} << 16) * 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(mixed >> 32) & (sets_.size() - 1);
}

bool FragmentTable::is_of(const Entry& entry, const net::FlowKey& key, std::uint32_t id) noexcept {
    return entry.used && entry.id == id && entry.tenant == key.tenant && entry.proto == key.proto &&
           entry.src == key.src && entry.dst == key.dst;
}

void FragmentTable::remember(const net::FlowKey& key, std::uint32_t id, std::uint32_t hash, const FirstFragment& first,
                             std::uint64_t now_tsc) noexcept {
    Set& set = sets_[set_of(id, hash)];
    Entry* place = &set[0];
    for (Entry& entry : set) {
        if (is_of(entry, key, id)) {
            place = &entry;
            break;
        }
        if (!place->used) continue;
        if (!entry.used || entry.since_tsc < place->since_tsc) place = &entry;
    }
    *place = {key.src, key.dst, id, key.tenant, key.proto, true, now_tsc, first};
}

const FirstFragment* FragmentTable::find(const net::FlowKey& key, std::uint32_t id, std::uint32_t hash,
                                         std::uint64_t now_tsc) const noexcept {
    for (const Entry& entry : sets_[set_of(id, hash)]) {
        if (!is_of(entry, key, id)) continue;
        return now_tsc - entry.since_tsc <= timeout_cycles_ ? &entry.first : nullptr;
    }
    return nullptr;
}

}  // namespace cachewire::session
