#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Names under /cachewire on DPDK's telemetry socket. An endpoint's answer is a JSON value that a handler computes; this
// file knows the socket's limits (key characters, no arrays of dictionaries, 256 keys, 16 KiB) and DPDK's versions, the
// handlers know none of it (see wire.h for what becomes of a value). Read-only. Handlers run on DPDK's telemetry
// threads, one lock around them all, never on a worker; a handler must not call query() itself.
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/json.h"

namespace cachewire::telemetry {

using Json = nlohmann::ordered_json;

// A handler throws this for a bad parameter; the client sees {"error": TEXT} under the command's name.
struct BadQuery : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Handler = std::function<Json(std::string_view parameters)>;

class Endpoints {
  public:
    Endpoints();
    ~Endpoints();  // from here on every endpoint answers {"error": "not ready"}; DPDK keeps the names until exit
    Endpoints(const Endpoints&) = delete;
    Endpoints& operator=(const Endpoints&) = delete;

    // `name` starts with /cachewire/. Throws base::MachineError when DPDK refuses. After rte_eal_init.
    void add(const std::string& name, const std::string& help, Handler handler);

    // The same answer without the socket: the control socket and the stats table use it. Throws BadQuery.
    static Json query(const std::string& name, std::string_view parameters);
};

}  // namespace cachewire::telemetry
