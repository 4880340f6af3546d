#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A row of stages run over one burst as one inlined function. Packets and cycles are counted here, once per stage and
// burst, so that no stage carries instrumentation. A stage is
//
//   struct Parse {
//       static constexpr StageId kId = StageId::parse;
//       static constexpr FieldSet kReads = field::mbuf | field::in_port;
//       static constexpr FieldSet kWrites = field::key | ...;
//       template <class Burst>
//       static void process(WorkerState&, const Snapshot&, Burst&) noexcept;
//   };
//
// A row in which a stage reads what no earlier stage writes does not compile.
#include <cstdint>
#include <type_traits>

#include "base/clock.h"
#include "pipeline/stages/drop.h"
#include "pipeline/stages/punt.h"
#include "pipeline/worker_state.h"

namespace cachewire::pipeline {

using FieldSet = std::uint32_t;
namespace field {
inline constexpr FieldSet mbuf = 1 << 0;
inline constexpr FieldSet in_port = 1 << 1;
inline constexpr FieldSet frame_length = 1 << 2;
inline constexpr FieldSet offsets = 1 << 3;
inline constexpr FieldSet l3_length = 1 << 4;
inline constexpr FieldSet tenant = 1 << 5;
inline constexpr FieldSet key = 1 << 6;
inline constexpr FieldSet hash = 1 << 7;
inline constexpr FieldSet session = 1 << 8;
inline constexpr FieldSet verdict = 1 << 9;
inline constexpr FieldSet next_hop = 1 << 10;
inline constexpr FieldSet colour = 1 << 11;
inline constexpr FieldSet none = 0;
}  // namespace field

// `Given`: fields that are there before the first stage (tests start in the middle; Back starts after Front).
template <FieldSet Given, class... Stages>
consteval bool reads_are_written() {
    FieldSet have = Given;
    bool ok = true;
    ((ok = ok && (Stages::kReads & ~have) == 0, have |= Stages::kWrites), ...);
    return ok;
}

// A stage in two halves (Session, Install) has one name: the first half counts the packets, both count cycles.
template <class Stage, class... Row>
consteval bool is_second_half() {
    bool reached = false;
    bool named_before = false;
    ((reached = reached || std::is_same_v<Row, Stage>, named_before |= !reached && Row::kId == Stage::kId), ...);
    return named_before;
}

template <FieldSet Given, class... Stages>
struct PipelineAfter {
    static_assert(reads_are_written<Given, Stages...>(), "a stage reads a field that no earlier stage writes");
    static constexpr FieldSet kWrites = (Given | ... | Stages::kWrites);

    template <class Burst>
    static void run(WorkerState& worker, const Snapshot& snapshot, Burst& burst) noexcept {
        (step<Stages>(worker, snapshot, burst, worker.last_tsc), ...);
        stages::Punt::process(worker, snapshot, burst);  // before the drops: it makes some
        stages::Drop::process(worker, burst);
    }

  private:
    // The second half of a stage adds its cycles to the first one's packets.
    template <class Stage>
    static consteval bool continues() {
        return requires { requires Stage::kContinues; };
    }

    template <class Stage, class Burst>
    static void step(WorkerState& worker, const Snapshot& snapshot, Burst& burst, std::uint64_t& last) noexcept {
        const unsigned arriving = burst.size();
        Stage::process(worker, snapshot, burst);
        // A stage that begins a burst (RX) has none arriving: it handled what it produced.
        const unsigned handled = arriving != 0 ? arriving : burst.size();
        if (handled == 0) return;
        const std::uint64_t now = base::now_tsc();
        StageCounters& counters = worker.stages[static_cast<unsigned>(Stage::kId)];
        if constexpr (!is_second_half<Stage, Stages...>()) {
            counters.packets.add(handled);
            counters.bursts.add(1);
        }
        counters.cycles.add(now - last);
        last = now;
    }
};

template <class... Stages>
using Pipeline = PipelineAfter<field::none, Stages...>;

}  // namespace cachewire::pipeline
