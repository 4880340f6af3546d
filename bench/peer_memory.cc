// SPDX-License-Identifier: BSD-3-Clause
#include "peer_memory.h"

#include <algorithm>
#include <stdexcept>

#include <fcntl.h>
#include <rte_memory.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cachewire::bench {

MemoryFiles::MemoryFiles() {
    std::vector<int> fds;
    rte_memseg_walk(
        [](const rte_memseg_list*, const rte_memseg* segment, void* out) {
            const int fd = rte_memseg_get_fd_thread_unsafe(segment);
            auto& known = *static_cast<std::vector<int>*>(out);
            if (fd >= 0 && std::find(known.begin(), known.end(), fd) == known.end()) known.push_back(fd);
            return 0;
        },
        &fds);
    for (int fd : fds) files_.push_back({fd, fcntl(fd, F_DUPFD_CLOEXEC, 0)});
}

MemoryFiles::~MemoryFiles() {
    for (const File& file : files_) close(file.copy);
}

void MemoryFiles::restore() const {
    for (const File& file : files_) {
        struct stat now {
        }, before{};
        if (fstat(file.copy, &before) != 0) throw std::runtime_error("peer: no copy of EAL's memory files");
        if (fstat(file.fd, &now) != 0) {
            dup2(file.copy, file.fd);
        } else if (now.st_ino != before.st_ino || now.st_dev != before.st_dev) {
            throw std::runtime_error("peer: memif's driver closed EAL's memory file, and another one took its number");
        }
    }
}

}  // namespace cachewire::bench
