// SPDX-License-Identifier: BSD-3-Clause
// Does the session table's layout pay? Look-ups of existing sessions in bursts of 32, uniformly random, each hot entry
// read and updated, hash computed within: rte_hash's bulk call with the same 40 bytes and a 64-byte entry beside it,
// the table in bursts, and the same table asked for one packet at a time. Keys lie in L2, tables wherever their size
// puts them. Then what a session costs that begins, and one that ends by the expiry walk. --sweep: look-ups by prefetch
// distance and burst size.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>

#include "base/clock.h"
#include "base/huge_array.h"
#include "base/prefetch.h"
#include "claims.h"
#include "net/flow_hash.h"
#include "session/table.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kBurst = 32;
constexpr unsigned kAhead = session::Table::kDefaultAhead;
constexpr unsigned kKeys = 4096;  // look-ups in a slice
constexpr std::uint32_t kFrame = 60;

net::FlowKey key_of(std::uint32_t i, bool ip6) {
    net::FlowKey key;
    if (ip6) {
        key.src.bytes[0] = key.dst.bytes[0] = 0x20;
        std::memcpy(key.src.bytes.data() + 12, &i, 4);
        key.dst.bytes[15] = 1;
    } else {
        key.src = net::Address::from_v4(0x0a000000 + i);
        key.dst = net::Address::from_v4(0xc6120001);
    }
    key.src_port_be = static_cast<std::uint16_t>(i * 7);
    key.dst_port_be = 53;
    key.tenant = 1;
    key.proto = 17;
    return key;
}

// The same sessions in both tables, and the slice's random keys.
class Tables {
  public:
    Tables(std::uint32_t sessions, bool ip6)
        : sessions_(sessions),
          ip6_(ip6),
          table_(sessions, -1, base::tsc_hz(), {}),
          peers_(sessions * sizeof(Entry), -1) {
        rte_hash_parameters parameters{};
        parameters.name = "bench_session";
        parameters.entries = sessions + sessions / 8 + 8;
        parameters.key_len = net::kFlowIdentityBytes;
        parameters.hash_func = rte_hash_crc;
        parameters.socket_id = SOCKET_ID_ANY;
        hash_ = rte_hash_create(&parameters);
        if (hash_ == nullptr)
            throw std::runtime_error(fmt::format("rte_hash of {} entries: {}", sessions, rte_strerror(rte_errno)));
        for (std::uint32_t i = 0; i < sessions; ++i) add(i);
    }
    ~Tables() { rte_hash_free(hash_); }
    Tables(const Tables&) = delete;
    Tables& operator=(const Tables&) = delete;

    Slice rte_hash_bulk() {
        return slice([this](const net::FlowKey* const* keys) {
            const void* pointers[kBurst];
            void* data[kBurst];
            std::uint64_t hits = 0;
            std::copy_n(keys, kBurst, pointers);
            rte_hash_lookup_bulk_data(hash_, pointers, kBurst, &hits, data);
            for (void* entry : data) base::prefetch_write(entry);
            for (void* entry : data) ++static_cast<Entry*>(entry)->packets;
            return hits == 0xffffffff;
        });
    }
    // As many keys a call as `size`, at most kMaxLookup and a divisor of kKeys; buckets are fetched so far ahead.
    Slice burst(unsigned size = kBurst, unsigned ahead = kAhead) {
        return slice([=, this](const net::FlowKey* const* keys) { return look_up(keys, size, ahead); }, size);
    }
    Slice one_at_a_time() {
        return slice([this](const net::FlowKey* const* keys) { return look_up(keys, 1, kAhead); }, 1);
    }

  private:
    struct alignas(base::kCacheLine) Entry {
        std::uint64_t packets;
    };

    void add(std::uint32_t i) {
        const net::FlowKey key = key_of(i, ip6_);
        session::Found found;
        auto* entry = reinterpret_cast<Entry*>(peers_.data()) + i;
        if (table_.insert(key, net::flow_hash(key, seed_), base::now_tsc(), found) != session::Table::Insert::created ||
            rte_hash_add_key_data(hash_, &key, entry) != 0)
            throw std::runtime_error("a session does not fit");
    }
    bool look_up(const net::FlowKey* const* keys, unsigned n, unsigned ahead) {
        std::array<std::uint32_t, session::kMaxLookup> hashes;
        std::array<session::Found, session::kMaxLookup> found;
        for (unsigned i = 0; i < n; ++i) hashes[i] = net::flow_hash(*keys[i], seed_);
        table_.lookup({keys, n}, {hashes.data(), n}, {found.data(), n}, ahead);
        bool all = true;
        for (unsigned i = 0; i < n; ++i) {
            all &= found[i].index != session::kNone;
            table_.touch(found[i].index, found[i].reverse, 0, kFrame, now_);
        }
        return all;
    }
    template <class LookUp>
    Slice slice(LookUp&& look_up_burst, unsigned size = kBurst) {
        std::array<const net::FlowKey*, kKeys> pointers;
        for (unsigned i = 0; i < kKeys; ++i) {
            keys_[i] = key_of(static_cast<std::uint32_t>(random_() % sessions_), ip6_);
            pointers[i] = &keys_[i];
        }
        bool all = true;
        now_ = base::now_tsc();
        for (unsigned i = 0; i < kKeys; i += size) all &= look_up_burst(pointers.data() + i);
        const std::uint64_t end = base::now_tsc();
        if (!all) throw std::runtime_error("a session was not found");
        return {end - now_, kKeys};
    }

    std::uint32_t sessions_;
    bool ip6_;
    net::HashSeed seed_;
    session::Table table_;
    base::HugeArray peers_;
    rte_hash* hash_;
    std::array<net::FlowKey, kKeys> keys_;
    std::minstd_rand random_{1};
    std::uint64_t now_ = 0;
};

// Sessions that begin, until the table is full, and then all end at once, without being counted; or the other way
// round.
class Lifetimes {
  public:
    explicit Lifetimes(std::uint32_t capacity) : capacity_(capacity), table_(capacity, -1, base::tsc_hz(), {}) {}

    Slice begin() {
        if (active_ + kKeys > capacity_) clear();
        return insert();
    }
    Slice end() {
        while (active_ + kKeys <= capacity_ && !ending_) insert();
        if (!ending_) now_ += kLater * base::tsc_hz();
        ending_ = true;
        const std::uint64_t begin = base::now_tsc();
        const unsigned ended = table_.expire(now_, kKeys, outcomes_);
        const std::uint64_t end = base::now_tsc();
        if (ended != kKeys) throw std::runtime_error("a session outlives its time-out");
        active_ -= ended;
        ending_ = active_ != 0;
        return {end - begin, ended};
    }

  private:
    static constexpr std::uint64_t kLater = 60;  // s; over the time-out of a new session, within the clock's range

    Slice insert() {
        for (auto& key : keys_) key = key_of(next_++, false);
        bool all = true;
        const std::uint64_t begin = base::now_tsc();
        for (const auto& key : keys_) {
            session::Found found;
            all &= table_.insert(key, net::flow_hash(key, seed_), now_, found) == session::Table::Insert::created;
        }
        const std::uint64_t end = base::now_tsc();
        if (!all) throw std::runtime_error("a session does not fit");
        active_ += kKeys;
        return {end - begin, kKeys};
    }
    void clear() {
        now_ += kLater * base::tsc_hz();
        table_.expire(now_, capacity_, outcomes_);
        active_ = 0;
    }

    std::uint32_t capacity_, active_ = 0, next_ = 0;
    bool ending_ = false;
    net::HashSeed seed_;
    session::Table table_;
    session::OutcomeTable outcomes_;
    std::array<net::FlowKey, kKeys> keys_;
    std::uint64_t now_ = base::now_tsc();
};

std::vector<Result> begin_and_end(unsigned pairs) {
    Lifetimes begin(1 << 20), end(1 << 20);
    auto results = measure(
        {{"1 M, a session begins", [&] { return begin.begin(); }}, {"1 M, a session ends", [&] { return end.end(); }}},
        pairs);
    print_table("session: sessions that begin, and that end by the walk; Mpps is millions a second", results);
    return results;
}

std::string sweep_name(std::uint32_t sessions, unsigned size, unsigned ahead) {
    return fmt::format("{} burst {} ahead {}", sessions, size, ahead);
}

// The best of all, and at the default burst what `auto` costs against the best there.
void print_best(const std::vector<Result>& results, std::uint32_t sessions) {
    const auto cheaper = [](const Result& a, const Result& b) { return a.cycles_per_packet < b.cycles_per_packet; };
    const Result& best = *std::min_element(results.begin(), results.end(), cheaper);
    fmt::print("best: {}, {:.1f} cycles\n", best.name, best.cycles_per_packet);
    std::vector<Result> same_burst;
    const std::string prefix = fmt::format("{} burst {} ", sessions, kBurst);
    std::copy_if(results.begin(), results.end(), std::back_inserter(same_burst),
                 [&](const Result& r) { return r.name.starts_with(prefix); });
    const Result& best_here = *std::min_element(same_burst.begin(), same_burst.end(), cheaper);
    const std::string name = sweep_name(sessions, kBurst, kAhead);
    const auto chosen =
        std::find_if(same_burst.begin(), same_burst.end(), [&](const Result& r) { return r.name == name; });
    fmt::print("auto: burst {} ahead {}, {:.1f} cycles, {:.3f} of the best of that burst (ahead {})\n", kBurst, kAhead,
               chosen->cycles_per_packet, chosen->cycles_per_packet / best_here.cycles_per_packet,
               best_here.name.substr(best_here.name.rfind(' ') + 1));
}

std::vector<Result> sweep(unsigned pairs) {
    std::vector<Result> all;
    for (const std::uint32_t sessions : {1000u, 1000000u, 4000000u}) {
        Tables tables(sessions, false);
        std::vector<Variant> variants;
        for (const unsigned size : {16u, 32u, 64u})
            for (const unsigned ahead : {1u, 2u, 4u, 8u, 16u, 24u, 32u, 48u, 64u})
                if (ahead <= size)
                    variants.push_back({sweep_name(sessions, size, ahead),
                                        [&tables, size, ahead] { return tables.burst(size, ahead); }});
        auto results = measure(variants, pairs);
        print_table(fmt::format("session: {} sessions, IPv4, by burst and prefetch distance", sessions), results);
        print_best(results, sessions);
        all.insert(all.end(), results.begin(), results.end());
    }
    return all;
}

}  // namespace

std::vector<Result> session(const Options& options) {
    const unsigned pairs = options.quick ? 300 : options.pairs;
    if (options.sweep) return sweep(pairs);
    std::vector<Result> all = begin_and_end(pairs);
    for (const bool ip6 : {false, true}) {
        for (const std::uint32_t sessions : {1000u, 100000u, 1000000u, 4000000u}) {
            Tables tables(sessions, ip6);
            const std::string prefix = fmt::format("{} {} ", ip6 ? "v6" : "v4", sessions);
            auto results = measure({{prefix + "rte_hash bulk", [&] { return tables.rte_hash_bulk(); }},
                                    {prefix + "table, bursts", [&] { return tables.burst(); }},
                                    {prefix + "table, singly", [&] { return tables.one_at_a_time(); }}},
                                   pairs);
            print_table(fmt::format("session: look-up and update, {} sessions, IPv{}", sessions, ip6 ? 6 : 4), results);
            all.insert(all.end(), results.begin(), results.end());
        }
    }
    return all;
}

}  // namespace cachewire::bench
