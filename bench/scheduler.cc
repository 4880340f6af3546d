// SPDX-License-Identifier: BSD-3-Clause
// What does a scheduler cost, and does it hold what it says? Ours against rte_sched with the same classes and frames:
// enqueue and dequeue of bursts of 32, and then, by the real clock, how long a strict packet waits behind a lower
// class, what a strict class of long frames gets beside one of short ones, and the shares of weights.
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_sched.h>

#include "base/clock.h"
#include "claims.h"
#include "port/port.h"
#include "qos/scheduler.h"

namespace cachewire::bench {

namespace {

constexpr unsigned kScheduledBurst = 32, kScheduledBursts = 64;
constexpr std::uint64_t kScheduledRate = 100'000'000;  // bit/s, where the clock counts
constexpr std::uint32_t kLongFrame = 1514, kShortFrame = 60;

using Weights = std::array<unsigned, 4>;

// Strict classes 0 to 11, weighted ones 12 to 15. `bucket`: bytes; of rte_sched's buckets.
class RteSched {
  public:
    RteSched(std::uint64_t rate_bps, std::uint64_t bucket, const Weights& weights) {
        const std::uint64_t rate = rate_bps / 8;
        subport_.tb_rate = pipe_.tb_rate = rate;
        subport_.tb_size = pipe_.tb_size = bucket;
        subport_.tc_period = pipe_.tc_period = 10;
        for (unsigned c = 0; c < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; ++c) subport_.tc_rate[c] = pipe_.tc_rate[c] = rate;
        pipe_.tc_ov_weight = 1;
        for (unsigned w = 0; w < 4; ++w) pipe_.wrr_weights[w] = static_cast<std::uint8_t>(weights[w]);
        rte_sched_port_params port{};
        port.name = "bench";
        port.rate = 2 * rate;  // twice, or its own clock, which runs on with each packet, would limit nothing
        port.mtu = kLongFrame;
        port.n_subports_per_port = port.n_pipes_per_subport = 1;
        port.subport_profiles = &subport_;
        port.n_subport_profiles = port.n_max_subport_profiles = 1;
        rte_sched_subport_params subport{};
        subport.n_pipes_per_subport_enabled = 1;
        for (auto& size : subport.qsize) size = 512;
        subport.pipe_profiles = &pipe_;
        subport.n_pipe_profiles = subport.n_max_pipe_profiles = 1;
        port_.reset(rte_sched_port_config(&port));
        if (!port_ || rte_sched_subport_config(port_.get(), 0, &subport, 0) != 0 ||
            rte_sched_pipe_config(port_.get(), 0, 0, 0) != 0)
            throw std::runtime_error("rte_sched refuses the benchmark's configuration");
    }
    void put(std::span<rte_mbuf*> packets) {
        for (rte_mbuf* packet : packets) {
            const unsigned of = packet->packet_type;
            rte_sched_port_pkt_write(port_.get(), packet, 0, 0, std::min(of, 12u), of < 12 ? 0 : of - 12,
                                     RTE_COLOR_GREEN);
        }
        rte_sched_port_enqueue(port_.get(), packets.data(), static_cast<std::uint32_t>(packets.size()));
    }
    unsigned go(std::span<rte_mbuf*> out) {
        return static_cast<unsigned>(
            rte_sched_port_dequeue(port_.get(), out.data(), static_cast<std::uint32_t>(out.size())));
    }

  private:
    struct Free {
        void operator()(rte_sched_port* port) const noexcept { rte_sched_port_free(port); }
    };
    rte_sched_subport_profile_params subport_{};
    rte_sched_pipe_params pipe_{};
    std::unique_ptr<rte_sched_port, Free> port_;
};

class OurSched {
  public:
    OurSched(std::uint64_t rate_bps, std::uint64_t, const Weights& weights)
        : scheduler_(config(rate_bps, weights), base::tsc_hz()) {}
    void put(std::span<rte_mbuf*> packets) {
        for (rte_mbuf* packet : packets)
            scheduler_.enqueue(scheduler_.queue_of(packet->packet_type),
                               {packet, packet->pkt_len, 0, static_cast<std::uint8_t>(packet->packet_type)});
    }
    unsigned go(std::span<rte_mbuf*> out) {
        std::array<qos::Scheduled, kScheduledBurst> chosen;
        const unsigned n = scheduler_.dequeue(base::now_tsc(), std::span(chosen).first(out.size()));
        for (unsigned i = 0; i < n; ++i) out[i] = static_cast<rte_mbuf*>(chosen[i].packet);
        return n;
    }

  private:
    static qos::SchedulerConfig config(std::uint64_t rate_bps, const Weights& weights) {
        qos::SchedulerConfig config{rate_bps, 0, true, {}};
        for (unsigned c = 0; c < qos::kStrictClasses; ++c) config.classes.push_back({c, 0});
        for (const unsigned weight : weights) config.classes.push_back({std::nullopt, weight});
        return config;
    }
    qos::Scheduler scheduler_;
};

// Packets that go round; `waiting`, `bytes`: by class.
template <class Sched>
class Load {
  public:
    Load(rte_mempool* pool, std::uint64_t rate_bps, std::uint64_t bucket, const Weights& weights)
        : sched_(rate_bps, bucket, weights), free_(1024) {
        if (rte_pktmbuf_alloc_bulk(pool, free_.data(), static_cast<unsigned>(free_.size())) != 0)
            throw std::runtime_error("no mbufs for the benchmark");
    }
    ~Load() {
        std::array<rte_mbuf*, kScheduledBurst> out;
        for (unsigned idle = 0, n; idle < 1'000'000; idle = n == 0 ? idle + 1 : 0) {
            n = sched_.go(out);
            rte_pktmbuf_free_bulk(out.data(), n);
            if (n == 0 && total_ == 0) break;
            total_ -= n;
        }
        rte_pktmbuf_free_bulk(free_.data(), static_cast<unsigned>(free_.size()));
    }
    void put(unsigned of, std::uint32_t length) {
        rte_mbuf* packet = free_.back();
        free_.pop_back();
        packet->pkt_len = length;
        packet->data_len = static_cast<std::uint16_t>(length);
        packet->packet_type = of;
        sched_.put({&packet, 1});
        ++waiting[of];
        ++total_;
    }
    void fill(unsigned of, std::uint32_t length, unsigned packets = 40) {
        while (waiting[of] < packets) put(of, length);
    }
    void go() {
        std::array<rte_mbuf*, kScheduledBurst> out;
        const unsigned n = sched_.go(out);
        for (rte_mbuf* packet : std::span(out).first(n)) {
            if (packet->packet_type == 0) before_strict = bytes[12];
            --waiting[packet->packet_type];
            bytes[packet->packet_type] += packet->pkt_len;
            free_.push_back(packet);
        }
        total_ -= n;
    }
    // As many in as out, 256 of each of four strict classes and four weighted ones waiting at the start.
    Slice slice() {
        if (total_ == 0)
            for (unsigned i = 0; i < 512; ++i) put(i % 8 < 4 ? i % 8 : 8 + i % 8, 64 + i * 2654435761u % 1450);
        Slice slice;
        std::array<rte_mbuf*, kScheduledBurst> in, out;
        for (unsigned b = 0; b < kScheduledBursts; ++b) {
            for (rte_mbuf*& packet : in) {
                packet = free_.back();
                free_.pop_back();
                packet->packet_type = next_ % 8 < 4 ? next_ % 8 : 8 + next_ % 8;
                packet->pkt_len = 64 + next_++ * 2654435761u % 1450;
            }
            const std::uint64_t begin = base::now_tsc();
            sched_.put(in);
            const unsigned n = sched_.go(out);
            slice.cycles += base::now_tsc() - begin;
            slice.packets += n;
            free_.insert(free_.end(), out.begin(), out.begin() + n);
            total_ += kScheduledBurst - n;
            if (free_.size() < kScheduledBurst) throw std::runtime_error("the scheduler keeps what it got");
        }
        return slice;
    }

    std::array<unsigned, 16> waiting{};
    std::array<std::uint64_t, 16> bytes{};
    std::uint64_t before_strict = 0;  // bytes of class 12 when the last packet of class 0 left

  private:
    Sched sched_;
    std::vector<rte_mbuf*> free_;
    std::uint64_t total_ = 0;
    unsigned next_ = 0;
};

template <class Body>
void for_seconds(double seconds, Body&& body) {
    const std::uint64_t begin = base::now_tsc();
    const auto hz = static_cast<double>(base::tsc_hz());
    double at = 0;
    while (at < seconds) {
        body(at);
        at = static_cast<double>(base::now_tsc() - begin) / hz;
    }
}

// How many bytes of a class that always has some go before a strict packet, in the mean and at most.
template <class Sched>
std::string waiting(rte_mempool* pool, std::uint64_t bucket) {
    Load<Sched> load(pool, 100 * kScheduledRate, bucket, {1, 1, 1, 1});  // 10 Gbit/s, so that waits are many
    double sum = 0, most = 0;
    unsigned count = 0;
    std::uint64_t since = 0;
    for_seconds(0.5, [&](double) {
        load.fill(12, kLongFrame);
        if (load.waiting[0] == 0 && load.bytes[12] > since + 200'000) {
            since = load.bytes[12];
            load.put(0, kLongFrame);
        }
        const bool waits = load.waiting[0] != 0;
        load.go();
        if (!waits || load.waiting[0] != 0) return;
        const auto bytes = static_cast<double>(load.before_strict - since);
        sum += bytes;
        most = std::max(most, bytes);
        ++count;
    });
    return fmt::format("{:.0f} KB, {:.0f} KB at most", count == 0 ? 0 : sum / count / 1000, most / 1000);
}

// A strict class of long frames offers 66 % of the rate, beside a lower one that always has short ones.
template <class Sched>
std::string starving(rte_mempool* pool, std::uint64_t bucket) {
    Load<Sched> load(pool, kScheduledRate, bucket, {1, 1, 1, 1});
    double offered = 0;
    constexpr double kSeconds = 0.5;
    for_seconds(kSeconds, [&](double at) {
        const double due = 0.66 * kScheduledRate / 8 * at;
        while (offered < due) {
            if (load.waiting[0] < 60) load.put(0, kLongFrame);
            offered += kLongFrame + 24;
        }
        load.fill(1, kShortFrame);
        load.go();
    });
    const double got = static_cast<double>(load.bytes[0]) / kLongFrame * (kLongFrame + 24) * 8;
    return fmt::format("{:.1f} %", got / kSeconds / kScheduledRate * 100);
}

template <class Sched>
std::string shares(rte_mempool* pool, const Weights& weights) {
    Load<Sched> load(pool, kScheduledRate, 100'000, weights);
    for_seconds(0.5, [&](double) {
        for (unsigned of = 12; of < 16; ++of) load.fill(of, kLongFrame);
        load.go();
    });
    double sum = 0;
    for (unsigned of = 12; of < 16; ++of) sum += static_cast<double>(load.bytes[of]);
    std::string text;
    for (unsigned of = 12; of < 16; ++of)
        text += fmt::format("{}{:.1f}", of == 12 ? "" : ":", static_cast<double>(load.bytes[of]) / sum * 100);
    return text;
}

void print_kept(rte_mempool* pool) {
    fmt::print("\nqos: what is held\n{:<60} {:>24} {:>24}\n", "", "rte_sched", "scheduler");
    const auto line = [](const std::string& what, const std::string& theirs, const std::string& ours) {
        fmt::print("{:<60} {:>24} {:>24}\n", what, theirs, ours);
    };
    for (const std::uint64_t bucket : {1'000'000ul, 16'384ul, 3'076ul}) {
        const std::string of = fmt::format("; its bucket {} bytes", bucket);
        line("a strict packet waits behind" + of, waiting<RteSched>(pool, bucket), waiting<OurSched>(pool, bucket));
        line("a strict class that offers 66 % gets" + of, starving<RteSched>(pool, bucket),
             starving<OurSched>(pool, bucket));
    }
    for (const Weights& w : {Weights{8, 4, 2, 1}, Weights{97, 89, 7, 1}, Weights{100, 1, 1, 1}}) {
        const double sum = w[0] + w[1] + w[2] + w[3];
        line(fmt::format("weights {}:{}:{}:{}, which are {:.1f}:{:.1f}:{:.1f}:{:.1f}", w[0], w[1], w[2], w[3],
                         w[0] / sum * 100, w[1] / sum * 100, w[2] / sum * 100, w[3] / sum * 100),
             shares<RteSched>(pool, w), shares<OurSched>(pool, w));
    }
}

}  // namespace

std::vector<Result> scheduling(const Options& options) {
    rte_mempool* const pool = port::make_mempool("bench_sched", 8191, 0, 2176, -1);
    // More than either can move; its clock knows no byte shorter than a 256th of a cycle.
    constexpr std::uint64_t kTheirs = 400'000'000'000, kWide = 1'000'000'000'000;
    std::vector<Result> results;
    {
        Load<RteSched> theirs(pool, kTheirs, 1'000'000, {4, 3, 2, 1});
        Load<OurSched> ours(pool, kWide, 0, {4, 3, 2, 1});
        results = measure({{"rte_sched, enqueue and dequeue", [&] { return theirs.slice(); }},
                           {"scheduler, enqueue and dequeue", [&] { return ours.slice(); }}},
                          options.quick ? 1000 : options.pairs);
        print_table("qos: a packet into a scheduler and out of it", results);
    }
    print_kept(pool);
    rte_mempool_free(pool);
    return results;
}

}  // namespace cachewire::bench
