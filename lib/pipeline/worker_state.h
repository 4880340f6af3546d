#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Everything one worker writes, allocated on its socket and passed by reference: no thread_local, no globals, one
// writer per line. Telemetry reads the counters (relaxed) and the published ledger line; nothing else is shared.
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cache_line.h"
#include "base/counter.h"
#include "base/seq_lock.h"
#include "pipeline/burst.h"
#include "pipeline/handoff.h"
#include "pipeline/mbuf_layout.h"
#include "pipeline/punt.h"
#include "pipeline/queue_share.h"
#include "pipeline/scheduler_feed.h"
#include "pipeline/snapshot.h"
#include "port/tx_buffer.h"
#include "qos/policer.h"
#include "session/fragments.h"
#include "session/outcome.h"
#include "session/rule_counters.h"
#include "session/table.h"

namespace cachewire::pipeline {

// The names that /cachewire/stage/stats uses, in the packet's order. lb is filled by a later stage.
enum class StageId : std::uint8_t { rx, parse, session, acl, lb, route, qos, tx };
inline constexpr std::size_t kStages = 8;
inline constexpr std::array<const char*, kStages> kStageNames = {"rx", "parse", "session", "acl",
                                                                 "lb", "route", "qos",     "tx"};

// worker: rw; telemetry: ro
struct alignas(base::kCacheLine) StageCounters {
    base::Counter packets, bursts, cycles;
};

// worker: rw; telemetry: ro. `packets` and `bytes` are L2 without FCS.
struct alignas(base::kCacheLine) PortCounters {
    base::Counter rx_packets, rx_bytes, tx_packets, tx_bytes, tx_dropped, rx_oversize;
};

// worker: rw; telemetry: ro. By tenant slot; slot 0 counts what has no tenant.
struct alignas(base::kCacheLine) TenantCounters {
    std::array<base::Counter, kDropReasons> drops;
    base::Counter leaked_out, leaked_in;  // packets that left by another tenant's interface; replies that came by one
};

// worker: rw; telemetry: ro
struct alignas(base::kCacheLine) LoopCounters {
    base::Counter iterations, busy_cycles, total_cycles, longest_gap_cycles, rests;
};

// worker: rw; telemetry: ro. Of packets of tenants with sessions: each counts in exactly one of the first eight.
struct MemoCounters {
    base::Counter hits;    // verdict and next hop from the memo, or the direction's first next hop
    base::Counter misses;  // no session
    base::Counter stale;   // verdict or next hop derived anew, because policy or routes have changed
    base::Counter bypass_fragment, bypass_icmp_error, bypass_options;
    base::Counter bypass_outcome_full;  // the session has no memo, because no outcome index was left
    base::Counter bypass_other;  // unknown protocol, a packet that a stateless list judges alone, memo switched off
    base::Counter shadow_checked, shadow_mismatch;
};

// rx + originated = tx + dropped + punted + consumed + held, at every burst boundary.
struct LedgerLine {
    std::uint64_t rx = 0, tx = 0, dropped = 0, punted = 0, consumed = 0, originated = 0, held = 0;
};

struct RxQueue {
    std::uint16_t port;    // index in the snapshot
    std::uint16_t ethdev;  // DPDK port id
    std::uint16_t queue;
};

struct WorkerState {
    unsigned index = 0;  // 0, 1, ... among the workers: whose sessions are its own, and its TX queues
    unsigned lcore = 0;
    int socket = 0;
    bool adaptive_idle = false;           // sleeps for some microseconds when nothing comes
    std::uint64_t now_tsc = 0;            // taken once per burst
    std::uint64_t last_tsc = 0;           // end of the last stage that was counted; a burst begins with now_tsc
    RxQueue rx_queue{};                   // the queue that the RX stage reads now
    std::uint16_t rx_wanted = kMaxLanes;  // and how much of it, at most
    LedgerLine ledger;                    // worker only; published below
    Burst burst;
    std::unique_ptr<session::Table> sessions;  // never null
    session::OutcomeTable outcomes;
    session::RuleCounters rules;
    session::FragmentTable fragments;
    std::uint32_t shadow_hits = 0;                // memo hits since the last one that was checked
    std::array<QueueShare, kMaxPorts> rx_shares;  // by port, of its queue here
    qos::Policers policers;                       // by attachment, fixed size: zero-filled is a full bucket
    std::array<port::TxBuffer, kMaxPorts> tx;     // by snapshot port

    // By port that the packet came in by, and class. Intervals in TSC cycles; 0, as before make_worker_state: no limit.
    std::array<std::array<Meter, kFirstKernelClass>, kMaxPorts> punt_meters{};
    std::array<std::uint64_t, kFirstKernelClass> punt_intervals{};
    // kMaxTenants, all workers' together; null, as before make_worker_state: no limit. The rates are the snapshot's.
    std::shared_ptr<TenantKernelMeters[]> kernel_meters;
    PuntRing to_slow_path;
    ReturnRing from_slow_path;
    Handoff handoff;       // to and from the other workers
    SchedulerFeeds feeds;  // to the ports' schedulers

    std::array<StageCounters, kStages> stages;
    std::array<PortCounters, kMaxPorts> ports;
    std::vector<TenantCounters> tenants;  // kMaxTenants
    // Packets that a full TX buffer refused, by port and class; what goes out touches none of it.
    std::array<std::array<base::Counter, kMaxClasses>, kMaxPorts> class_tx_dropped{};
    LoopCounters loop;
    alignas(base::kCacheLine) MemoCounters memo;
    alignas(base::kCacheLine) PuntCounters punts;
    HandoffCounters handoff_counters;
    base::SeqLock<LedgerLine> published_ledger;

    // `pipeline.metadata: mbuf_dynfield`: what is received is in here and not in `burst`. Null otherwise.
    std::unique_ptr<MbufBurst> mbuf_burst;
};

}  // namespace cachewire::pipeline
