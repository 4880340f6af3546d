// SPDX-License-Identifier: BSD-3-Clause
#include "client/show_commands.h"

#include <chrono>

#include <fmt/format.h>
#include <poll.h>
#include <CLI/CLI.hpp>

#include "client/command_support.h"
#include "client/config_commands.h"
#include "client/views.h"

namespace cachewire::client {

namespace {

// Those that this version answers: what is to come is neither offered nor guessed.
std::vector<std::string_view> view_names() {
    std::vector<std::string_view> names;
    for (const View& view : views())
        if (!is_later_view(view.name)) names.push_back(view.name);
    return names;
}

// True when the time is over, false when cancelled.
bool wait_a_second(int cancel_fd) {
    pollfd fd = {cancel_fd, POLLIN, 0};
    return ::poll(&fd, 1, 1000) <= 0;
}

// What runs as a file: too long for the telemetry socket.
int show_file(Context& context, const View& view) {
    Json answer = order(context, fmt::format("show {}", view.name), {{"command", view.endpoint}});
    answer.erase("ok");
    print(context, answer, view.text(answer, false));
    return kDone;
}

void check_options(const View& view, const Arguments& arguments) {
    if (!arguments.tenant.empty() && !view.takes_tenant)
        throw UsageError(fmt::format("show {}: takes no --tenant", view.name));
    if (arguments.rate && !(arguments.words.empty() ? view.has_rate : view.by_name_has_rate))
        throw UsageError(fmt::format("show {}: has no counters for --rate", view.name));
    if (arguments.diff && view.name != "config") throw UsageError(fmt::format("show {}: takes no --diff", view.name));
    if (arguments.words.size() > (view.by_name.empty() ? 0 : 1))
        throw UsageError(fmt::format("show {}: what is '{}'?", view.name, arguments.words.back()));
}

}  // namespace

void declare_show(void* cli_app, Arguments& arguments) {
    auto& app = *static_cast<CLI::App*>(cli_app);
    app.add_option("WHAT", arguments.what, join_words(view_names()))->required();
    app.add_option("--tenant", arguments.tenant, "of one tenant");
    app.add_option("NAME", arguments.words, "acl LIST: its hits by rule; routes ADDRESS: where it goes");
    app.add_flag("--rate", arguments.rate, "two samples a second apart: what happens a second");
    app.add_flag("--diff", arguments.diff, "of config: what the files say now against what runs; 1 where it differs");
}

int run_show(Context& context, const Arguments& arguments) {
    const View* view = find_view(arguments.what);
    if (view == nullptr) throw UsageError("show: " + unknown_word(arguments.what, view_names()));
    check_options(*view, arguments);
    if (arguments.diff) return show_config_diff(context);
    const std::string name = arguments.words.empty() ? "" : arguments.words.front();
    if (view->shape == View::Shape::file) return show_file(context, *view);
    try {
        TelemetryClient client(telemetry_path(context.file_prefix), context.cancel_fd);
        const auto start = std::chrono::steady_clock::now();
        Json answer = fetch(client, *view, arguments.tenant, name);
        if (arguments.rate) {
            if (!wait_a_second(context.cancel_fd)) throw Refused("cancelled");
            const Json later = fetch(client, *view, arguments.tenant, name);
            const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
            answer = rates(answer, later, passed.count());
        }
        print(context, answer, (name.empty() ? view->text : view->text_by_name)(answer, arguments.rate));
        return kDone;
    } catch (const NotSupported&) {
        throw NotSupported(fmt::format("show {}: not supported yet by this cachewire", view->name));
    }
}

}  // namespace cachewire::client
