// SPDX-License-Identifier: BSD-3-Clause
// Other forwarders and cachewire in turn on the same two memif ports. This process is what is connected to them: one
// lcore that offers 64-byte frames of 100 k flows to `west` as fast as they are taken, and counts what comes out of
// `east`. Each program is started anew for each turn, on CPU 1 (its control lcore on 0), and has the flows' sessions
// made before anything is counted. One start is one value: where a program's memory happens to lie is the same for a
// whole start, so windows of one say nothing of the next.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rte_eal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "claims.h"
#include "peer_program.h"
#include "peer_wires.h"

namespace cachewire::bench {

namespace {

namespace fs = std::filesystem;

constexpr double kPeerWindowSeconds = 0.1, kPeerWarmSeconds = 0.5, kPeerStartSeconds = 30;
constexpr unsigned kPeerWindows = 20;
// Less of its CPU, and somebody else ran there: the start is kept and said to be disturbed.
constexpr double kWholeCpu = 0.97;
// Fewer full rings than this: the forwarder waited for frames.
constexpr double kSenderIsFaster = 0.02;

struct PeerStart {
    double mpps = 0;                 // median over its windows
    double refused = 0, lost = 0;    // parts of the offers, and of what was taken
    double cpu = 0, sender_cpu = 0;  // of the thread that forwards, and of this one
};

struct Forwarder {
    std::string name, command;
    std::vector<PeerStart> starts{};
    std::string change{}, failure{};
    unsigned queues = 0;  // that it sends on
};

double middle(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double thread_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::string percent(double part) { return fmt::format("{:.0f} %", 100 * part); }

// Why nothing comes out of it, in words.
std::string silence(const PeerWires& wires, const PeerCount& count, bool has_ended) {
    std::string text = has_ended ? "it has ended: " : "it forwards nothing: ";
    if (!wires.has_socket(0) && !wires.has_socket(1)) return text + "it made none of its memif sockets";
    if (!wires.are_connected()) return text + "it does not accept this process on both of its memif ports";
    if (count.taken == 0) return text + "it takes no frames from west";
    return text + fmt::format("it took {} frames from west and sent {} to east", count.taken, count.received);
}

// One turn: start, warm up, count. Throws std::runtime_error where it doesn't forward.
void take_turn(Forwarder& forwarder, const std::string& folder) {
    PeerWires wires(folder, forwarder.queues);
    PeerProgram program(forwarder.command, folder);
    PeerCount first;
    const auto fail = [&](const std::string& why) {
        throw std::runtime_error(fmt::format("{}\n{}\n{}", why, forwarder.command, program.last_words()));
    };
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(kPeerStartSeconds);
    while (first.received < kPeerFlows) {
        if (program.has_ended()) fail(silence(wires, first, true));
        if (std::chrono::steady_clock::now() > deadline) fail(silence(wires, first, false));
        if (wires.connect())
            wires.run(0.01, first);
        else
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    wires.answer();
    wires.run(kPeerWarmSeconds, first);

    PeerCount count;
    std::vector<double> mpps;
    const double own = thread_seconds();
    const std::uint64_t ns = program.busiest_thread_ns(), begin = base::now_tsc();
    for (unsigned i = 0; i < kPeerWindows; ++i) {
        PeerCount window;
        wires.run(kPeerWindowSeconds, window);
        mpps.push_back(static_cast<double>(window.received) / window.seconds / 1e6);
        count.offers += window.offers, count.refused += window.refused;
        count.taken += window.taken, count.received += window.received;
    }
    const double sender_cpu = thread_seconds() - own;
    const double seconds = static_cast<double>(base::now_tsc() - begin) / static_cast<double>(base::tsc_hz());
    const double cpu = static_cast<double>(program.busiest_thread_ns() - ns) / 1e9 / seconds;
    if (program.has_ended() || !wires.are_connected()) fail("it has ended while it was measured");
    if (count.received == 0) fail(silence(wires, count, false));
    const auto part = [](std::uint64_t n, std::uint64_t of) {
        return static_cast<double>(n) / static_cast<double>(of);
    };
    forwarder.starts.push_back({middle(mpps), part(count.refused, count.offers),
                                std::max(0.0, 1 - part(count.received, count.taken)), cpu, sender_cpu / seconds});
    forwarder.change = wires.change();
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

// `track`: the flows' sessions; without it the same list is asked for each packet.
std::string our_configuration(const std::string& folder, bool track) {
    std::string text = fmt::format("version: 1\n{}workers: {{lcores: \"1\"}}\nports:\n",
                                   track ? "sessions: {capacity: 400000, timeouts: {new: 6h}}\n" : "");
    for (unsigned side : {0u, 1u})
        text += fmt::format("  - {{name: {}, device: \"{}\", mac: \"{}\"}}\n", side == 0 ? "west" : "east",
                            peer_device(folder, side), kPeerMacs[0]);
    return text + fmt::format(R"(tenants:
  - {{name: red, id: 10, match: [{{port: west}}, {{port: east}}], acl: edge, sessions: {}}}
interfaces:
  - {{name: lan, port: west, addresses: ["192.0.3.1/24"]}}
  - {{name: wan, port: east, addresses: ["192.0.2.1/24"]}}
neighbors:
  - {{tenant: red, address: 192.0.2.2, mac: "02:00:00:00:00:99"}}
  - {{tenant: red, address: 192.0.3.2, mac: "02:00:00:00:00:98"}}
routes:
  - {{tenant: red, prefix: 198.18.0.0/15, via: 192.0.2.2}}
  - {{tenant: red, prefix: 10.0.0.0/8, via: 192.0.3.2}}
acl: [{{name: edge, stateful: {}, rules: [{{action: permit, proto: udp, src: 10.0.0.0/8}}]}}]
)",
                              track ? "track" : "none", track);
}

// NAME=COMMAND, or a command alone.
Forwarder parse_peer(const std::string& text) {
    const std::size_t end =
        text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-");
    if (end != 0 && end != std::string::npos && text[end] == '=') return {text.substr(0, end), text.substr(end + 1)};
    return {"peer", text};
}

std::vector<Forwarder> forwarders_of(const Options& options, const std::string& folder) {
    std::vector<Forwarder> forwarders;
    for (const std::string& text : options.peers) forwarders.push_back(parse_peer(text));
    const std::string self = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "app" / "cachewire";
    for (bool track : {true, false}) {
        const std::string file = fmt::format("{}/{}.yaml", folder, track ? "track" : "none");
        std::ofstream(file) << our_configuration(folder, track);
        forwarders.push_back({track ? "cachewire" : "cachewire-stateless",
                              fmt::format("{} -l 0,1 {{memory}} --file-prefix {{prefix}} -- --config {}",
                                          options.cachewire.empty() ? self : options.cachewire, file)});
    }
    for (Forwarder& f : forwarders) {
        if (std::count_if(forwarders.begin(), forwarders.end(), [&](const auto& o) { return o.name == f.name; }) != 1)
            throw std::runtime_error("peer: two forwarders are called " + f.name + "; --peer NAME=COMMAND names one");
        for (const auto& [what, with] :
             {std::pair<std::string, std::string>{"{west}", peer_device(folder, 0)},
              {"{east}", peer_device(folder, 1)},
              {"{prefix}", fmt::format("peer-{}-{}", getpid(), f.name)},
              {"{memory}", rte_eal_has_hugepages() != 0 ? "--in-memory" : "--no-huge -m 1024"}})
            f.command = replaced(f.command, what, with);
    }
    return forwarders;
}

// Against the first one: starts beside each other are compared.
Result result_of(const Forwarder& forwarder, const Forwarder& first) {
    Result result;
    result.name = forwarder.name;
    result.failure = forwarder.failure;
    result.frames = forwarder.change;
    if (forwarder.starts.empty()) return result;
    const auto cycles = [](const PeerStart& s) { return static_cast<double>(base::tsc_hz()) / s.mpps / 1e6; };
    std::vector<double> all, ratios, differences;
    for (std::size_t i = 0; i < forwarder.starts.size(); ++i) {
        all.push_back(cycles(forwarder.starts[i]));
        result.starts.push_back(forwarder.starts[i].mpps);
        if (i >= first.starts.size()) continue;
        ratios.push_back(all.back() / cycles(first.starts[i]));
        differences.push_back(all.back() - cycles(first.starts[i]));
    }
    result.cycles_per_packet = middle(all);
    result.mpps = static_cast<double>(base::tsc_hz()) / result.cycles_per_packet / 1e6;
    std::sort(all.begin(), all.end());
    result.spread = (all[(all.size() * 3 - 1) / 4] - all[all.size() / 4]) / 2;
    result.ratio = ratios.empty() ? 0 : middle(ratios);
    result.difference = differences.empty() ? 0 : middle(differences);
    return result;
}

void print_forwarder(const Forwarder& f) {
    if (!f.failure.empty()) fmt::print("{}: {}\n", f.name, f.failure);
    if (f.starts.empty()) return;
    fmt::print("{}, whose frames leave {}:\n", f.name, f.change);
    for (const PeerStart& s : f.starts)
        fmt::print(
            "  {:>6.2f} Mpps, {} of the offers found the ring full, {} lost, the CPU was {} its own, {} the "
            "sender's{}\n",
            s.mpps, percent(s.refused), percent(s.lost), percent(s.cpu), percent(s.sender_cpu),
            s.refused < kSenderIsFaster                     ? "; the sender was the limit"
            : s.cpu < kWholeCpu || s.sender_cpu < kWholeCpu ? "; disturbed"
                                                            : "");
}

}  // namespace

std::vector<Result> peer(const Options& options) {
    std::string folder = (fs::temp_directory_path() / "cachewire-peer-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("peer: no folder for sockets");
    const std::unique_ptr<const std::string, void (*)(const std::string*)> remover(
        &folder, [](const std::string* path) { fs::remove_all(*path); });
    // The forwarders have it from here. Both sides alike, and ahead of what else there is.
    (void)setpriority(PRIO_PROCESS, 0, -20);
    std::vector<Forwarder> forwarders = forwarders_of(options, folder);
    const unsigned rounds = options.starts != 0 ? options.starts : options.quick ? 2 : 5;
    for (unsigned round = 0; round < rounds; ++round)
        for (std::size_t k = 0; k < forwarders.size(); ++k) {
            // Each is first once, and behind another one each time.
            Forwarder& f = forwarders[(round + (round % 2 == 0 ? k : forwarders.size() - k)) % forwarders.size()];
            if (!f.failure.empty()) continue;
            try {
                take_turn(f, folder);
            } catch (const std::exception& error) {
                f.failure = error.what();
            }
        }

    std::vector<Result> results;
    results.reserve(forwarders.size());
    for (const Forwarder& f : forwarders) results.push_back(result_of(f, forwarders[0]));
    print_table(fmt::format("peer: the same memif ports in turn, 64 B, 100 k flows, {} starts each; ratio and "
                            "difference: against {}",
                            rounds, forwarders[0].name),
                results);
    for (const Forwarder& f : forwarders) print_forwarder(f);
    return results;
}

}  // namespace cachewire::bench
