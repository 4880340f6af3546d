// SPDX-License-Identifier: BSD-3-Clause
#include "client/sockets.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace cachewire::client {

namespace {

constexpr int kAnswerTimeoutSeconds = 10;
constexpr int kCommandTimeoutSeconds = 300;  // a reload builds routes and rules before it answers
constexpr const char* kTelemetrySocket = "dpdk_telemetry.v2";

std::string base_dir() {
    const auto variable = [](const char* name) -> std::string {
        const char* value = std::getenv(name);
        return value == nullptr ? "" : value;
    };
    if (const std::string dir = variable("RUNTIME_DIRECTORY"); !dir.empty()) return dir + "/dpdk";
    if (::getuid() == 0) return "/var/run/dpdk";
    const std::string dir = variable("XDG_RUNTIME_DIR");
    return (dir.empty() ? "/tmp" : dir) + "/dpdk";
}

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return address;
}

bool fits_an_address(const std::string& path) { return path.size() < sizeof(sockaddr_un::sun_path); }

// DPDK greets whoever connects, and a program that doesn't ignore SIGPIPE is ended when the other side is gone by then:
// so the greeting is taken before the socket is closed.
bool somebody_listens(const std::string& path) {
    constexpr int kGreetingMs = 1000;
    if (!fits_an_address(path)) return false;
    const sockaddr_un address = address_of(path);
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return false;
    const bool connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    const bool listens = connected || errno == EAGAIN;  // EAGAIN: its queue of clients is full
    pollfd greeting = {fd, POLLIN, 0};
    if (connected && ::poll(&greeting, 1, kGreetingMs) > 0) {
        char bytes[1024];
        [[maybe_unused]] const auto taken = ::recv(fd, bytes, sizeof(bytes), 0);
    }
    ::close(fd);
    return listens;
}

std::string nobody_there(const std::string& path, const std::string& why) {
    std::string text = fmt::format("no cachewire there: {}: {}", path, why);
    std::string prefixes;
    for (const std::string& prefix : running_prefixes()) prefixes.append(prefixes.empty() ? "" : ", ").append(prefix);
    if (!prefixes.empty()) text += fmt::format("; DPDK programs run with the file prefix {} (-p PREFIX)", prefixes);
    return text;
}

Json parse(const std::string& text, const std::string& what) {
    Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) throw Refused(fmt::format("{}: the answer is no JSON", what));
    return json;
}

}  // namespace

std::string runtime_dir(const std::string& file_prefix) { return base_dir() + "/" + file_prefix; }
std::string telemetry_path(const std::string& file_prefix) { return runtime_dir(file_prefix) + "/" + kTelemetrySocket; }
std::string control_path(const std::string& file_prefix) { return runtime_dir(file_prefix) + "/cachewire_control"; }

std::vector<std::string> running_prefixes() {
    std::vector<std::string> prefixes;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(base_dir(), ignored)) {
        if (somebody_listens(entry.path() / kTelemetrySocket)) prefixes.push_back(entry.path().filename());
    }
    std::sort(prefixes.begin(), prefixes.end());
    return prefixes;
}

Connection::Connection(const std::string& path, int type, int cancel_fd) : fd_(-1), cancel_fd_(cancel_fd), path_(path) {
    if (!fits_an_address(path)) throw NotRunning(nobody_there(path, "the path is too long for a socket"));
    const sockaddr_un address = address_of(path);
    fd_ = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (fd_ < 0) throw NotRunning(nobody_there(path, std::strerror(errno)));
    // connect() waits for a place in the listener's queue; this is its limit as well.
    const timeval limit = {kAnswerTimeoutSeconds, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return;
    const int error = errno;
    ::close(fd_);
    throw NotRunning(
        nobody_there(path, error == ECONNREFUSED ? "the socket is there, but nobody listens" : std::strerror(error)));
}

Connection::~Connection() {
    if (fd_ >= 0) ::close(fd_);
}

Connection::Connection(Connection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), cancel_fd_(other.cancel_fd_), path_(std::move(other.path_)) {}

void Connection::send(const std::string& bytes) const {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
        const ssize_t n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            throw NotRunning(fmt::format("{}: {}", path_,
                                         errno == EPIPE ? "cachewire closed the connection" : std::strerror(errno)));
        sent += static_cast<std::size_t>(n);
    }
}

std::string Connection::receive(std::size_t capacity, int timeout_s) const {
    pollfd fds[2] = {{fd_, POLLIN, 0}, {cancel_fd_, POLLIN, 0}};
    int ready;
    do {
        ready = ::poll(fds, 2, timeout_s * 1000);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) throw NotRunning(fmt::format("{}: no answer within {} seconds", path_, timeout_s));
    if (fds[1].revents != 0) throw Refused("cancelled");
    std::string bytes(capacity, '\0');
    const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
    bytes.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return bytes;
}

TelemetryClient::TelemetryClient(const std::string& path, int cancel_fd)
    : connection_(path, SOCK_SEQPACKET, cancel_fd) {
    const std::string greeting = connection_.receive(1024, kAnswerTimeoutSeconds);
    if (greeting.empty())
        throw Refused(fmt::format("{}: closed at once; DPDK's telemetry socket takes ten clients", path));
    const Json json = parse(greeting, path);
    if (json.contains("max_output_len"))
        max_output_bytes_ = std::max(json["max_output_len"].get<std::size_t>(), std::size_t{1024});
}

Json TelemetryClient::query(const std::string& endpoint, const std::string& parameters) {
    connection_.send(parameters.empty() ? endpoint : endpoint + "," + parameters);
    const std::string text = connection_.receive(max_output_bytes_, kAnswerTimeoutSeconds);
    if (text.empty()) throw NotRunning(fmt::format("{}: cachewire closed the connection", endpoint));
    const Json json = parse(text, endpoint);
    if (!json.contains(endpoint) || json[endpoint].is_null()) {
        throw NotSupported(fmt::format("{} is not supported yet by this cachewire", endpoint));
    }
    const Json& value = json[endpoint];
    if (value.is_object() && value.size() == 1 && value.contains("error")) {
        const Json& error = value["error"];
        throw Refused(fmt::format("{}: {}", endpoint, error.is_string() ? error.get<std::string>() : error.dump()));
    }
    return value;
}

Json TelemetryClient::query_list(const std::string& endpoint, const std::string& selector) {
    Json all = Json::object();
    std::string parameters = selector;
    for (;;) {
        Json page = query(endpoint, parameters);
        const auto next = page.find("next");
        const std::string cursor = next == page.end()  ? ""
                                   : next->is_string() ? next->get<std::string>()
                                                       : next->dump();
        page.erase("next");
        all.update(page);
        const std::string asked =
            std::exchange(parameters, fmt::format("{}{}{},256", selector, selector.empty() ? "" : ",", cursor));
        // A page may be empty and still not be the last one; one that leads to itself would be asked for for ever.
        if (cursor.empty() || parameters == asked) return all;
    }
}

ControlClient::ControlClient(const std::string& path, int cancel_fd) : connection_(path, SOCK_STREAM, cancel_fd) {}

Json ControlClient::call(const Json& request) {
    connection_.send(request.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    std::size_t end;
    while ((end = input_.find('\n')) == std::string::npos) {
        const std::string bytes = connection_.receive(65536, kCommandTimeoutSeconds);
        if (bytes.empty()) throw NotRunning("cachewire closed the connection before it answered");
        input_ += bytes;
    }
    const std::string line = input_.substr(0, end);
    input_.erase(0, end + 1);
    return parse(line, "control socket");
}

}  // namespace cachewire::client
