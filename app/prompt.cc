// SPDX-License-Identifier: BSD-3-Clause
#include "app/prompt.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "client/commands.h"

namespace cachewire::app {

namespace {

constexpr std::size_t kMaxLineBytes = 65536;

void show_prompt() {
    if (isatty(STDIN_FILENO) == 0) return;
    std::fputs("cachewire> ", stdout);
    std::fflush(stdout);
}

}  // namespace

std::vector<std::string> split_words(const std::string& line) {
    std::vector<std::string> words;
    std::string word;
    bool in_word = false;
    char quote = 0;
    for (const char c : line) {
        const bool is_blank = c == ' ' || c == '\t' || c == '\r';
        if (quote != 0 ? c == quote : c == '\'' || c == '"') {
            quote = quote != 0 ? '\0' : c;
            in_word = true;
        } else if (quote == 0 && is_blank) {
            if (in_word) words.push_back(std::exchange(word, {}));
            in_word = false;
        } else {
            word += c;
            in_word = true;
        }
    }
    if (in_word) words.push_back(word);
    return words;
}

Prompt::Prompt(std::string file_prefix, std::function<void()> on_quit)
    : file_prefix_(std::move(file_prefix)), on_quit_(std::move(on_quit)), cancel_fd_(eventfd(0, EFD_CLOEXEC)) {
    if (cancel_fd_ < 0) base::check(-errno, "eventfd");
    thread_ = std::thread([this] { read_lines(); });
}

Prompt::~Prompt() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(cancel_fd_, &one, sizeof one);
    thread_.join();
    close(cancel_fd_);
}

void Prompt::run_line(const std::string& line) {
    const std::vector<std::string> words = split_words(line);
    if (words.empty()) return;
    if (words[0] == "quit" || words[0] == "exit") {
        quit_ = words.size() == 1;
        if (!quit_) std::cerr << words[0] << ": takes nothing else; alone it ends cachewire\n" << std::flush;
        return;
    }
    client::Context context;
    context.file_prefix = file_prefix_;
    context.cancel_fd = cancel_fd_;
    context.out = &std::cout;
    context.err = &std::cerr;
    const bool asks_for_help =
        words.size() == 1 && (words[0] == "help" || words[0] == "?" || words[0] == "--help" || words[0] == "-h");
    client::run_command(context, asks_for_help ? std::vector<std::string>{"--help"} : words);
    if (asks_for_help)
        std::cout << "\nAt this prompt a command stands alone, without cwctl. quit, exit or the end of input ends "
                     "cachewire.\n";
    std::cout.flush();
}

void Prompt::read_lines() {
    std::string input;
    std::array<char, 4096> chunk;
    show_prompt();
    while (!quit_) {
        std::array<pollfd, 2> fds = {{{STDIN_FILENO, POLLIN, 0}, {cancel_fd_, POLLIN, 0}}};
        if (poll(fds.data(), fds.size(), -1) < 0) continue;
        if (fds[1].revents != 0) return;
        const ssize_t n = read(STDIN_FILENO, chunk.data(), chunk.size());
        if (n <= 0 || input.size() > kMaxLineBytes) break;
        input.append(chunk.data(), static_cast<std::size_t>(n));
        for (auto end = input.find('\n'); end != std::string::npos && !quit_; end = input.find('\n')) {
            run_line(input.substr(0, end));
            input.erase(0, end + 1);
            if (!quit_) show_prompt();
        }
    }
    on_quit_();
}

}  // namespace cachewire::app
