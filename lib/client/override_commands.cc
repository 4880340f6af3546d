// SPDX-License-Identifier: BSD-3-Clause
#include "client/override_commands.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "client/command_support.h"
#include "client/table.h"

namespace cachewire::client {

namespace {

Json about_prefix(const char* command, const Arguments& arguments) {
    Json request = {{"command", command}, {"prefix", arguments.what}};
    if (!arguments.tenant.empty()) request["tenant"] = arguments.tenant;
    return request;
}

}  // namespace

void declare_memoize(void* cli_app, Arguments& arguments) {
    static_cast<CLI::App*>(cli_app)
        ->add_option("STATE", arguments.action, "on, or off: every packet takes the slow path")
        ->required();
}

int run_memoize(Context& context, const Arguments& arguments) {
    if (arguments.action != "on" && arguments.action != "off")
        throw UsageError(fmt::format("memoize: no '{}'; on or off", arguments.action));
    const Json answer = order(context, "memoize", {{"command", "memoize"}, {"on", arguments.action == "on"}});
    print(context, answer, fmt::format("memoize is {}\n", arguments.action));
    return kDone;
}

void declare_rebalance(void* cli_app, Arguments& arguments) {
    static_cast<CLI::App*>(cli_app)->add_option(
        "WHAT", arguments.words,
        "FROM TO BUCKETS: so many buckets from one lcore to another; nothing: what the load asks for");
}

int run_rebalance(Context& context, const Arguments& arguments) {
    Json request = {{"command", "rebalance"}};
    if (!arguments.words.empty()) {
        constexpr const char* kKeys[] = {"from", "to", "buckets"};
        if (arguments.words.size() != std::size(kKeys)) throw UsageError("rebalance: FROM TO BUCKETS, or nothing");
        for (std::size_t i = 0; i < std::size(kKeys); ++i) {
            const std::string& word = arguments.words[i];
            if (word.empty() || word.size() > 6 || word.find_first_not_of("0123456789") != std::string::npos)
                throw UsageError(fmt::format("rebalance: '{}' is no number", word));
            request[kKeys[i]] = static_cast<unsigned>(std::stoul(word));
        }
    }
    const Json answer = order(context, "rebalance", request);
    std::string text;
    for (const Json& move : answer.value("moves", Json::array()))
        text +=
            fmt::format("{} buckets with {} sessions went from lcore {} to lcore {}, in {} us\n", cell(move["buckets"]),
                        cell(move["sessions"]), cell(move["from"]), cell(move["to"]), cell(move["us"]));
    print(context, answer, text.empty() ? "nothing to move: the workers have about the same to do\n" : text);
    return kDone;
}

void declare_block(void* cli_app, Arguments& arguments) {
    auto& app = *static_cast<CLI::App*>(cli_app);
    app.add_option("PREFIX", arguments.what, "a network such as 203.0.113.0/24, or an address")->required();
    app.add_option("--tenant", arguments.tenant, "in which tenant; may be left out where there is one");
    app.add_option("--for", arguments.for_time, "how long, such as 10m; at most 7d")->required();
}

int run_block(Context& context, const Arguments& arguments) {
    Json request = about_prefix("block", arguments);
    request["for_s"] = seconds_of("--for", arguments.for_time);
    const Json answer = order(context, "block", request);
    print(
        context, answer,
        fmt::format("{} is blocked for {}\n", cell(answer.value("blocked", Json(arguments.what))), arguments.for_time));
    return kDone;
}

void declare_unblock(void* cli_app, Arguments& arguments) {
    auto& app = *static_cast<CLI::App*>(cli_app);
    app.add_option("PREFIX", arguments.what, "as it was blocked")->required();
    app.add_option("--tenant", arguments.tenant, "in which tenant; may be left out where there is one");
}

int run_unblock(Context& context, const Arguments& arguments) {
    const Json answer = order(context, "unblock", about_prefix("unblock", arguments));
    print(context, answer,
          fmt::format("{} is blocked no more\n", cell(answer.value("unblocked", Json(arguments.what)))));
    return kDone;
}

void declare_log(void* cli_app, Arguments& arguments) {
    auto& app = *static_cast<CLI::App*>(cli_app);
    app.add_option("WHAT", arguments.action, "level")->required();
    app.add_option("LEVEL", arguments.what, "error, warning, info or debug")->required();
}

int run_log(Context& context, const Arguments& arguments) {
    if (arguments.action != "level") throw UsageError(fmt::format("log: no '{}'; level", arguments.action));
    const Json answer = order(context, "log level", {{"command", "log_level"}, {"level", arguments.what}});
    print(context, answer, fmt::format("cachewire's log says {} and what is more urgent\n", arguments.what));
    return kDone;
}

}  // namespace cachewire::client
