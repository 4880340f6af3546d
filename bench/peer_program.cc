// SPDX-License-Identifier: BSD-3-Clause
#include "peer_program.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cachewire::bench {

namespace fs = std::filesystem;

PeerProgram::PeerProgram(const std::string& command, const std::string& folder) : log_(folder + "/log") {
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("peer: fork");
    if (pid_ != 0) return;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGINT);  // where this process is killed
    setenv("TMPDIR", folder.c_str(), 1);
    const int out = open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), in = open("/dev/null", O_RDONLY);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(127);
    execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), static_cast<char*>(nullptr));
    _exit(127);
}

PeerProgram::~PeerProgram() {
    if (!has_ended()) kill(-pid_, SIGINT);
    for (int i = 0; i < 100 && !has_ended(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(-pid_, SIGKILL);  // also children that outlived it
    if (!has_ended()) waitpid(pid_, nullptr, 0);
}

bool PeerProgram::has_ended() { return ended_ || (ended_ = waitpid(pid_, nullptr, WNOHANG) == pid_); }

std::string PeerProgram::last_words() const {
    std::ifstream file(log_);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.size() > 1500 ? text.substr(text.size() - 1500) : text;
}

std::uint64_t PeerProgram::busiest_thread_ns() const {
    std::uint64_t most = 0;
    std::error_code gone;  // processes come and go meanwhile
    for (const auto& process : fs::directory_iterator("/proc", gone)) {
        const auto pid = static_cast<pid_t>(std::strtol(process.path().filename().c_str(), nullptr, 10));
        if (pid <= 0 || getpgid(pid) != pid_) continue;
        for (const auto& thread : fs::directory_iterator(process.path() / "task", gone)) {
            std::ifstream file(thread.path() / "schedstat");
            std::uint64_t ns = 0;
            if (file >> ns) most = std::max(most, ns);
        }
    }
    return most;
}

}  // namespace cachewire::bench
