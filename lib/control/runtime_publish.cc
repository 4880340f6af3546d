// SPDX-License-Identifier: BSD-3-Clause
// How a Runtime replaces what its workers see: a reload, an override, a port that is not the same any more.
#include "control/runtime.h"

#include <chrono>

#include <unistd.h>

#include "control/restart.h"

namespace cachewire::control {

namespace {

constexpr unsigned kGraceMs = 2000;
constexpr std::chrono::seconds kPreviewBudget{5};

}  // namespace

std::string Runtime::finish_grace_period() {
    const auto iterations = [](const auto& worker) { return worker->state().loop.iterations.read(); };
    std::vector<std::uint64_t> before;
    for (const auto& worker : workers_.all()) before.push_back(iterations(worker));
    for (unsigned waited = 0; publisher_->reap() != 0; ++waited) {
        if (waited == kGraceMs) {
            std::string stalled;
            for (std::size_t i = 0; i < before.size(); ++i)
                if (const auto& worker = workers_.all()[i]; iterations(worker) == before[i])
                    stalled += " " + std::to_string(worker->state().lcore);
            return "the worker on lcore" + stalled + " has not come round for 2 s; nothing was applied";
        }
        usleep(1000);
    }
    return "";
}

Runtime::ReloadResult Runtime::reload(bool dry_run) {
    ReloadResult result;
    result.generation = generation_;
    config::LoadResult loaded = config::load_file(config_.path);
    result.diagnostics = std::move(loaded.diagnostics);
    if (!loaded.config) {
        result.error = "the file has errors; the running configuration stays";
        return result;
    }
    if (const auto keys = needs_restart(config_, *loaded.config); !keys.empty()) {
        if (!dry_run) {
            const std::lock_guard lock(mutex_);
            restart_pending_ = keys.size();
        }
        result.error = "needs a restart, so nothing was applied:";
        for (const auto& key : keys) result.error += " " + key;
        return result;
    }
    try {
        // Before the pass, so that a pass which is dropped undoes its changes under the lock too.
        std::unique_lock lock(mutex_, std::defer_lock);
        auto pass = builder_->begin(*loaded.config, generation_ + 1);
        if (dry_run && state_ == State::running) {
            result.preview = preview_policy(*session_requests_, *publisher_->current(), SnapshotBuilder::lists_of(*pass),
                                            kPreviewBudget);
            name_rules(*result.preview, *loaded.config);
        }
        lock.lock();
        result.error = finish_grace_period();
        if (!result.error.empty()) return result;
        if (!dry_run) {
            pending_twins_ = twins_->begin(*loaded.config, port_macs(*loaded.config));
            change_ports(config_, *loaded.config);
        }
        try {
            builder_->complete(*pass);
        } catch (...) {
            if (!dry_run) change_ports(*loaded.config, config_);
            throw;
        }
        if (!dry_run) {
            publisher_->publish(builder_->commit(std::move(pass)), [this] { builder_->grace_period_over(); });
            config_ = std::move(*loaded.config);
            configure_slow_path();
            links_.follow(config_.cross_connects, ports_);
            restart_pending_ = 0;
            result.generation = ++generation_;
        }
        result.ok = true;
    } catch (const std::exception& error) {  // also bad_alloc: whatever it was, what runs goes on
        result.error = error.what();
        pending_twins_.clear();
    }
    return result;
}

std::string Runtime::override_memoize(bool on) {
    const std::lock_guard lock(mutex_);
    if (std::string stalled = finish_grace_period(); !stalled.empty()) return stalled;
    const std::optional<bool> before = builder_->memoize_override();
    builder_->override_memoize(on == config_.pipeline.memoize ? std::nullopt : std::optional(on));
    try {
        auto pass = builder_->begin(config_, generation_);
        builder_->complete(*pass);
        publisher_->publish(builder_->commit(std::move(pass)), [this] { builder_->grace_period_over(); });
    } catch (const std::exception& error) {
        builder_->override_memoize(before);
        return error.what();
    }
    return finish_grace_period();
}

// The configuration is the same, a port is not. Under the lock.
bool Runtime::republish(const std::string& port, const PortInfo& info) {
    if (!finish_grace_period().empty()) return false;
    builder_->set_port(port, info);
    auto pass = builder_->begin(config_, generation_);
    builder_->complete(*pass);
    publisher_->publish(builder_->commit(std::move(pass)), [this] { builder_->grace_period_over(); });
    configure_slow_path();
    return finish_grace_period().empty();
}

void Runtime::change_ports(const config::Config& from, const config::Config& to) {
    change_devices(ports_, from, to);
    for (const auto& port : ports_) builder_->set_port(port->name(), port_info(*port));
}

}  // namespace cachewire::control
