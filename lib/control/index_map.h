#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Name -> index that stays over reloads. Sessions and per-worker state hold indices, so one that was given away goes to
// no other name while anybody may hold it: release() takes the name away, and reuse_released() says that nobody does
// any more. Where nothing is released, running out is an error that asks for a restart.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace cachewire::control {

template <class Key = std::string>
class IndexMap {
  public:
    IndexMap(std::string kind, std::uint32_t first, std::uint32_t limit)
        : kind_(std::move(kind)), next_(first), limit_(limit) {}

    std::uint16_t get(const Key& key) {
        if (const auto it = indices_.find(key); it != indices_.end()) return it->second;
        if (next_ >= limit_ && !free_.empty()) {
            const std::uint16_t index = free_.back();
            free_.pop_back();
            return indices_[key] = index;
        }
        if (next_ >= limit_)
            throw base::MachineError("out of " + kind_ + " indices (" + std::to_string(limit_) +
                                     " since start): restart cachewire");
        return indices_[key] = static_cast<std::uint16_t>(next_++);
    }
    [[nodiscard]] std::optional<std::uint16_t> find(const Key& key) const {
        const auto it = indices_.find(key);
        return it == indices_.end() ? std::nullopt : std::optional(it->second);
    }
    void release(const Key& key) {
        const auto it = indices_.find(key);
        if (it == indices_.end()) return;
        released_.push_back(it->second);
        indices_.erase(it);
    }
    void reuse_released() {
        free_.insert(free_.end(), released_.begin(), released_.end());
        released_.clear();
    }
    [[nodiscard]] std::size_t left() const noexcept { return limit_ - next_ + free_.size(); }
    [[nodiscard]] std::uint32_t end() const noexcept { return next_; }
    [[nodiscard]] const std::map<Key, std::uint16_t>& all() const noexcept { return indices_; }

  private:
    std::string kind_;
    std::uint32_t next_, limit_;
    std::map<Key, std::uint16_t> indices_;
    std::vector<std::uint16_t> released_, free_;
};

}  // namespace cachewire::control
