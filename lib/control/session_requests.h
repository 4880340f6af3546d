#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Questions about sessions, put to the workers that own them. Any control thread may ask, one at a time; each question
// waits for an answer with a limit, so a worker that hangs costs the asker that long and nobody else anything.
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "session/request.h"

namespace cachewire::control {

// The text says which worker did not answer.
struct NoAnswer : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class SessionRequests {
  public:
    struct Worker {
        session::Mailbox* mailbox;
        unsigned lcore;
    };
    // Where a list goes on: worker in the upper half, entry in the lower one.
    using Cursor = std::uint64_t;
    struct Listed {
        Cursor at;
        session::SessionView view;
    };
    struct Page {
        std::vector<Listed> sessions;
        std::optional<Cursor> next;
    };

    explicit SessionRequests(std::vector<Worker> workers,
                             std::chrono::milliseconds limit = std::chrono::milliseconds(2000))
        : workers_(std::move(workers)), limit_(limit) {}

    // At most `count` sessions; fewer, even none, do not mean that there is no next page.
    Page list(const session::Filter& filter, Cursor cursor, std::size_t count);
    // The heaviest of all workers, heaviest first; at most Mailbox::kMaxViews.
    std::vector<session::SessionView> top(const session::Filter& filter, session::Weight weight, std::size_t count);
    // Whichever worker has it.
    std::optional<session::SessionView> get(const net::FlowKey& key, std::uint32_t hash);
    // How many were ended, on all workers.
    std::uint64_t kill(const session::Filter& filter);
    // Every session's counts to where they are kept, on all workers.
    void flush();

  private:
    const session::Mailbox::Answer& ask(const Worker& worker, const session::Request& request);

    std::mutex mutex_;
    std::vector<Worker> workers_;
    std::chrono::milliseconds limit_;
};

// "tenant=red proto=tcp src=10.0.0.0/8 dst=... src_port=... dst_port=22 state=established", words in any order, each
// once, at least one; or "all". Throws std::invalid_argument with a sentence. `find_tenant`: slot of a name.
session::Filter parse_session_filter(std::string_view text,
                                     const std::function<std::optional<std::uint16_t>(std::string_view)>& find_tenant);

// tcp, udp, icmp, icmpv6, sctp, or a number.
std::optional<std::uint8_t> parse_protocol(std::string_view text);
std::string protocol_name(std::uint8_t proto);
std::optional<std::uint16_t> parse_port_number(std::string_view text);
// The names that users see; both kinds of probation are "reset".
const char* session_state_name(session::State state);

}  // namespace cachewire::control
