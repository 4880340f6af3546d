// SPDX-License-Identifier: BSD-3-Clause
// Moves of buckets, publications and readers of counters beside running workers, for ThreadSanitizer. It doesn't see
// what the shared libraries of DPDK do, so nothing here rests on them: every mbuf is made before the threads begin and
// looked at after they have ended, and who offers, who collects and who moves are threads that tell each other numbers
// only (relaxed). What orders the rest is the project's own.
#include <atomic>
#include <thread>

#include "move_rig.h"

namespace cachewire {
namespace {

using test::HandoffRig;
using test::NumberedTraffic;
using test::RandomMoves;

constexpr unsigned kFlows = 100, kRounds = 100, kWindow = 256;

// What was sent, in the order of arrival. Threads that begin after the workers' and end before them.
class Wire {
  public:
    Wire(HandoffRig& rig, const std::vector<test::MbufPtr>& mbufs)
        : rig_(rig), mbufs_(mbufs), sender_([this] { send(); }), collector_([this] { collect(); }) {}
    ~Wire() { join(); }
    // So many more may go.
    void allow(std::size_t count) { allowed_.store(count, std::memory_order_relaxed); }
    [[nodiscard]] std::size_t received() const { return received_.load(std::memory_order_relaxed); }
    void join() {
        ending_.store(true, std::memory_order_relaxed);
        if (sender_.joinable()) sender_.join();
        if (collector_.joinable()) collector_.join();
    }
    [[nodiscard]] const std::vector<rte_mbuf*>& came() const { return came_; }

  private:
    void send() {
        for (std::size_t sent = 0; sent < mbufs_.size() && !ending_.load(std::memory_order_relaxed);) {
            rte_mbuf* const mbuf = mbufs_[sent].get();
            if (sent < allowed_.load(std::memory_order_relaxed) && sent - received() < kWindow &&
                rig_.west.offer({&mbuf, 1}) == 1) {
                ++sent;
            } else {
                std::this_thread::yield();
            }
        }
    }
    void collect() {
        while (!ending_.load(std::memory_order_relaxed)) {
            rte_mbuf* mbuf = nullptr;
            if (rig_.east.collect({&mbuf, 1}) == 1) {
                came_.push_back(mbuf);
                received_.store(came_.size(), std::memory_order_relaxed);
            } else {
                std::this_thread::yield();
            }
        }
    }

    HandoffRig& rig_;
    const std::vector<test::MbufPtr>& mbufs_;
    std::vector<rte_mbuf*> came_;
    std::atomic<std::size_t> allowed_{0}, received_{0};
    std::atomic<bool> ending_{false};
    std::thread sender_, collector_;
};

}  // namespace

TEST_CASE("move tsan: sessions that move, snapshots and counters race with nothing", "[handoff]") {
    constexpr unsigned kMoves = 40;
    INFO("seed " << test::seed());
    const unsigned workers = GENERATE(2u, 3u);
    INFO(workers << " workers");
    HandoffRig rig(workers);
    NumberedTraffic traffic{kFlows};
    std::vector<test::MbufPtr> mbufs;
    for (const test::Bytes& frame : traffic.next(kRounds)) mbufs.push_back(test::make_mbuf(frame, rig.pool()));
    rig.start();
    RandomMoves moves(rig);
    std::uint64_t held = 0;
    std::vector<test::Bytes> out;
    {
        Wire wire(rig, mbufs);
        wire.allow(kFlows);
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(50);
        while (wire.received() < mbufs.size() && std::chrono::steady_clock::now() < limit) {
            const unsigned before = moves.moves;
            moves.step();
            held += rig.ledger().held;  // as telemetry reads
            held += rig.sessions();
            if (moves.moves != before) {
                // As a reload does: not while a session is between two workers. The list is another one each time.
                if (moves.moves % 4 == 0) {
                    moves.end();
                    rig.wait_grace();
                    rig.publish(test::handoff_config(fmt::format(
                        "  - {{name: other, rules: [{{action: deny, proto: udp, dst_ports: {}}}]}}\n", moves.moves)));
                }
                wire.allow(mbufs.size() * moves.moves / kMoves);
            }
            std::this_thread::yield();
        }
        moves.end();
        wire.join();
        rig.stop();
        for (const rte_mbuf* mbuf : wire.came()) out.push_back(test::bytes_of(mbuf));
    }
    traffic.check(out);
    CHECK(out.size() == mbufs.size());
    CHECK(traffic.wrong == 0);
    CHECK(moves.moves >= kMoves);
    CHECK(moves.lost == 0);
    CHECK(moves.sessions > 0);
    CHECK(held > 0);
    CHECK(rig.sessions() == kFlows);
    CHECK(rig.ledger().dropped == 0);
    CHECK(control::unaccounted(rig.ledger()) == 0);
}

}  // namespace cachewire
