// SPDX-License-Identifier: BSD-3-Clause
// From rules to an rte_acl trie.
//
// A trie reads its input one byte first and then four bytes at a time, each group at a fixed offset. Those offsets are
// the ones of net::FlowKey itself, so nothing is copied before a look-up; the last group ends with the key's last byte
// (a static_assert below), so nothing is read past it. rte_acl drops the groups that no rule of a list looks at.
//
// rte_acl compares the bytes of a key in wire order with rule values in host order, and rates every rule by how wild
// its fields are, for which it reads all of `mask_range`, whatever the field's size: rules are zero-filled first, so
// that no stray byte steers the build. userdata 0 means "no match", so it holds (index + 1), and the action beside it:
// a verdict then needs no look at the rule itself.
#include "acl/trie.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <vector>

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
                              kMatchFlags = kIcmpCode + 1, kPcp = kMatchFlags + 1, kOutInterface = kPcp + 1,
                              kOutRest = kOutInterface + 1, kCount = kOutRest + 1;
    static constexpr unsigned kFirstWordOffset = 16 - 4 * Words;
};

// The first field is one byte; the others stand in groups of four consecutive bytes.
static_assert(offsetof(FlowKey, dst_port_be) == offsetof(FlowKey, src_port_be) + 2);
static_assert(offsetof(FlowKey, in_interface_be) % 4 == 0 && offsetof(FlowKey, icmp_type) % 4 == 0);
static_assert(offsetof(FlowKey, pcp) + 1 == sizeof(FlowKey));
static_assert(offsetof(FlowKey, tenant) % 4 == 0 && offsetof(FlowKey, tenant) + 4 == net::kFlowIdentityBytes);
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
    ++group;
    define(F::kOutInterface, RTE_ACL_FIELD_TYPE_BITMASK, 2, offsetof(FlowKey, tenant));
    define(F::kOutRest, RTE_ACL_FIELD_TYPE_BITMASK, 2, offsetof(FlowKey, tenant) + 2);  // always wild
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

bool holds(const PortRange& range, std::uint16_t port) { return range.first <= port && port <= range.last; }

// Whether the rule has to ask for kL4Known. L4 fields that are not known are 0 (flow_key.h), so a rule that no such key
// fits need not: most lists then do without the key's last word, which is four levels of the trie.
bool asks_for_l4(const Rule& rule) {
    return rule.needs_l4() && holds(rule.src_ports, 0) && holds(rule.dst_ports, 0) &&
           (rule.tcp_flags & rule.tcp_flags_mask) == 0 && rule.icmp_type.value_or(0) == 0 &&
           rule.icmp_code.value_or(0) == 0;
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
    const std::uint8_t l4 = asks_for_l4(rule) ? net::kL4Known : 0;
    set_bits(r.field[F::kMatchFlags], rule.match_flags | l4, rule.match_flags_mask | l4);
    return r;
}

// One rule for each of the interfaces, or the rule as it is where it names none.
template <unsigned Words>
std::vector<AclRule<Words>> on_each(const std::vector<AclRule<Words>>& rules, unsigned field,
                                    const std::vector<std::uint16_t>& interfaces) {
    if (interfaces.empty()) return rules;
    std::vector<AclRule<Words>> out;
    for (const std::uint16_t interface : interfaces) {
        for (AclRule<Words> r : rules) {
            r.field[field].value.u16 = interface;
            r.field[field].mask_range.u16 = 0xffff;
            out.push_back(r);
        }
    }
    return out;
}

// In list order; what stands for one rule has one priority and one userdata.
template <unsigned Words>
std::vector<AclRule<Words>> make_rules(const List& list, std::span<const std::uint32_t> indices) {
    using F = Fields<Words>;
    std::vector<AclRule<Words>> rules;
    rules.reserve(indices.size());
    for (const std::uint32_t i : indices) {
        const Rule& rule = list.rules[i];
        const AclRule<Words> one = make_rule<Words>(rule, i);
        if (rule.in_interfaces.empty() && rule.out_interfaces.empty()) {
            rules.push_back(one);
            continue;
        }
        const auto in = on_each<Words>({one}, F::kInInterface, rule.in_interfaces);
        const auto all = on_each<Words>(in, F::kOutInterface, rule.out_interfaces);
        rules.insert(rules.end(), all.begin(), all.end());
    }
    return rules;
}

constexpr enum rte_acl_classify_alg kMethods[] = {RTE_ACL_CLASSIFY_DEFAULT,   RTE_ACL_CLASSIFY_SCALAR,
                                                  RTE_ACL_CLASSIFY_SSE,       RTE_ACL_CLASSIFY_AVX2,
                                                  RTE_ACL_CLASSIFY_AVX512X16, RTE_ACL_CLASSIFY_AVX512X32};

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

template <unsigned Words>
void Trie::add_rules(const List& list, std::span<const std::uint32_t> indices, const TrieOptions& options,
                     const std::string& what) {
    const auto rules = make_rules<Words>(list, indices);
    const std::string name = unused_name();
    const rte_acl_param param = {name.c_str(), options.socket_id, sizeof(rules[0]),
                                 static_cast<std::uint32_t>(rules.size())};
    context_ = rte_acl_create(&param);
    if (context_ == nullptr)
        throw base::MachineError(what + ": rte_acl_create has no memory for them; give EAL more (-m, or huge pages)");
    base::check(rte_acl_add_rules(context_, reinterpret_cast<const rte_acl_rule*>(rules.data()),
                                  static_cast<std::uint32_t>(rules.size())),
                what + ": rte_acl_add_rules");
    const rte_acl_config config = make_config<Words>(options.max_bytes);
    const int rc = rte_acl_build(context_, &config);
    if (rc == -ERANGE)
        throw base::MachineError(fmt::format("{}: the trie takes over {} bytes", what, options.max_bytes));
    if (rc == -ENOMEM)
        throw base::MachineError(what +
                                 ": no memory for the trie; give EAL more (-m, or huge pages) or shorten the list");
    base::check(rc, what + ": rte_acl_build");
}

std::unique_ptr<Trie> Trie::build(const List& list, std::span<const std::uint32_t> rules, net::Family family,
                                  const TrieOptions& options) {
    const bool v4 = family == net::Family::ip4;
    const std::string what = fmt::format("acl {}: {} rules for {}", list.name, rules.size(), v4 ? "IPv4" : "IPv6");
    std::unique_ptr<Trie> trie(new Trie);
    const std::size_t before = heap_bytes_in_use();
    if (v4) {
        trie->add_rules<1>(list, rules, options, what);
    } else {
        trie->add_rules<4>(list, rules, options, what);
    }
    trie->bytes_ = heap_bytes_in_use() - before;
    if (options.method != Method::best)
        base::check(rte_acl_set_ctx_classify(trie->context_, kMethods[static_cast<unsigned>(options.method)]),
                    what + ": this method is not to be had here");
    return trie;
}

Trie::~Trie() { rte_acl_free(context_); }

void Trie::classify(const std::uint8_t** keys, std::uint32_t* userdata, std::uint32_t count) const noexcept {
    [[maybe_unused]] const int rc = rte_acl_classify(context_, keys, userdata, count, 1);
    assert(rc == 0);  // only a wrong category count fails
}

}  // namespace cachewire::acl
