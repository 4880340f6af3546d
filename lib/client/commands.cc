// SPDX-License-Identifier: BSD-3-Clause
#include "client/commands.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ostream>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <CLI/CLI.hpp>

#include "base/nearest.h"
#include "client/sockets.h"
#include "client/table.h"
#include "client/views.h"

namespace cachewire::client {

namespace {

struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Those that this version answers: what is to come is neither offered nor guessed.
std::vector<std::string_view> view_names() {
    std::vector<std::string_view> names;
    for (const View& view : views())
        if (!is_later_view(view.name)) names.push_back(view.name);
    return names;
}

std::string list(const std::vector<std::string_view>& words) {
    std::string text;
    for (const std::string_view word : words) text.append(text.empty() ? "" : ", ").append(word);
    return text;
}

// "no 'drosp'; did you mean 'drops'? There are: info, ports, ..."
std::string unknown(std::string_view word, const std::vector<std::string_view>& known) {
    const std::string_view near = base::nearest(word, known);
    return fmt::format("no '{}'; {}there are: {}", word, near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                       list(known));
}

void print(Context& context, const Json& json, const std::string& text) {
    *context.out << (context.json ? json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text)
                 << std::flush;
}

// True when the time is over, false when cancelled.
bool wait_a_second(int cancel_fd) {
    pollfd fd = {cancel_fd, POLLIN, 0};
    return ::poll(&fd, 1, 1000) <= 0;
}

// What runs as a file: too long for the telemetry socket.
int show_file(Context& context, const View& view) {
    ControlClient client(control_path(context.file_prefix), context.cancel_fd);
    Json answer = client.call({{"command", view.endpoint}});
    if (!answer.value("ok", false))
        throw Refused(fmt::format("show {}: {}", view.name, cell(answer.value("error", Json("no reason given")))));
    answer.erase("ok");
    print(context, answer, view.text(answer, false));
    return kDone;
}

void declare_show(void* cli_app, Arguments& arguments) {
    auto& app = *static_cast<CLI::App*>(cli_app);
    app.add_option("WHAT", arguments.what, list(view_names()))->required();
    app.add_option("--tenant", arguments.tenant, "of one tenant");
    app.add_flag("--rate", arguments.rate, "two samples a second apart: what happens a second");
}

int run_show(Context& context, const Arguments& arguments) {
    const View* view = find_view(arguments.what);
    if (view == nullptr) throw UsageError("show: " + unknown(arguments.what, view_names()));
    if (!arguments.tenant.empty() && !view->takes_tenant)
        throw UsageError(fmt::format("show {}: takes no --tenant", view->name));
    if (arguments.rate && !view->has_rate)
        throw UsageError(fmt::format("show {}: has no counters for --rate", view->name));
    if (view->shape == View::Shape::file) return show_file(context, *view);
    try {
        TelemetryClient client(telemetry_path(context.file_prefix), context.cancel_fd);
        const auto start = std::chrono::steady_clock::now();
        Json answer = fetch(client, *view, arguments.tenant);
        if (arguments.rate) {
            if (!wait_a_second(context.cancel_fd)) throw Refused("cancelled");
            const Json later = fetch(client, *view, arguments.tenant);
            const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
            answer = rates(answer, later, passed.count());
        }
        print(context, answer, view->text(answer, arguments.rate));
        return kDone;
    } catch (const NotSupported&) {
        throw NotSupported(fmt::format("show {}: not supported yet by this cachewire", view->name));
    }
}

void declare_reload(void* cli_app, Arguments& arguments) {
    static_cast<CLI::App*>(cli_app)->add_flag("--dry-run", arguments.dry_run, "check and build, but change nothing");
}

int run_reload(Context& context, const Arguments& arguments) {
    ControlClient client(control_path(context.file_prefix), context.cancel_fd);
    const Json answer = client.call({{"command", "reload"}, {"dry_run", arguments.dry_run}});
    const bool ok = answer.value("ok", false);
    if (context.json) {
        print(context, answer, "");
        return ok ? kDone : kRefused;
    }
    for (const Json& line : answer.value("diagnostics", Json::array())) {
        *context.err << (line.is_string() ? line.get<std::string>() : line.dump()) << "\n";
    }
    if (!ok) throw Refused(fmt::format("reload refused: {}", cell(answer.value("error", Json("no reason given")))));
    const std::string generation = cell(answer.value("generation", Json("?")));
    *context.out << (arguments.dry_run
                         ? fmt::format("the file is good; still generation {}, nothing was changed\n", generation)
                         : fmt::format("reloaded: generation {}\n", generation));
    if (const auto preview = answer.find("preview"); preview != answer.end()) *context.out << preview_text(*preview);
    return kDone;
}

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
    ControlClient client(control_path(context.file_prefix), context.cancel_fd);
    const Json answer = client.call({{"command", "sessions_kill"}, {"filter", filter}});
    if (!answer.value("ok", false))
        throw Refused(fmt::format("sessions kill: {}", cell(answer.value("error", Json("no reason given")))));
    print(context, answer, fmt::format("{} sessions ended\n", cell(answer.value("killed", Json(0u)))));
    return kDone;
}

int run_sessions(Context& context, const Arguments& arguments) {
    if (arguments.action == "list") return list_sessions(context, arguments);
    if (arguments.action == "kill") return kill_sessions(context, arguments);
    if (arguments.action == "top") return top_sessions(context, arguments);
    throw UsageError(fmt::format("sessions: no '{}'; list, top or kill", arguments.action));
}

void declare_memoize(void* cli_app, Arguments& arguments) {
    static_cast<CLI::App*>(cli_app)
        ->add_option("STATE", arguments.action, "on, or off: every packet takes the slow path")
        ->required();
}

int run_memoize(Context& context, const Arguments& arguments) {
    if (arguments.action != "on" && arguments.action != "off")
        throw UsageError(fmt::format("memoize: no '{}'; on or off", arguments.action));
    ControlClient client(control_path(context.file_prefix), context.cancel_fd);
    const Json answer = client.call({{"command", "memoize"}, {"on", arguments.action == "on"}});
    if (!answer.value("ok", false))
        throw Refused(fmt::format("memoize: {}", cell(answer.value("error", Json("no reason given")))));
    print(context, answer, fmt::format("memoize is {}\n", arguments.action));
    return kDone;
}

void declare_neighbors(void* cli_app, Arguments& arguments) {
    auto& app = *static_cast<CLI::App*>(cli_app);
    app.add_option("ACTION", arguments.action, "flush")->required();
    app.add_option("--tenant", arguments.tenant, "of one tenant");
}

int run_neighbors(Context& context, const Arguments& arguments) {
    if (arguments.action != "flush") throw UsageError(fmt::format("neighbors: no '{}'; flush", arguments.action));
    ControlClient client(control_path(context.file_prefix), context.cancel_fd);
    Json request = {{"command", "neighbors_flush"}};
    if (!arguments.tenant.empty()) request["tenant"] = arguments.tenant;
    const Json answer = client.call(request);
    if (!answer.value("ok", false))
        throw Refused(fmt::format("neighbors flush: {}", cell(answer.value("error", Json("no reason given")))));
    print(context, answer, fmt::format("{} neighbors forgotten\n", cell(answer.value("flushed", Json(0u)))));
    return kDone;
}

constexpr auto kCommands = std::to_array<Command>({
    {"show", "ask for state and counters", declare_show, run_show},
    {"reload", "read the configuration file again; all of it is applied or nothing", declare_reload, run_reload},
    {"memoize", "use memoised verdicts, or not; over reloads", declare_memoize, run_memoize},
    {"sessions", "list a tenant's sessions, all or the heaviest, or end those that a filter fits", declare_sessions,
     run_sessions},
    {"neighbors", "flush: forget learned neighbors, and ask for them anew", declare_neighbors, run_neighbors},
});

// Of the interface, but not there yet: said as such, not as a typing error.
constexpr auto kLater =
    std::to_array<std::string_view>({"explain", "top", "monitor", "trace", "capture", "confirm", "rollback", "drain",
                                     "undrain", "block", "rebalance", "log", "bundle"});

std::vector<std::string_view> command_names() {
    std::vector<std::string_view> names;
    for (const Command& command : kCommands) names.push_back(command.name);
    return names;
}

// CLI11 says "a subcommand is required" of a word that is none.
std::string what_is_wrong(const CLI::App& app, const CLI::ParseError& error) {
    if (app.get_subcommands().empty()) {
        for (const std::string& word : app.remaining())
            if (!word.starts_with('-')) return unknown(word, command_names());
        if (error.get_name() == "RequiredError") return "a command is expected; there are: " + list(command_names());
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
