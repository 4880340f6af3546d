// SPDX-License-Identifier: BSD-3-Clause
// DPDK's callbacks have no user argument and its names can't be taken back, so there is one registry a process behind
// one lock: a name that DPDK knows and that has no handler (before the first add, after the last Endpoints) answers
// "not ready".
#include "telemetry/endpoints.h"

#include <csignal>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <rte_telemetry.h>

#include "base/error.h"
#include "telemetry/tel_data.h"
#include "telemetry/wire.h"

namespace cachewire::telemetry {

namespace {

struct Registry {
    std::mutex mutex;
    std::map<std::string, Handler, std::less<>> handlers;
    std::set<std::string, std::less<>> known_to_dpdk;
};

// Never destroyed: DPDK's telemetry threads outlive static destruction.
Registry& registry() {
    static Registry& instance = *new Registry;
    return instance;
}

Json not_ready() { return {{"error", "not ready"}}; }

// The caller holds the lock.
Json answer(const std::string& name, std::string_view parameters) {
    const auto it = registry().handlers.find(name);
    return it == registry().handlers.end() ? not_ready() : it->second(parameters);
}

// On DPDK's threads: nothing may be thrown into C.
int on_query(const char* command, const char* parameters, rte_tel_data* data) {
    try {
        Json json;
        try {
            const std::lock_guard lock(registry().mutex);
            json = answer(command, parameters == nullptr ? "" : parameters);
        } catch (const std::exception& e) {
            json = {{"error", e.what()}};
        }
        fill(data, to_wire(json));
        return 0;
    } catch (...) {
        return -1;  // the library answers null
    }
}

// A client that hangs up before its answer makes DPDK's write() raise SIGPIPE, which would end the process. A program
// that handles the signal itself keeps its handler.
void ignore_broken_pipes() {
    struct sigaction action = {};
    if (sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

Endpoints::Endpoints() { ignore_broken_pipes(); }

Endpoints::~Endpoints() {
    // A query that runs holds the lock and ends first; the next one finds no handler.
    const std::lock_guard lock(registry().mutex);
    registry().handlers.clear();
}

void Endpoints::add(const std::string& name, const std::string& help, Handler handler) {
    if (!name.starts_with("/cachewire/") || name.size() > kMaxCommandBytes || !is_wire_key(name)) {
        throw base::MachineError(fmt::format("telemetry: '{}' can't be an endpoint's name", name));
    }
    const std::lock_guard lock(registry().mutex);
    registry().handlers[name] = std::move(handler);
    if (registry().known_to_dpdk.contains(name)) return;  // of an earlier Endpoints; DPDK would list it twice
    const int rc = rte_telemetry_register_cmd(name.c_str(), on_query, help.substr(0, kMaxHelpBytes).c_str());
    if (rc < 0) {
        registry().handlers.erase(name);
        base::check(rc, fmt::format("rte_telemetry_register_cmd {}", name));
    }
    registry().known_to_dpdk.insert(name);
}

Json Endpoints::query(const std::string& name, std::string_view parameters) {
    const std::lock_guard lock(registry().mutex);
    return answer(name, parameters);
}

}  // namespace cachewire::telemetry
