// SPDX-License-Identifier: BSD-3-Clause
#include "interactive.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "client/commands.h"

namespace cachewire::app {

namespace {

constexpr std::string_view kPrompt = "cachewire> ";

void print(std::string_view text) { std::cout << text << std::flush; }

}  // namespace

Interactive::Interactive(std::string file_prefix, std::function<void()> on_quit)
    : file_prefix_(std::move(file_prefix)), on_quit_(std::move(on_quit)), stop_event_(::eventfd(0, EFD_CLOEXEC)) {
    if (stop_event_ < 0) base::check(-errno, "eventfd");
    // Signals belong to the control loop: the thread starts with all of them blocked.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Interactive::~Interactive() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_event_, &one, sizeof(one));
    thread_.join();
    ::close(stop_event_);
}

// read() and not std::cin: the wait has to end when the program does.
void Interactive::run() {
    std::string input;
    print(kPrompt);
    for (;;) {
        pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {stop_event_, POLLIN, 0}};
        if (::poll(fds, 2, -1) < 0 && errno != EINTR) break;
        if (fds[1].revents != 0) return;
        if (fds[0].revents == 0) continue;
        char buffer[4096];
        const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof(buffer));
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) break;
        input.append(buffer, static_cast<std::size_t>(n));
        for (std::size_t end; (end = input.find('\n')) != std::string::npos;) {
            const std::string line = input.substr(0, end);
            input.erase(0, end + 1);
            if (!run_line(line)) return on_quit_();
            print(kPrompt);
        }
    }
    print("\n");
    on_quit_();
}

bool Interactive::run_line(const std::string& line) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty()) return true;
    if (words[0] == "quit" || words[0] == "exit") return false;
    if (words[0] == "help" || words[0] == "?") {
        words[0] = "--help";
        print("quit ends cachewire; otherwise as cwctl:\n");
    }
    client::Context context;
    context.file_prefix = file_prefix_;
    context.cancel_fd = stop_event_;
    context.out = &std::cout;
    context.err = &std::cout;
    client::run_command(context, words);
    return true;
}

}  // namespace cachewire::app
