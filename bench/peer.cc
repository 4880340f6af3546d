// SPDX-License-Identifier: BSD-3-Clause
// Another forwarder and cachewire in turn on the same two memif ports. This process is what is connected to them: one
// lcore that offers 64-byte frames of 100 k flows to `west` as fast as they are taken, and counts what comes out of
// `east`. Each program is started anew for its turn, on CPU 1 (its control lcore on 0), and has the flows' sessions
// made before anything is counted.
//
// Both memif ends copy, so the generator is slow: where it offers everything and nothing is refused, it is what was
// measured, and the table says so.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "claims.h"
#include "port/port.h"
#include "support/packet_builder.h"
#include "traffic.h"

namespace cachewire::bench {

namespace {

namespace fs = std::filesystem;

constexpr unsigned kPeerFlows = 100000;
constexpr unsigned kPeerRing = 1024, kPeerBurst = 32;
constexpr double kWindowSeconds = 0.1, kStartSeconds = 30;
constexpr const char* kRouterMacText = "02:00:00:00:00:01";  // test::kRouterMac: where the frames go
constexpr const char* kMacs[] = {"02:00:00:00:00:01", "02:00:00:00:00:02"};

const char* const kSides[] = {"west", "east"};

// This process' end of a wire.
class MemifPort {
  public:
    MemifPort(unsigned number, const std::string& socket, rte_mempool* pool)
        : name_(fmt::format("net_memif_bench{}", number)) {
        const std::string arguments = fmt::format("role=server,socket={},socket-abstract=no", socket);
        if (rte_eal_hotplug_add("vdev", name_.c_str(), arguments.c_str()) < 0 ||
            rte_eth_dev_get_port_by_name(name_.c_str(), &id_) < 0)
            throw std::runtime_error("peer: no memif port; is DPDK's memif driver installed?");
        rte_eth_conf configuration{};
        if (rte_eth_dev_configure(id_, 1, 1, &configuration) < 0 ||
            rte_eth_rx_queue_setup(id_, 0, kPeerRing, 0, nullptr, pool) < 0 ||
            rte_eth_tx_queue_setup(id_, 0, kPeerRing, 0, nullptr) < 0 || rte_eth_dev_start(id_) < 0)
            throw std::runtime_error("peer: the memif port does not start");
    }
    ~MemifPort() {
        rte_eth_dev_stop(id_);
        rte_eth_dev_close(id_);
        rte_eal_hotplug_remove("vdev", name_.c_str());
    }
    MemifPort(const MemifPort&) = delete;
    MemifPort& operator=(const MemifPort&) = delete;

    [[nodiscard]] bool is_connected() const {
        rte_eth_link link{};
        return rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
    }
    [[nodiscard]] std::uint16_t id() const noexcept { return id_; }

  private:
    std::string name_;
    std::uint16_t id_ = 0;
};

// A program with its children, in a process group of its own; ended with this object.
class Program {
  public:
    Program(const std::string& command, const std::string& log) : log_(log) {
        pid_ = fork();
        if (pid_ < 0) throw std::runtime_error("peer: fork");
        if (pid_ != 0) return;
        setpgid(0, 0);
        const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), in = open("/dev/null", O_RDONLY);
        if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(127);
        execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), static_cast<char*>(nullptr));
        _exit(127);
    }
    ~Program() {
        if (has_ended()) return;
        kill(-pid_, SIGINT);
        for (int i = 0; i < 50 && !has_ended(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
        if (has_ended()) return;
        kill(-pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    [[nodiscard]] bool has_ended() { return ended_ || (ended_ = waitpid(pid_, nullptr, WNOHANG) == pid_); }
    [[nodiscard]] std::string last_words() const {
        std::ifstream file(log_);
        std::string text{std::istreambuf_iterator<char>(file), {}};
        return text.size() > 1500 ? text.substr(text.size() - 1500) : text;
    }

  private:
    pid_t pid_;
    std::string log_;
    bool ended_ = false;
};

struct Forwarder {
    std::string name, command;
    std::vector<double> mpps{};
    double refused = 0, lost = 0;  // parts of what was offered
};

class Wires {
  public:
    explicit Wires(const std::string& folder)
        : folder_(folder),
          pool_(port::make_mempool("peer_rx", 16383, 256, 2176, SOCKET_ID_ANY)),
          flows_(port::make_mempool("peer_flows", kPeerFlows, 0, 256, SOCKET_ID_ANY)) {
        frames_.resize(kPeerFlows);
        if (rte_pktmbuf_alloc_bulk(flows_, frames_.data(), kPeerFlows) != 0) throw std::runtime_error("peer: no mbufs");
        std::vector<std::uint8_t> frame = udp_frames(1)[0];
        std::copy_n(test::kRouterMac.bytes.begin(), 6, frame.begin());
        for (unsigned i = 0; i < kPeerFlows; ++i) {
            set_flow(frame, i);
            std::copy(frame.begin(), frame.end(),
                      rte_pktmbuf_append(frames_[i], static_cast<std::uint16_t>(frame.size())));
        }
    }

    // One turn: start, warm up, count.
    void measure(Forwarder& forwarder, unsigned windows) {
        MemifPort west(0, socket(0), pool_), east(1, socket(1), pool_);
        Program program(forwarder.command, folder_ + "/log");
        const auto fail = [&](const char* what) {
            throw std::runtime_error(
                fmt::format("peer: {} {}:\n{}\n{}", forwarder.name, what, forwarder.command, program.last_words()));
        };
        const std::uint64_t deadline = after(kStartSeconds);
        Count first;
        while (!(west.is_connected() && east.is_connected() && first.received > kPeerFlows)) {
            if (program.has_ended()) fail("has ended");
            if (base::now_tsc() > deadline) fail("forwards nothing");
            if (west.is_connected() && east.is_connected()) run(west, east, 0.01, first);
        }
        Count count;
        run(west, east, 0.5, first);
        for (unsigned i = 0; i < windows; ++i) {
            Count window;
            const double seconds = run(west, east, kWindowSeconds, window);
            forwarder.mpps.push_back(static_cast<double>(window.received) / seconds / 1e6);
            count.offered += window.offered, count.taken += window.taken, count.received += window.received;
        }
        const auto part = [](std::uint64_t n, std::uint64_t of) {
            return static_cast<double>(n) / static_cast<double>(of);
        };
        forwarder.refused = 1 - part(count.taken, count.offered);
        forwarder.lost = std::max(0.0, 1 - part(count.received, count.taken));
        if (program.has_ended()) fail("has ended while it was measured");
    }

    [[nodiscard]] std::string socket(unsigned side) const { return fmt::format("{}/{}.sock", folder_, kSides[side]); }
    // What the forwarder's command gives as its port.
    [[nodiscard]] std::string device(unsigned side) const {
        return fmt::format("net_memif{},role=client,socket={},socket-abstract=no,mac={}", side, socket(side),
                           kMacs[side]);
    }

  private:
    struct Count {
        std::uint64_t offered = 0, taken = 0, received = 0;
    };
    static std::uint64_t after(double seconds) {
        return base::now_tsc() + static_cast<std::uint64_t>(seconds * static_cast<double>(base::tsc_hz()));
    }
    double run(const MemifPort& west, const MemifPort& east, double seconds, Count& count) {
        const std::uint64_t begin = base::now_tsc(), end = after(seconds);
        std::array<rte_mbuf*, kPeerBurst> burst;
        while (base::now_tsc() < end) {
            if (next_ + kPeerBurst > kPeerFlows) next_ = 0;
            // The driver copies and frees; they are wanted again.
            for (unsigned i = 0; i < kPeerBurst; ++i) rte_mbuf_refcnt_update(frames_[next_ + i], 1);
            const std::uint16_t sent = rte_eth_tx_burst(west.id(), 0, frames_.data() + next_, kPeerBurst);
            for (unsigned i = sent; i < kPeerBurst; ++i) rte_mbuf_refcnt_update(frames_[next_ + i], -1);
            next_ += sent;
            count.offered += kPeerBurst, count.taken += sent;
            for (std::uint16_t n = kPeerBurst; n == kPeerBurst;) {
                n = rte_eth_rx_burst(east.id(), 0, burst.data(), kPeerBurst);
                rte_pktmbuf_free_bulk(burst.data(), n);
                count.received += n;
            }
        }
        return static_cast<double>(base::now_tsc() - begin) / static_cast<double>(base::tsc_hz());
    }

    std::string folder_;
    rte_mempool *pool_, *flows_;
    std::vector<rte_mbuf*> frames_;
    unsigned next_ = 0;
};

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

std::string our_configuration(const Wires& wires) {
    std::string text =
        "version: 1\nsessions: {capacity: 400000, timeouts: {new: 6h}}\nworkers: {lcores: \"1\"}\nports:\n";
    for (unsigned side : {0u, 1u})
        text += fmt::format("  - {{name: {}, device: \"{}\", mac: \"{}\"}}\n", kSides[side], wires.device(side),
                            kRouterMacText);
    return text + R"(tenants:
  - {name: red, id: 10, match: [{port: west}, {port: east}], acl: edge, sessions: track}
interfaces:
  - {name: lan, port: west, addresses: ["10.0.0.1/8"]}
  - {name: wan, port: east, addresses: ["192.0.2.1/24"]}
neighbors: [{tenant: red, address: 192.0.2.2, mac: "02:00:00:00:00:99"}]
routes: [{tenant: red, prefix: 198.18.0.0/15, via: 192.0.2.2}]
acl: [{name: edge, stateful: true, rules: [{action: permit, proto: udp, src: 10.0.0.0/8}]}]
)";
}

double middle(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

Result result_of(const Forwarder& forwarder) {
    Result result;
    result.name = forwarder.name;
    result.mpps = middle(forwarder.mpps);
    result.cycles_per_packet = static_cast<double>(base::tsc_hz()) / result.mpps / 1e6;
    return result;
}

}  // namespace

std::vector<Result> peer(const Options& options) {
    std::string folder = (fs::temp_directory_path() / "cachewire-peer-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("peer: no folder for sockets");
    const std::unique_ptr<const std::string, void (*)(const std::string*)> remover(
        &folder, [](const std::string* path) { fs::remove_all(*path); });
    Wires wires(folder);
    std::ofstream(folder + "/cachewire.yaml") << our_configuration(wires);
    const std::string self = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "app" / "cachewire";
    const std::string prefix = fmt::format("peer-{}", getpid());
    std::vector<Forwarder> forwarders = {
        {"peer", options.peer},
        {"cachewire", fmt::format("{} -l 0,1 {{memory}} --file-prefix {{prefix}} -- --config {}/cachewire.yaml",
                                  options.cachewire.empty() ? self : options.cachewire, folder)}};
    for (Forwarder& f : forwarders)
        for (const auto& [what, with] : {std::pair<std::string, std::string>{"{west}", wires.device(0)},
                                         {"{east}", wires.device(1)},
                                         {"{prefix}", prefix + f.name},
                                         {"{memory}", "--in-memory"}})
            f.command = replaced(f.command, what, with);
    const unsigned rounds = options.quick ? 2 : 5;
    for (unsigned round = 0; round < rounds; ++round)
        for (unsigned k = 0; k < 2; ++k) wires.measure(forwarders[round % 2 == 0 ? k : 1 - k], 20);

    std::vector<Result> results;
    results.reserve(forwarders.size());
    for (const Forwarder& f : forwarders) results.push_back(result_of(f));
    results[1].ratio = results[1].cycles_per_packet / results[0].cycles_per_packet;
    print_table("peer: the same memif ports in turn, 64 B, 100 k flows; ratio: cycles against the peer's", results);
    for (const Forwarder& f : forwarders)
        fmt::print("{}: {:.0f} % of what was offered found no room, {:.0f} % of the rest was lost{}\n", f.name,
                   100 * f.refused, 100 * f.lost, f.refused + f.lost < 0.02 ? "; the generator was the limit" : "");
    return results;
}

}  // namespace cachewire::bench
