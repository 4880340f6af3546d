// SPDX-License-Identifier: BSD-3-Clause
#include "client/commands.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "client/command_support.h"
#include "client/config_commands.h"
#include "client/override_commands.h"
#include "client/show_commands.h"
#include "client/table.h"
#include "client/views.h"

namespace cachewire::client {

namespace {

void declare_sessions(void* cli_app, Arguments& arguments) {
    auto& app = *static_cast<CLI::App*>(cli_app);
    app.add_option("ACTION", arguments.action, "list, top, or kill")->required();
    app.add_option("FILTER", arguments.words,
                   "of kill: tenant=, proto=, src=, dst=, src_port=, dst_port=, state=; or all. "
                   "Of top: bytes or packets, and how many");
    app.add_option("--tenant", arguments.tenant, "of list and top: whose sessions");
}

int list_sessions(Context& context, const Arguments& arguments) {
    if (arguments.tenant.empty() || !arguments.words.empty())
        throw UsageError("sessions list: --tenant T is expected, and no filter");
    TelemetryClient client(telemetry_path(context.file_prefix), context.cancel_fd);
    const Json answer = client.query_list("/cachewire/session/list", arguments.tenant);
    print(context, answer, sessions_text(answer));
    return kDone;
}

int top_sessions(Context& context, const Arguments& arguments) {
    if (arguments.tenant.empty() || arguments.words.size() > 2)
        throw UsageError("sessions top: --tenant T is expected; then bytes or packets, and how many");
    std::string whose = arguments.tenant;
    for (const std::string& word : arguments.words) whose += "," + word;
    TelemetryClient client(telemetry_path(context.file_prefix), context.cancel_fd);
    const Json answer = client.query("/cachewire/session/top", whose);
    print(context, answer, sessions_text(answer));
    return kDone;
}

int kill_sessions(Context& context, const Arguments& arguments) {
    if (!arguments.tenant.empty())
        throw UsageError(fmt::format("sessions kill: the tenant is part of the filter: tenant={}", arguments.tenant));
    if (arguments.words.empty())
        throw UsageError("sessions kill: a filter is expected, such as tenant=red dst_port=22; or all");
    std::string filter;
    for (const std::string& word : arguments.words) filter += (filter.empty() ? "" : " ") + word;
    const Json answer = order(context, "sessions kill", {{"command", "sessions_kill"}, {"filter", filter}});
    print(context, answer, fmt::format("{} sessions ended\n", cell(answer.value("killed", Json(0u)))));
    return kDone;
}

int run_sessions(Context& context, const Arguments& arguments) {
    if (arguments.action == "list") return list_sessions(context, arguments);
    if (arguments.action == "kill") return kill_sessions(context, arguments);
    if (arguments.action == "top") return top_sessions(context, arguments);
    throw UsageError(fmt::format("sessions: no '{}'; list, top or kill", arguments.action));
}

void declare_neighbors(void* cli_app, Arguments& arguments) {
    auto& app = *static_cast<CLI::App*>(cli_app);
    app.add_option("ACTION", arguments.action, "flush")->required();
    app.add_option("--tenant", arguments.tenant, "of one tenant");
}

int run_neighbors(Context& context, const Arguments& arguments) {
    if (arguments.action != "flush") throw UsageError(fmt::format("neighbors: no '{}'; flush", arguments.action));
    Json request = {{"command", "neighbors_flush"}};
    if (!arguments.tenant.empty()) request["tenant"] = arguments.tenant;
    const Json answer = order(context, "neighbors flush", request);
    print(context, answer, fmt::format("{} neighbors forgotten\n", cell(answer.value("flushed", Json(0u)))));
    return kDone;
}

constexpr auto kCommands = std::to_array<Command>({
    {"show", "ask for state and counters", declare_show, run_show},
    {"reload", "read the configuration file again; all of it is applied or nothing", declare_reload, run_reload},
    {"confirm", "keep what the last `reload --confirm` has brought", declare_nothing, run_confirm},
    {"rollback", "run what ran before the last reload again", declare_nothing, run_rollback},
    {"block", "drop what comes from or goes to a network, for a time; over reloads", declare_block, run_block},
    {"unblock", "end a block before its time", declare_unblock, run_unblock},
    {"memoize", "use memoised verdicts, or not; over reloads", declare_memoize, run_memoize},
    {"log", "level: how much cachewire's log says; over reloads", declare_log, run_log},
    {"sessions", "list a tenant's sessions, all or the heaviest, or end those that a filter fits", declare_sessions,
     run_sessions},
    {"rebalance", "move sessions from the busiest worker to the least busy one", declare_rebalance, run_rebalance},
    {"neighbors", "flush: forget learned neighbors, and ask for them anew", declare_neighbors, run_neighbors},
});

// Of the interface, but not there yet: said as such, not as a typing error.
constexpr auto kLater =
    std::to_array<std::string_view>({"explain", "top", "monitor", "trace", "capture", "drain", "undrain", "bundle"});

std::vector<std::string_view> command_names() {
    std::vector<std::string_view> names;
    names.reserve(kCommands.size());
    for (const Command& command : kCommands) names.push_back(command.name);
    return names;
}

// CLI11 says "a subcommand is required" of a word that is none.
std::string what_is_wrong(const CLI::App& app, const CLI::ParseError& error) {
    if (app.get_subcommands().empty()) {
        for (const std::string& word : app.remaining())
            if (!word.starts_with('-')) return unknown_word(word, command_names());
        if (error.get_name() == "RequiredError")
            return "a command is expected; there are: " + join_words(command_names());
    }
    return fmt::format("{} (--help lists the commands)", error.what());
}

int run_words(Context& context, std::vector<std::string> words) {
    CLI::App app("Asks and steers a running cachewire.", "cwctl");
    Arguments arguments;
    const Command* chosen = nullptr;
    app.add_option("-p,--file-prefix", context.file_prefix, "EAL file prefix of the cachewire meant")
        ->capture_default_str();
    app.add_flag("-j,--json", context.json, "JSON for programs");
    app.set_version_flag("--version", "cwctl " CACHEWIRE_VERSION, "print the version and exit");
    app.require_subcommand(1);
    app.fallthrough();
    for (const Command& command : kCommands) {
        CLI::App* sub = app.add_subcommand(command.name, command.help);
        command.declare(sub, arguments);
        sub->callback([&chosen, &command] { chosen = &command; });
    }
    for (const std::string_view name : kLater) {
        CLI::App* sub = app.add_subcommand(std::string(name), "")->group("")->prefix_command();
        sub->callback([name] { throw NotSupported(fmt::format("{}: not supported yet", name)); });
    }
    try {
        std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
        app.parse(words);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app.exit(e, *context.out, *context.err);
        throw UsageError(what_is_wrong(app, e));
    }
    return chosen->run(context, arguments);
}

int complain(Context& context, int status, const char* text) {
    if (context.json) *context.out << Json{{"error", text}}.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    *context.err << text << "\n" << std::flush;
    return status;
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

int run_command(Context& context, const std::vector<std::string>& words) {
    try {
        return run_words(context, words);
    } catch (const UsageError& e) {
        return complain(context, kUsage, e.what());
    } catch (const NotSupported& e) {
        return complain(context, kUsage, e.what());
    } catch (const NotRunning& e) {
        return complain(context, kNotRunning, e.what());
    } catch (const std::exception& e) {
        return complain(context, kRefused, e.what());
    }
}

}  // namespace cachewire::client
