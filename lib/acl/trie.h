#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Some rules of a list as one rte_acl context of one family. Immutable once built; freed with the object.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "acl/rule.h"

struct rte_acl_ctx;

namespace cachewire::acl {

enum class Method : std::uint8_t { best, scalar, sse, avx2, avx512x16, avx512x32 };

struct TrieOptions {
    int socket_id = -1;
    std::size_t max_bytes = 0;     // 0: no bound
    Method method = Method::best;  // best: what the machine and EAL's --force-max-simd-bitwidth allow
};

// What a key finds: 0 nothing, else the rule's index and action. Of two the smaller one that is not 0 is the first
// match.
constexpr std::uint32_t to_userdata(std::size_t index, Action action) noexcept {
    return static_cast<std::uint32_t>((index + 1) << 2) | static_cast<std::uint32_t>(action);
}
constexpr std::uint32_t rule_of(std::uint32_t userdata) noexcept { return (userdata >> 2) - 1; }
constexpr Action action_of(std::uint32_t userdata) noexcept { return static_cast<Action>(userdata & 3); }

class Trie {
  public:
    // Of the rules whose indices in `list` are given, in order; all may match `family`. Throws base::MachineError with
    // the list's name when it does not fit or rte_acl refuses.
    static std::unique_ptr<Trie> build(const List& list, std::span<const std::uint32_t> rules, net::Family family,
                                       const TrieOptions& options);
    ~Trie();
    Trie(const Trie&) = delete;
    Trie& operator=(const Trie&) = delete;

    // `keys`: FlowKeys of the family; `userdata`: as many.
    void classify(const std::uint8_t** keys, std::uint32_t* userdata, std::uint32_t count) const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  private:
    Trie() = default;
    template <unsigned Words>
    void add_rules(const List& list, std::span<const std::uint32_t> rules, const TrieOptions& options,
                   const std::string& what);

    rte_acl_ctx* context_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace cachewire::acl
