// SPDX-License-Identifier: BSD-3-Clause
// How a Runtime replaces what its workers see: a reload, an override, a port that is not the same any more.
#include "control/runtime.h"

#include <chrono>

#include <unistd.h>

#include "base/log.h"
#include "control/policers.h"
#include "control/restart.h"

namespace cachewire::control {

namespace {

constexpr unsigned kGraceMs = 2000;
constexpr std::chrono::seconds kPreviewBudget{5};

}  // namespace

std::string Runtime::finish_grace_period() {
    const std::vector<Workers::Beat> before = workers_.beats();
    for (unsigned waited = 0; publisher_->reap() != 0; ++waited) {
        if (waited == kGraceMs) {
            std::string stalled;
            const std::vector<Workers::Beat> now = workers_.beats();
            for (std::size_t i = 0; i < before.size(); ++i)
                if (now[i].iterations == before[i].iterations) stalled += " " + std::to_string(now[i].lcore);
            return "the worker on lcore" + stalled + " has not come round for 2 s; nothing was applied";
        }
        usleep(1000);
    }
    return "";
}

std::string Runtime::quiesce() {
    if (std::string stalled = finish_grace_period(); !stalled.empty()) return stalled;
    publisher_->start_grace_period();
    return finish_grace_period();
}

Runtime::ReloadResult Runtime::reload(const ReloadOptions& options) {
    ReloadResult result;
    result.generation = generation_;
    if (confirm_by_ms_ && !options.dry_run) {
        result.error = "the last reload waits for `confirm`, or `rollback`";
        return result;
    }
    settle_rebalance();  // its steps would wait for as long as the files take to read
    config::LoadResult loaded;
    beside([&] { loaded = config::load_file(config_.path); }, [this] { poll_slow_path(); });
    if (loaded.config) {
        result = apply(std::move(*loaded.config), options.dry_run);
    } else {
        result.error = "the file has errors; the running configuration stays";
    }
    result.diagnostics = std::move(loaded.diagnostics);
    if (!result.ok || !options.confirm_s) return result;
    const std::lock_guard lock(mutex_);
    confirm_by_ms_ = now_ms() + *options.confirm_s * std::uint64_t{1000};
    return result;
}

std::string Runtime::confirm() {
    const std::lock_guard lock(mutex_);
    if (!confirm_by_ms_) return "no reload waits for it";
    confirm_by_ms_.reset();
    return "";
}

Runtime::ReloadResult Runtime::rollback() {
    ReloadResult result;
    result.generation = generation_;
    if (!previous_) {
        result.error = "there is no earlier configuration: none was accepted since the start, or it was rolled back to";
        return result;
    }
    result = apply(*previous_, false);
    if (!result.ok) return result;
    const std::lock_guard lock(mutex_);
    previous_.reset();
    confirm_by_ms_.reset();
    return result;
}

// Nobody has confirmed: perhaps because nobody gets here any more.
void Runtime::check_confirmation() {
    if (!confirm_by_ms_ || now_ms() < *confirm_by_ms_) return;
    const ReloadResult result = rollback();
    if (result.ok) {
        base::log_warning("the last reload was not confirmed: what ran before it runs again, generation {}",
                          result.generation);
        return;
    }
    base::log_error("the last reload was not confirmed, and what ran before it can't run again: {}", result.error);
    const std::lock_guard lock(mutex_);
    confirm_by_ms_.reset();
}

Runtime::ReloadResult Runtime::apply(config::Config next, bool dry_run) {
    ReloadResult result;
    result.generation = generation_;
    if (const auto found = obstacles(config_, next); !found.empty()) {
        if (!dry_run) {
            const std::lock_guard lock(mutex_);
            restart_pending_ = found.size();
        }
        result.error = "needs a restart, so nothing was applied: " + to_string(found);
        return result;
    }
    settle_rebalance();
    // What no snapshot names may be freed, and a session that is between two workers is nobody's.
    if (mover_->busy()) {
        result.error = "a rebalance waits for " + mover_->waits_for() + "; nothing was applied";
        return result;
    }
    try {
        // Before the pass and the ports, so that what is dropped undoes its changes under the lock too.
        std::unique_lock lock(mutex_, std::defer_lock);
        SnapshotBuilder::PassPointer pass;
        beside(
            [&] {
                pass = builder_->begin(next, generation_ + 1);
                // Before any device changes, because it may want more memory than there is.
                if (!dry_run)
                    for (const auto& worker : workers_.all()) make_session_buckets(next, *worker->state().sessions);
            },
            [this] {
                const std::lock_guard turn(mutex_);
                serve_quietly();
            });
        if (dry_run && state_ == State::running) {
            result.preview = preview_policy(*session_requests_, *publisher_->current(),
                                            SnapshotBuilder::lists_of(*pass), kPreviewBudget);
            for (const auto& worker : workers_.all()) result.preview->live += worker->state().sessions->stats().active;
            name_rules(*result.preview, next);
            result.session_bucket_bytes = 0;
            for (const auto& worker : workers_.all())
                *result.session_bucket_bytes += session_buckets_missing(next, *worker->state().sessions);
        }
        PortChange ports({ports_, *pools_, workers_, *builder_, [this] { return quiesce(); }}, config_, next);
        if (!dry_run) ports.open();
        lock.lock();
        result.error = finish_grace_period();
        if (!result.error.empty()) return result;
        ports.prepare(*pass, dry_run);
        if (!dry_run) pending_twins_ = twins_->begin(next, port_macs(next));
        beside([&] { builder_->complete(*pass); }, [this] { serve_quietly(); });
        if (!dry_run) {
            ports.link(*pass);
            publish_built(std::move(pass));
            for (LeavingPort& port : ports.finish(old_queues_)) leaving_.push_back(std::move(port));
            // Workers have had the snapshot for a while, and look at the old queues until now.
            if (!old_queues_.empty()) publisher_->start_grace_period();
            for (const std::string& name : ports.plan().removed) watch_->forget(name);
            for (const std::size_t i : ports.plan().added) dispatch_->tell(rss_port(*ports_[i], workers_));
            previous_ = std::exchange(config_, std::move(next));
            configure_slow_path();
            links_.follow(config_.cross_connects, config_, ports_);
            if (!ports.plan().added.empty()) warn_about_tags(config_, ports_);
            restart_pending_ = 0;
            result.generation = ++generation_;
            if (!leaving_.empty() && finish_grace_period().empty()) close_leaving();
        }
        result.ok = true;
    } catch (const std::exception& error) {  // also bad_alloc: whatever it was, what runs goes on
        result.error = error.what();
        pending_twins_.clear();
    }
    return result;
}

// After the grace period the VRFs' other copies take the same changes, which takes as long as the first ones did.
void Runtime::publish_built(SnapshotBuilder::PassPointer pass) {
    publisher_->publish(builder_->commit(std::move(pass)),
                        [this] { beside([this] { builder_->grace_period_over(); }, [this] { serve_quietly(); }); });
}

// No worker has a snapshot with them any more.
void Runtime::close_leaving() {
    old_queues_.clear();
    for (const LeavingPort& leaving : leaving_) {
        leaving.port->close();
        leaving.port->unplug();
        lost_mbufs_ += leaving.port->lost_mbufs();
        port::add_counts(closed_ports_[leaving.port->name()], leaving.port->stats());
        pools_->give_back(leaving.port->pool(), leaving.from);
        base::log_info("port {}: closed, it is not in the configuration any more", leaving.port->name());
    }
    leaving_.clear();
}

// The configuration is the same, a port is not. Under the lock.
bool Runtime::republish(const std::string& port, const PortInfo& info) {
    if (!finish_grace_period().empty()) return false;
    builder_->set_port(port, info);
    auto pass = builder_->begin(config_, generation_);
    builder_->complete(*pass);
    publish_built(std::move(pass));
    configure_slow_path();
    if (info.attached)
        for (const auto& each : ports_)
            if (each->name() == port && each->is_open()) dispatch_->tell(rss_port(*each, workers_));
    return finish_grace_period().empty();
}

}  // namespace cachewire::control
