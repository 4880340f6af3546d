#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// One list compiled for bulk look-up: rte_acl tries for each family, over the bytes of net::FlowKey as they are.
// Immutable once built, so any number of workers read it; owned by the control plane through shared_ptr, freed after
// the grace period. Tenants that share a list share its classifier.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "acl/rule.h"
#include "acl/trie.h"

namespace cachewire::acl {

inline constexpr std::size_t kMaxBulk = 64;

class Classifier {
  public:
    struct Options {
        int socket_id = -1;
        std::size_t max_bytes = 0;  // of all tries together; 0: no bound
        Method method = Method::best;
        std::size_t split_from = kSplitFrom;  // rules of a family; fewer make one trie
    };
    // Throws base::MachineError with the list's name when it does not fit or rte_acl refuses. Control thread only:
    // docs/performance.md says how long it takes.
    static std::unique_ptr<Classifier> build(List list, const Options& options);
    static std::unique_ptr<Classifier> build(List list, int socket_id, std::size_t max_bytes = 0) {
        return build(std::move(list), Options{.socket_id = socket_id, .max_bytes = max_bytes});
    }
    ~Classifier();
    Classifier(const Classifier&) = delete;
    Classifier& operator=(const Classifier&) = delete;

    // What keys of one family find, at most kMaxBulk of them; verdict() says what that means. Lists that use the egress
    // want it in their keys (put_out_interface).
    void find(net::Family family, const std::uint8_t** keys, std::uint32_t* found, std::uint32_t count) const noexcept;
    [[nodiscard]] Verdict verdict(std::uint32_t found) const noexcept {
        if (found == 0) return {kDefaultRule, list_.default_action};
        const std::uint32_t rule = rule_of(found);
        return {rule, action_of(found), treatments_.empty() ? Treatment{} : treatments_[rule]};
    }
    // One key of either family, both steps.
    [[nodiscard]] Verdict judge(const net::FlowKey& key) const noexcept;

    [[nodiscard]] const List& list() const noexcept { return list_; }
    [[nodiscard]] bool uses_egress() const noexcept { return uses_egress_; }
    [[nodiscard]] std::size_t memory_bytes() const noexcept;
    [[nodiscard]] std::size_t tries() const noexcept { return tries_[0].size() + tries_[1].size(); }
    // For measurements.
    [[nodiscard]] std::span<const std::unique_ptr<Trie>> tries_of(net::Family family) const noexcept {
        return tries_[family == net::Family::ip4 ? 0 : 1];
    }
    [[nodiscard]] std::uint64_t build_time_us() const noexcept { return build_time_us_; }

  private:
    static constexpr std::size_t kSplitFrom = 2000;
    explicit Classifier(List list);

    List list_;
    bool uses_egress_ = false;
    std::vector<Treatment> treatments_;  // by rule; empty when no rule has one. Rules themselves are several lines long
    std::array<std::vector<std::unique_ptr<Trie>>, 2> tries_;  // IPv4, IPv6
    std::uint64_t build_time_us_ = 0;
};

}  // namespace cachewire::acl
