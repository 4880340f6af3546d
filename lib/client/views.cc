// SPDX-License-Identifier: BSD-3-Clause
#include "client/views.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "client/table.h"
#include "pipeline/drop_reason.h"

namespace cachewire::client {

namespace {

double number(const Json& object, const char* key) {
    const auto it = object.find(key);
    if (it == object.end()) return 0;
    if (it->is_number()) return it->get<double>();
    return is_number(*it) ? std::strtod(it->get_ref<const std::string&>().c_str(), nullptr) : 0;
}

Json field(const Json& object, const char* key) { return object.contains(key) ? object[key] : Json("-"); }

Json ratio(double part, double whole, int digits) {
    return whole == 0 ? Json("-") : Json(fmt::format("{:.{}f}", part / whole, digits));
}

std::string info_text(const Json& answer, bool) {
    Table table({"", ""});
    for (const auto& [key, value] : answer.items()) {
        // Process ids are names and aren't grouped.
        const std::string text = key == "uptime_s" && value.is_number_unsigned() ? duration(value.get<std::uint64_t>())
                                 : value.is_number_unsigned() && key == "pid"    ? value.dump()
                                                                                 : cell(value);
        table.add({key == "uptime_s" ? "uptime" : key, text + (text.empty() ? "-" : "")});
    }
    return table.text();
}

std::string ports_text(const Json& answer, bool rate) {
    Table table(rate ? std::vector<std::string>{"port", "admin", "link", "rx pkt/s", "rx Mbit/s", "tx pkt/s",
                                                "tx Mbit/s", "missed/s", "errors/s", "no mbuf/s", "tx drop/s", "driver"}
                     : std::vector<std::string>{"port", "admin", "link", "rx packets", "rx bytes", "tx packets",
                                                "tx bytes", "missed", "errors", "no mbuf", "tx dropped", "driver"});
    const auto bytes = [rate](const Json& port, const char* key) {
        return rate ? ratio(number(port, key) * 8, 1e6, 1) : field(port, key);
    };
    for (const Json& port : answer) {
        table.add({field(port, "name"), field(port, "admin"), field(port, "link"), field(port, "rx_packets"),
                   bytes(port, "rx_bytes"), field(port, "tx_packets"), bytes(port, "tx_bytes"),
                   field(port, "rx_missed"), field(port, "rx_errors"), field(port, "rx_nombuf"),
                   field(port, "tx_dropped"), field(port, "driver")});
    }
    return table.empty() ? "no ports\n" : table.text();
}

std::string workers_text(const Json& answer, bool rate) {
    Table table({"lcore", "core", "socket", "queues", rate ? "rx pkt/s" : "rx", rate ? "tx pkt/s" : "tx", "handed in",
                 "owns %", "busy %", "longest gap us"});
    for (const Json& worker : answer) {
        table.add({field(worker, "lcore"), field(worker, "core"), field(worker, "socket"), field(worker, "queues"),
                   field(worker, "rx"), field(worker, "tx"), field(worker, "handed_in"), field(worker, "share_percent"),
                   field(worker, "busy_percent"), field(worker, "longest_gap_us")});
    }
    return table.empty() ? "no workers\n" : table.text();
}

// The share says where the time goes; the last line is the whole path per received packet.
std::string stages_text(const Json& answer, bool rate) {
    double all_cycles = 0;
    for (const Json& stage : answer) all_cycles += number(stage, "cycles");
    Table table({"stage", rate ? "packets/s" : "packets", rate ? "bursts/s" : "bursts", "packets/burst",
                 "cycles/packet", "share %"});
    for (const auto& [name, stage] : answer.items()) {
        const double packets = number(stage, "packets"), cycles = number(stage, "cycles");
        table.add({name, field(stage, "packets"), field(stage, "bursts"), ratio(packets, number(stage, "bursts"), 1),
                   ratio(cycles, packets, 1), ratio(cycles * 100, all_cycles, 1)});
    }
    if (answer.contains("rx")) {
        const Json& rx = answer["rx"];
        table.add({"all", field(rx, "packets"), field(rx, "bursts"),
                   ratio(number(rx, "packets"), number(rx, "bursts"), 1), ratio(all_cycles, number(rx, "packets"), 1),
                   all_cycles == 0 ? "-" : "100.0"});
    }
    return table.text();
}

// Most frequent first; zero ones are left to -j.
std::string drops_text(const Json& answer, bool rate) {
    std::vector<std::pair<double, std::string>> reasons;
    for (const auto& [name, count] : answer.items()) {
        if (name != "total" && number(answer, name.c_str()) != 0)
            reasons.emplace_back(number(answer, name.c_str()), name);
    }
    if (reasons.empty()) return rate ? "no packet dropped in this second\n" : "no packet dropped\n";
    std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    Table table({"reason", rate ? "packets/s" : "packets", "meaning"});
    for (const auto& [count, name] : reasons)
        table.add({name, answer[name], std::string(pipeline::drop_reason_text(name))});
    table.add({"total", field(answer, "total"), ""});
    return table.text();
}

std::string ledger_text(const Json& answer, bool rate) {
    static constexpr std::array<std::array<const char*, 3>, 7> kLines = {{
        {"", "rx", "handed to a worker by a device"},
        {"+", "originated", "made here: own ARP, ND and ICMP, TCP resets, fragments"},
        {"-", "tx", "taken by a device"},
        {"-", "dropped", "see `show drops`"},
        {"-", "punted", "for the router itself: ARP, ND, echo"},
        {"-", "consumed", "used up here: answered, fragmented"},
        {"-", "held", "in a buffer, or waiting for a neighbor"},
    }};
    Table table({"", "", rate ? "packets/s" : "packets", ""});
    for (const auto& [sign, key, meaning] : kLines) table.add({sign, key, field(answer, key), meaning});
    const bool closed = number(answer, "unaccounted") == 0;
    table.add({"=", "unaccounted", field(answer, "unaccounted"),
               closed ? "the ledger closes" : "NOT CLOSED: this is a fault of cachewire"});
    return table.text();
}

std::string interfaces_text(const Json& answer, bool) {
    Table table({"interface", "tenant", "port", "vlan", "inner", "mtu", "mac", "admin", "addresses"});
    const auto tag = [](const Json& interface, const char* key) {
        return number(interface, key) == 0 ? Json("-") : field(interface, key);
    };
    // A loopback has none.
    const auto of_link = [](const Json& interface, const char* key) {
        return field(interface, key) == Json("") ? Json("-") : field(interface, key);
    };
    for (const Json& i : answer)
        table.add({field(i, "name"), field(i, "tenant"), of_link(i, "port"), tag(i, "vlan"), tag(i, "inner_vlan"),
                   field(i, "mtu"), of_link(i, "mac"), field(i, "admin"), field(i, "addresses")});
    return table.empty() ? "no interfaces\n" : table.text();
}

std::string twins_text(const Json& answer, bool rate) {
    const auto counter = [rate](const char* name) { return rate ? fmt::format("{}/s", name) : std::string(name); };
    Table table({"interface", "tenant", "ifname", "netns", "state", counter("to kernel"), counter("from kernel"),
                 counter("refused"), "netns routes", "neighbors"});
    // Counts of the namespace are there while it is watched.
    const auto of_netns = [](const Json& twin, const char* key) { return twin.contains(key) ? twin[key] : Json("-"); };
    for (const Json& t : answer)
        table.add({field(t, "interface"), field(t, "tenant"), field(t, "ifname"), field(t, "netns"), field(t, "state"),
                   field(t, "to_kernel"), field(t, "from_kernel"), field(t, "refused"), of_netns(t, "netns_routes"),
                   of_netns(t, "netns_neighbors")});
    return table.empty() ? "no twins\n" : table.text();
}

std::string tenants_text(const Json& answer, bool rate) {
    Table table({"tenant", "id", rate ? "dropped/s" : "dropped", "sessions", "quota", "mode", "acl", "policer in",
                 "policer out"});
    for (const Json& t : answer)
        table.add({field(t, "name"), field(t, "id"), field(t, "dropped"), field(t, "sessions"),
                   field(t, "sessions_quota"), field(t, "session_mode"), field(t, "acl"), field(t, "policer_in"),
                   field(t, "policer_out")});
    return table.empty() ? "no tenants\n" : table.text();
}

// One line an attachment, and how much of what came passed.
std::string policers_text(const Json& answer, bool rate) {
    const char* const bytes_name = rate ? "Mbit/s" : "bytes";
    Table table({"policer", "attached to", "name", "direction", "rate Mbit/s",
                 rate ? "conform pkt/s" : "conform packets", bytes_name, rate ? "exceed pkt/s" : "exceed packets",
                 bytes_name, rate ? "violate pkt/s" : "violate packets", bytes_name});
    const auto bytes = [rate](const Json& policer, const char* key) {
        return rate ? ratio(number(policer, key) * 8, 1e6, 1) : field(policer, key);
    };
    for (const Json& p : answer)
        table.add({field(p, "policer"), field(p, "attached_to"), field(p, "name"), field(p, "direction"),
                   ratio(number(p, "rate_bps"), 1e6, 3), field(p, "conform_packets"), bytes(p, "conform_bytes"),
                   field(p, "exceed_packets"), bytes(p, "exceed_bytes"), field(p, "violate_packets"),
                   bytes(p, "violate_bytes")});
    return table.empty() ? "no policer is attached\n" : table.text();
}

// One line a port and class: of all ports that have a scheduler, and of others where a full one has dropped.
std::string classes_text(const Json& answer, bool rate) {
    Table table({"port", "rate Mbit/s", "class", "order", rate ? "pkt/s" : "packets", rate ? "Mbit/s" : "bytes",
                 rate ? "dropped/s" : "dropped", "queued"});
    for (const Json& c : answer) {
        const bool scheduled = number(c, "scheduler") != 0;
        if (!scheduled && number(c, "tx_dropped") == 0) continue;
        const auto only_scheduled = [scheduled](const Json& value) { return scheduled ? value : Json("-"); };
        table.add({field(c, "port"), only_scheduled(ratio(number(c, "rate_bps"), 1e6, 3)), field(c, "class"),
                   only_scheduled(field(c, "order")), only_scheduled(field(c, "packets")),
                   only_scheduled(rate ? ratio(number(c, "bytes") * 8, 1e6, 1) : field(c, "bytes")),
                   field(c, "tx_dropped"), only_scheduled(field(c, "queued"))});
    }
    return table.empty() ? "" : "\n" + table.text();
}

std::string qos_text(const Json& answer, bool rate) {
    return policers_text(answer.value("policers", Json::object()), rate) +
           classes_text(answer.value("classes", Json::object()), rate);
}

// The file as it was read, which can be read again: what is known about it stands in comments.
std::string config_text(const Json& answer, bool) {
    std::string text = fmt::format("# {}, generation {}, sha256 {}\n", cell(field(answer, "file")),
                                   field(answer, "generation").dump(), cell(field(answer, "sha256")));
    bool first = true;
    for (const Json& file : answer.value("files", Json::array())) {
        if (!first) text += fmt::format("# {}, sha256 {}\n", cell(field(file, "file")), cell(field(file, "sha256")));
        first = false;
        if (file.contains("text")) text += file["text"].get<std::string>();
        if (!text.ends_with('\n')) text += '\n';
    }
    return text;
}

std::string plain_text(const Json& answer, bool) { return generic_text(answer); }

constexpr auto kViews = std::to_array<View>({
    {"info", "/cachewire/info", View::Shape::one, false, false, info_text},
    {"ports", "/cachewire/port/list", View::Shape::ports, false, true, ports_text},
    {"interfaces", "/cachewire/interface/list", View::Shape::list, true, false, interfaces_text},
    {"workers", "/cachewire/worker/stats", View::Shape::list, false, true, workers_text},
    {"stages", "/cachewire/stage/stats", View::Shape::one, false, true, stages_text},
    {"drops", "/cachewire/drops", View::Shape::one, true, true, drops_text},
    {"ledger", "/cachewire/ledger", View::Shape::one, false, true, ledger_text},
    {"memory", "/cachewire/memory", View::Shape::one, false, false, plain_text},
    {"sessions", "/cachewire/session/stats", View::Shape::one, true, true, plain_text},
    {"memo", "/cachewire/memo/stats", View::Shape::one, false, true, plain_text},
    {"acl", "/cachewire/acl/list", View::Shape::list, false, false, plain_text, "/cachewire/acl/hits", plain_text,
     true},
    {"routes", "/cachewire/route/stats", View::Shape::one, true, false, plain_text, "/cachewire/route/lookup",
     plain_text},
    {"neighbors", "/cachewire/neighbor/list", View::Shape::list, true, false, plain_text},
    {"slow-path", "/cachewire/slow_path/stats", View::Shape::one, false, true, plain_text},
    {"qos", "/cachewire/qos", View::Shape::qos, false, true, qos_text},
    {"services", "/cachewire/service/list", View::Shape::list, false, false, plain_text},
    {"tenants", "/cachewire/tenant/list", View::Shape::list, false, true, tenants_text},
    {"twins", "/cachewire/kernel/list", View::Shape::list, false, true, twins_text},
    {"config", "config", View::Shape::file, false, false, config_text},
    {"overrides", "/cachewire/override/list", View::Shape::list, false, false, plain_text},
});

// A view whose endpoint is there now has its name taken out here; a test compares this list with a running cachewire.
constexpr auto kLaterViews = std::to_array<std::string_view>({"services"});

bool is_gauge(std::string_view key) {
    static constexpr auto kGauges = std::to_array<std::string_view>({"held",
                                                                     "unaccounted",
                                                                     "lcore",
                                                                     "core",
                                                                     "socket",
                                                                     "queues",
                                                                     "sessions",
                                                                     "share_percent",
                                                                     "longest_gap_us",
                                                                     "busy_percent",
                                                                     "cycles_per_packet",
                                                                     "alarm",
                                                                     "memoize",
                                                                     "shadow_check",
                                                                     "capacity",
                                                                     "active",
                                                                     "time_to_full_s",
                                                                     "vlan",
                                                                     "inner_vlan",
                                                                     "mtu",
                                                                     "id",
                                                                     "rate_bps",
                                                                     "burst_bytes",
                                                                     "excess_rate_bps",
                                                                     "excess_burst_bytes",
                                                                     "shared",
                                                                     "per_session",
                                                                     "scheduler",
                                                                     "queued",
                                                                     "sessions",
                                                                     "sessions_quota",
                                                                     "new_sessions_per_second_quota",
                                                                     "rules",
                                                                     "line",
                                                                     "tries",
                                                                     "memory_bytes",
                                                                     "build_time_us",
                                                                     "waiting",
                                                                     "neighbors",
                                                                     "neighbors_unresolved",
                                                                     "netns_routes",
                                                                     "netns_neighbors",
                                                                     "netns_foreign_routes"});
    return key.starts_with("state_") || std::find(kGauges.begin(), kGauges.end(), key) != kGauges.end();
}

}  // namespace

std::span<const View> views() { return kViews; }

bool is_later_view(std::string_view name) {
    return std::find(kLaterViews.begin(), kLaterViews.end(), name) != kLaterViews.end();
}

const View* find_view(std::string_view name) {
    const auto it = std::find_if(kViews.begin(), kViews.end(), [name](const View& v) { return v.name == name; });
    return it == kViews.end() ? nullptr : it;
}

std::string sessions_text(const Json& list) {
    Table table({"proto", "from", "to", "state", "age s", "idle s", "packets", "bytes", "reply packets", "reply bytes",
                 "verdict", "rule", "next hop"});
    const auto end = [](const Json& session, const char* address, const char* port) {
        const std::string text = cell(field(session, address));
        const std::string number = session.contains(port) ? session[port].dump() : "-";
        return text.find(':') == std::string::npos ? fmt::format("{}:{}", text, number)
                                                   : fmt::format("[{}]:{}", text, number);
    };
    for (const Json& s : list) {
        table.add({field(s, "proto"), end(s, "src", "src_port"), end(s, "dst", "dst_port"), field(s, "state"),
                   field(s, "age_s"), field(s, "idle_s"), field(s, "packets"), field(s, "bytes"),
                   field(s, "reply_packets"), field(s, "reply_bytes"), field(s, "verdict"), field(s, "rule"),
                   field(s, "next_hop")});
    }
    return table.empty() ? "no sessions\n" : table.text();
}

std::string preview_text(const Json& preview) {
    std::string text =
        fmt::format("{} of {} live sessions would change verdict: {} to deny, {} to permit{}\n",
                    cell(field(preview, "would_change")), cell(field(preview, "live")), cell(field(preview, "to_deny")),
                    cell(field(preview, "to_permit")),
                    preview.value("complete", true) ? "" : " (not all were looked at: it took too long)");
    Table table({"list", "rule", "action", "sessions"});
    for (const Json& rule : preview.value("rules", Json::array()))
        table.add({field(rule, "list"), field(rule, "rule"), field(rule, "action"), field(rule, "sessions")});
    return table.empty() ? text : text + table.text();
}

Json fetch(TelemetryClient& client, const View& view, const std::string& tenant, const std::string& name) {
    if (!name.empty()) {
        const std::string by_name(view.by_name);
        if (view.shape == View::Shape::list) return client.query_list(by_name, name);
        // Files without tenants have this one.
        return client.query(by_name, (tenant.empty() ? "default" : tenant) + "," + name);
    }
    const std::string endpoint(view.endpoint);
    if (view.shape == View::Shape::one) return client.query(endpoint, tenant);
    if (view.shape == View::Shape::qos)
        return {{"policers", client.query_list(endpoint + "/stats")},
                {"classes", client.query_list(endpoint + "/classes")}};
    Json list = client.query_list(endpoint, tenant);
    if (view.shape == View::Shape::ports) {
        for (Json& port : list) port.update(client.query("/cachewire/port/stats", port.at("name").get<std::string>()));
    }
    return list;
}

Json rates(const Json& before, const Json& after, double seconds) {
    if (!after.is_object()) return after;
    Json out = Json::object();
    for (const auto& [key, value] : after.items()) {
        const auto earlier = before.find(key);
        if (earlier == before.end()) continue;  // appeared in between: its interval is not known
        if (value.is_object()) {
            out[key] = rates(*earlier, value, seconds);
        } else if (value.is_number_unsigned() && earlier->is_number_unsigned() && !is_gauge(key)) {
            const double difference = value.get<double>() - earlier->get<double>();
            out[key] = static_cast<std::uint64_t>(std::llround(std::max(difference, 0.0) / seconds));
        } else {
            out[key] = value;
        }
    }
    if (out.contains("busy_percent")) {
        const double total = number(out, "total_cycles");
        out["busy_percent"] = total == 0 ? 0 : std::llround(number(out, "busy_cycles") * 100 / total);
    }
    if (out.contains("cycles_per_packet")) {
        const double packets = number(out, "packets");
        out["cycles_per_packet"] = packets == 0 ? 0 : std::llround(number(out, "cycles") / packets);
    }
    return out;
}

}  // namespace cachewire::client
