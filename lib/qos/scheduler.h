#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Which packet a port sends next: strict classes in the order of their priority, then weighted ones by their shares,
// never faster than the port's rate. One lcore's alone; it knows neither mbufs nor devices, and the clock is the
// caller's.
//
// Strict: the lowest number that has a packet goes first, asked anew for every packet. Weighted: self-clocked fair
// queueing (Golestani, INFOCOM 1994): each queue has a virtual time that grows by bytes / weight, the least one goes,
// and one that was empty begins at the present. So shares hold to one frame, whatever the frames' sizes.
//
// Not rte_sched, which has the same classes: it looks for a higher class only when the present one is empty or out of
// credit, then lets small packets of a lower class use up what a longer one of a higher class waits for, and weights
// wrap where their least common multiple or cost x frame passes 8 and 16 bits (bench qos shows both beside ours).
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace cachewire::qos {

// A packet as it travels from a worker to its scheduler: what has to be known of it without a look at its mbuf.
struct Scheduled {
    void* packet = nullptr;
    std::uint32_t bytes = 0;  // of the frame, without FCS
    std::uint16_t tenant = 0;
    std::uint8_t traffic_class = 0;
};
static_assert(sizeof(Scheduled) == 16, "four to a cache line");

inline constexpr unsigned kStrictClasses = 12, kWeightedClasses = 4;

struct SchedulerConfig {
    struct Class {
        std::optional<unsigned> priority;  // below kStrictClasses, 0 first, each once
        unsigned weight = 0;               // without a priority: 1 to 1000
    };
    std::uint64_t rate_bps = 0;     // 8 kbit/s to 1 Tbit/s
    std::uint64_t burst_bytes = 0;  // 3076 to ten seconds at the rate; 0: a millisecond at the rate, 3076 at least
    bool whole_wire = false;        // padding to 60 bytes, FCS, preamble and gap count too
    std::vector<Class> classes;
};

class Scheduler {
  public:
    static constexpr unsigned kSlots = 1024;  // packets a queue: 120 ms of full frames at 100 Mbit/s

    // What is nobody's class: before and behind all of them.
    static constexpr unsigned kFirstQueue = 0;
    static constexpr unsigned kLastQueue = 1 + kStrictClasses + kWeightedClasses;
    static constexpr unsigned kQueues = kLastQueue + 1;

    // Throws std::invalid_argument for what SchedulerConfig doesn't allow.
    Scheduler(const SchedulerConfig& config, std::uint64_t tsc_hz);

    // Where packets of the n-th class go.
    [[nodiscard]] unsigned queue_of(std::size_t n) const noexcept { return queue_of_[n]; }

    // False: the queue is full, and the packet is still the caller's.
    bool enqueue(unsigned queue, const Scheduled& packet) noexcept;
    // As many as the rate lets go by now, at most out.size(). An lcore that comes late makes up for at most a burst.
    unsigned dequeue(std::uint64_t now_tsc, std::span<Scheduled> out) noexcept;
    // The next one whatever the rate says: to be dropped. Not while empty().
    Scheduled take() noexcept { return pop(choose()); }

    [[nodiscard]] bool empty() const noexcept { return active_ == 0; }
    [[nodiscard]] unsigned size(unsigned queue) const noexcept {
        return static_cast<std::uint16_t>(queues_[queue].put - queues_[queue].taken);
    }

  private:
    struct Queue {
        std::uint16_t put = 0, taken = 0;  // run on and are masked
        std::uint64_t virtual_time = 0;    // of a weighted one; wraps
        std::uint64_t per_byte = 0;        // 2^32 / weight
    };
    static_assert(kSlots <= 1u << 15 && (kSlots & (kSlots - 1)) == 0);

    [[nodiscard]] unsigned choose() const noexcept;
    Scheduled pop(unsigned queue) noexcept;
    void refill(std::uint64_t now_tsc) noexcept;
    [[nodiscard]] std::uint32_t wire_bytes(std::uint32_t bytes) const noexcept;

    std::uint32_t active_ = 0;  // a bit a queue that has packets
    bool whole_wire_;
    std::int64_t budget_ = 0;  // time not yet used, in 2^-20 cycles; a packet may overdraw it
    std::int64_t most_budget_;
    std::int64_t cycles_per_byte_;  // in 2^-20
    std::uint64_t last_tsc_ = 0;
    std::uint64_t virtual_now_ = 0;  // of the weighted queue that was served last
    std::array<Queue, kQueues> queues_{};
    std::unique_ptr<Scheduled[]> slots_;  // kSlots for each queue
    std::vector<unsigned> queue_of_;
};

}  // namespace cachewire::qos
