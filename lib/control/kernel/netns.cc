// SPDX-License-Identifier: BSD-3-Clause
#include "control/kernel/netns.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"

namespace cachewire::control {

namespace {

// Where iproute2 keeps them.
std::string path_of(const std::string& name) { return "/run/netns/" + name; }

}  // namespace

std::uint64_t netns_identity(const std::string& name) noexcept {
    struct stat info {};
    if (stat(path_of(name).c_str(), &info) != 0) return 0;
    return static_cast<std::uint64_t>(info.st_dev) << 32 ^ info.st_ino;
}

InNetns::InNetns(const std::string& name) {
    const int there = open(path_of(name).c_str(), O_RDONLY | O_CLOEXEC);
    if (there < 0)
        throw base::MachineError(
            fmt::format("netns {}: {}; `ip netns add {}` makes one", name,
                        errno == ENOENT ? "there is no such network namespace" : std::strerror(errno), name));
    back_ = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    const bool entered = back_ >= 0 && setns(there, CLONE_NEWNET) == 0;
    const int error = errno;
    close(there);
    if (entered) return;
    if (back_ >= 0) close(back_);
    throw base::MachineError(fmt::format("netns {}: can't be entered: {}{}", name, std::strerror(error),
                                         error == EPERM ? "; it takes CAP_SYS_ADMIN" : ""));
}

InNetns::~InNetns() {
    if (setns(back_, CLONE_NEWNET) != 0) {
        // Everything that this thread opened from now on would be elsewhere.
        base::log_error("the way back from a network namespace failed: {}", std::strerror(errno));
        std::abort();
    }
    close(back_);
}

}  // namespace cachewire::control
