#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What cwctl has changed at run time and no file says: over reloads, until it is taken back or its time is over.
// `memoize` stands in SnapshotBuilder. Control thread, under the lock that telemetry takes too.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "control/snapshot_builder.h"
#include "net/prefix.h"

namespace cachewire::control {

class Overrides {
  public:
    // A packet of a tenant with blocks is held against all of them.
    static constexpr std::size_t kMaxBlocks = 64;  // of a tenant

    struct Block {
        std::string tenant;  // it may go and come back
        net::Prefix prefix;
        std::uint64_t until_ms;
    };

    // One that stands already gets the new time. False: the tenant has kMaxBlocks.
    bool block(const Block& block);
    // False: there is none.
    bool unblock(const std::string& tenant, const net::Prefix& prefix);
    // True: some ended.
    bool expire(std::uint64_t now_ms);
    [[nodiscard]] const std::vector<Block>& blocks() const noexcept { return blocks_; }
    void set_blocks(std::vector<Block> blocks) { blocks_ = std::move(blocks); }
    [[nodiscard]] SnapshotBuilder::Blocks by_tenant() const;

    // Back at what it was at the start it is no override any more.
    void set_log_level(base::LogLevel level);
    [[nodiscard]] std::optional<base::LogLevel> log_level() const noexcept { return log_level_; }

  private:
    std::vector<Block> blocks_;
    std::optional<base::LogLevel> log_level_;
    std::optional<base::LogLevel> first_log_level_;
};

}  // namespace cachewire::control
