// SPDX-License-Identifier: BSD-3-Clause
#include "control/publisher.h"

#include <atomic>
#include <thread>

#include "support/catch.h"
#include "support/eal.h"

namespace cachewire {
namespace {

std::unique_ptr<pipeline::Snapshot> snapshot(std::uint64_t generation) {
    auto s = std::make_unique<pipeline::Snapshot>();
    s->generation = generation;
    return s;
}

// Both see snapshot 1.
struct TwoReaders {
    TwoReaders() {
        publisher.publish(snapshot(1));
        publisher.reap();
        first.online();
        second.online();
    }
    control::Publisher publisher = [] {
        test::ensure_eal();
        return control::Publisher(2);
    }();
    pipeline::SnapshotReader first = publisher.add_worker(), second = publisher.add_worker();
};

TEST_CASE("publisher: an old snapshot is freed only after every worker was quiescent", "[publisher]") {
    TwoReaders readers;
    auto& [publisher, first, second] = readers;
    const pipeline::Snapshot& held = first.take();
    CHECK(held.generation == 1);

    bool over = false;
    publisher.publish(snapshot(2), [&over] { over = true; });
    CHECK(publisher.reap() == 1);
    CHECK(held.generation == 1);  // still there, ASan would tell
    first.quiescent();
    CHECK(publisher.reap() == 1);
    CHECK_FALSE(over);
    second.quiescent();
    CHECK(publisher.reap() == 0);
    CHECK(over);
    CHECK(first.take().generation == 2);
}

TEST_CASE("publisher: a grace period of its own is not over with that of a snapshot before it", "[publisher]") {
    TwoReaders readers;
    auto& [publisher, first, second] = readers;
    publisher.publish(snapshot(2));
    first.quiescent();  // and begins its next iteration with what it had besides the snapshot
    publisher.start_grace_period();
    second.quiescent();
    CHECK(publisher.reap() == 1);
    first.quiescent();
    CHECK(publisher.reap() == 0);
    CHECK(publisher.current()->generation == 2);
}

TEST_CASE("publisher: a worker that is offline holds nothing back", "[publisher]") {
    test::ensure_eal();
    control::Publisher publisher(1);
    auto worker = publisher.add_worker();
    publisher.publish(snapshot(1));
    publisher.reap();
    worker.online();
    worker.offline();
    publisher.publish(snapshot(2));
    CHECK(publisher.reap() == 0);
}

TEST_CASE("publisher: refuses when a stalled worker keeps too many snapshots waiting", "[publisher]") {
    test::ensure_eal();
    control::Publisher publisher(1);
    auto worker = publisher.add_worker();
    publisher.publish(snapshot(0));
    publisher.reap();
    worker.online();
    for (std::uint64_t i = 0; i < control::Publisher::kMaxWaiting; ++i) {
        REQUIRE(publisher.can_publish());
        publisher.publish(snapshot(i + 1));
    }
    CHECK_FALSE(publisher.can_publish());
    worker.quiescent();
    publisher.reap();
    CHECK(publisher.can_publish());
}

TEST_CASE("publisher: readers never see a freed or half-built snapshot while thousands are published", "[publisher]") {
    test::ensure_eal();
    control::Publisher publisher(1);
    auto reader = publisher.add_worker();
    publisher.publish(snapshot(1));
    publisher.reap();
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> bad{0}, seen{0};
    std::thread worker([&] {
        reader.online();
        std::uint64_t last = 0;
        while (!stop.load(std::memory_order_relaxed)) {
            const pipeline::Snapshot& s = reader.take();
            if (s.generation < last || s.tenants.size() != (s.generation == 1 ? 0 : 3)) bad.fetch_add(1);
            last = s.generation;
            seen.store(last);
            reader.quiescent();
        }
        reader.offline();
    });
    for (std::uint64_t generation = 2; generation <= 5000;) {
        publisher.reap();
        if (!publisher.can_publish()) {
            std::this_thread::yield();
            continue;
        }
        auto s = snapshot(generation++);
        s->tenants.resize(3);
        publisher.publish(std::move(s));
    }
    while (seen.load() != 5000) std::this_thread::yield();
    stop.store(true);
    worker.join();
    CHECK(bad.load() == 0);
    CHECK(publisher.reap() == 0);
}

}  // namespace
}  // namespace cachewire
