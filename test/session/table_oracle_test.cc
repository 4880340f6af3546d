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

constexpr std::uint64_t kHz = 1000;
constexpr std::uint32_t kCapacity = 512;
constexpr std::uint32_t kPool = 1500;                            // flows that compete for the capacity
constexpr session::Timeouts kTimeouts{.established_tcp = 9000};  // longer than the clock's range

struct Session {
    bool turned;  // forward is the pool key reversed
    std::uint32_t index;
    std::uint64_t last_tsc;
    std::uint64_t packets[2] = {0, 0};
    std::uint64_t bytes[2] = {0, 0};
    bool replied = false, confirmed = false, reset = false;
    bool fin[2] = {false, false};
    bool memo = false;
    Outcome outcome;
};

// The pool's number identifies a flow in both directions. Time is exact here: 64 bits, no ticks that wrap.
class Model {
  public:
    std::map<std::uint32_t, Session> sessions;

    static bool is_tcp(std::uint32_t number) { return test::pool_key(number, false).proto == session::kProtoTcp; }

    static State state(std::uint32_t number, const Session& s) {
        if (!is_tcp(number)) return s.replied ? State::established : State::fresh;
        if (s.fin[0] && s.fin[1]) return State::time_wait;
        if (s.reset) return State::closed;
        if (s.fin[0] || s.fin[1]) return State::half_close;
        return s.confirmed ? State::established : State::fresh;
    }

    static void packet(std::uint32_t number, Session& s, bool reverse, std::uint8_t flags, std::uint32_t length,
                       std::uint64_t now) {
        s.last_tsc = now;
        ++s.packets[reverse];
        s.bytes[reverse] += length;
        s.replied |= reverse;
        if (s.reset || (s.fin[0] && s.fin[1])) return;
        if ((flags & session::kTcpRst) != 0)
            s.reset = true;
        else if ((flags & session::kTcpFin) != 0)
            s.fin[reverse] = true;
        else if (!reverse && s.replied && (flags & session::kTcpAck) != 0 && (flags & session::kTcpSyn) == 0)
            // FIN states hide this one and come after it, so it needs no order.
            s.confirmed |= state(number, s) == State::fresh;
    }

    static std::uint64_t timeout_s(std::uint32_t number, const Session& s) {
        const std::uint8_t proto = test::pool_key(number, false).proto;
        switch (state(number, s)) {
            case State::fresh:
                return kTimeouts.fresh;
            case State::half_close:
                return kTimeouts.half_close;
            case State::time_wait:
                return kTimeouts.time_wait;
            case State::closed:
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
    explicit Run(std::mt19937_64 rng) : rng_(rng) {}

    void step() {
        now_ += rng_() % 20;
        switch (rng_() % 16) {
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
        REQUIRE(table_.stats().active == model_.sessions.size());
        std::map<Outcome, std::uint32_t,
                 decltype([](const Outcome& a, const Outcome& b) { return std::memcmp(&a, &b, sizeof a) < 0; })>
            references;
        for (const auto& [number, s] : model_.sessions) {
            const session::HotEntry& hot = table_.hot(s.index);
            const session::ColdEntry& cold = table_.cold(s.index);
            REQUIRE(static_cast<int>(hot.state()) == static_cast<int>(Model::state(number, s)));
            for (unsigned d = 0; d < 2; ++d) {
                REQUIRE(cold.packets[d] + hot.packets[d] == s.packets[d]);
                REQUIRE(cold.bytes[d] + hot.bytes[d] == s.bytes[d]);
            }
            REQUIRE((hot.outcome != session::kNoOutcome) == s.memo);
            if (!s.memo) continue;
            REQUIRE(outcomes_[hot.outcome] == s.outcome);
            ++references[s.outcome];
        }
        REQUIRE(outcomes_.size() == references.size());
    }

  private:
    std::uint32_t number() { return static_cast<std::uint32_t>(rng_() % kPool); }
    std::uint32_t length() { return static_cast<std::uint32_t>(rng_() % 64 == 0 ? 60'000'000 : 64 + rng_() % 1500); }

    void create() {
        const std::uint32_t n = number();
        const bool turned = rng_() % 2 != 0;
        const net::FlowKey key = test::pool_key(n, turned);
        Found found;
        const Insert result = table_.insert(key, test::hash_of(key), now_, found);
        const auto it = model_.sessions.find(n);
        if (it != model_.sessions.end()) {
            REQUIRE(result == Insert::exists);
            REQUIRE(found.index == it->second.index);
            REQUIRE(found.reverse == (turned != it->second.turned));
        } else if (model_.sessions.size() == kCapacity) {
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

    void memoize() {
        const auto it = model_.sessions.find(number());
        if (it == model_.sessions.end()) return;
        Session& s = it->second;
        const Outcome outcome{.permit = true, .traffic_class = static_cast<std::uint8_t>(rng_() % 40)};
        const bool another_holds_it =
            std::any_of(model_.sessions.begin(), model_.sessions.end(),
                        [&](const auto& item) { return item.second.memo && item.second.outcome == outcome; });
        const bool room = another_holds_it || outcomes_.size() < kOutcomes;
        s.memo = table_.memoize(s.index, outcomes_, outcome, 1, 0) != session::kNoOutcome;
        s.outcome = outcome;
        REQUIRE(s.memo == room);
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
            keys[i] = test::pool_key(numbers[i], rng_() % 2 != 0);
            pointers[i] = &keys[i];
            hashes[i] = test::hash_of(keys[i]);
            table_.prefetch(hashes[i]);
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
    static constexpr std::size_t kOutcomes = 24;

    std::mt19937_64 rng_;
    std::uint64_t now_ = 0;
    Table table_{kCapacity, -1, kHz, kTimeouts};
    OutcomeTable outcomes_{kOutcomes};
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
}
