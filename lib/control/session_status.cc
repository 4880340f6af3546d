// SPDX-License-Identifier: BSD-3-Clause
#include "control/session_status.h"

#include <cmath>

#include <chrono>

#include <fmt/format.h>

#include "base/clock.h"
#include "control/names.h"
#include "control/runtime.h"
#include "control/session_requests.h"
#include "net/flow_hash.h"
#include "telemetry/page.h"
#include "telemetry/wire.h"

namespace cachewire::control {

namespace {

using telemetry::BadQuery;
using telemetry::Json;
using View = Runtime::View;

// A tenant that a reload took away has sessions for a while, and nothing in the snapshot.
const pipeline::Tenant& tenant_in(const View& v, std::size_t slot) {
    static const pipeline::Tenant gone;
    return slot < v.snapshot.tenants.size() ? v.snapshot.tenants[slot] : gone;
}

std::uint64_t sum_states(const std::array<std::uint64_t, session::kStates>& states,
                         std::initializer_list<session::State> which) {
    std::uint64_t sum = 0;
    for (const session::State state : which) sum += states[static_cast<unsigned>(state)];
    return sum;
}

struct Sums {
    std::uint64_t capacity = 0, active = 0, created = 0, expired = 0, evicted = 0, closed = 0, killed = 0,
                  quota_denied = 0, table_full = 0, bucket_full = 0;
    std::array<std::uint64_t, session::kStates> states{};

    void add(const session::TenantUse& use) {
        active += use.active.read();
        created += use.created.read();
        expired += use.expired.read();
        evicted += use.evicted.read();
        closed += use.closed.read();
        killed += use.killed.read();
        quota_denied += use.quota_denied.read();
        table_full += use.table_full.read();
        bucket_full += use.bucket_full.read();
        for (unsigned i = 0; i < session::kStates; ++i) states[i] += use.states[i].read();
    }
};

Json session_stats(const View& v, std::string_view tenant) {
    std::optional<std::size_t> slot;
    if (!tenant.empty()) slot = tenant_slot(v.registry, tenant);
    Sums sums;
    std::uint64_t entries = 0;
    for (const auto& worker : v.workers.all()) {
        const session::Table& table = *worker->state().sessions;
        const auto stats = table.stats();
        sums.capacity += stats.capacity;
        entries += stats.active + stats.companions;
        for (std::size_t s = slot.value_or(0); s < (slot ? *slot + 1 : v.registry.tenants.end()); ++s)
            sums.add(table.use(s));
    }
    std::uint64_t room = sums.capacity - std::min(sums.capacity, entries);
    if (slot && tenant_in(v, *slot).quota.sessions < sums.capacity) {
        sums.capacity = tenant_in(v, *slot).quota.sessions;
        room = std::min(room, sums.capacity - std::min(sums.capacity, sums.active));
    }
    const auto time_to_full = v.session_growth.time_to_full_s(slot, room);
    return {{"capacity", sums.capacity},
            {"active", sums.active},
            {"created", sums.created},
            {"expired", sums.expired},
            {"evicted", sums.evicted},
            {"closed", sums.closed},
            {"killed", sums.killed},
            {"quota_denied", sums.quota_denied},
            {"table_full", sums.table_full},
            {"bucket_full", sums.bucket_full},
            {"time_to_full_s", time_to_full ? Json(*time_to_full) : Json(nullptr)},
            {"state_new", sum_states(sums.states, {session::State::fresh})},
            {"state_one_sided", sum_states(sums.states, {session::State::one_sided})},
            {"state_established", sum_states(sums.states, {session::State::established})},
            {"state_half_close", sum_states(sums.states, {session::State::half_close})},
            {"state_time_wait", sum_states(sums.states, {session::State::time_wait})},
            {"state_reset", sum_states(sums.states, {session::State::reset_forward, session::State::reset_reverse})},
            {"state_closed", sum_states(sums.states, {session::State::closed})}};
}

std::string next_hop_text(const View& v, const session::HotEntry& hot, unsigned direction) {
    const std::uint16_t index = hot.next_hop[direction];
    const pipeline::Tenant& tenant = tenant_in(v, hot.tenant);
    if ((index & session::kOldNextHop) != 0) return "stale";
    if (index == pipeline::kNoNextHop || index >= v.snapshot.next_hops.size()) return "not known";
    if (hot.route_generation != tenant.route_generation) return "stale";
    const route::NextHop& hop = v.snapshot.next_hops[index];
    switch (hop.kind) {
        case route::NextHopKind::no_route:
            return "no route";
        case route::NextHopKind::drop:
            return "drop";
        case route::NextHopKind::local:
            return "local";
        case route::NextHopKind::broadcast:
            return "broadcast";
        default:
            break;
    }
    const std::string interface = name_of(v.registry.interfaces, hop.interface);
    return hop.via == net::Address{} ? "on " + interface : net::to_string(hop.via) + " on " + interface;
}

// A rule's number means something only in the list that it came from.
std::string rule_text(const View& v, const session::SessionView& s) {
    const pipeline::Tenant& tenant = tenant_in(v, s.hot.tenant);
    if (tenant.acl == nullptr) return "no list";
    if (s.hot.policy_generation != tenant.policy_generation) return "of an older policy";
    if (s.cold.rule == tenant.default_rule) return "default";
    const auto& rules = tenant.acl->list().rules;
    const std::uint32_t rule = s.cold.rule - tenant.rule_base;
    if (rule >= rules.size()) return "of an older policy";  // only a reply has come by since
    return rules[rule].name.empty() ? fmt::format("rule {}", rule + 1) : rules[rule].name;
}

const char* verdict_text(const session::SessionView& s) {
    return !s.outcome ? "not memoised" : s.outcome->permit ? "permit" : "deny";
}

std::uint16_t host(std::uint16_t be) { return __builtin_bswap16(be); }

// Flat, because the socket's dictionaries are.
Json session_json(const View& v, const session::SessionView& s) {
    const session::HotEntry& hot = s.hot;
    const bool translated = s.companion.has_value();
    const std::uint64_t hz = base::tsc_hz();
    return {{"proto", protocol_name(hot.proto)},
            {"src", net::to_string(hot.src)},
            {"src_port", std::uint64_t{host(hot.src_port_be)}},
            {"dst", net::to_string(hot.dst)},
            {"dst_port", std::uint64_t{host(hot.dst_port_be)}},
            {"reply_src", net::to_string(translated ? s.companion->src : hot.dst)},
            {"reply_src_port", std::uint64_t{host(translated ? s.companion->src_port_be : hot.dst_port_be)}},
            {"reply_dst", net::to_string(translated ? s.companion->dst : hot.src)},
            {"reply_dst_port", std::uint64_t{host(translated ? s.companion->dst_port_be : hot.src_port_be)}},
            {"state", session_state_name(hot.state())},
            {"age_s", s.age_cycles / hz},
            {"idle_s", s.idle_cycles / hz},
            {"packets", s.cold.packets[0]},
            {"bytes", s.cold.bytes[0]},
            {"reply_packets", s.cold.packets[1]},
            {"reply_bytes", s.cold.bytes[1]},
            {"verdict", verdict_text(s)},
            {"rule", rule_text(v, s)},
            {"next_hop", next_hop_text(v, hot, 0)},
            {"reply_next_hop", next_hop_text(v, hot, 1)}};
}

// Asking happens outside of the runtime's lock: a worker that hangs must not hold up a reload.
Json ask(Runtime& runtime, auto&& question) {
    if (!runtime.with_view([](const View& v) { return v.state != control::State::running; })) return question();
    throw BadQuery("the workers are not running");
}

Json session_list(Runtime& runtime, std::string_view parameters) {
    const auto fields = telemetry::split_parameters(parameters);
    if (fields.empty()) throw BadQuery("TENANT,CURSOR,N are expected");
    const std::size_t comma = parameters.find(',');
    const auto request =
        telemetry::parse_page(comma == std::string_view::npos ? std::string_view{} : parameters.substr(comma + 1));
    session::Filter filter;
    filter.tenant = runtime.with_view([&](const View& v) { return tenant_slot(v.registry, fields[0]); });
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    const std::size_t count = std::min<std::size_t>(request.count, session::Mailbox::kMaxViews);
    auto page = runtime.session_requests().list(filter, request.cursor, count);
    while (page.sessions.empty() && page.next && std::chrono::steady_clock::now() < give_up)
        page = runtime.session_requests().list(filter, *page.next, count);
    return runtime.with_view([&](const View& v) {
        constexpr std::size_t kNextBytes = sizeof("\"next\":18446744073709551615,");
        Json answer = Json::object();
        std::size_t bytes = 2 + kNextBytes;
        for (const auto& [at, session] : page.sessions) {
            const std::string key = std::to_string(at);
            Json value = telemetry::to_wire(session_json(v, session));
            bytes += key.size() + 4 + telemetry::wire_bytes(value);
            if (bytes > telemetry::kMaxAnswerBytes) {
                page.next = at;
                break;
            }
            answer[key] = std::move(value);
        }
        if (page.next) answer["next"] = *page.next;
        return answer;
    });
}

// TENANT[,bytes|packets[,N]], the heaviest first, under "0", "1" and so on.
Json session_top(Runtime& runtime, std::string_view parameters) {
    constexpr std::uint64_t kDefaultCount = 10;
    const auto fields = telemetry::split_parameters(parameters);
    if (fields.empty() || fields.size() > 3) throw BadQuery("TENANT, TENANT,BY or TENANT,BY,N are expected");
    const std::string_view by = fields.size() > 1 ? fields[1] : "bytes";
    if (by != "bytes" && by != "packets") throw BadQuery(fmt::format("BY is bytes or packets, not '{}'", by));
    std::uint64_t count = kDefaultCount;
    if (fields.size() > 2) {
        const auto number = parse_port_number(fields[2]);
        if (!number || *number == 0 || *number > session::Mailbox::kMaxViews)
            throw BadQuery(fmt::format("N is 1 to {}, not '{}'", session::Mailbox::kMaxViews, fields[2]));
        count = *number;
    }
    session::Filter filter;
    filter.tenant = runtime.with_view([&](const View& v) { return tenant_slot(v.registry, fields[0]); });
    const auto weight = by == "bytes" ? session::Weight::bytes : session::Weight::packets;
    const auto top = runtime.session_requests().top(filter, weight, count);
    return runtime.with_view([&](const View& v) {
        Json answer = Json::object();
        std::size_t bytes = 2;
        for (std::size_t i = 0; i < top.size(); ++i) {
            const std::string key = std::to_string(i);
            Json value = telemetry::to_wire(session_json(v, top[i]));
            bytes += key.size() + 4 + telemetry::wire_bytes(value);
            if (bytes > telemetry::kMaxAnswerBytes) break;
            answer[key] = std::move(value);
        }
        return answer;
    });
}

net::FlowKey flow_of(const View& v, const std::vector<std::string_view>& fields) {
    net::FlowKey key;
    key.tenant = tenant_slot(v.registry, fields[0]);
    const auto proto = parse_protocol(fields[1]);
    if (!proto) throw BadQuery(fmt::format("PROTO is tcp, udp, icmp, icmpv6, sctp or a number, not '{}'", fields[1]));
    key.proto = *proto;
    const auto src = net::parse_address(fields[2]), dst = net::parse_address(fields[4]);
    if (!src || !dst) throw BadQuery(fmt::format("'{}' is no address", src ? fields[4] : fields[2]));
    if (src->family != dst->family) throw BadQuery("SRC and DST are of different families");
    const auto sport = parse_port_number(fields[3]), dport = parse_port_number(fields[5]);
    if (!sport || !dport) throw BadQuery(fmt::format("'{}' is no port", sport ? fields[5] : fields[3]));
    key.src = src->address;
    key.dst = dst->address;
    key.src_port_be = __builtin_bswap16(*sport);
    key.dst_port_be = __builtin_bswap16(*dport);
    return key;
}

Json session_get(Runtime& runtime, std::string_view parameters) {
    const auto fields = telemetry::split_parameters(parameters);
    if (fields.size() != 6) throw BadQuery("TENANT,PROTO,SRC,SPORT,DST,DPORT are expected");
    net::FlowKey key;
    const std::uint32_t hash = runtime.with_view([&](const View& v) {
        key = flow_of(v, fields);
        return net::flow_hash(key, v.snapshot.hash_seed);
    });
    const auto session = runtime.session_requests().get(key, hash);
    if (!session) throw BadQuery("no such session");
    return runtime.with_view([&](const View& v) { return session_json(v, *session); });
}

}  // namespace

void SessionGrowth::Series::add(double now_active, double passed_s) {
    constexpr double kSmoothingS = 10;
    if (known) per_second += ((now_active - active) / passed_s - per_second) * -std::expm1(-passed_s / kSmoothingS);
    active = now_active;
    known = true;
}

void SessionGrowth::sample(const Workers& workers, std::size_t tenants, double now_s) {
    const double passed = now_s - last_s_;
    if (last_s_ >= 0 && passed < 1) return;
    last_s_ = now_s;
    tenants_.resize(std::max(tenants_.size(), tenants));
    double all = 0;
    for (std::size_t slot = 0; slot < tenants; ++slot) {
        double active = 0;
        for (const auto& worker : workers.all())
            active += static_cast<double>(worker->state().sessions->use(slot).active.read());
        tenants_[slot].add(active, passed);
        all += active;
    }
    all_.add(all, passed);
}

std::optional<std::uint64_t> SessionGrowth::time_to_full_s(std::optional<std::size_t> tenant,
                                                           std::uint64_t room) const {
    constexpr double kLeast = 0.05;  // a session in twenty seconds is noise
    if (room == 0) return 0;
    if (tenant && *tenant >= tenants_.size()) return std::nullopt;
    const double growth = (tenant ? tenants_[*tenant] : all_).per_second;
    if (growth < kLeast) return std::nullopt;
    return static_cast<std::uint64_t>(static_cast<double>(room) / growth);
}

void add_session_endpoints(telemetry::Endpoints& endpoints, Runtime& runtime) {
    endpoints.add("/cachewire/session/stats", "Sessions, counted. Parameters: tenant (optional)",
                  [&runtime](std::string_view parameters) {
                      return runtime.with_view([&](const View& v) { return session_stats(v, parameters); });
                  });
    endpoints.add("/cachewire/session/list", "A tenant's sessions. Parameters: tenant, cursor, count",
                  [&runtime](std::string_view parameters) {
                      return ask(runtime, [&] { return session_list(runtime, parameters); });
                  });
    endpoints.add("/cachewire/session/top", "A tenant's heaviest sessions. Parameters: tenant, bytes|packets, count",
                  [&runtime](std::string_view parameters) {
                      return ask(runtime, [&] { return session_top(runtime, parameters); });
                  });
    endpoints.add("/cachewire/session/get", "One session. Parameters: tenant, proto and tuple",
                  [&runtime](std::string_view parameters) {
                      return ask(runtime, [&] { return session_get(runtime, parameters); });
                  });
}

void add_session_commands(ControlSocket& socket, Runtime& runtime) {
    socket.add("sessions_kill", [&runtime](const ControlSocket::Json& request) -> ControlSocket::Json {
        const auto text = request.find("filter");
        if (text == request.end() || !text->is_string() || request.size() != 2)
            throw BadQuery("sessions_kill takes a \"filter\", a text, and nothing else");
        const auto filter = runtime.with_view([&](const View& v) {
            return parse_session_filter(text->get<std::string>(), [&v](std::string_view name) {
                return v.registry.tenants.find(std::string(name));
            });
        });
        runtime.settle_rebalance();
        return {{"killed", runtime.session_requests().kill(filter)}};
    });
}

}  // namespace cachewire::control
