#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Questions about sessions that only their owner can answer. The control side posts one request into a worker's
// mailbox, the worker works on it once per iteration, a few entries at a time, and hands the answer back. No locks: one
// word says whose turn it is, and whose turn it is owns all else in the mailbox.
//
// post() is called by one control thread at a time (the caller's business), serve() by the owner of the table. A
// request that nobody waits for any more stays with the worker until it is done; until then the next one is refused.
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/cache_line.h"
#include "net/prefix.h"
#include "session/outcome.h"
#include "session/table.h"

namespace cachewire::session {

// In forward direction. What is not set fits any session.
struct Filter {
    std::optional<std::uint16_t> tenant{};
    std::optional<std::uint8_t> proto{};
    std::optional<net::Prefix> src{}, dst{};
    std::optional<std::uint16_t> src_port{}, dst_port{};
    std::uint16_t states = 0xffff;  // bit n: State n fits

    [[nodiscard]] bool matches(const HotEntry& entry) const noexcept;
};

// A copy of one session, counts complete.
struct SessionView {
    std::uint32_t index = kNone;
    HotEntry hot;
    ColdEntry cold;
    std::optional<Outcome> outcome;
    std::optional<net::FlowKey> companion;  // the reply's tuple, where it differs
    std::uint64_t age_cycles = 0;
    std::uint64_t idle_cycles = 0;

    // Both directions.
    [[nodiscard]] std::uint64_t packets() const noexcept { return cold.packets[0] + cold.packets[1]; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return cold.bytes[0] + cold.bytes[1]; }
};

enum class Weight : std::uint8_t { bytes, packets };

struct Request {
    enum class Kind : std::uint8_t { list, top, get, kill, flush };
    Kind kind = Kind::list;
    Filter filter{};                // all but get
    std::uint32_t cursor = 0;       // the same: the entry to begin at
    std::uint32_t max_views = 0;    // list, top: at most kMaxViews
    Weight weight = Weight::bytes;  // top: of those that fit, the heaviest
    net::FlowKey key{};             // get
    std::uint32_t hash = 0;         // get
};

class Mailbox {
  public:
    static constexpr std::uint32_t kMaxViews = 64;
    static constexpr std::uint32_t kEntriesATime = 32;
    // Whatever takes longer ends here and goes on at `next`, so that an answer always comes in time.
    static constexpr std::uint32_t kEntriesAPage = 1u << 20;

    struct Answer {
        std::array<SessionView, kMaxViews> views;
        std::uint32_t count = 0;     // of views
        std::uint32_t next = kNone;  // all but get: where to go on; kNone: that was all
        std::uint64_t killed = 0;
    };

    // Control side. False: the worker still has the last one.
    bool post(const Request& request) noexcept;
    // Valid once answered() and until the next post().
    [[nodiscard]] bool answered() const noexcept { return turn_.load(std::memory_order_acquire) == Turn::control; }
    [[nodiscard]] const Answer& answer() const noexcept { return answer_; }

    // Worker. One load of a line that nobody writes, when there is nothing to do.
    void serve(Table& table, OutcomeTable& outcomes, std::uint64_t now_tsc) noexcept {
        if (turn_.load(std::memory_order_acquire) == Turn::worker) [[unlikely]]
            work(table, outcomes, now_tsc);
    }

  private:
    // The release store of one side makes what it wrote visible to the other side's acquire load.
    enum class Turn : std::uint32_t { control, worker };

    void work(Table& table, OutcomeTable& outcomes, std::uint64_t now_tsc) noexcept;
    bool walk(Table& table, OutcomeTable& outcomes, std::uint64_t now_tsc) noexcept;
    void add_view(Table& table, const OutcomeTable& outcomes, std::uint32_t index, std::uint64_t now_tsc) noexcept;
    void weigh(const Table& table, std::uint32_t index) noexcept;

    alignas(base::kCacheLine) std::atomic<Turn> turn_{Turn::control};
    alignas(base::kCacheLine) Request request_;
    std::uint32_t cursor_ = 0;
    std::uint32_t looked_at_ = 0;
    // top: the heaviest so far, as a heap with the lightest of them in front. Sessions may end before the walk has come
    // round, so what is left of these becomes views at the end.
    struct Weighed {
        std::uint64_t weight;
        std::uint32_t index;
    };
    std::array<Weighed, kMaxViews> heaviest_;
    std::uint32_t heaviest_count_ = 0;
    Answer answer_;
};

}  // namespace cachewire::session
