// SPDX-License-Identifier: BSD-3-Clause
#include "control/memo_status.h"

#include "base/log.h"
#include "control/runtime.h"
#include "telemetry/page.h"

namespace cachewire::control {

namespace {

using telemetry::BadQuery;
using telemetry::Json;
using View = Runtime::View;
using pipeline::MemoCounters;

struct Named {
    const char* name;
    base::Counter MemoCounters::*counter;
};
constexpr Named kCounters[] = {
    {"hits", &MemoCounters::hits},
    {"misses", &MemoCounters::misses},
    {"stale", &MemoCounters::stale},
    {"bypass_fragment", &MemoCounters::bypass_fragment},
    {"bypass_icmp_error", &MemoCounters::bypass_icmp_error},
    {"bypass_options", &MemoCounters::bypass_options},
    {"bypass_outcome_full", &MemoCounters::bypass_outcome_full},
    {"bypass_other", &MemoCounters::bypass_other},
    {"shadow_checked", &MemoCounters::shadow_checked},
    {"shadow_mismatch", &MemoCounters::shadow_mismatch},
};

Json memo_stats(const View& v) {
    Json answer = Json::object();
    for (const auto& [name, counter] : kCounters) {
        std::uint64_t sum = 0;
        for (const auto& worker : v.workers.all()) sum += (worker->state().memo.*counter).read();
        answer[name] = sum;
    }
    answer["alarm"] = answer["shadow_mismatch"] != 0u ? 1u : 0u;
    answer["memoize"] = v.snapshot.memoize ? 1u : 0u;
    answer["shadow_check"] = std::uint64_t{v.snapshot.shadow_check};
    return answer;
}

}  // namespace

void MemoWatch::look(const Workers& workers) {
    logged_.resize(workers.all().size());
    for (std::size_t i = 0; i < logged_.size(); ++i) {
        const pipeline::WorkerState& state = workers.all()[i]->state();
        const std::uint64_t mismatches = state.memo.shadow_mismatch.read();
        if (mismatches == logged_[i]) continue;
        base::log_error(
            "memo: {} of {} checked hits on lcore {} differed from the slow path, {} of them since the last message; "
            "`cwctl memoize off` keeps packets right",
            mismatches, state.memo.shadow_checked.read(), state.lcore, mismatches - logged_[i]);
        logged_[i] = mismatches;
    }
}

void add_memo_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime) {
    endpoints.add("/cachewire/memo/stats", "What the memo answered, what bypassed it, and whether checks differed.",
                  [&runtime](std::string_view parameters) {
                      if (!parameters.empty()) throw BadQuery("takes no parameters");
                      return runtime.with_view(memo_stats);
                  });
}

}  // namespace cachewire::control
