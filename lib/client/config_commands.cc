// SPDX-License-Identifier: BSD-3-Clause
#include "client/config_commands.h"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "client/command_support.h"
#include "client/diff.h"
#include "client/table.h"
#include "client/views.h"

namespace cachewire::client {

namespace {

std::string text_of(const Json& object, const char* key) { return cell(object.value(key, Json("?"))); }

// By its path; null: it has none such.
const Json* find_file(const Json& files, const std::string& path) {
    const auto found =
        std::find_if(files.begin(), files.end(), [&](const Json& f) { return f.value("file", "") == path; });
    return found == files.end() ? nullptr : &*found;
}

std::string difference(const Json* running, const Json* now, const std::string& path) {
    if (running != nullptr && now != nullptr && running->value("sha256", "") == now->value("sha256", "")) return "";
    if (running == nullptr) return fmt::format("{}: new, not read yet\n", path);
    if (now == nullptr) return fmt::format("{}: not named or not there any more\n", path);
    if (!running->contains("text") || !now->contains("text")) return fmt::format("{}: differs\n", path);
    return unified_diff(running->value("text", ""), now->value("text", ""), path + " (running)", path + " (file)");
}

std::string all_differences(const Json& answer) {
    const Json running = answer.value("running", Json::array()), now = answer.value("now", Json::array());
    std::string text;
    for (const Json& file : running) {
        const std::string path = file.value("file", "");
        text += difference(&file, find_file(now, path), path);
    }
    for (const Json& file : now) {
        const std::string path = file.value("file", "");
        if (find_file(running, path) == nullptr) text += difference(nullptr, &file, path);
    }
    for (const Json& line : answer.value("diagnostics", Json::array())) text += cell(line) + "\n";
    return text;
}

// Of a dry run; nothing to say where it would take no more.
std::string more_memory_text(const Json& answer) {
    static const Json::json_pointer kMore("/memory/sessions/more_bytes");
    const std::uint64_t bytes = answer.value(kMore, std::uint64_t{0});
    return bytes == 0 ? ""
                      : fmt::format("buckets of sessions would take {:.1f} MiB more, until the end\n",
                                    static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

void declare_reload(void* cli_app, Arguments& arguments) {
    auto& app = *static_cast<CLI::App*>(cli_app);
    app.add_flag("--dry-run", arguments.dry_run, "check and build, but change nothing");
    app.add_option("--confirm", arguments.confirm,
                   "back to what runs now, unless `confirm` comes within this time, such as 120s");
}

int run_reload(Context& context, const Arguments& arguments) {
    Json request = {{"command", "reload"}, {"dry_run", arguments.dry_run}};
    if (arguments.confirm) {
        if (arguments.dry_run) throw UsageError("reload: nothing is to be confirmed of a dry run");
        request["confirm_s"] = seconds_of("--confirm", *arguments.confirm);
    }
    ControlClient client(control_path(context.file_prefix), context.cancel_fd);
    const Json answer = client.call(request);
    const bool ok = answer.value("ok", false);
    if (context.json) {
        print(context, answer, "");
        return ok ? kDone : kRefused;
    }
    for (const Json& line : answer.value("diagnostics", Json::array()))
        *context.err << (line.is_string() ? line.get<std::string>() : line.dump()) << "\n";
    if (!ok) throw Refused(fmt::format("reload refused: {}", cell(answer.value("error", Json("no reason given")))));
    const std::string generation = text_of(answer, "generation");
    *context.out << (arguments.dry_run
                         ? fmt::format("the file is good; still generation {}, nothing was changed\n", generation)
                         : fmt::format("reloaded: generation {}\n", generation));
    if (arguments.confirm)
        *context.out << fmt::format("`cwctl confirm` within {} keeps it, or what ran before runs again\n",
                                    *arguments.confirm);
    if (const auto preview = answer.find("preview"); preview != answer.end()) *context.out << preview_text(*preview);
    *context.out << more_memory_text(answer);
    return kDone;
}

void declare_nothing(void*, Arguments&) {}

int run_confirm(Context& context, const Arguments&) {
    const Json answer = order(context, "confirm", {{"command", "confirm"}});
    print(context, answer, fmt::format("confirmed: generation {}\n", text_of(answer, "generation")));
    return kDone;
}

int run_rollback(Context& context, const Arguments&) {
    const Json answer = order(context, "rollback", {{"command", "rollback"}});
    print(context, answer,
          fmt::format("what ran before the last reload runs again: generation {}; the files are as they were\n",
                      text_of(answer, "generation")));
    return kDone;
}

int show_config_diff(Context& context) {
    Json answer = order(context, "show config --diff", {{"command", "config_diff"}});
    answer.erase("ok");
    const bool drift = answer.value("drift", true);
    std::string text = drift ? all_differences(answer)
                             : fmt::format("generation {} is what the files say\n", text_of(answer, "generation"));
    if (const Json overrides = answer.value("overrides", Json(0u)); overrides != 0u)
        text += fmt::format("# overrides in force, which no file says: {} (cwctl show overrides)\n", cell(overrides));
    print(context, answer, text);
    return drift ? kRefused : kDone;
}

}  // namespace cachewire::client
