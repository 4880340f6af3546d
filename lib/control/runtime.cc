// SPDX-License-Identifier: BSD-3-Clause
#include "control/runtime.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <stdexcept>

#include <fmt/format.h>
#include <poll.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "control/acl_status.h"
#include "control/kernel/twin_status.h"
#include "control/object_status.h"
#include "control/override_status.h"
#include "control/policers.h"
#include "control/route_status.h"
#include "control/slow_path/neighbor_status.h"
#include "control/status.h"

namespace cachewire::control {

namespace {

constexpr unsigned kTickMs = 100;
constexpr unsigned kLinkMs = 10;
constexpr unsigned kDrainMs = 1000;

net::HashSeed random_seed() {
    net::HashSeed seed;
    std::uint64_t random[3];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        throw base::MachineError("getrandom gave no seed for the flow hash");
    // The fold multiplies by these: an even or tiny key would lose bits.
    seed.a = random[0] | 1;
    seed.b = random[1] | 1;
    seed.c = random[2] | 1;
    return seed;
}

// What a client asks for and nobody knows is refused: an option that did nothing would be believed.
Runtime::ReloadOptions reload_options(const ControlSocket::Json& request) {
    constexpr std::uint32_t kMostS = 86400;
    Runtime::ReloadOptions options;
    for (const auto& [key, value] : request.items()) {
        if (key == "command") continue;
        if (key == "dry_run" && value.is_boolean()) {
            options.dry_run = value.get<bool>();
        } else if (key == "confirm_s" && value.is_number_unsigned() && value >= 1u && value <= kMostS) {
            options.confirm_s = value.get<std::uint32_t>();
        } else {
            throw std::invalid_argument(
                "reload: '" + key +
                "' is not known or wrong; allowed: dry_run (true or false), confirm_s (1 to 86400)");
        }
    }
    if (options.dry_run && options.confirm_s)
        throw std::invalid_argument("reload: nothing is to be confirmed of a dry run");
    return options;
}

ControlSocket::Json answer_of(const Runtime::ReloadResult& result) {
    ControlSocket::Json answer = {{"ok", result.ok}, {"generation", result.generation}};
    if (!result.error.empty()) answer["error"] = result.error;
    for (const auto& diagnostic : result.diagnostics) answer["diagnostics"].push_back(config::to_string(diagnostic));
    if (result.preview) answer["preview"] = to_json(*result.preview);
    if (result.session_bucket_bytes) answer["memory"] = {{"sessions", {{"more_bytes", *result.session_bucket_bytes}}}};
    return answer;
}

std::vector<WorkerWatch::Beat> beats(const Workers& workers) {
    std::vector<WorkerWatch::Beat> result;
    for (const auto& beat : workers.beats()) result.push_back({beat.lcore, beat.iterations});
    return result;
}

void log_diagnostics(const Runtime::ReloadResult& result) {
    for (const auto& diagnostic : result.diagnostics) {
        const bool wrong = diagnostic.severity == config::Diagnostic::Severity::error;
        base::log_line(wrong ? base::LogLevel::error : base::LogLevel::warning, config::to_string(diagnostic));
    }
}

}  // namespace

Runtime::Runtime(config::Config config, std::vector<unsigned> lcores, std::optional<unsigned> scheduler_lcore)
    : config_(std::move(config)),
      lcores_(std::move(lcores)),
      scheduler_lcore_(scheduler_lcore),
      start_tsc_(base::now_tsc()),
      worker_watch_([](const std::string& text) { base::log_warning("{}", text); }) {
    stop_event_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (stop_event_ < 0) base::check(-errno, "eventfd");
    publisher_.emplace(static_cast<unsigned>(lcores_.size()) + (scheduler_lcore_ ? 1u : 0u));
    start_ports();
    start_workers();
    control_socket_ = std::make_unique<ControlSocket>(std::string(rte_eal_get_runtime_dir()) + "/cachewire_control");
    add_commands();
    endpoints_.emplace();
    add_endpoints(*endpoints_, *this);
    add_session_endpoints(*endpoints_, *this);
    add_memo_endpoints(*endpoints_, *this);
    add_neighbor_endpoints(*endpoints_, *this);
    add_route_endpoints(*endpoints_, *this);
    add_twin_endpoints(*endpoints_, *this);
    add_object_endpoints(*endpoints_, *this);
    add_acl_endpoints(*endpoints_, *this);
    add_override_endpoints(*endpoints_, *this);
}

Runtime::~Runtime() {
    endpoints_.reset();  // a handler that runs ends first, then nobody looks at the ports any more
    workers_.drain_and_join(0);
    slow_path_.reset();
    links_.follow({}, config_, ports_);
    for (const LeavingPort& leaving : leaving_) {
        leaving.port->close();
        lost_mbufs_ += leaving.port->lost_mbufs();
    }
    for (const auto& port : ports_) {
        port->close();
        lost_mbufs_ += port->lost_mbufs();
    }
    ports_.clear();
    check_pools(lost_mbufs_);
    close(stop_event_);
}

// Ports are closed and workers joined: whoever still has an mbuf now has lost it.
void Runtime::check_pools(unsigned lost_in_drivers) {
    const std::uint64_t in_use = pools_->size() - pools_->free();
    if (in_use > lost_in_drivers) base::log_error("{} mbufs were not returned to their pool", in_use - lost_in_drivers);
}

void Runtime::sample_pool() {
    const std::lock_guard lock(mutex_);
    pool_low_water_ = std::min(pool_low_water_, pools_->free());
    memo_watch_.look(workers_);
    session_growth_.sample(workers_, builder_->registry().tenants.end(),
                           static_cast<double>(base::now_tsc()) / static_cast<double>(base::tsc_hz()));
}

std::string Runtime::ledger_text() const { return control::ledger_text(ledger_sum(workers_)); }

void Runtime::start_ports() {
    pools_.emplace(config_, static_cast<unsigned>(lcores_.size()));
    pool_low_water_ = pools_->free();
    std::map<std::string, PortInfo> infos;
    for (const config::Port& from : config_.ports) {
        ports_.push_back(std::make_unique<port::EthPort>(
            port_config(config_, from, static_cast<unsigned>(lcores_.size())), pools_->main()));
        infos[from.name] = port_info(*ports_.back());
    }
    warn_about_tags(config_, ports_);
    watch_.emplace(
        ports_, [this](const std::string& name, const PortInfo& info) { return republish(name, info); },
        [this](const std::string& name) { return oversize_frames(name); });
    choose_dispatch();
    builder_.emplace(std::move(infos), dispatch_->seed(), SOCKET_ID_ANY);
    route_feed_.emplace(*builder_, *publisher_);
    links_.follow(config_.cross_connects, config_, ports_);
}

void Runtime::choose_dispatch() {
    const auto workers = static_cast<unsigned>(lcores_.size());
    dispatch_.emplace(config_.workers.dispatch == config::Dispatch::rss, workers, random_seed(),
                      [](const std::string& text) { base::log_info("{}", text); });
    std::vector<PortQueues> numbers;  // workers get their queues in this order; places in the snapshot don't matter yet
    for (const auto& port : ports_)
        numbers.push_back({0, port->id(), port->config().rx_queues, port->config().tx_queues});
    const auto queues = assign_queues(numbers, workers);
    std::vector<RssPort> asked;
    for (const auto& port : ports_) asked.push_back(rss_port(*port, queues));
    dispatch_->choose(asked);
}

// Generation 1 is published before the first worker runs: no packet is ever handled without its policy.
void Runtime::start_workers() {
    auto pass = builder_->begin(config_, generation_);
    builder_->complete(*pass);
    publisher_->publish(builder_->commit(std::move(pass)), [this] { builder_->grace_period_over(); });
    const auto workers = static_cast<std::uint32_t>(lcores_.size());
    if (config_.sessions.capacity < workers)
        throw base::Error(
            base::ExitStatus::configuration,
            "sessions.capacity: it is split over the workers, and there are " + std::to_string(workers) + " of them");
    const std::uint32_t capacity = config_.sessions.capacity / workers;
    const std::size_t buckets = session_buckets_needed(config_, capacity);
    const std::size_t bytes = session::Table::memory_needed(capacity) + buckets;
    base::log_info("sessions: {} on each of {} workers take {} MiB each{}, {} MiB in all", capacity, workers,
                   bytes >> 20,
                   buckets == 0 ? "" : fmt::format(" ({} MiB of it for policers' `per_session`)", buckets >> 20),
                   bytes * workers >> 20);
    const auto quotas = std::make_shared<session::SharedQuotas>();
    const KernelMeters kernel_meters = make_kernel_meters();
    if (workers > 1) shared_policers_ = std::make_unique<qos::SharedBuckets>(kMaxPolicers);
    std::vector<PortQueues> ports;
    for (const auto& port : ports_)
        ports.push_back({*builder_->registry().ports.find(port->name()), port->id(), port->config().rx_queues,
                         port->config().tx_queues});
    auto queues = assign_queues(ports, workers);
    for (std::size_t i = 0; i < lcores_.size(); ++i) {
        auto state = make_worker_state(lcores_[i], capacity, quotas, shared_policers_.get(), kernel_meters);
        state->adaptive_idle = config_.workers.idle == config::Idle::adaptive;
        if (config_.pipeline.metadata == config::Metadata::mbuf_dynfield)
            state->mbuf_burst = pipeline::make_mbuf_burst();
        make_session_buckets(config_, *state->sessions);
        builder_->rule_hits().add_worker(state->rules);
        workers_.add(std::move(state), std::move(queues[i]), *publisher_);
    }
    workers_.connect(ports, dispatch_->owners());
    if (scheduler_lcore_) workers_.add_scheduler(config_, builder_->registry(), *scheduler_lcore_, *publisher_);
    say_how_workers_share(workers_, dispatch_->uses_rss());
    mover_.emplace(workers_.all(), *publisher_);
    usage_answers_.emplace(workers_.all());
    start_slow_path();
    std::vector<SessionRequests::Worker> askable;
    for (const auto& worker : workers_.all()) askable.push_back({&worker->mailbox(), worker->state().lcore});
    session_requests_.emplace(std::move(askable));
}

std::uint64_t Runtime::oversize_frames(const std::string& port) const {
    const std::uint16_t index = *builder_->registry().ports.find(port);
    std::uint64_t frames = 0;
    for (const auto& worker : workers_.all()) frames += worker->state().ports[index].rx_oversize.read();
    return frames;
}

void Runtime::watch_ports(bool all) {
    const std::lock_guard lock(mutex_);
    try {
        if (all) {
            watch_->look(now_ms());
            links_.look(ports_, now_ms());
            if ((!leaving_.empty() || !old_queues_.empty()) && publisher_->reap() == 0) close_leaving();
        } else {
            watch_->look_for_links();
        }
    } catch (const std::exception& error) {
        base::log_error("watching the ports: {}", error.what());
    }
}

void Runtime::add_commands() {
    add_session_commands(*control_socket_, *this);
    add_neighbor_commands(*control_socket_, *this);
    add_config_command(*control_socket_, *this);
    add_override_commands(*control_socket_, *this);
    add_rebalance_command(*control_socket_, *this);
    control_socket_->add("reload", [this](const ControlSocket::Json& request) {
        const ReloadResult result = reload(reload_options(request));
        log_diagnostics(result);
        return answer_of(result);
    });
    control_socket_->add("rollback", [this](const ControlSocket::Json&) { return answer_of(rollback()); });
    control_socket_->add("confirm", [this](const ControlSocket::Json&) {
        const std::string error = confirm();
        return error.empty() ? ControlSocket::Json{{"ok", true}, {"generation", generation_}}
                             : ControlSocket::Json{{"ok", false}, {"error", error}};
    });
}

Runtime::View Runtime::view() const {
    return {config_,
            builder_->registry(),
            workers_,
            ports_,
            leaving_,
            closed_ports_,
            *publisher_->current(),
            state_,
            generation_,
            (base::now_tsc() - start_tsc_) / base::tsc_hz(),
            *pools_,
            pool_low_water_,
            lost_mbufs_,
            session_growth_,
            builder_->memoize_override(),
            overrides_,
            now_ms(),
            confirm_by_ms_,
            builder_->rule_hits(),
            restart_pending_,
            *slow_path_,
            *twins_,
            *route_feed_,
            builder_->fed_routes(),
            *dispatch_,
            load_};
}

void Runtime::request_stop() {
    stop_.store(true, std::memory_order_relaxed);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(stop_event_, &one, sizeof one);
}

void Runtime::handle_signals() {
    while (const auto signal = signals_.next()) {
        if (*signal != SIGHUP) {
            stop_.store(true, std::memory_order_relaxed);
            continue;
        }
        const ReloadResult result = reload({});
        log_diagnostics(result);
        if (result.ok) {
            base::log_info("reloaded {}: generation {}", config_.path, result.generation);
        } else {
            base::log_error("reload refused: {}", result.error);
        }
    }
}

void Runtime::run(const RunOptions& options) {
    workers_.launch();
    {
        const std::lock_guard lock(mutex_);
        state_ = State::running;
    }
    loop(options);
    finish();
    if (options.on_stats) options.on_stats();
}

void Runtime::loop(const RunOptions& options) {
    const std::uint64_t hz = base::tsc_hz(), begin = base::now_tsc();
    std::uint64_t next_stats = begin + options.stats_period_s * hz, last_rx = 0, last_rx_tsc = begin;
    std::uint64_t next_tick = begin, next_link = begin;
    while (!stop_.load(std::memory_order_relaxed)) {
        std::vector<pollfd> fds = {{signals_.fd(), POLLIN, 0}, {stop_event_, POLLIN, 0}};
        control_socket_->append_poll(fds);
        fds.push_back({twins_->fd(), POLLIN, 0});
        wait_for_work(fds);
        handle_signals();
        control_socket_->handle(fds);
        poll_slow_path();
        step_rebalance();
        const std::uint64_t now = base::now_tsc();
        if (now >= next_link) {
            watch_ports(false);
            next_link = now + hz * kLinkMs / 1000;
        }
        if (now < next_tick) continue;
        next_tick = now + hz * kTickMs / 1000;
        sample_pool();
        look_at_load();
        step_move();
        watch_ports(true);
        end_blocks();
        check_confirmation();
        worker_watch_.look(beats(workers_), now * 1000 / hz);
        if (const std::uint64_t rx = ledger_sum(workers_).rx; rx != last_rx) {
            last_rx = rx;
            last_rx_tsc = now;
        }
        if (options.duration_s && now - begin >= *options.duration_s * hz) break;
        if (options.idle_s && now - last_rx_tsc >= *options.idle_s * hz) break;
        if (options.stats_period_s != 0 && options.on_stats && now >= next_stats) {
            next_stats += options.stats_period_s * hz;
            options.on_stats();
        }
    }
}

void Runtime::finish() {
    {
        const std::lock_guard lock(mutex_);
        state_ = State::draining;
    }
    slow_path_->close();
    workers_.drain_and_join(kDrainMs, [this] { poll_slow_path(); });
    const std::lock_guard lock(mutex_);  // a port that stops is not asked for its counters
    for (const auto& port : ports_) port->stop();
}

}  // namespace cachewire::control
