#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The table of --stats-period: what moved since the last one, in 80 columns, from the same answers as telemetry gives.
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "telemetry/endpoints.h"

namespace cachewire::app {

class StatsTable {
  public:
    using Query = std::function<telemetry::Json(const std::string& name, std::string_view parameters)>;

    explicit StatsTable(Query query = telemetry::Endpoints::query) : query_(std::move(query)) {}

    // The table at `now_s` (any clock that only goes forward). Rates are over the time since the last call.
    std::string next(double now_s);

  private:
    using Counters = std::map<std::string, std::uint64_t>;

    [[nodiscard]] std::string ports();
    [[nodiscard]] std::string port_line(const std::string& name);
    [[nodiscard]] std::string drops();
    [[nodiscard]] std::string ledger() const;
    // Counted since the last table, and remembered for the next one.
    std::uint64_t moved(const std::string& counter, std::uint64_t value);
    [[nodiscard]] std::string rate(std::uint64_t packets) const;

    Query query_;
    Counters last_;
    double last_s_ = 0;
    double elapsed_s_ = 0;  // 0: the first table, which has no rates
};

}  // namespace cachewire::app
