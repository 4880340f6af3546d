#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The commands of cwctl and of the `-i` prompt: one table, one way to run a line of it.
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cachewire::client {

// Exit statuses of cwctl, as the interface states them.
inline constexpr int kDone = 0;
inline constexpr int kRefused = 1;
inline constexpr int kUsage = 2;
inline constexpr int kNotRunning = 3;

struct Context {
    std::string file_prefix = "rte";  // EAL's own default
    bool json = false;
    int cancel_fd = -1;  // readable: whatever waits gives up
    std::ostream* out;
    std::ostream* err;
};

// What stood on the line, of all commands; each reads its own.
struct Arguments {
    std::string what;    // show WHAT
    std::string tenant;  // --tenant
    bool rate = false;
    bool dry_run = false;
    bool diff = false;
    bool hits = false;
    std::optional<std::string> confirm;  // --confirm TIME
    std::string for_time;                // --for TIME
    std::string action;                  // sessions ACTION
    std::vector<std::string> words;      // and what follows
};

// A command: how it is written, what it does. To add one: a line in the table and its function.
struct Command {
    const char* name;
    const char* help;
    void (*declare)(void* cli_app, Arguments& arguments);
    int (*run)(Context& context, const Arguments& arguments);
};
std::span<const Command> commands();

// One line, split into words: `-p PREFIX`, `-j` and a command. Answers on context.out, complaints on context.err;
// returns the exit status. Throws nothing.
int run_command(Context& context, const std::vector<std::string>& words);

}  // namespace cachewire::client
