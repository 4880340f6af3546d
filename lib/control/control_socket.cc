// SPDX-License-Identifier: BSD-3-Clause
// Every descriptor is non-blocking. A client has a line that grows (bounded) and an answer that shrinks; while an
// answer waits nothing more is read from that client, so a client that never reads holds one line and one answer and no
// time.
#include "control/control_socket.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <map>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"

namespace cachewire::control {

namespace {

using Json = ControlSocket::Json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxLineBytes = 64u << 10;
constexpr std::size_t kMaxClients = 32;
constexpr int kBacklog = 64;
constexpr unsigned kMaxAcceptsATurn = 64;  // so that a flood of connections leaves the control loop its turn

class Descriptor {
  public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const { return fd_; }

  private:
    int fd_;
};

// The process on the other end, as the kernel knows it.
std::string peer_of(int connection) {
    ucred peer = {};
    socklen_t length = sizeof(peer);
    if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return "pid unknown";
    return fmt::format("pid {}, uid {}", peer.pid, peer.uid);
}

struct Client {
    explicit Client(int connection) : fd(connection), peer(peer_of(connection)) {}

    Descriptor fd;
    std::string peer;
    std::string input;
    std::string output;
    Json request;
    ControlSocket::Pending pending;  // the answer to `request`; until it is there no line is read
    bool closing = false;            // nothing more is read; closed once the output is out
    Clock::time_point last_active = Clock::now();

    [[nodiscard]] bool has_line() const { return input.find('\n') != std::string::npos; }
};

// JSON escapes control characters, so a client can't begin a line of its own in the log.
std::string for_log(const Json& json) {
    constexpr std::size_t kMaxBytes = 400;
    std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > kMaxBytes) text.replace(kMaxBytes, std::string::npos, "...");
    return text;
}

// Who asked for what and what came of it, as for a reload by signal.
void log_request(const std::string& peer, const Json& request, const Json& answer) {
    if (answer.value("ok", false)) {
        Json result = answer;
        for (const char* key : {"ok", "diagnostics", "text"}) result.erase(key);
        base::log_info("control socket: {}: {}: done {}", peer, for_log(request), for_log(result));
    } else {
        base::log_warning("control socket: {}: {}: refused: {}", peer, for_log(request),
                          for_log(answer.value("error", Json("no reason given"))));
    }
}

Json refusal(std::string_view text) { return {{"ok", false}, {"error", text}}; }

ControlSocket::Pending refused(std::string_view text) {
    return [result = refusal(text)] { return std::optional(result); };
}

void answer(Client& client, const Json& json) {
    // Error texts may quote bytes that aren't UTF-8: they are replaced, not thrown at.
    client.output += json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

void fail(const std::string& path, const std::string& what, int error) {
    throw base::MachineError(fmt::format("control socket {}: {}: {}", path, what, std::strerror(error)));
}

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
        throw base::MachineError(
            fmt::format("control socket {}: the path is longer than {} bytes; use a shorter --file-prefix", path,
                        sizeof(address.sun_path) - 1));
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

const sockaddr* generic(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }

Descriptor stream_socket(const std::string& path) {
    Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) fail(path, "socket", errno);
    return fd;
}

// Held as long as the process lives and dropped by the kernel however it dies, so that two starting at once can't both
// find the socket stale. Never unlinked: removing a lock file lets a third process lock another file of the same name.
Descriptor lock_for(const std::string& path) {
    const std::string lock_path = path + ".lock";
    Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (lock.get() < 0) fail(path, "can't create " + lock_path, errno);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) fail(path, "can't lock " + lock_path, errno);
        throw base::MachineError(
            fmt::format("control socket {}: another cachewire with this file prefix is running; give this one its own "
                        "--file-prefix",
                        path));
    }
    return lock;
}

// Removes what a killed process left behind and nothing else.
void remove_stale(const std::string& path, const sockaddr_un& address) {
    struct stat status = {};
    if (::lstat(path.c_str(), &status) != 0) {
        if (errno == ENOENT) return;
        fail(path, "can't look at it", errno);
    }
    if (!S_ISSOCK(status.st_mode))
        throw base::MachineError(fmt::format("control socket {}: is there and is no socket; remove it", path));
    const Descriptor probe = stream_socket(path);
    if (::connect(probe.get(), generic(address), sizeof(address)) == 0 || errno != ECONNREFUSED) {
        throw base::MachineError(fmt::format("control socket {}: somebody else is listening on it", path));
    }
    if (::unlink(path.c_str()) != 0) fail(path, "can't remove the one of a killed process", errno);
}

Descriptor listen_on(const std::string& path, const sockaddr_un& address) {
    Descriptor fd = stream_socket(path);
    // Before bind the mode is that of the file to come (less the umask), so it is never wider than this, not even
    // briefly.
    if (::fchmod(fd.get(), 0660) != 0) fail(path, "fchmod", errno);
    if (::bind(fd.get(), generic(address), sizeof(address)) != 0) fail(path, "bind", errno);
    if (::chmod(path.c_str(), 0660) != 0) fail(path, "chmod", errno);
    if (::listen(fd.get(), kBacklog) != 0) fail(path, "listen", errno);
    return fd;
}

}  // namespace

struct ControlSocket::Impl {
    std::string path;
    Descriptor lock;
    Descriptor listener;
    std::map<std::string, LongCommand> commands;
    std::list<Client> clients;

    void start(Client& client, const std::string& line) const;
    void look_for_answer(Client& client) const;
    Pending pending_of(const Json& request) const;
    void read(Client& client) const;
    void write(Client& client) const;
    void serve(Client& client) const;
    void accept_all();
    void make_room();
    void sweep();
};

ControlSocket::ControlSocket(std::string path) : impl_(std::make_unique<Impl>()) {
    const sockaddr_un address = address_of(path);
    impl_->lock = lock_for(path);
    remove_stale(path, address);
    impl_->listener = listen_on(path, address);
    impl_->path = std::move(path);
}

ControlSocket::~ControlSocket() { ::unlink(impl_->path.c_str()); }

void ControlSocket::add(const std::string& command, Command handler) {
    add_long(command, [handler = std::move(handler)](const Json& request) -> Pending {
        return [result = handler(request)] { return std::optional(result); };
    });
}

void ControlSocket::add_long(const std::string& command, LongCommand handler) {
    impl_->commands[command] = std::move(handler);
}

ControlSocket::Pending ControlSocket::Impl::pending_of(const Json& request) const {
    if (!request.is_object()) return refused("a request is one JSON object a line");
    const auto name = request.find("command");
    if (name == request.end() || !name->is_string()) return refused("the request has no \"command\"");
    const auto command = commands.find(name->get<std::string>());
    if (command == commands.end())
        return refused(fmt::format("command '{}' is not supported yet", name->get<std::string>()));
    return command->second(request);
}

void ControlSocket::Impl::start(Client& client, const std::string& line) const {
    client.request = Json::parse(line, nullptr, false);
    try {
        client.pending = pending_of(client.request);
    } catch (const std::exception& e) {
        client.pending = refused(e.what());
    }
    look_for_answer(client);
}

void ControlSocket::Impl::look_for_answer(Client& client) const {
    std::optional<Json> result;
    try {
        result = client.pending();
    } catch (const std::exception& e) {
        result = refusal(e.what());
    }
    if (!result) return;
    client.pending = nullptr;
    client.last_active = Clock::now();
    if (!result->is_object()) result = Json{{"result", std::move(*result)}};
    if (!result->contains("ok")) (*result)["ok"] = true;
    log_request(client.peer, client.request, *result);
    answer(client, *result);
}

// Takes what is there, up to one line's limit, so that one client can't keep the loop busy.
void ControlSocket::Impl::read(Client& client) const {
    char buffer[4096];
    while (!client.closing && client.input.size() <= kMaxLineBytes) {
        const ssize_t n = ::recv(client.fd.get(), buffer, sizeof(buffer), 0);
        if (n > 0) {
            client.input.append(buffer, static_cast<std::size_t>(n));
            client.last_active = Clock::now();
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        // End or fault. Whole lines that came before still get their answers; half a line is never run.
        client.closing = true;
    }
}

void ControlSocket::Impl::write(Client& client) const {
    while (!client.output.empty()) {
        const ssize_t n = ::send(client.fd.get(), client.output.data(), client.output.size(), MSG_NOSIGNAL);
        if (n > 0) {
            client.output.erase(0, static_cast<std::size_t>(n));
            client.last_active = Clock::now();
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        client.output.clear();  // nobody is there to read it
        client.input.clear();
        client.closing = true;
    }
}

// One command a turn, so that a client with many lines waits behind the others.
void ControlSocket::Impl::serve(Client& client) const {
    write(client);
    if (!client.output.empty()) return;
    if (client.pending) {
        look_for_answer(client);
        return write(client);
    }
    read(client);
    const std::size_t end = client.input.find('\n');
    if (end <= kMaxLineBytes) {  // npos is greater
        const std::string line = client.input.substr(0, end);
        client.input.erase(0, end + 1);
        if (line.find_first_not_of(" \t\r") != std::string::npos) start(client, line);
    } else if (client.input.size() > kMaxLineBytes) {
        answer(client, refusal(fmt::format("the line is longer than {} bytes", kMaxLineBytes)));
        client.input.clear();
        client.closing = true;
    }
    write(client);
}

// The client that has been silent for longest goes: idle ones never lock a working one out.
void ControlSocket::Impl::make_room() {
    if (clients.size() < kMaxClients) return;
    // Who waits for us is not silent.
    const auto silence = [](const Client& c) { return std::pair(c.pending != nullptr, c.last_active); };
    const auto oldest = std::min_element(clients.begin(), clients.end(),
                                         [&](const Client& a, const Client& b) { return silence(a) < silence(b); });
    if (oldest->output.empty()) {
        answer(*oldest,
               refusal(fmt::format("closed: {} clients are the limit and this one was idle for longest", kMaxClients)));
        write(*oldest);
    }
    clients.erase(oldest);
}

void ControlSocket::Impl::sweep() {
    clients.remove_if([](const Client& c) { return c.closing && c.output.empty() && !c.has_line() && !c.pending; });
}

void ControlSocket::Impl::accept_all() {
    for (unsigned i = 0; i < kMaxAcceptsATurn; ++i) {
        const int fd = ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (fd < 0 && (errno == EMFILE || errno == ENFILE) && !clients.empty()) {
            clients.pop_front();  // otherwise poll() would report this connection for ever
            continue;
        }
        if (fd < 0) return;
        make_room();
        // Served at once: a client that already sent its command has it done before anybody can push it out.
        serve(clients.emplace_back(fd));
    }
}

void ControlSocket::append_poll(std::vector<pollfd>& fds) const {
    fds.push_back({impl_->listener.get(), POLLIN, 0});
    for (const Client& client : impl_->clients) {
        // A line that waits for its turn must not wait for more bytes: a socket that can be written to ends poll() at
        // once.
        const bool writes = !client.output.empty() || client.has_line();
        // Of one whose answer takes turns nothing is wanted yet (poll() leaves out what is negative).
        const bool waits = client.pending != nullptr && client.output.empty();
        fds.push_back({waits ? -1 : client.fd.get(), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
    }
}

void ControlSocket::handle(const std::vector<pollfd>& fds) {
    const auto reported = [&](int fd) {
        return std::any_of(fds.begin(), fds.end(), [fd](const pollfd& p) { return p.fd == fd && p.revents != 0; });
    };
    for (Client& client : impl_->clients) {
        if (client.pending || reported(client.fd.get())) impl_->serve(client);
    }
    impl_->sweep();
    if (reported(impl_->listener.get())) impl_->accept_all();
    impl_->sweep();
}

}  // namespace cachewire::control
