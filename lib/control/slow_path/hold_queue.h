#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Packets that wait for a neighbor's MAC address: few for each, few in all, the oldest goes when there is no room
// (RFC 1122 2.3.2.2 asks for the latest one at least). Owns nothing: whoever takes one out sends or frees it.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "control/slow_path/neighbor_table.h"
#include "pipeline/punt.h"

namespace cachewire::control {

struct Held {
    pipeline::PuntRecord packet;
    unsigned worker = 0;
    bool own = false;  // of our making: begins with its IP header, and no ledger holds it yet
};

class HoldQueue {
  public:
    static constexpr std::size_t kEach = 8;
    static constexpr std::size_t kInAll = 512;

    // What had to go for it.
    std::optional<Held> push(const NeighborKey& key, const Held& held) {
        std::optional<Held> gone;
        auto& queue = queues_[key];
        if (queue.size() == kEach) {
            gone = queue.front();
            queue.pop_front();
            --size_;
        } else if (size_ == kInAll) {
            if (queue.empty()) queues_.erase(key);
            return held;
        }
        queue.push_back(held);
        ++size_;
        return gone;
    }
    std::vector<Held> take(const NeighborKey& key) {
        const auto queue = queues_.find(key);
        if (queue == queues_.end()) return {};
        std::vector<Held> all(queue->second.begin(), queue->second.end());
        size_ -= all.size();
        queues_.erase(queue);
        return all;
    }
    std::vector<Held> take_all() {
        std::vector<Held> all;
        for (const auto& [key, queue] : queues_) all.insert(all.end(), queue.begin(), queue.end());
        queues_.clear();
        size_ = 0;
        return all;
    }
    [[nodiscard]] bool has(const NeighborKey& key) const { return queues_.contains(key); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

  private:
    std::map<NeighborKey, std::deque<Held>> queues_;
    std::size_t size_ = 0;
};

}  // namespace cachewire::control
