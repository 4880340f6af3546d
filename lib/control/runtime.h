#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A running cachewire: ports, workers, the published configuration, the sockets, and the control loop on the main
// lcore. EAL is up before it and after it. Everything here runs on the main lcore except telemetry handlers,
// which take `mutex_` and read counters.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "config/config.h"
#include "config/load.h"
#include "control/bucket_mover.h"
#include "control/control_socket.h"
#include "control/kernel/twins.h"
#include "control/lcore_usage.h"
#include "control/link_watch.h"
#include "control/memo_status.h"
#include "control/overrides.h"
#include "control/policy_preview.h"
#include "control/pools.h"
#include "control/port_change.h"
#include "control/ports.h"
#include "control/publisher.h"
#include "control/rebalance.h"
#include "control/route_feed.h"
#include "control/rss_dispatch.h"
#include "control/session_requests.h"
#include "control/session_status.h"
#include "control/signals.h"
#include "control/slow_path/slow_path.h"
#include "control/snapshot_builder.h"
#include "control/worker_watch.h"
#include "control/workers.h"
#include "port/port.h"
#include "qos/shared_bucket.h"
#include "telemetry/endpoints.h"

namespace cachewire::control {

struct RunOptions {
    unsigned stats_period_s = 0;         // 0: no table
    std::optional<unsigned> duration_s;  // stop after
    std::optional<unsigned> idle_s;      // stop when no port has received for that long
    std::function<void()> on_stats;      // called every stats period, and once at the end
};

enum class State { starting, running, draining };

class Runtime {
  public:
    // `lcores`: of the workers; `scheduler_lcore`: where ports have schedulers. Configures ports, takes memory,
    // publishes generation 1; throws base::MachineError.
    Runtime(config::Config config, std::vector<unsigned> lcores, std::optional<unsigned> scheduler_lcore = {});
    ~Runtime();
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    // Launches the workers and returns when asked to stop (signal, duration, idle, request_stop), drained and joined.
    void run(const RunOptions& options);
    // After run(): the last word on every packet.
    [[nodiscard]] std::string ledger_text() const;
    // Any thread: run() returns soon.
    void request_stop();

    struct ReloadResult {
        bool ok = false;
        std::string error;  // a sentence, when it is not the file's fault
        std::vector<config::Diagnostic> diagnostics;
        std::uint64_t generation = 0;
        std::optional<PolicyPreview> preview;             // of a dry run
        std::optional<std::size_t> session_bucket_bytes;  // of a dry run: what make_session_buckets() would map
    };
    struct ReloadOptions {
        bool dry_run = false;                    // everything but the publication
        std::optional<std::uint32_t> confirm_s;  // back to what runs now, unless confirm() comes within so many seconds
    };
    // Reads the files again. All or nothing.
    ReloadResult reload(const ReloadOptions& options);
    // The last reload stays. Empty, or why not.
    std::string confirm();
    // What ran before the last accepted reload runs again, as it was read then. Once: there is no earlier one to be
    // had.
    ReloadResult rollback();
    // `cwctl memoize`: over what the file says, and over reloads, until it says the same again. Empty, or why not.
    std::string override_memoize(bool on);
    // `cwctl block`, over reloads, for `for_s` seconds; an empty tenant is the only one. Empty, or why not.
    std::string block(std::string tenant, const net::Prefix& prefix, std::uint32_t for_s);
    std::string unblock(std::string tenant, const net::Prefix& prefix);
    void set_log_level(base::LogLevel level);
    // `cwctl neighbors flush`: how many learned ones were forgotten; empty `tenant`: of all. nullopt: no such tenant.
    std::optional<std::size_t> flush_neighbors(const std::string& tenant);

    // `cwctl rebalance`, step by step in the control loop.
    struct RebalanceWish {  // instead of what the load asks for
        unsigned from_lcore = 0, to_lcore = 0, buckets = 0;
    };
    struct RebalanceResult {
        struct Move {
            unsigned from_lcore, to_lcore, buckets;
            std::uint32_t sessions, lost, parked;
            std::uint64_t us;
        };
        std::vector<Move> moves;
        std::string error;
    };
    struct Rebalance {  // written by the control thread as it goes on
        std::vector<double> rates;
        std::vector<HeavySession> heavy;
        unsigned moves_left = 0;    // that the load may still ask for
        std::optional<Shift> next;  // that is going on, or is about to
        bool started = false, done = false;
        std::uint64_t begin_tsc = 0, looked_tsc = 0, waited_tsc = 0;  // of this move
        RebalanceResult result{};                                     // whole once it is done
    };
    // Throws std::runtime_error with the reason why none begins. Asks the workers for their heaviest sessions, and
    // waits for that.
    std::shared_ptr<const Rebalance> begin_rebalance(const std::optional<RebalanceWish>& wish);
    // Waits until none is going on, 2 s a move at most: for what must find every session at one worker.
    void settle_rebalance();

    // For status.cc, under the lock.
    struct View {
        const config::Config& config;
        const Registry& registry;
        const Workers& workers;
        const std::vector<std::unique_ptr<port::EthPort>>& ports;
        const std::vector<LeavingPort>& leaving_ports;
        const ClosedPorts& closed_ports;
        const pipeline::Snapshot& snapshot;
        State state;
        std::uint64_t generation;
        std::uint64_t uptime_s;
        const Pools& pools;
        std::uint64_t pool_low_water;  // fewest free mbufs seen, sampled ten times a second
        std::uint64_t lost_mbufs;      // of ports that are gone
        const SessionGrowth& session_growth;
        std::optional<bool> memoize_override;
        const Overrides& overrides;
        std::uint64_t now_ms;
        std::optional<std::uint64_t> confirm_by_ms;
        const RuleHits& rule_hits;
        std::uint64_t
            restart_pending;  // keys of the file that the last reload was refused for; 0 after one that was accepted
        const SlowPath& slow_path;
        const Twins& twins;
        const RouteFeed& route_feed;
        const std::map<std::uint16_t, FedTable>& fed_routes;  // by tenant slot
        const RssDispatch& dispatch;
        const WorkerLoad& load;
    };
    template <class F>
    auto with_view(F&& f) {
        const std::lock_guard lock(mutex_);
        return f(view());
    }

    // Not under the lock: it waits for workers. While they run.
    SessionRequests& session_requests() { return *session_requests_; }

  private:
    View view() const;
    void start_ports();
    void choose_dispatch();
    void start_workers();
    void start_slow_path();
    void configure_slow_path();
    void start_twins();
    [[nodiscard]] bool is_routed_elsewhere(const NeighborKey& key) const;
    [[nodiscard]] std::vector<net::Mac> port_macs(const config::Config& config) const;
    void poll_slow_path();
    void serve_quietly();
    void beside(const std::function<void()>& work, const std::function<void()>& serve);
    void publish_built(SnapshotBuilder::PassPointer pass);
    void wait_for_work(std::vector<pollfd>& fds);
    void add_commands();
    void loop(const RunOptions& options);
    void handle_signals();
    std::string finish_grace_period();  // empty, or which worker stalls
    std::string quiesce();              // the same, of what they have been given till now
    ReloadResult apply(config::Config next, bool dry_run);
    [[nodiscard]] std::vector<HeavySession> heavy_sessions();
    void step_rebalance();
    [[nodiscard]] std::string why_no_rebalance() const;
    void choose_next_move();
    void end_move(std::string error);
    bool step_move();
    void look_at_load();
    void check_confirmation();
    void close_leaving();
    [[nodiscard]] std::string settle_tenant(std::string& tenant) const;
    std::string publish_blocks();
    void end_blocks();
    [[nodiscard]] static std::uint64_t now_ms() noexcept;
    void finish();
    void check_pools(unsigned lost_in_drivers);
    void sample_pool();
    bool republish(const std::string& port, const PortInfo& info);
    [[nodiscard]] std::uint64_t oversize_frames(const std::string& port) const;
    void watch_ports(bool all);  // not all: only for links that are away

    config::Config config_;
    std::optional<config::Config> previous_;  // for rollback()
    std::optional<std::uint64_t> confirm_by_ms_;
    Overrides overrides_;
    std::vector<unsigned> lcores_;
    std::optional<unsigned> scheduler_lcore_;
    std::uint64_t start_tsc_;
    mutable std::mutex mutex_;  // config_, registry and snapshot against telemetry readers
    std::optional<Pools> pools_;
    std::uint64_t pool_low_water_ = 0;
    Ports ports_;  // in the configuration's order
    std::optional<PortWatch> watch_;
    LinkWatch links_;
    std::vector<LeavingPort> leaving_;
    ClosedPorts closed_ports_;
    PortChange::OldQueues old_queues_;  // until the grace period is over
    unsigned lost_mbufs_ = 0;           // with ports that are closed for good
    std::optional<Publisher> publisher_;
    std::optional<RssDispatch> dispatch_;
    std::optional<SnapshotBuilder> builder_;
    std::optional<RouteFeed> route_feed_;
    std::unique_ptr<qos::SharedBuckets> shared_policers_;  // of several workers, which write it
    Workers workers_;
    std::optional<BucketMover> mover_;
    std::optional<Shift> moving_;  // what it moves
    std::shared_ptr<Rebalance> rebalance_;
    std::optional<LcoreUsageAnswers> usage_answers_;
    WorkerLoad load_;
    std::optional<SlowPath> slow_path_;
    std::optional<Twins> twins_;
    Twins::Pending pending_twins_;  // of the configuration that is about to be published
    std::uint64_t slow_path_busy_until_ms_ = 0;
    std::optional<SessionRequests> session_requests_;
    SessionGrowth session_growth_;
    MemoWatch memo_watch_;
    WorkerWatch worker_watch_;
    Signals signals_;
    std::optional<telemetry::Endpoints> endpoints_;
    std::unique_ptr<ControlSocket> control_socket_;
    int stop_event_ = -1;
    std::atomic<bool> stop_{false};
    State state_ = State::starting;
    std::uint64_t generation_ = 1;
    std::uint64_t restart_pending_ = 0;
};

void add_rebalance_command(ControlSocket& socket, Runtime& runtime);

}  // namespace cachewire::control
