#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A control socket that echoes, clients as programs would be, and the owner's loop.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/control_socket.h"

namespace cachewire::test {

using control::ControlSocket;
using Json = ControlSocket::Json;

struct Folder {
    Folder() {
        char name[] = "/tmp/cachewire-test-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    [[nodiscard]] std::string socket() const { return path + "/cachewire_control"; }
    std::string path;
};

// A client as a program would be one: blocking, with a time limit so that a missing answer fails instead of hanging.
class Client {
  public:
    explicit Client(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof(address.sun_path) - 1);
        connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    }
    ~Client() { hang_up(); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    [[nodiscard]] bool connected() const { return connected_; }
    void hang_up() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }
    void end_of_input() const { ::shutdown(fd_, SHUT_WR); }
    [[nodiscard]] bool send(const std::string& text) const {
        return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(text.size());
    }
    // What has arrived so far.
    std::string receive() {
        char buffer[65536];
        ssize_t n;
        while ((n = ::recv(fd_, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
            text_.append(buffer, static_cast<std::size_t>(n));
        closed_ = n == 0;
        return std::exchange(text_, {});
    }
    [[nodiscard]] bool closed() const { return closed_; }

  private:
    int fd_;
    bool connected_ = false;
    bool closed_ = false;
    std::string text_;
};

// Turns the owner's loop until nothing is left to do.
inline unsigned turn(ControlSocket& socket) {
    unsigned turns = 0;
    for (; turns < 10000; ++turns) {
        std::vector<pollfd> fds;
        socket.append_poll(fds);
        if (::poll(fds.data(), fds.size(), 0) == 0) break;
        socket.handle(fds);
    }
    return turns;
}

inline std::unique_ptr<ControlSocket> echo_socket(const std::string& path) {
    auto socket = std::make_unique<ControlSocket>(path);
    socket->add("echo", [](const Json& request) { return Json{{"text", request.at("text")}}; });
    socket->add("fail", [](const Json&) -> Json { throw std::runtime_error("it \xff can't"); });
    socket->add("refuse", [](const Json&) { return Json{{"ok", false}, {"error", "no"}}; });
    socket->add("big", [](const Json&) { return Json{{"text", std::string(4u << 20, 'x')}}; });
    return socket;
}

}  // namespace cachewire::test
