#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The prompt of -i: the commands of cwctl, one a line on stdin, through the same sockets as cwctl itself. A thread of
// its own, because a command waits for the control loop's answer. End of input, `quit` and `exit` end the run, as in
// testpmd; `help` lists the commands and says so.
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace cachewire::app {

class Prompt {
  public:
    // `on_quit` is called on the prompt's thread.
    Prompt(std::string file_prefix, std::function<void()> on_quit);
    ~Prompt();  // ends whatever waits
    Prompt(const Prompt&) = delete;
    Prompt& operator=(const Prompt&) = delete;

  private:
    void read_lines();
    void run_line(const std::string& line);

    std::string file_prefix_;
    std::function<void()> on_quit_;
    int cancel_fd_;
    bool quit_ = false;  // the thread's
    std::thread thread_;
};

// At blanks; 'single' and "double" quotes keep words together.
std::vector<std::string> split_words(const std::string& line);

}  // namespace cachewire::app
