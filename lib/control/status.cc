// SPDX-License-Identifier: BSD-3-Clause
#include "control/status.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rte_lcore.h>
#include <rte_version.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/names.h"
#include "control/override_status.h"
#include "control/version.h"
#include "telemetry/page.h"

namespace cachewire::control {

namespace {

using telemetry::BadQuery;
using telemetry::Json;
using View = Runtime::View;

const char* state_name(State state) {
    switch (state) {
        case State::starting:
            return "starting";
        case State::running:
            return "running";
        case State::draining:
            return "draining";
    }
    return "";
}

Json info(const View& v) {
    return {{"version", kVersion},
            {"dpdk", rte_version()},
            {"pid", static_cast<std::uint64_t>(getpid())},
            {"uptime_s", v.uptime_s},
            {"state", state_name(v.state)},
            {"config_file", v.config.path},
            {"config_sha256", v.config.sha256},
            {"config_generation", v.generation},
            {"overrides", overrides_in_force(v)},
            {"confirm_in_s", v.confirm_by_ms ? (*v.confirm_by_ms - std::min(*v.confirm_by_ms, v.now_ms) + 999) / 1000
                                             : std::uint64_t{0}},
            {"restart_pending", v.restart_pending},
            {"dispatch", v.dispatch.uses_rss() ? "rss" : "software"},
            {"workers", static_cast<std::uint64_t>(v.workers.all().size())}};
}

Json port_list(const View& v, std::string_view parameters) {
    const auto entry = [&v](std::size_t i) {
        return Json{{"name", v.ports[i]->name()}, {"mac", net::to_string(v.ports[i]->mac())}};
    };
    return telemetry::page(v.ports.size(), entry, telemetry::parse_page(parameters));
}

// Null: it has no scheduler.
const pipeline::ScheduledPort* scheduled_port(const View& v, std::uint16_t index) {
    const auto* const scheduler = v.workers.scheduler();
    return scheduler == nullptr ? nullptr : scheduler->find(index);
}

Json port_stats(const View& v, std::string_view name) {
    for (const auto& port : v.ports) {
        if (port->name() != name) continue;
        const std::uint16_t index = *v.registry.ports.find(port->name());
        std::uint64_t rx_packets = 0, rx_bytes = 0, tx_packets = 0, tx_bytes = 0, tx_dropped = 0, oversize = 0;
        for (const auto& worker : v.workers.all()) {
            const auto& c = worker->state().ports[index];
            rx_packets += c.rx_packets.read();
            rx_bytes += c.rx_bytes.read();
            tx_packets += c.tx_packets.read();
            tx_bytes += c.tx_bytes.read();
            tx_dropped += c.tx_dropped.read();
            oversize += c.rx_oversize.read();
        }
        if (const auto* scheduled = scheduled_port(v, index); scheduled != nullptr) {
            tx_packets += scheduled->counters.tx_packets.read();
            tx_bytes += scheduled->counters.tx_bytes.read();
            tx_dropped += scheduled->counters.tx_dropped.read();
        }
        // With what devices counted that the name stood for before.
        port::PortStats device = port->stats();
        if (const auto closed = v.closed_ports.find(port->name()); closed != v.closed_ports.end())
            port::add_counts(device, closed->second);
        for (const LeavingPort& leaving : v.leaving_ports)
            if (leaving.port->name() == port->name()) port::add_counts(device, leaving.port->stats());
        return {{"rx_packets", rx_packets},
                {"rx_bytes", rx_bytes},
                {"tx_packets", tx_packets},
                {"tx_bytes", tx_bytes},
                {"rx_missed", device.rx_missed},
                {"rx_errors", device.rx_errors + oversize},
                {"rx_nombuf", device.rx_nombuf},
                {"tx_dropped", tx_dropped},
                {"tx_errors", device.tx_errors},
                {"driver", device.driver},
                {"offloads", port->offloads()},
                {"mtu", static_cast<std::uint64_t>(port->config().mtu)},
                {"admin", v.snapshot.ports[index].admin_up ? "up" : "down"},
                {"link", device.link_up ? "up" : "down"}};
    }
    throw BadQuery(fmt::format("no port '{}'; /cachewire/port/list names them", name));
}

// Packets whose session is this worker's.
std::uint64_t owned_packets(const pipeline::Worker& worker) {
    return worker.state().stages[static_cast<std::size_t>(pipeline::StageId::session)].packets.read();
}

// The CPU that the lcore runs on, or "1,2" where it may choose. rte_lcore_to_cpu_id() says the lcore's own number for
// those that --lcores puts elsewhere.
Json cpus_of(unsigned lcore) {
    const rte_cpuset_t set = rte_lcore_cpuset(lcore);
    std::vector<unsigned> cpus;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    if (cpus.size() == 1) return std::uint64_t{cpus[0]};
    return fmt::format("{}", fmt::join(cpus, ","));
}

// Of its fair share of the last second's packets: 100 is balanced.
std::uint64_t load_percent(const View& v, unsigned worker) {
    const std::vector<double> rates = v.load.rates();
    double all = 0;
    for (const double rate : rates) all += rate;
    if (all == 0) return 0;
    return static_cast<std::uint64_t>(std::llround(rates[worker] * static_cast<double>(rates.size()) * 100 / all));
}

Json worker_dict(const View& v, const pipeline::Worker& worker) {
    const std::uint64_t owned = owned_packets(worker);
    std::uint64_t all = 0;
    for (const auto& each : v.workers.all()) all += owned_packets(*each);
    const pipeline::WorkerState& state = worker.state();
    const pipeline::LedgerLine line = state.published_ledger.read();
    const std::uint64_t busy = state.loop.busy_cycles.read(), total = state.loop.total_cycles.read();
    return {{"lcore", static_cast<std::uint64_t>(state.lcore)},
            {"core", cpus_of(state.lcore)},
            {"socket", state.socket},
            {"rx", line.rx},
            {"tx", line.tx},
            {"busy_cycles", busy},
            {"total_cycles", total},
            {"busy_percent", total == 0 ? std::uint64_t{0} : busy * 100 / total},
            {"longest_gap_us", state.loop.longest_gap_cycles.read() * 1000000 / base::tsc_hz()},
            {"rests", state.loop.rests.read()},
            {"queues", static_cast<std::uint64_t>(worker.rx_queues().size())},
            {"handed_out", state.handoff_counters.given.read()},
            {"handed_in", state.handoff_counters.taken.read()},
            {"sent_by_others", state.handoff_counters.sends_given.read()},
            {"sessions", state.sessions->stats().active},
            {"share_percent", all == 0 ? std::uint64_t{0} : owned * 100 / all},
            {"buckets", static_cast<std::uint64_t>(std::ranges::count(v.dispatch.owners(), state.index))},
            {"load_percent", load_percent(v, state.index)}};
}

// nullptr: all of them.
const pipeline::Worker* find_worker(const View& v, std::string_view lcore) {
    if (lcore.empty()) return nullptr;
    unsigned id = 0;
    const auto [end, error] = std::from_chars(lcore.data(), lcore.data() + lcore.size(), id);
    if (error == std::errc{} && end == lcore.data() + lcore.size())
        for (const auto& worker : v.workers.all())
            if (worker->state().lcore == id) return worker.get();
    throw BadQuery(fmt::format("no worker on lcore '{}'", lcore));
}

Json worker_stats(const View& v, std::string_view lcore) {
    if (const auto* worker = find_worker(v, lcore)) return worker_dict(v, *worker);
    Json answer = Json::object();
    for (const auto& worker : v.workers.all()) answer[std::to_string(worker->state().lcore)] = worker_dict(v, *worker);
    return answer;
}

Json stage_stats(const View& v, std::string_view lcore) {
    const auto* only = find_worker(v, lcore);
    Json answer = Json::object();
    for (std::size_t i = 0; i < pipeline::kStages; ++i) {
        std::uint64_t packets = 0, bursts = 0, cycles = 0;
        for (const auto& worker : v.workers.all()) {
            if (only != nullptr && worker.get() != only) continue;
            const auto& c = worker->state().stages[i];
            packets += c.packets.read();
            bursts += c.bursts.read();
            cycles += c.cycles.read();
        }
        answer[pipeline::kStageNames[i]] = {{"packets", packets},
                                            {"bursts", bursts},
                                            {"cycles", cycles},
                                            {"cycles_per_packet", packets == 0 ? 0 : cycles / packets}};
    }
    return answer;
}

Json drops(const View& v, std::string_view tenant) {
    std::uint16_t first = 0;
    std::size_t last = v.registry.tenants.end();
    if (!tenant.empty()) {
        first = tenant_slot(v.registry, tenant);
        last = first + 1u;
    }
    Json answer = Json::object();
    std::uint64_t total = 0;
    for (std::size_t reason = 0; reason < pipeline::kDropReasons; ++reason) {
        std::uint64_t n = 0;
        for (const auto& worker : v.workers.all())
            for (std::size_t slot = first; slot < last; ++slot) n += worker->state().tenants[slot].drops[reason].read();
        if (const auto* scheduler = v.workers.scheduler(); scheduler != nullptr)
            for (std::size_t slot = first; slot < last; ++slot) n += scheduler->tenants()[slot].drops[reason].read();
        answer[std::string(pipeline::kDropReasonTexts[reason].name)] = n;
        total += n;
    }
    answer["total"] = total;
    return answer;
}

Json ledger(const View& v) {
    const pipeline::LedgerLine l = ledger_sum(v.workers);
    return {{"rx", l.rx},
            {"tx", l.tx},
            {"dropped", l.dropped},
            {"punted", l.punted},
            {"consumed", l.consumed},
            {"originated", l.originated},
            {"held", l.held},
            {"unaccounted", static_cast<std::int64_t>(unaccounted(l))}};
}

Json memory(const View& v) {
    std::uint64_t acl_bytes = 0, fib_bytes = 0, session_bytes = 0, capacity = 0, active = 0;
    for (const auto& [name, list] : v.registry.classifiers) acl_bytes += list->memory_bytes();
    for (const auto& [slot, vrf] : v.registry.vrfs) fib_bytes += vrf->stats().memory_bytes;
    for (const auto& worker : v.workers.all()) {
        const auto stats = worker->state().sessions->stats();
        session_bytes += stats.memory_bytes;
        capacity += stats.capacity;
        active += stats.active;
    }
    std::uint64_t lost = v.lost_mbufs;
    for (const auto& port : v.ports) lost += port->lost_mbufs();
    return {{"mbufs",
             {{"size", v.pools.size()}, {"free", v.pools.free()}, {"low_water", v.pool_low_water}, {"lost", lost}}},
            {"acl", {{"bytes", acl_bytes}}},
            {"fib", {{"bytes", fib_bytes}}},
            {"sessions", {{"bytes", session_bytes}, {"capacity", capacity}, {"active", active}}}};
}

}  // namespace

void add_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime) {
    const auto plain = [&](const char* name, const char* help, Json (*answer)(const View&)) {
        endpoints.add(name, help, [&runtime, answer](std::string_view parameters) {
            if (!parameters.empty()) throw BadQuery("takes no parameters");
            return runtime.with_view(answer);
        });
    };
    const auto with_parameter = [&](const char* name, const char* help, Json (*answer)(const View&, std::string_view)) {
        endpoints.add(name, help, [&runtime, answer](std::string_view parameters) {
            return runtime.with_view([&](const View& view) { return answer(view, parameters); });
        });
    };
    plain("/cachewire/info", "Version, state and configuration of this process.", info);
    with_parameter("/cachewire/port/list", "Ports by name. Parameters: cursor, count (optional)", port_list);
    with_parameter("/cachewire/port/stats", "Counters of a port. Parameters: port name", port_stats);
    with_parameter("/cachewire/worker/stats", "Load of each worker. Parameters: lcore (optional)", worker_stats);
    with_parameter("/cachewire/stage/stats", "Packets and cycles by stage. Parameters: lcore (optional)", stage_stats);
    with_parameter("/cachewire/drops", "Dropped packets by reason. Parameters: tenant (optional)", drops);
    plain("/cachewire/ledger", "Every packet accounted for.", ledger);
    plain("/cachewire/memory", "Pools and tables against their limits.", memory);
}

std::string ledger_text(const pipeline::LedgerLine& l) {
    return fmt::format(
        "ledger: rx {} + originated {} = tx {} + dropped {} + punted {} + consumed {} + held {}, unaccounted {}", l.rx,
        l.originated, l.tx, l.dropped, l.punted, l.consumed, l.held, static_cast<std::int64_t>(unaccounted(l)));
}

}  // namespace cachewire::control
