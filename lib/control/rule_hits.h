#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Hits by rule over all workers and over reloads. Each version of a list gets numbers of its own for its rules, because
// sessions go on holding those of the version that judged them. A rule that a new version still has takes along what
// it has counted; an old version's numbers are read until no session holds them, then summed up and used again.
//
// On the control thread; of() also under the lock that readers of the registry take.
#include <cstdint>
#include <memory>
#include <vector>

#include "acl/rule.h"
#include "session/rule_counters.h"

namespace cachewire::control {

// Of one version of one list: `first` is its first rule's, `count - 1` further ones follow, the last is the default's.
struct RuleNumbers {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::shared_ptr<const void> in_snapshot = std::make_shared<int>(0);  // held by snapshots that name the numbers
};

struct RuleTotals {
    std::uint64_t packets = 0, bytes = 0, sessions = 0;
};

// What one list has counted. Vectors are by rule, the default last.
struct ListHits {
    struct Older {
        std::shared_ptr<const RuleNumbers> numbers;
        std::vector<std::uint32_t> was;  // by rule of the list as it is now: which one it was here, or kGone
    };
    static constexpr std::uint32_t kGone = 0xffffffff;

    std::shared_ptr<const RuleNumbers> numbers;  // null: all numbers are in use, and this version is not counted
    std::vector<Older> older;
    std::vector<RuleTotals> before;  // of versions whose numbers are used again
};

class RuleHits {
  public:
    // Before the worker runs. `counters` outlive this.
    void add_worker(session::RuleCounters& counters);
    // Of a list that is new or has changed. `hits` and `before` are its last version's, or null.
    std::shared_ptr<const ListHits> next(const ListHits* hits, const acl::List* before, const acl::List& now);
    [[nodiscard]] RuleTotals of(const ListHits& hits, std::uint32_t rule) const;

  private:
    std::shared_ptr<const RuleNumbers> take(std::uint32_t count);
    [[nodiscard]] bool is_over(const RuleNumbers& numbers) const;
    [[nodiscard]] RuleTotals sum(std::uint32_t number) const;
    void give_back_unused();

    std::vector<session::RuleCounters*> workers_;
    std::vector<std::shared_ptr<const RuleNumbers>> taken_;
    std::vector<bool> used_ = std::vector<bool>(session::RuleCounters::kMaxChunks);
};

}  // namespace cachewire::control
