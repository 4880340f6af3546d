#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// EAL's own files of huge pages. memif's zero-copy client sends them to its server, and then closes them as if they
// were its own (DPDK 22.11 to this day): the next port would send a descriptor of nothing, or of some other file.
#include <vector>

namespace cachewire::bench {

class MemoryFiles {
  public:
    MemoryFiles();
    ~MemoryFiles();
    MemoryFiles(const MemoryFiles&) = delete;
    MemoryFiles& operator=(const MemoryFiles&) = delete;

    // Those that were closed are open again, under the same number. Right after a port came or went, while nothing else
    // opens a file.
    void restore() const;

  private:
    struct File {
        int fd, copy;
    };
    std::vector<File> files_;
};

}  // namespace cachewire::bench
