// SPDX-License-Identifier: BSD-3-Clause
#include "config/text_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace cachewire::config {

namespace {

class FileDescriptor {
  public:
    explicit FileDescriptor(int fd) : fd_(fd) {}
    ~FileDescriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    [[nodiscard]] int get() const noexcept { return fd_; }

  private:
    int fd_;
};

}  // namespace

std::optional<std::string> read_text_file(const std::string& path, std::size_t max_bytes, std::string& why) {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (file.get() < 0 || ::fstat(file.get(), &status) < 0) {
        why = fmt::format("can't be read: {}", std::strerror(errno));
        return std::nullopt;
    }
    if (!S_ISREG(status.st_mode)) {
        why = S_ISDIR(status.st_mode) ? "is a directory; allowed: a file" : "is no regular file; allowed: a file";
        return std::nullopt;
    }
    std::string text;
    std::string chunk(1u << 16, '\0');
    // Not the size that fstat told: the file may be growing.
    while (text.size() <= max_bytes) {
        if (static_cast<std::uint64_t>(status.st_size) > max_bytes) break;
        const ssize_t n = ::read(file.get(), chunk.data(), chunk.size());
        if (n == 0) return text;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            why = fmt::format("can't be read: {}", std::strerror(errno));
            return std::nullopt;
        }
        text.append(chunk, 0, static_cast<std::size_t>(n));
    }
    why = fmt::format("is larger than {} MiB", max_bytes >> 20);
    return std::nullopt;
}

std::string beside(const std::string& from, std::string_view name) {
    const std::size_t slash = from.rfind('/');
    if (name.starts_with('/') || slash == std::string::npos) return std::string(name);
    return from.substr(0, slash + 1) + std::string(name);
}

}  // namespace cachewire::config
