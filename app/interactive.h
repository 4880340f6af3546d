#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The `-i` prompt: cwctl's commands, typed at the program itself. Runs on its own thread and asks over the same sockets
// as cwctl, so the control loop is never blocked by it and answers it like any other client. Prints on stdout.
#include <functional>
#include <string>
#include <thread>

namespace cachewire::app {

class Interactive {
  public:
    // `on_quit` is called once, on the prompt's thread, at "quit" or at the end of stdin: it only asks the program to
    // stop.
    Interactive(std::string file_prefix, std::function<void()> on_quit);
    ~Interactive();  // also while a command waits for its answer
    Interactive(const Interactive&) = delete;
    Interactive& operator=(const Interactive&) = delete;

  private:
    void run();
    bool run_line(const std::string& line);  // false: quit

    std::string file_prefix_;
    std::function<void()> on_quit_;
    int stop_event_;
    std::thread thread_;
};

}  // namespace cachewire::app
