#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Configured ports over their life: what the file says of one, what a reload changes on its device, and the watch over
// interfaces, links and devices that go and come back. Control thread only; a device is closed only after a grace
// period in which the published snapshot told the workers to leave it alone.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "control/rss_dispatch.h"
#include "control/snapshot_builder.h"
#include "control/workers.h"
#include "port/port.h"

namespace cachewire::control {

using Ports = std::vector<std::unique_ptr<port::EthPort>>;

// Throws base::Error with status configuration when the device string is none.
port::PortConfig port_config(const config::Config& config, const config::Port& port, unsigned workers);

PortInfo port_info(const port::EthPort& port);

// MTU, promiscuity and address as `to` says, on every device that both have and that differs from `from`. Throws
// base::MachineError with all of them put back.
void change_devices(Ports& ports, const config::Config& from, const config::Config& to);

// At start: which worker gets its packets how. One line where there are several.
void say_how_workers_share(const Workers& workers, bool rss);

// As the dispatch asks its device. `queues`: what each worker polls.
RssPort rss_port(const port::EthPort& port, std::span<const std::vector<pipeline::RxQueue>> queues);
RssPort rss_port(const port::EthPort& port, const Workers& workers);

// One warning for each AF_PACKET port on which tags matter: its driver hands every outer tag over as 802.1Q.
void warn_about_tags(const config::Config& config, const Ports& ports);

class PortWatch {
  public:
    // Publishes a snapshot in which the port is as told and waits until every worker has it. False: not now.
    using Publish = std::function<bool(const std::string& port, const PortInfo& info)>;
    // Frames that were longer than the port's, since the start.
    using Oversize = std::function<std::uint64_t(const std::string& port)>;

    PortWatch(Ports& ports, Publish publish, Oversize oversize);

    // Ten times a second. `now_ms`: any clock that goes on.
    void look(std::uint64_t now_ms);
    // A hundred times a second: whose link is away may be back, and what is answered until that is seen is lost.
    void look_for_links();
    // A reload took the port away, or gave it another device.
    void forget(const std::string& port) { states_.erase(port); }

  private:
    struct State {
        bool attached = true;  // in the published snapshot
        bool link = true;      // there too
        std::string gone;      // what went
        std::string driver;    // that it went from
        bool warned_oversize = false;
        std::uint64_t next_try_ms = 0;
        std::string last_error;
    };
    State& state_of(const port::EthPort& port);
    void look_at(port::EthPort& port, State& state, std::uint64_t now_ms);
    bool leave(port::EthPort& port, State& state, const std::string& gone);
    void come_back(port::EthPort& port, State& state, std::uint64_t now_ms);
    void attach(const port::EthPort& port, State& state);
    void publish_link(const port::EthPort& port, State& state, bool link);
    void warn_oversize(const port::EthPort& port, State& state);

    Ports& ports_;
    Publish publish_;
    Oversize oversize_;
    std::map<std::string, State> states_;  // by port's name
};

}  // namespace cachewire::control
