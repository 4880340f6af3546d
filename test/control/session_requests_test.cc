// SPDX-License-Identifier: BSD-3-Clause
// Asking workers, with threads that stand in for them and with one that never answers.
#include "control/session_requests.h"

#include <atomic>
#include <set>
#include <thread>

#include "session/keys.h"
#include "support/catch.h"

using namespace cachewire;
using control::SessionRequests;
using session::Filter;
using session::State;

namespace {

constexpr std::uint64_t kHz = 1000;

// Owns a table and answers for it.
class FakeWorker {
  public:
    explicit FakeWorker(std::uint32_t first, std::uint32_t sessions, bool answers = true) {
        for (std::uint32_t i = first; i < first + sessions; ++i) {
            const net::FlowKey key = test::pool_key(i, false);
            session::Found found;
            REQUIRE(table_.insert(key, test::hash_of(key), 0, found) == session::Table::Insert::created);
        }
        if (answers) start();
    }
    void start() {
        thread_ = std::thread([this] {
            while (!stop_.load(std::memory_order_relaxed)) {
                mailbox_->serve(table_, outcomes_, 0);
                std::this_thread::yield();
            }
        });
    }
    ~FakeWorker() { stop(); }
    void stop() {
        stop_ = true;
        if (thread_.joinable()) thread_.join();
    }
    session::Mailbox& mailbox() { return *mailbox_; }
    session::Table& table() { return table_; }
    session::OutcomeTable& outcomes() { return outcomes_; }

  private:
    session::Table table_{4096, -1, kHz, {}};
    session::OutcomeTable outcomes_;
    std::unique_ptr<session::Mailbox> mailbox_ = std::make_unique<session::Mailbox>();
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

std::optional<std::uint16_t> find_tenant(std::string_view name) {
    return name == "red" ? std::optional<std::uint16_t>(7) : std::nullopt;
}

Filter parse(std::string_view text) { return control::parse_session_filter(text, find_tenant); }

std::string why_not(std::string_view text) {
    try {
        parse(text);
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("session requests: a list goes over all workers, page by page", "[control]") {
    FakeWorker first(0, 300), second(300, 5), third(305, 0), fourth(305, 100);
    SessionRequests requests(
        {{&first.mailbox(), 1}, {&second.mailbox(), 2}, {&third.mailbox(), 3}, {&fourth.mailbox(), 4}});
    for (const std::size_t count : {std::size_t{1}, std::size_t{17}, std::size_t{64}, std::size_t{1000}}) {
        INFO("pages of " << count);
        std::set<SessionRequests::Cursor> seen;
        std::optional<SessionRequests::Cursor> cursor = 0;
        while (cursor) {
            const auto page = requests.list({}, *cursor, count);
            REQUIRE(page.sessions.size() <= count);
            for (const auto& listed : page.sessions) REQUIRE(seen.insert(listed.at).second);
            REQUIRE((!page.next || *page.next > *cursor));
            cursor = page.next;
        }
        CHECK(seen.size() == 405);
        CHECK(*seen.rbegin() == (SessionRequests::Cursor{3} << 32 | 99));
    }
    CHECK(requests.list({}, SessionRequests::Cursor{9} << 32, 10).sessions.empty());
}

TEST_CASE("session requests: the heaviest of all workers", "[control]") {
    FakeWorker a(0, 100, false), b(100, 100, false);
    for (std::uint32_t i = 0; i < 100; ++i) {
        a.table().touch(i, i % 2 == 0, 0, 100 + 2 * i, 0);
        b.table().touch(i, i % 3 == 0, 0, 101 + 2 * i, 0);
    }
    a.start();
    b.start();
    SessionRequests requests({{&a.mailbox(), 1}, {&b.mailbox(), 2}});
    const auto top = requests.top({}, session::Weight::bytes, 5);
    REQUIRE(top.size() == 5);
    for (std::size_t i = 0; i < top.size(); ++i) CHECK(top[i].bytes() == 299 - i);
    CHECK(requests.top({}, session::Weight::packets, 1000).size() == session::Mailbox::kMaxViews);
}

TEST_CASE("session requests: one is found on whichever worker has it, and a filter ends those on all", "[control]") {
    FakeWorker first(0, 100), second(100, 100);
    SessionRequests requests({{&first.mailbox(), 1}, {&second.mailbox(), 2}});
    for (const std::uint32_t number : {0u, 50u, 150u}) {
        const net::FlowKey key = test::pool_key(number, true);
        const auto view = requests.get(key, test::hash_of(key));
        REQUIRE(view);
        CHECK(view->hot.dst == key.src);
    }
    const net::FlowKey other = test::pool_key(1000, false);
    CHECK_FALSE(requests.get(other, test::hash_of(other)));
    // pool_key: tenants 1 to 3 in turn.
    CHECK(requests.kill({.tenant = 2}) == 67);
    CHECK(requests.kill({.tenant = 2}) == 0);
    CHECK(requests.kill({}) == 133);
}

TEST_CASE("session requests: a worker that hangs costs the asker its limit, and is asked again when it is back",
          "[control]") {
    FakeWorker hangs(0, 10, false);
    SessionRequests requests({{&hangs.mailbox(), 5}}, std::chrono::milliseconds(20));
    for (int i = 0; i < 2; ++i) {
        try {
            requests.list({}, 0, 10);
            FAIL("an answer from nobody");
        } catch (const control::NoAnswer& e) {
            CHECK(std::string(e.what()) == "the worker on lcore 5 has not answered within 20 ms");
        }
    }
    // The old question is answered first, to nobody.
    while (!hangs.mailbox().answered()) hangs.mailbox().serve(hangs.table(), hangs.outcomes(), 0);
    std::atomic<bool> stop{false};
    std::thread thread([&] {
        while (!stop) hangs.mailbox().serve(hangs.table(), hangs.outcomes(), 0);
    });
    CHECK(SessionRequests({{&hangs.mailbox(), 5}}).list({}, 0, 10).sessions.size() == 10);
    stop = true;
    thread.join();
}

TEST_CASE("session requests: filters as people write them", "[control]") {
    const Filter one =
        parse("tenant=red  proto=tcp src=10.0.0.0/8 dst=2001:db8::1 src_port=0 dst_port=22 state=reset ");
    CHECK(one.tenant == std::uint16_t{7});
    CHECK(one.proto == std::uint8_t{6});
    CHECK(net::to_string(*one.src) == "10.0.0.0/8");
    CHECK(net::to_string(*one.dst) == "2001:db8::1/128");
    CHECK(one.src_port == std::uint16_t{0});
    CHECK(one.dst_port == std::uint16_t{22});
    CHECK(one.states ==
          (1u << static_cast<unsigned>(State::reset_forward) | 1u << static_cast<unsigned>(State::reset_reverse)));
    const Filter all = parse("all");
    CHECK((!all.tenant && !all.proto && !all.src && !all.src_port && all.states == Filter{}.states));
    CHECK(parse("proto=132").proto == std::uint8_t{132});

    const struct {
        const char* text;
        const char* why;
    } wrong[] = {
        {"", "no filter; to end every session say 'all'"},
        {"  ", "no filter; to end every session say 'all'"},
        {"all tenant=red", "'all' stands alone"},
        {"red", "'red': a filter is made of KEY=VALUE, such as tenant=red dst_port=22, or is 'all'"},
        {"tenant=blue", "no tenant 'blue'"},
        {"proto=256", "proto=256: not known; allowed: tcp, udp, icmp, icmpv6, sctp or 0 to 255"},
        {"src=10.0.0.1/8", "src=10.0.0.1/8: not an address or a prefix"},
        {"dst=here", "dst=here: not an address or a prefix"},
        {"dst_port=65536", "dst_port=65536: not a port; allowed: 0 to 65535"},
        {"src_port=", "src_port=: not a port; allowed: 0 to 65535"},
        {"state=free",
         "state=free: not known; allowed: new, one_sided, established, half_close, time_wait, reset, closed"},
        {"dst_port=1 dst_port=2", "dst_port stands twice"},
        {"state=new state=reset", "state stands twice"},
        {"port=1", "'port' is not known; allowed: tenant, proto, src, dst, src_port, dst_port, state"},
    };
    for (const auto& c : wrong) CHECK(why_not(c.text) == c.why);
}
