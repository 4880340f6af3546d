// SPDX-License-Identifier: BSD-3-Clause
#include "control/signals.h"

#include <cerrno>
#include <csignal>

#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"

namespace cachewire::control {

namespace {

sigset_t handled() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
    return set;
}

}  // namespace

void Signals::block() {
    const sigset_t set = handled();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    // A client that goes away while it is being answered must not end the process.
    std::signal(SIGPIPE, SIG_IGN);
}

Signals::Signals() {
    const sigset_t set = handled();
    fd_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd_ < 0) base::check(-errno, "signalfd");
}

Signals::~Signals() { close(fd_); }

std::optional<int> Signals::next() {
    signalfd_siginfo info;
    if (read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
}

}  // namespace cachewire::control
