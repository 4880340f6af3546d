// SPDX-License-Identifier: BSD-3-Clause
// `cwctl rebalance`: what a Runtime does about workers of which one has more to do than another.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/runtime.h"

namespace cachewire::control {

namespace {

constexpr std::uint64_t kMoveMs = 2000;
constexpr unsigned kLookUs = 50;
constexpr unsigned kParkLooks = 10;  // of a worker that stands still: then the loop goes on, and comes back
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

std::string Runtime::why_no_rebalance() const {
    if (workers_.all().size() < 2) return "there is one worker";
    if (config_.pipeline.metadata == config::Metadata::mbuf_dynfield)
        return "pipeline.metadata: mbuf_dynfield keeps no packet back, so no session can move";
    if (rebalance_ && !rebalance_->done) return "another rebalance is going on";
    return mover_->busy() ? fmt::format("the last move waits for {}", mover_->waits_for()) : "";
}

std::shared_ptr<const Runtime::Rebalance> Runtime::begin_rebalance(const std::optional<RebalanceWish>& wish) {
    const auto& workers = workers_.all();
    if (const std::string why = why_no_rebalance(); !why.empty()) throw std::runtime_error(why);
    auto job = std::make_shared<Rebalance>();
    if (wish) {
        const auto from = worker_on(workers, wish->from_lcore), to = worker_on(workers, wish->to_lcore);
        if (!from || !to || *from == *to)
            throw std::runtime_error(
                fmt::format("lcores {} and {} are not two workers", wish->from_lcore, wish->to_lcore));
        job->next = any_buckets(dispatch_->owners(), dispatch_->granularity(), *from, *to, wish->buckets);
    } else {
        job->rates = load_.rates();
        job->heavy = heavy_sessions();
        job->moves_left = static_cast<unsigned>(workers.size());
    }
    rebalance_ = job;
    choose_next_move();
    step_rebalance();
    return job;
}

// The next thing to move, or the end.
void Runtime::choose_next_move() {
    Rebalance& job = *rebalance_;
    if (!job.next && job.moves_left != 0 && job.result.error.empty()) {
        --job.moves_left;
        job.next = choose_shift(job.rates, dispatch_->owners(), dispatch_->granularity(), job.heavy);
        if (job.next) {
            job.rates[job.next->from] -= job.next->rate;
            job.rates[job.next->to] += job.next->rate;
        }
    }
    if (!job.next) job.done = true;
    job.begin_tsc = job.looked_tsc = base::now_tsc();
    job.waited_tsc = 0;
}

void Runtime::end_move(std::string error) {
    rebalance_->next.reset();
    rebalance_->started = false;
    rebalance_->result.error = std::move(error);
    choose_next_move();
}

// Each turn of the control loop, which goes on with all else in between. A move that some worker keeps up for too long
// goes on by itself (step_move), and the rest is given up.
void Runtime::step_rebalance() {
    if (!rebalance_ || rebalance_->done) return;
    Rebalance& job = *rebalance_;
    // A turn in which the loop did something long is not the workers' fault.
    const std::uint64_t now = base::now_tsc();
    job.waited_tsc += std::min(now - std::exchange(job.looked_tsc, now), base::tsc_hz() / 100);
    const bool late = job.waited_tsc > base::tsc_hz() * kMoveMs / 1000;
    if (!job.started) {
        const std::lock_guard lock(mutex_);  // for what waits for a grace period
        if (!mover_->start(job.next->buckets, job.next->from, job.next->to)) {
            if (late) end_move("a worker has not come round for 2 s; nothing was moved");
            return;
        }
        job.started = true;
        moving_ = job.next;
    }
    if (!step_move()) {
        if (late) end_move(fmt::format("it waits for {}, and goes on when that comes round", mover_->waits_for()));
        return;
    }
    const BucketMover::Report& report = mover_->last();
    const unsigned from = workers_.all()[job.next->from]->state().lcore;
    const unsigned to = workers_.all()[job.next->to]->state().lcore;
    if (!report.moved)
        return end_move(fmt::format("lcore {} has no room for the {} sessions of these buckets", to, report.sessions));
    job.result.moves.push_back({from, to, job.next->count, report.sessions, report.lost, report.parked,
                                (base::now_tsc() - job.begin_tsc) * 1000000 / base::tsc_hz()});
    end_move("");
}

// For what must find every session in one place, or frees what one in between may name.
void Runtime::settle_rebalance() {
    while (rebalance_ && !rebalance_->done) {
        step_rebalance();
        usleep(kLookUs);
    }
}

// True: none goes on. Devices keep placing packets as before: told of new owners they would send a session's packets to
// another queue while earlier ones wait in the old one.
bool Runtime::step_move() {
    bool done = mover_->step();
    // Packets wait from here to the next step, which is a worker's iteration away: not for a turn of the loop.
    for (unsigned look = 0; mover_->parks() && look < kParkLooks; ++look) {
        usleep(kLookUs);
        done = mover_->step();
    }
    if (!done) return false;
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
    socket.add_long("rebalance", [&runtime](const ControlSocket::Json& request) -> ControlSocket::Pending {
        return [job = runtime.begin_rebalance(rebalance_wish(request))] {
            return job->done ? std::optional(answer_of(job->result)) : std::nullopt;
        };
    });
}

}  // namespace cachewire::control
