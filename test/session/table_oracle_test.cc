// SPDX-License-Identifier: BSD-3-Clause
// The table against a plain std::map that is driven by the same random sequence: equal at every step.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "session/keys.h"
#include "session/table.h"
#include "support/catch.h"
#include "support/random.h"

using namespace cachewire;
using session::Found;
using session::Outcome;
using session::OutcomeTable;
using session::State;
using session::Table;
using Insert = session::Table::Insert;

namespace {

using test::kHz;
constexpr std::uint32_t kCapacity = 512;
constexpr std::uint32_t kPool = 1500;                            // flows that compete for the capacity
constexpr session::Timeouts kTimeouts{.established_tcp = 9000};  // longer than the clock's range
constexpr std::uint16_t kLimited = 1;                            // a tenant with a quota
constexpr session::Quota kQuota{.sessions = 60};

std::uint16_t tenant_of(std::uint32_t number) { return test::pool_key(number, false).tenant; }

// The reply's tuple of a session that some translator has changed.
net::FlowKey translated(std::uint32_t number, bool turned) {
    net::FlowKey key = test::reversed(test::pool_key(number, turned));
    key.tenant = static_cast<std::uint16_t>(key.tenant + 10);
    key.dst_port_be = static_cast<std::uint16_t>(key.dst_port_be ^ 0x5a5a);
    return key;
}

struct Session {
    bool turned;  // forward is the pool key reversed
    std::uint32_t index;
    std::uint64_t last_tsc;
    std::uint64_t packets[2] = {0, 0};
    std::uint64_t bytes[2] = {0, 0};
    bool replied = false, acknowledged = false, confirmed = false, refused = false, over = false;
    bool reset = false, reset_by_reverse = false;
    bool fin[2] = {false, false};
    bool companion = false;
    session::Verdicts memo;  // of `generation`
    std::uint16_t generation = 0;

    bool has_memo() const { return memo.knows_forward || memo.knows_reverse; }
};

// The pool's number identifies a flow in both directions. Time is exact here: 64 bits, no ticks that wrap.
class Model {
  public:
    std::map<std::uint32_t, Session> sessions;

    static bool is_tcp(std::uint32_t number) { return test::pool_key(number, false).proto == session::kProtoTcp; }

    static State state(std::uint32_t number, const Session& s) {
        if (!is_tcp(number)) return s.replied ? State::established : State::fresh;
        if (s.over) return State::time_wait;
        if (s.refused) return State::closed;
        if (s.reset) return s.reset_by_reverse ? State::reset_reverse : State::reset_forward;
        if (s.confirmed) return s.fin[0] || s.fin[1] ? State::half_close : State::established;
        return s.acknowledged ? State::one_sided : State::fresh;
    }

    static void packet(std::uint32_t number, Session& s, bool reverse, std::uint8_t flags, std::uint32_t length,
                       std::uint64_t now) {
        s.last_tsc = now;
        ++s.packets[reverse];
        s.bytes[reverse] += length;
        s.replied |= reverse;
        if (!is_tcp(number) || s.over || s.refused) return;
        const bool syn = (flags & 2) != 0, ack = (flags & 16) != 0, fin = (flags & 1) != 0, rst = (flags & 4) != 0;
        if (s.reset) {
            s.reset = !(reverse == s.reset_by_reverse && ack && !syn && !fin && !rst);
        } else if (rst) {
            (s.confirmed ? s.reset : s.refused) = true;
            s.reset_by_reverse = reverse;
        } else {
            s.fin[reverse] |= fin;
            s.over = s.fin[0] && s.fin[1];
            if (!reverse && ack && !syn) (s.replied ? s.confirmed : s.acknowledged) = true;
        }
    }

    std::size_t entries() const {
        return sessions.size() +
               static_cast<std::size_t>(
                   std::count_if(sessions.begin(), sessions.end(), [](const auto& i) { return i.second.companion; }));
    }
    std::size_t of_tenant(std::uint16_t tenant) const {
        return static_cast<std::size_t>(std::count_if(sessions.begin(), sessions.end(),
                                                      [&](const auto& i) { return tenant_of(i.first) == tenant; }));
    }

    static std::uint64_t timeout_s(std::uint32_t number, const Session& s) {
        const std::uint8_t proto = test::pool_key(number, false).proto;
        switch (state(number, s)) {
            case State::fresh:
                return kTimeouts.fresh;
            case State::half_close:
            case State::one_sided:
                return kTimeouts.half_close;
            case State::time_wait:
                return kTimeouts.time_wait;
            case State::closed:
            case State::reset_forward:
            case State::reset_reverse:
                return kTimeouts.closed;
            default:
                break;
        }
        return proto == session::kProtoTcp ? kTimeouts.established_tcp
               : proto == test::kUdp       ? kTimeouts.established_udp
                                           : kTimeouts.icmp;
    }

    // In whole ticks, as the table documents it, but without a wrap.
    unsigned expire(std::uint64_t now, std::uint64_t tick) {
        return static_cast<unsigned>(std::erase_if(sessions, [&](const auto& item) {
            const std::uint64_t timeout_ticks = (timeout_s(item.first, item.second) * kHz + tick - 1) / tick;
            return now / tick - item.second.last_tsc / tick > timeout_ticks;
        }));
    }
};

class Run {
  public:
    explicit Run(std::mt19937_64 rng) : rng_(rng) {
        table_.configure({.timeouts = kTimeouts, .high_watermark_percent = 50}, 1);
    }

    void step() {
        now_ += rng_() % 20;
        switch (rng_() % 18) {
            case 16:
                return add_companion();
            case 17:
                return relieve();
            case 0:
            case 1:
            case 2:
            case 3:
                return create();
            case 4:
                return erase();
            case 5:
            case 6:
                return memoize();
            case 7:
                return walk();
            default:
                return burst();
        }
    }

    void compare_all() {
        const Table::Stats stats = table_.stats();
        REQUIRE(stats.active == model_.sessions.size());
        REQUIRE(stats.active + stats.companions == model_.entries());
        REQUIRE(stats.created == stats.active + stats.expired + stats.evicted + stats.closed + stats.killed);
        REQUIRE(table_.use(kLimited).active.read() == model_.of_tenant(kLimited));
        std::vector<session::Verdicts> memos;
        for (const auto& [number, s] : model_.sessions) {
            const session::HotEntry& hot = table_.hot(s.index);
            const session::ColdEntry& cold = table_.cold(s.index);
            REQUIRE(static_cast<int>(hot.state()) == static_cast<int>(Model::state(number, s)));
            for (unsigned d = 0; d < 2; ++d) {
                REQUIRE(cold.packets[d] + hot.packets[d] == s.packets[d]);
                REQUIRE(cold.bytes[d] + hot.bytes[d] == s.bytes[d]);
            }
            REQUIRE((hot.outcome != session::kNoOutcome) == s.has_memo());
            REQUIRE(outcomes_.verdicts(hot.outcome) == s.memo);
            if (!s.has_memo()) continue;
            REQUIRE(hot.policy_generation == s.generation);
            if (std::find(memos.begin(), memos.end(), s.memo) == memos.end()) memos.push_back(s.memo);
        }
        REQUIRE(outcomes_.size() == memos.size());
    }

    void check_that_all_happened() {
        const Table::Stats stats = table_.stats();
        CHECK(stats.expired > 1000);
        CHECK(stats.evicted > 100);
        CHECK(stats.closed > 1000);
        CHECK(stats.killed > 1000);
        CHECK(stats.quota_denied > 100);
        CHECK(companions_made_ > 100);
        for (const unsigned count : memoised_) CHECK(count > 20);
    }

  private:
    std::uint32_t number() { return static_cast<std::uint32_t>(rng_() % kPool); }
    std::uint32_t length() { return static_cast<std::uint32_t>(rng_() % 64 == 0 ? 60'000'000 : 64 + rng_() % 1500); }

    void create() {
        const std::uint32_t n = number();
        const bool turned = rng_() % 2 != 0;
        const net::FlowKey key = test::pool_key(n, turned);
        Found found;
        const bool limited = key.tenant == kLimited;
        const Insert result = table_.insert(key, test::hash_of(key), now_, limited ? kQuota : session::Quota{}, found);
        const auto it = model_.sessions.find(n);
        if (it != model_.sessions.end()) {
            REQUIRE(result == Insert::exists);
            REQUIRE(found.index == it->second.index);
            REQUIRE(found.reverse == (turned != it->second.turned));
        } else if (limited && model_.of_tenant(kLimited) == kQuota.sessions) {
            REQUIRE(result == Insert::quota_denied);
        } else if (model_.entries() == kCapacity) {
            REQUIRE(result == Insert::table_full);
        } else {
            REQUIRE(result == Insert::created);
            model_.sessions[n] = {.turned = turned, .index = found.index, .last_tsc = now_};
        }
    }

    void erase() {
        const auto it = model_.sessions.find(number());
        if (it == model_.sessions.end()) return;
        table_.erase(it->second.index, outcomes_);
        model_.sessions.erase(it);
    }

    void add_companion() {
        const auto it = model_.sessions.find(number());
        if (it == model_.sessions.end() || it->second.companion) return;
        const net::FlowKey key = translated(it->first, it->second.turned);
        const Insert result = table_.add_companion(it->second.index, key, test::hash_of(key));
        it->second.companion = model_.entries() < kCapacity;
        REQUIRE(result == (it->second.companion ? Insert::created : Insert::table_full));
        companions_made_ += it->second.companion;
    }

    // Which ones go is the table's choice; that they may go and that nothing else does is not.
    void relieve() {
        const unsigned evicted = table_.relieve(outcomes_);
        if (evicted == 0) return;
        const std::size_t before = model_.sessions.size();
        std::erase_if(model_.sessions, [&](const auto& item) {
            const auto& [number, s] = item;
            if (test::look_up(table_, test::pool_key(number, s.turned)).index == s.index) return false;
            REQUIRE(session::is_expendable(Model::state(number, s)));
            if (s.companion) REQUIRE(test::look_up(table_, translated(number, s.turned)).index == session::kNone);
            return true;
        });
        REQUIRE(before - model_.sessions.size() == evicted);
    }

    void memoize() {
        const auto it = model_.sessions.find(number());
        if (it == model_.sessions.end()) return;
        Session& s = it->second;
        generation_ += rng_() % 64 == 0;  // a reload
        session::Verdicts wanted = s.generation == generation_ ? s.memo : session::Verdicts{};
        const Outcome outcome{.permit = true, .traffic_class = static_cast<std::uint8_t>(rng_() % 5)};
        const bool reverse = rng_() % 2 != 0;
        (reverse ? wanted.reverse : wanted.forward) = outcome;
        (reverse ? wanted.knows_reverse : wanted.knows_forward) = true;
        if (reverse) {
            wanted.reverse_fields = rng_() % 2;
            const bool kept =
                table_.memoize_reverse(s.index, outcomes_, outcome, wanted.reverse_fields, generation_, 0);
            REQUIRE(kept == has_room(wanted));
            if (kept) s.memo = wanted, s.generation = generation_;
        } else {
            // The replies' verdict goes where there is no room for both.
            if (!has_room(wanted)) wanted = {.forward = outcome, .knows_forward = true};
            if (!has_room(wanted)) wanted = {};
            table_.memoize(s.index, outcomes_, outcome, generation_, 0);
            s.memo = wanted;
            s.generation = generation_;
        }
        const session::Verdicts now = outcomes_.verdicts(table_.hot(s.index).outcome);
        REQUIRE(now == s.memo);
        ++memoised_[now.knows_forward + 2 * now.knows_reverse];
    }

    // While the session still holds what it had.
    bool has_room(const session::Verdicts& wanted) const {
        std::vector<session::Verdicts> held;
        for (const auto& [number, s] : model_.sessions)
            if (s.has_memo() && std::find(held.begin(), held.end(), s.memo) == held.end()) held.push_back(s.memo);
        if (std::find(held.begin(), held.end(), wanted) != held.end()) return true;
        const auto pairs = std::count_if(held.begin(), held.end(), [](const auto& v) { return v.knows_reverse; });
        return held.size() < kOutcomes && (!wanted.knows_reverse || pairs < static_cast<long>(kOutcomes / 2));
    }

    // Time passes, up to half of the clock's range at once, and the walk comes round in pieces.
    void walk() {
        now_ += rng_() % 50 == 0 ? rng_() % (2000 * kHz) : rng_() % 300;
        const unsigned expected = model_.expire(now_, table_.cycles_per_tick());
        unsigned erased = 0;
        for (std::uint32_t left = table_.used_end(); left > 0;) {
            const auto piece = static_cast<std::uint32_t>(1 + rng_() % left);
            erased += table_.expire(now_, piece, outcomes_);
            left -= piece;
        }
        REQUIRE(erased == expected);
        REQUIRE(table_.stats().active == model_.sessions.size());
    }

    // Up to a full burst, hits and misses, the same flow more than once; hits are touched.
    void burst() {
        const std::size_t n = 1 + rng_() % 32;
        std::array<net::FlowKey, 32> keys;
        std::array<const net::FlowKey*, 32> pointers;
        std::array<std::uint32_t, 32> hashes, numbers;
        std::array<Found, 32> found;
        for (std::size_t i = 0; i < n; ++i) {
            numbers[i] = number();
            const auto it = model_.sessions.find(numbers[i]);
            const bool turned = rng_() % 2 != 0;
            keys[i] = it != model_.sessions.end() && it->second.companion && rng_() % 2 != 0
                          ? translated(numbers[i], it->second.turned)
                          : test::pool_key(numbers[i], turned);
            pointers[i] = &keys[i];
            hashes[i] = test::hash_of(keys[i]);
        }
        table_.lookup({pointers.data(), n}, {hashes.data(), n}, {found.data(), n});
        for (std::size_t i = 0; i < n; ++i) {
            const auto it = model_.sessions.find(numbers[i]);
            if (it == model_.sessions.end()) {
                REQUIRE(found[i].index == session::kNone);
                continue;
            }
            Session& s = it->second;
            const net::FlowKey forward = test::pool_key(numbers[i], s.turned);
            REQUIRE(found[i].index == s.index);
            REQUIRE(found[i].reverse == (std::memcmp(&forward, &keys[i], net::kFlowIdentityBytes) != 0));
            const std::uint8_t flags = kFlags[rng_() % kFlags.size()];
            const std::uint32_t bytes = length();
            table_.touch(s.index, found[i].reverse, flags, bytes, now_);
            Model::packet(numbers[i], s, found[i].reverse, Model::is_tcp(numbers[i]) ? flags : 0, bytes, now_);
            REQUIRE(static_cast<int>(table_.hot(s.index).state()) == static_cast<int>(Model::state(numbers[i], s)));
        }
    }

    static constexpr std::array<std::uint8_t, 16> kFlags = {0x10, 0x10, 0x10, 0x10, 0x18, 0x18, 0x18, 0x10,
                                                            0x10, 0x02, 0x12, 0x02, 0x11, 0x10, 0x04, 0x10};
    static constexpr std::size_t kOutcomes = 9;  // five verdicts, and too few pairs of them

    std::mt19937_64 rng_;
    std::uint64_t now_ = 0;
    Table table_{kCapacity, -1, kHz, kTimeouts};
    OutcomeTable outcomes_{kOutcomes};
    std::uint16_t generation_ = 1;
    unsigned companions_made_ = 0;
    std::array<unsigned, 4> memoised_{};  // none, forward, reverse, both
    Model model_;
};

}  // namespace

TEST_CASE("table: a million random steps equal a plain map", "[session]") {
    INFO("seed " << test::seed());
    Run run(test::random_engine());
    for (int step = 0; step < 1'000'000; ++step) {
        run.step();
        if (step % 2000 == 0) run.compare_all();
    }
    run.compare_all();
    run.check_that_all_happened();
}
