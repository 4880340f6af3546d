#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What a worker hands to the slow path (control::SlowPath, on the main lcore) and gets back. Two bounded queues a
// worker, no lock and no wake-up: the slow path polls, and the worker looks at one line an iteration.
//
//   worker --PuntRecord--> slow path     burst.punt(lane, reason); stages/punt.h does the rest once a burst
//   slow path --Return--> worker         Worker::take_returns, before it receives
//
// What the ledger says is the worker's alone, and is decided when the packet leaves the burst:
//   dropped   the packet ends here, under its drop reason; its bytes go on as what an ICMP error or RST quotes
//   punted    it was for us: ARP, neighbour discovery, an echo request, what the kernel's twin takes
//   held      it waits for its next hop's MAC address and comes back, to be sent or to be dropped as no_neighbor
// A packet over its class's rate is dropped under its own reason; one that finds the queue full as `punt_full`.
#include <array>
#include <atomic>
#include <cstdint>

#include "base/cache_line.h"
#include "base/counter.h"
#include "base/spsc_ring.h"
#include "pipeline/drop_reason.h"

struct rte_mbuf;

namespace cachewire::pipeline {

enum class PuntFate : std::uint8_t { dropped, punted, held };

// Each class has its own rate for each port that the packets came in by, so that a storm of one kind takes nothing from
// the others. Answers to our own questions come to our own MAC address: no broadcast storm keeps them out.
// The kernel_ ones go to the twins, at rates of the configuration's: one kernel takes a tenant's, by whichever port and
// worker they come, so those rates are each tenant's (KernelMeters).
enum class PuntClass : std::uint8_t {
    resolve_group,
    resolve_own,
    local,
    no_neighbor,
    error,
    kernel_bgp,
    kernel_ospf,
    kernel_bfd,
    kernel_other
};
inline constexpr std::size_t kPuntClasses = 9;
inline constexpr std::size_t kFirstKernelClass = 5;
inline constexpr std::size_t kKernelClasses = kPuntClasses - kFirstKernelClass;

struct PuntRate {
    std::uint32_t per_second;
    std::uint32_t burst;
};
inline constexpr std::array<PuntRate, kFirstKernelClass> kPuntRates = {{
    {2000, 256},   // resolve_group
    {2000, 256},   // resolve_own
    {10000, 256},  // local
    {2000, 256},   // no_neighbor
    {1000, 100},   // error: as many ICMP errors a second leave for what came in by one port (RFC 1812 4.3.2.8)
}};

struct PuntInterval {
    std::uint64_t tsc = 0;  // 0: everything is admitted
    std::uint32_t burst = 1;
};

// clang-format off
#define CACHEWIRE_PUNT_REASONS(X)                                                             \
    /* name          fate      class          drop reason where it is not taken           */ \
    X(arp,           punted,   resolve_group, arp)           \
    X(nd,            punted,   resolve_group, nd)            \
    X(echo,          punted,   local,         local)         \
    X(no_neighbor,   held,     no_neighbor,   no_neighbor)   \
    X(local,         dropped,  error,         local)         \
    X(no_route,      dropped,  error,         no_route)      \
    X(ttl_exceeded,  dropped,  error,         ttl_exceeded)  \
    X(mtu_exceeded,  dropped,  error,         mtu_exceeded)  \
    X(reject,        dropped,  error,         acl_deny)      \
    X(kernel_bgp,    punted,   kernel_bgp,    kernel_rate)    \
    X(kernel_ospf,   punted,   kernel_ospf,   kernel_rate)    \
    X(kernel_bfd,    punted,   kernel_bfd,    kernel_rate)    \
    X(kernel_other,  punted,   kernel_other,  kernel_rate)
// clang-format on

enum class PuntReason : std::uint8_t {
#define X(name, fate, klass, drop) name,
    CACHEWIRE_PUNT_REASONS(X)
#undef X
};
#define X(name, fate, klass, drop) +1
inline constexpr std::size_t kPuntReasons = 0 CACHEWIRE_PUNT_REASONS(X);
#undef X

struct PuntTraits {
    const char* name;
    PuntFate fate;
    PuntClass klass;
    DropReason drop;
};
inline constexpr std::array<PuntTraits, kPuntReasons> kPuntTraits = {{
#define X(name, fate, klass, drop) {#name, PuntFate::fate, PuntClass::klass, DropReason::drop},
    CACHEWIRE_PUNT_REASONS(X)
#undef X
}};
constexpr const PuntTraits& traits_of(PuntReason reason) noexcept {
    return kPuntTraits[static_cast<std::size_t>(reason)];
}

// worker: writes, slow path: reads and owns the mbuf from then on. Offsets are from the frame's start, as the parser
// found them; of ARP and ND only what names the interface, and l3_offset.
struct PuntRecord {
    rte_mbuf* mbuf = nullptr;
    PuntReason reason = PuntReason::arp;
    DropReason drop = DropReason::arp;
    bool ip6 = false;
    std::uint16_t tenant = 0;     // slot
    std::uint16_t interface = 0;  // that it came in by
    std::uint16_t port = 0;
    std::uint16_t next_hop = 0;
    std::uint16_t l3_offset = 0;
    std::uint16_t l3_length = 0;
    std::uint16_t l4_offset = 0;  // 0: none
};
static_assert(sizeof(PuntRecord) <= 32);

enum class ReturnKind : std::uint8_t {
    transmit,  // a whole frame of ours for `port`: originated
    retry,     // held no longer: takes the pipeline again, as received by `port`
    drop,      // held no longer: dropped under `drop` of `tenant`; the mbuf may be null
};

struct Return {
    rte_mbuf* mbuf = nullptr;
    ReturnKind kind = ReturnKind::transmit;
    DropReason drop = DropReason::no_neighbor;
    std::uint16_t tenant = 0;
    std::uint16_t port = 0;
};
static_assert(sizeof(Return) == 16);

// A token bucket as one number, the time at which it will be full again (ITU-T I.371's virtual scheduling). Zero-filled
// is full; an interval of 0 admits everything.
class Meter {
  public:
    bool admit(std::uint64_t now, std::uint64_t interval, std::uint64_t burst) noexcept {
        const std::uint64_t full_at = full_at_ < now ? now : full_at_;
        if (full_at - now > interval * (burst - 1)) return false;
        full_at_ = full_at + interval;
        return true;
    }

  private:
    std::uint64_t full_at_ = 0;
};

// The same for several workers. One compare-and-swap a packet that is admitted, so at most the rate; what is refused
// writes nothing, so a flood moves no line. No number but this one has to agree with anything: all is relaxed.
class SharedMeter {
  public:
    bool admit(std::uint64_t now, std::uint64_t interval, std::uint64_t burst) noexcept {
        std::uint64_t before = full_at_.load(std::memory_order_relaxed), full_at;
        do {
            full_at = before < now ? now : before;
            if (full_at - now > interval * (burst - 1)) return false;
        } while (!full_at_.compare_exchange_weak(before, full_at + interval, std::memory_order_relaxed));
        return true;
    }

  private:
    std::atomic<std::uint64_t> full_at_{0};
};

// By tenant slot. Written by all workers, off the hot path; a line a tenant, so that one's flood is not another's miss.
struct alignas(base::kCacheLine) TenantKernelMeters {
    std::array<SharedMeter, kKernelClasses> classes;
};
static_assert(sizeof(TenantKernelMeters) == base::kCacheLine);

// worker: rw; telemetry: ro
struct PuntCounters {
    std::array<base::Counter, kPuntReasons> taken, limited, full;
};

inline constexpr std::uint32_t kPuntSlots = 1024;
inline constexpr std::uint32_t kReturnSlots = 1024;
using PuntRing = base::SpscRing<PuntRecord, kPuntSlots>;
using ReturnRing = base::SpscRing<Return, kReturnSlots>;

}  // namespace cachewire::pipeline
