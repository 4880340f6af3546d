// SPDX-License-Identifier: BSD-3-Clause
// `cwctl rebalance`: what a Runtime does about workers of which one has more to do than another.
#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/runtime.h"

namespace cachewire::control {

namespace {

constexpr std::uint64_t kMoveMs = 2000;
constexpr unsigned kLookUs = 50;
constexpr std::size_t kHeavySessions = session::Mailbox::kMaxViews;

std::optional<unsigned> worker_on(const BucketMover::Workers& workers, unsigned lcore) {
    for (unsigned w = 0; w < workers.size(); ++w)
        if (workers[w]->state().lcore == lcore) return w;
    return std::nullopt;
}

}  // namespace

// Their rates are those of their lives: a session that has slowed down is taken for heavier than it is, which the next
// call puts right.
std::vector<HeavySession> Runtime::heavy_sessions() {
    std::vector<HeavySession> heavy;
    for (const session::SessionView& view : session_requests_->top({}, session::Weight::packets, kHeavySessions)) {
        const double seconds = static_cast<double>(view.age_cycles) / static_cast<double>(base::tsc_hz());
        heavy.push_back(
            {pipeline::owner_bucket(view.cold.hash), static_cast<double>(view.packets()) / std::max(seconds, 0.001)});
    }
    return heavy;
}

Runtime::RebalanceResult Runtime::rebalance(const std::optional<RebalanceWish>& wish) {
    RebalanceResult result;
    const auto& workers = workers_.all();
    if (workers.size() < 2) {
        result.error = "there is one worker";
    } else if (config_.pipeline.metadata == config::Metadata::mbuf_dynfield) {
        result.error = "pipeline.metadata: mbuf_dynfield keeps no packet back, so no session can move";
    } else if (mover_->busy()) {
        result.error = fmt::format("the last move waits for {}", mover_->waits_for());
    }
    if (!result.error.empty()) return result;
    if (wish) {
        const auto from = worker_on(workers, wish->from_lcore), to = worker_on(workers, wish->to_lcore);
        if (!from || !to || *from == *to) {
            result.error = fmt::format("lcores {} and {} are not two workers", wish->from_lcore, wish->to_lcore);
            return result;
        }
        if (const auto shift = any_buckets(dispatch_->owners(), dispatch_->granularity(), *from, *to, wish->buckets))
            result.error = move_buckets(*shift, result);
        return result;
    }
    std::vector<double> rates = load_.rates();
    const std::vector<HeavySession> heavy = heavy_sessions();
    for (std::size_t n = 0; n < workers.size() && result.error.empty(); ++n) {
        const auto shift = choose_shift(rates, dispatch_->owners(), dispatch_->granularity(), heavy);
        if (!shift) break;
        result.error = move_buckets(*shift, result);
        rates[shift->from] -= shift->rate;
        rates[shift->to] += shift->rate;
    }
    return result;
}

// Empty, or why they have not moved (yet).
std::string Runtime::move_buckets(const Shift& shift, RebalanceResult& result) {
    const std::uint64_t begin = now_ms(), tsc = base::now_tsc();
    const auto& workers = workers_.all();
    const auto start = [&] {
        const std::lock_guard lock(mutex_);  // for what waits for a grace period
        return mover_->start(shift.buckets, shift.from, shift.to);
    };
    while (!start()) {
        if (now_ms() - begin > kMoveMs) return "a worker has not come round for 2 s; nothing was moved";
        usleep(kLookUs);
    }
    moving_ = shift;
    while (!step_move()) {
        if (now_ms() - begin > kMoveMs)
            return fmt::format("it waits for {}, and goes on when that comes round", mover_->waits_for());
        usleep(kLookUs);
    }
    const BucketMover::Report& report = mover_->last();
    if (!report.moved)
        return fmt::format("lcore {} has no room for the {} sessions of these buckets",
                           workers[shift.to]->state().lcore, report.sessions);
    result.moves.push_back({workers[shift.from]->state().lcore, workers[shift.to]->state().lcore, shift.count,
                            report.sessions, report.lost, report.parked,
                            (base::now_tsc() - tsc) * 1000000 / base::tsc_hz()});
    return "";
}

// True: none goes on. Devices keep placing packets as before: told of new owners they would send a session's packets to
// another queue while earlier ones wait in the old one.
bool Runtime::step_move() {
    if (!mover_->step()) return false;
    if (!moving_) return true;
    const Shift shift = *std::exchange(moving_, std::nullopt);
    if (!mover_->last().moved) return true;
    const std::lock_guard lock(mutex_);
    pipeline::Owners owners = dispatch_->owners();
    control::apply(shift, owners);
    dispatch_->set_owners(owners);
    base::log_info("rebalance: {} buckets with {} sessions went from lcore {} to lcore {}", shift.count,
                   mover_->last().sessions, workers_.all()[shift.from]->state().lcore,
                   workers_.all()[shift.to]->state().lcore);
    return true;
}

void Runtime::look_at_load() {
    std::vector<std::uint64_t> packets;
    for (const auto& worker : workers_.all())
        packets.push_back(worker->state().stages[static_cast<std::size_t>(pipeline::StageId::session)].packets.read());
    const std::lock_guard lock(mutex_);
    load_.look(now_ms(), std::move(packets));
}

namespace {

ControlSocket::Json answer_of(const Runtime::RebalanceResult& result) {
    ControlSocket::Json answer = {{"ok", result.error.empty()}, {"moves", ControlSocket::Json::array()}};
    if (!result.error.empty()) answer["error"] = result.error;
    for (const auto& move : result.moves)
        answer["moves"].push_back({{"from", move.from_lcore},
                                   {"to", move.to_lcore},
                                   {"buckets", move.buckets},
                                   {"sessions", move.sessions},
                                   {"lost", move.lost},
                                   {"parked", move.parked},
                                   {"us", move.us}});
    return answer;
}

std::optional<Runtime::RebalanceWish> rebalance_wish(const ControlSocket::Json& request) {
    Runtime::RebalanceWish wish;
    unsigned known = 0;
    for (const auto& [key, value] : request.items()) {
        if (key == "command") continue;
        unsigned* const to = key == "from"      ? &wish.from_lcore
                             : key == "to"      ? &wish.to_lcore
                             : key == "buckets" ? &wish.buckets
                                                : nullptr;
        if (to == nullptr || !value.is_number_unsigned() || value > 1u << 20)
            throw std::invalid_argument("rebalance: '" + key +
                                        "' is not known or wrong; allowed: nothing, or from, to (lcores) and buckets");
        *to = value.get<unsigned>();
        ++known;
    }
    if (known == 0) return std::nullopt;
    if (known != 3 || wish.buckets == 0)
        throw std::invalid_argument("rebalance: from, to and buckets (1 or more) go together");
    return wish;
}

}  // namespace

void add_rebalance_command(ControlSocket& socket, Runtime& runtime) {
    socket.add("rebalance", [&runtime](const ControlSocket::Json& request) {
        return answer_of(runtime.rebalance(rebalance_wish(request)));
    });
}

}  // namespace cachewire::control
