// SPDX-License-Identifier: BSD-3-Clause
#include "control/session_requests.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <thread>

#include <fmt/format.h>

namespace cachewire::control {

namespace {

using session::Request;

constexpr unsigned kEntryBits = 32;

template <class T>
std::optional<T> parse_number(std::string_view text) {
    T value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

struct Protocol {
    std::string_view name;
    std::uint8_t number;
};
constexpr auto kProtocols =
    std::to_array<Protocol>({{"icmp", 1}, {"tcp", 6}, {"udp", 17}, {"icmpv6", 58}, {"sctp", 132}});

constexpr std::array<const char*, session::kStates> kStateNames = {
    "free", "new", "established", "half_close", "time_wait", "closed", "one_sided", "reset", "reset"};

[[noreturn]] void refuse(const std::string& text) { throw std::invalid_argument(text); }

std::uint16_t states_named(std::string_view name) {
    std::uint16_t states = 0;
    for (unsigned i = 1; i < kStateNames.size(); ++i)
        if (name == kStateNames[i]) states = static_cast<std::uint16_t>(states | 1u << i);
    if (states == 0)
        refuse(fmt::format(
            "state={}: not known; allowed: new, one_sided, established, half_close, time_wait, reset, closed", name));
    return states;
}

net::Prefix prefix_of(std::string_view key, std::string_view text) {
    if (const auto address = net::parse_address(text))
        return {address->address, static_cast<std::uint8_t>(address->family == net::Family::ip4 ? 32 : 128),
                address->family};
    const auto prefix = net::parse_prefix(text);
    if (!prefix || prefix->host_bits_set) refuse(fmt::format("{}={}: not an address or a prefix", key, text));
    return prefix->prefix;
}

void set_word(session::Filter& filter, std::string_view key, std::string_view value,
              const std::function<std::optional<std::uint16_t>(std::string_view)>& find_tenant) {
    const auto twice = [&](bool set) {
        if (set) refuse(fmt::format("{} stands twice", key));
    };
    const auto port = [&](std::optional<std::uint16_t>& out) {
        twice(out.has_value());
        out = parse_port_number(value);
        if (!out) refuse(fmt::format("{}={}: not a port; allowed: 0 to 65535", key, value));
    };
    if (key == "tenant") {
        twice(filter.tenant.has_value());
        filter.tenant = find_tenant(value);
        if (!filter.tenant) refuse(fmt::format("no tenant '{}'", value));
    } else if (key == "proto") {
        twice(filter.proto.has_value());
        filter.proto = parse_protocol(value);
        if (!filter.proto)
            refuse(fmt::format("proto={}: not known; allowed: tcp, udp, icmp, icmpv6, sctp or 0 to 255", value));
    } else if (key == "src") {
        twice(filter.src.has_value());
        filter.src = prefix_of(key, value);
    } else if (key == "dst") {
        twice(filter.dst.has_value());
        filter.dst = prefix_of(key, value);
    } else if (key == "src_port") {
        port(filter.src_port);
    } else if (key == "dst_port") {
        port(filter.dst_port);
    } else if (key == "state") {
        twice(filter.states != session::Filter{}.states);
        filter.states = states_named(value);
    } else {
        refuse(fmt::format("'{}' is not known; allowed: tenant, proto, src, dst, src_port, dst_port, state", key));
    }
}

}  // namespace

std::optional<std::uint8_t> parse_protocol(std::string_view text) {
    for (const Protocol& protocol : kProtocols)
        if (protocol.name == text) return protocol.number;
    return parse_number<std::uint8_t>(text);
}

std::string protocol_name(std::uint8_t proto) {
    for (const Protocol& protocol : kProtocols)
        if (protocol.number == proto) return std::string(protocol.name);
    return std::to_string(proto);
}

std::optional<std::uint16_t> parse_port_number(std::string_view text) { return parse_number<std::uint16_t>(text); }

const char* session_state_name(session::State state) { return kStateNames[static_cast<unsigned>(state)]; }

session::Filter parse_session_filter(std::string_view text,
                                     const std::function<std::optional<std::uint16_t>(std::string_view)>& find_tenant) {
    session::Filter filter;
    unsigned words = 0;
    bool all = false;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (word.empty()) continue;
        ++words;
        if (word == "all") {
            all = true;
            continue;
        }
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos)
            refuse(
                fmt::format("'{}': a filter is made of KEY=VALUE, such as tenant=red dst_port=22, or is 'all'", word));
        set_word(filter, word.substr(0, equals), word.substr(equals + 1), find_tenant);
    }
    if (words == 0) refuse("no filter; to end every session say 'all'");
    if (all && words > 1) refuse("'all' stands alone");
    return filter;
}

const session::Mailbox::Answer& SessionRequests::ask(const Worker& worker, const Request& request) {
    const auto deadline = std::chrono::steady_clock::now() + limit_;
    const auto wait_for = [&](auto&& done) {
        while (!done()) {
            if (std::chrono::steady_clock::now() >= deadline)
                throw NoAnswer(
                    fmt::format("the worker on lcore {} has not answered within {} ms", worker.lcore, limit_.count()));
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    };
    // An earlier request that timed out may still be there.
    wait_for([&] { return worker.mailbox->post(request); });
    wait_for([&] { return worker.mailbox->answered(); });
    return worker.mailbox->answer();
}

SessionRequests::Page SessionRequests::list(const session::Filter& filter, Cursor cursor, std::size_t count) {
    const std::lock_guard lock(mutex_);
    Page page;
    std::size_t w = cursor >> kEntryBits;
    auto entry = static_cast<std::uint32_t>(cursor);
    while (w < workers_.size() && page.sessions.size() < count) {
        const auto max_views = std::min<std::size_t>(count - page.sessions.size(), session::Mailbox::kMaxViews);
        const auto& answer = ask(workers_[w], {.kind = Request::Kind::list,
                                               .filter = filter,
                                               .cursor = entry,
                                               .max_views = static_cast<std::uint32_t>(max_views)});
        for (std::uint32_t i = 0; i < answer.count; ++i)
            page.sessions.push_back({Cursor{w} << kEntryBits | answer.views[i].index, answer.views[i]});
        const bool empty = answer.count == 0;
        entry = answer.next == session::kNone ? 0 : answer.next;
        if (answer.next == session::kNone) ++w;
        if (empty && answer.next != session::kNone) break;  // a long way without a find: the asker decides
    }
    if (w < workers_.size()) page.next = Cursor{w} << kEntryBits | entry;
    return page;
}

std::vector<session::SessionView> SessionRequests::top(const session::Filter& filter, session::Weight weight,
                                                       std::size_t count) {
    const std::lock_guard lock(mutex_);
    count = std::min<std::size_t>(count, session::Mailbox::kMaxViews);
    std::vector<session::SessionView> best;
    const auto heavier = [weight](const auto& a, const auto& b) {
        return weight == session::Weight::bytes ? a.bytes() > b.bytes() : a.packets() > b.packets();
    };
    for (const Worker& worker : workers_) {
        Request request{.kind = Request::Kind::top,
                        .filter = filter,
                        .max_views = static_cast<std::uint32_t>(count),
                        .weight = weight};
        do {
            const auto& answer = ask(worker, request);
            best.insert(best.end(), answer.views.begin(), answer.views.begin() + answer.count);
            std::stable_sort(best.begin(), best.end(), heavier);
            if (best.size() > count) best.resize(count);
            request.cursor = answer.next;
        } while (request.cursor != session::kNone);
    }
    return best;
}

std::optional<session::SessionView> SessionRequests::get(const net::FlowKey& key, std::uint32_t hash) {
    const std::lock_guard lock(mutex_);
    for (const Worker& worker : workers_) {
        const auto& answer = ask(worker, {.kind = Request::Kind::get, .key = key, .hash = hash});
        if (answer.count != 0) return answer.views[0];
    }
    return std::nullopt;
}

std::uint64_t SessionRequests::kill(const session::Filter& filter) {
    const std::lock_guard lock(mutex_);
    std::uint64_t killed = 0;
    for (const Worker& worker : workers_) {
        Request request{.kind = Request::Kind::kill, .filter = filter};
        do {
            const auto& answer = ask(worker, request);
            killed += answer.killed;
            request.cursor = answer.next;
        } while (request.cursor != session::kNone);
    }
    return killed;
}

void SessionRequests::flush() {
    const std::lock_guard lock(mutex_);
    for (const Worker& worker : workers_) {
        Request request{.kind = Request::Kind::flush};
        do request.cursor = ask(worker, request).next;
        while (request.cursor != session::kNone);
    }
}

}  // namespace cachewire::control
