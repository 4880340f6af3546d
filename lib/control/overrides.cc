// SPDX-License-Identifier: BSD-3-Clause
#include "control/overrides.h"

#include <algorithm>

namespace cachewire::control {

bool Overrides::block(const Block& block) {
    std::size_t of_tenant = 0;
    for (Block& known : blocks_) {
        if (known.tenant != block.tenant) continue;
        if (known.prefix == block.prefix) {
            known.until_ms = block.until_ms;
            return true;
        }
        ++of_tenant;
    }
    if (of_tenant == kMaxBlocks) return false;
    blocks_.push_back(block);
    return true;
}

bool Overrides::unblock(const std::string& tenant, const net::Prefix& prefix) {
    return std::erase_if(blocks_, [&](const Block& b) { return b.tenant == tenant && b.prefix == prefix; }) != 0;
}

bool Overrides::expire(std::uint64_t now_ms) {
    return std::erase_if(blocks_, [now_ms](const Block& block) { return block.until_ms <= now_ms; }) != 0;
}

SnapshotBuilder::Blocks Overrides::by_tenant() const {
    SnapshotBuilder::Blocks blocks;
    for (const Block& block : blocks_) blocks[block.tenant].push_back(block.prefix);
    return blocks;
}

void Overrides::set_log_level(base::LogLevel level) {
    if (!first_log_level_) first_log_level_ = base::log_level();
    base::set_log_level(level);
    log_level_ = level == *first_log_level_ ? std::nullopt : std::optional(level);
}

}  // namespace cachewire::control
