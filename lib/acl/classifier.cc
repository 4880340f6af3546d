// SPDX-License-Identifier: BSD-3-Clause
// From rules to rte_acl tries, and from keys to verdicts.
//
// A trie reads its input one byte first and then four bytes at a time, each group at a fixed offset. Those offsets are
// the ones of net::FlowKey itself, so nothing is copied before a look-up; the last group ends with the key's last byte
// (a static_assert below), so nothing is read past it. rte_acl drops the groups that no rule of a list looks at.
//
// rte_acl compares the bytes of a key in wire order with rule values in host order, and rates every rule by how wild
// its fields are, for which it reads all of `mask_range`, whatever the field's size: rules are zero-filled first, so
// that no stray byte steers the build. userdata 0 means "no match", so it holds (index + 1), and the action beside it:
// a verdict then needs no look at the rule itself.
#include "acl/classifier.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstddef>

#include <rte_acl.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include <fmt/format.h>

#include "base/error.h"

namespace cachewire::acl {

namespace {

using net::FlowKey;

// An address is one word (IPv4, the last of the mapped form) or four. Fields of one rule, in the order of the trie's
// levels.
template <unsigned Words>
struct Fields {
    static constexpr unsigned kProto = 0, kSrc = 1, kDst = kSrc + Words, kSrcPort = kDst + Words,
                              kDstPort = kSrcPort + 1, kInInterface = kDstPort + 1, kTcpFlags = kInInterface + 1,
                              kDscp = kTcpFlags + 1, kIcmpType = kDscp + 1, kIcmpCode = kIcmpType + 1,
                              kMatchFlags = kIcmpCode + 1, kPcp = kMatchFlags + 1, kCount = kPcp + 1;
    static constexpr unsigned kFirstWordOffset = 16 - 4 * Words;
};

// The first field is one byte; the others stand in groups of four consecutive bytes.
static_assert(offsetof(FlowKey, dst_port_be) == offsetof(FlowKey, src_port_be) + 2);
static_assert(offsetof(FlowKey, in_interface_be) % 4 == 0 && offsetof(FlowKey, icmp_type) % 4 == 0);
static_assert(offsetof(FlowKey, pcp) + 1 == sizeof(FlowKey));
static_assert(Fields<4>::kCount <= RTE_ACL_MAX_FIELDS);

template <unsigned Words>
struct AclRule {
    rte_acl_rule_data data;
    rte_acl_field field[Fields<Words>::kCount];
};
static_assert(sizeof(AclRule<1>) == RTE_ACL_RULE_SZ(Fields<1>::kCount) &&
              sizeof(AclRule<4>) == RTE_ACL_RULE_SZ(Fields<4>::kCount));

template <unsigned Words>
rte_acl_config make_config(std::size_t max_bytes) {
    using F = Fields<Words>;
    rte_acl_config config{};
    config.num_categories = 1;
    config.num_fields = F::kCount;
    config.max_size = max_bytes;
    std::uint8_t group = 0;
    const auto define = [&](unsigned field, std::uint8_t type, std::uint8_t size, std::size_t offset) {
        config.defs[field] = {type, size, static_cast<std::uint8_t>(field), group, static_cast<std::uint32_t>(offset)};
    };
    define(F::kProto, RTE_ACL_FIELD_TYPE_BITMASK, 1, offsetof(FlowKey, proto));
    for (unsigned w = 0; w < Words; ++w) {
        ++group;
        define(F::kSrc + w, RTE_ACL_FIELD_TYPE_MASK, 4, offsetof(FlowKey, src) + F::kFirstWordOffset + 4 * w);
    }
    for (unsigned w = 0; w < Words; ++w) {
        ++group;
        define(F::kDst + w, RTE_ACL_FIELD_TYPE_MASK, 4, offsetof(FlowKey, dst) + F::kFirstWordOffset + 4 * w);
    }
    ++group;
    define(F::kSrcPort, RTE_ACL_FIELD_TYPE_RANGE, 2, offsetof(FlowKey, src_port_be));
    define(F::kDstPort, RTE_ACL_FIELD_TYPE_RANGE, 2, offsetof(FlowKey, dst_port_be));
    ++group;
    define(F::kInInterface, RTE_ACL_FIELD_TYPE_BITMASK, 2, offsetof(FlowKey, in_interface_be));
    define(F::kTcpFlags, RTE_ACL_FIELD_TYPE_BITMASK, 1, offsetof(FlowKey, tcp_flags));
    define(F::kDscp, RTE_ACL_FIELD_TYPE_BITMASK, 1, offsetof(FlowKey, dscp));
    ++group;
    define(F::kIcmpType, RTE_ACL_FIELD_TYPE_BITMASK, 1, offsetof(FlowKey, icmp_type));
    define(F::kIcmpCode, RTE_ACL_FIELD_TYPE_BITMASK, 1, offsetof(FlowKey, icmp_code));
    define(F::kMatchFlags, RTE_ACL_FIELD_TYPE_BITMASK, 1, offsetof(FlowKey, match_flags));
    define(F::kPcp, RTE_ACL_FIELD_TYPE_BITMASK, 1, offsetof(FlowKey, pcp));
    return config;
}

template <unsigned Words>
void set_prefix(rte_acl_field* fields, const std::optional<net::Prefix>& prefix) {
    if (!prefix) return;  // mask length 0: any
    for (unsigned w = 0; w < Words; ++w) {
        const int bits = std::clamp(static_cast<int>(prefix->length) - 32 * static_cast<int>(w), 0, 32);
        std::uint32_t be;
        std::memcpy(&be, prefix->address.bytes.data() + Fields<Words>::kFirstWordOffset + 4 * w, 4);
        const std::uint32_t mask = bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits);
        fields[w].value.u32 = __builtin_bswap32(be) & mask;
        fields[w].mask_range.u32 = static_cast<std::uint32_t>(bits);
    }
}

void set_bits(rte_acl_field& field, std::uint8_t value, std::uint8_t mask) {
    field.value.u8 = value & mask;
    field.mask_range.u8 = mask;
}

void set_byte(rte_acl_field& field, const std::optional<std::uint8_t>& value) {
    if (value) set_bits(field, *value, 0xff);
}

void set_range(rte_acl_field& field, const PortRange& range) {
    field.value.u16 = range.first;
    field.mask_range.u16 = range.last;
}

// A rule that asks for L4 fields and for packets that have none can't match.
bool contradicts_itself(const Rule& rule) {
    return rule.needs_l4() && (rule.match_flags_mask & net::kL4Known) != 0 && (rule.match_flags & net::kL4Known) == 0;
}

bool is_for_family(const Rule& rule, net::Family family) {
    return (!rule.src || rule.src->family == family) && (!rule.dst || rule.dst->family == family) &&
           !contradicts_itself(rule);
}

std::uint32_t to_userdata(std::size_t index, Action action) {
    return static_cast<std::uint32_t>((index + 1) << 1) | (action == Action::permit ? 1u : 0u);
}

template <unsigned Words>
AclRule<Words> make_rule(const Rule& rule, std::size_t index) {
    using F = Fields<Words>;
    AclRule<Words> r{};
    r.data = {1, static_cast<std::int32_t>(RTE_ACL_MAX_PRIORITY - index), to_userdata(index, rule.action)};
    set_byte(r.field[F::kProto], rule.proto);
    set_prefix<Words>(r.field + F::kSrc, rule.src);
    set_prefix<Words>(r.field + F::kDst, rule.dst);
    set_range(r.field[F::kSrcPort], rule.src_ports);
    set_range(r.field[F::kDstPort], rule.dst_ports);
    set_bits(r.field[F::kTcpFlags], rule.tcp_flags, rule.tcp_flags_mask);
    set_byte(r.field[F::kDscp], rule.dscp);
    set_byte(r.field[F::kIcmpType], rule.icmp_type);
    set_byte(r.field[F::kIcmpCode], rule.icmp_code);
    const std::uint8_t l4 = rule.needs_l4() ? net::kL4Known : 0;
    set_bits(r.field[F::kMatchFlags], rule.match_flags | l4, rule.match_flags_mask | l4);
    return r;
}

// In list order; a rule with several interfaces stands once for each, with the same priority and userdata.
template <unsigned Words>
std::vector<AclRule<Words>> make_rules(const List& list, net::Family family) {
    std::vector<AclRule<Words>> rules;
    for (std::size_t i = 0; i < list.rules.size(); ++i) {
        if (!is_for_family(list.rules[i], family)) continue;
        AclRule<Words> r = make_rule<Words>(list.rules[i], i);
        if (list.rules[i].in_interfaces.empty()) rules.push_back(r);
        for (const std::uint16_t interface : list.rules[i].in_interfaces) {
            r.field[Fields<Words>::kInInterface].value.u16 = interface;
            r.field[Fields<Words>::kInInterface].mask_range.u16 = 0xffff;
            rules.push_back(r);
        }
    }
    return rules;
}

void check_list(const List& list) {
    // Priorities and userdata hold the index; beyond this they would wrap.
    if (list.rules.size() >= RTE_ACL_MAX_PRIORITY) {
        throw base::MachineError(fmt::format("acl {}: {} rules, at most {}", list.name, list.rules.size(),
                                             static_cast<unsigned>(RTE_ACL_MAX_PRIORITY) - 1));
    }
    for (std::size_t i = 0; i < list.rules.size(); ++i) {
        const Rule& rule = list.rules[i];
        if (rule.src_ports.first > rule.src_ports.last || rule.dst_ports.first > rule.dst_ports.last) {
            throw base::MachineError(
                fmt::format("acl {}: rule {} {}: a port range ends before it begins", list.name, i, rule.name));
        }
    }
}

// rte_acl tells nobody its size, so it is what rte_malloc's heaps grew by. Only the control thread builds, and workers
// don't allocate, so the difference is the trie's; what else may allocate at that moment (a driver's thread) would
// count as well.
std::size_t heap_bytes_in_use() {
    std::size_t bytes = 0;
    for (unsigned i = 0; i < rte_socket_count(); ++i) {
        rte_malloc_socket_stats stats{};
        if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) == 0) bytes += stats.heap_allocsz_bytes;
    }
    return bytes;
}

// rte_acl_create answers with an existing context when the name is taken. So each trie has a name of its own: the other
// family's, and those of the last snapshot's lists, live beside it.
std::string unused_name() {
    static std::atomic<std::uint64_t> builds{0};
    for (;;) {
        std::string name = fmt::format("cachewire_{}", builds.fetch_add(1));
        if (rte_acl_find_existing(name.c_str()) == nullptr) return name;
    }
}

}  // namespace

struct Classifier::Trie {
    rte_acl_ctx* context = nullptr;
    std::size_t bytes = 0;

    Trie() = default;
    Trie(const Trie&) = delete;
    Trie& operator=(const Trie&) = delete;
    ~Trie() { rte_acl_free(context); }

    template <unsigned Words>
    static std::unique_ptr<Trie> build(const List& list, net::Family family, int socket_id, std::size_t max_bytes);
};

template <unsigned Words>
std::unique_ptr<Classifier::Trie> Classifier::Trie::build(const List& list, net::Family family, int socket_id,
                                                          std::size_t max_bytes) {
    const auto rules = make_rules<Words>(list, family);
    if (rules.empty()) return nullptr;

    const std::string name = unused_name();
    const std::string what =
        fmt::format("acl {}: {} rules for {}", list.name, rules.size(), Words == 1 ? "IPv4" : "IPv6");
    const std::size_t before = heap_bytes_in_use();
    const rte_acl_param param = {name.c_str(), socket_id, sizeof(rules[0]), static_cast<std::uint32_t>(rules.size())};

    auto trie = std::make_unique<Trie>();
    trie->context = rte_acl_create(&param);
    if (trie->context == nullptr) {
        throw base::MachineError(what + ": rte_acl_create has no memory for them; give EAL more (-m, or huge pages)");
    }
    base::check(rte_acl_add_rules(trie->context, reinterpret_cast<const rte_acl_rule*>(rules.data()),
                                  static_cast<std::uint32_t>(rules.size())),
                what + ": rte_acl_add_rules");
    const rte_acl_config config = make_config<Words>(max_bytes);
    const int rc = rte_acl_build(trie->context, &config);
    if (rc == -ERANGE) throw base::MachineError(fmt::format("{}: the trie takes over {} bytes", what, max_bytes));
    if (rc == -ENOMEM) {
        throw base::MachineError(what +
                                 ": no memory for the trie; give EAL more (-m, or huge pages) or shorten the list");
    }
    base::check(rc, what + ": rte_acl_build");
    trie->bytes = heap_bytes_in_use() - before;
    return trie;
}

Classifier::Classifier(List list) : list_(std::move(list)) {}
Classifier::~Classifier() = default;

std::unique_ptr<Classifier> Classifier::build(List list, int socket_id, std::size_t max_bytes) {
    check_list(list);
    const auto start = std::chrono::steady_clock::now();
    std::unique_ptr<Classifier> classifier(new Classifier(std::move(list)));
    classifier->v4_ = Trie::build<1>(classifier->list_, net::Family::ip4, socket_id, max_bytes);
    classifier->v6_ = Trie::build<4>(classifier->list_, net::Family::ip6, socket_id, max_bytes);
    const auto took = std::chrono::steady_clock::now() - start;
    classifier->build_time_us_ =
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
    return classifier;
}

std::size_t Classifier::memory_bytes() const noexcept { return (v4_ ? v4_->bytes : 0) + (v6_ ? v6_->bytes : 0); }

// One partition for both families: IPv4 keys fill `data` from the front, IPv6 keys from the back, `position` tells
// where each came from.
void Classifier::classify(std::span<const net::FlowKey* const> keys, std::span<Verdict> verdicts) const noexcept {
    assert(keys.size() == verdicts.size() && keys.size() <= kMaxBulk);
    std::array<const std::uint8_t*, kMaxBulk> data;
    std::array<std::uint8_t, kMaxBulk> position;
    std::array<std::uint32_t, kMaxBulk> userdata;
    static_assert(kMaxBulk - 1 <= 0xff);
    const std::size_t total = keys.size();
    std::size_t v4_count = 0;
    std::size_t v6_begin = total;
    for (std::size_t i = 0; i < total; ++i) {
        const std::size_t at = keys[i]->is_v4() ? v4_count++ : --v6_begin;
        data[at] = reinterpret_cast<const std::uint8_t*>(keys[i]);
        position[at] = static_cast<std::uint8_t>(i);
    }

    const auto run = [&](const Trie* trie, std::size_t begin, std::size_t end) {
        if (begin == end) return;
        if (trie == nullptr) {
            std::fill(userdata.begin() + begin, userdata.begin() + end, 0);
            return;
        }
        [[maybe_unused]] const int rc = rte_acl_classify(trie->context, data.data() + begin, userdata.data() + begin,
                                                         static_cast<std::uint32_t>(end - begin), 1);
        assert(rc == 0);  // only a wrong category count fails
    };
    run(v4_.get(), 0, v4_count);
    run(v6_.get(), v6_begin, total);

    for (std::size_t at = 0; at < total; ++at) {
        const std::uint32_t u = userdata[at];
        verdicts[position[at]] = u == 0 ? Verdict{kDefaultRule, list_.default_action}
                                        : Verdict{(u >> 1) - 1, (u & 1) != 0 ? Action::permit : Action::deny};
    }
}

}  // namespace cachewire::acl
