#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One list compiled for bulk look-up: an rte_acl trie for each family, over the bytes of net::FlowKey as they are.
// Immutable once built, so any number of workers read it; owned by the control plane through shared_ptr, freed after
// the grace period. Tenants that share a list share its classifier.
#include <memory>
#include <span>
#include <string>

#include "acl/rule.h"

namespace cachewire::acl {

inline constexpr std::size_t kMaxBulk = 256;

class Classifier {
  public:
    // Builds both tries. `max_bytes` bounds each trie (0: no bound). Throws base::MachineError with the list's name
    // when it does not fit or rte_acl refuses. Control thread only: 1 000 ClassBench rules take 0.1 to 0.6 s and 8 to
    // 17 MB, 10 000 from 0.7 s and 26 MB (acl1) over 16 s and 30 MB (ipc1) to 83 s and 120 MB (fw1), on a busy machine.
    static std::unique_ptr<Classifier> build(List list, int socket_id, std::size_t max_bytes = 0);
    ~Classifier();
    Classifier(const Classifier&) = delete;
    Classifier& operator=(const Classifier&) = delete;

    // keys.size() == verdicts.size() <= kMaxBulk; families may be mixed, verdicts[i] belongs to keys[i].
    void classify(std::span<const net::FlowKey* const> keys, std::span<Verdict> verdicts) const noexcept;

    [[nodiscard]] const List& list() const noexcept { return list_; }
    [[nodiscard]] std::size_t memory_bytes() const noexcept;
    [[nodiscard]] std::uint64_t build_time_us() const noexcept { return build_time_us_; }

  private:
    struct Trie;  // rte_acl_ctx and its size; absent when no rule can match the family
    explicit Classifier(List list);

    List list_;
    std::unique_ptr<Trie> v4_;
    std::unique_ptr<Trie> v6_;
    std::uint64_t build_time_us_ = 0;
};

}  // namespace cachewire::acl
