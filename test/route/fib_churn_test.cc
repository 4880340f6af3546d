// SPDX-License-Identifier: BSD-3-Clause
// Real tables that change at random while a worker reads: after each publication the FIB gives what a plain map of
// prefixes gives, and the reader never sees an address lose the route that covers it for good. With a build of
// -Db_sanitize=thread this is also the test of the publication (CONTRIBUTING.md).
#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "route/route_support.h"
#include "support/eal.h"
#include "support/random.h"
#include "support/skip.h"

using namespace cachewire;
using namespace cachewire::test;

namespace {

std::vector<Prefix> every(const char* file, unsigned step) {
    const std::filesystem::path path = std::filesystem::path(CACHEWIRE_SHARED) / "cases/fib" / file;
    std::vector<Prefix> out;
    if (!std::filesystem::exists(path)) return out;
    FILE* pipe = popen(("gzip -dc " + path.string()).c_str(), "r");
    if (pipe == nullptr) return out;
    std::array<char, 128> line{};
    for (unsigned n = 0; std::fgets(line.data(), line.size(), pipe) != nullptr; ++n) {
        std::string text(line.data());
        text.erase(text.find_last_not_of("\r\n ") + 1);
        if (n % step != 0) continue;
        if (const auto parsed = net::parse_prefix(text)) out.push_back(parsed->prefix);
    }
    pclose(pipe);
    return out;
}

// The longest prefix that is there, by asking for each length.
std::uint16_t longest(const Routes& routes, const Address& a) {
    const Family family = a.is_v4() ? Family::ip4 : Family::ip6;
    for (int length = family == Family::ip4 ? 32 : 128; length >= 0; --length) {
        const auto kept = static_cast<unsigned>(length);
        const auto it = routes.find({with_tail(a, family, kept, false), static_cast<std::uint8_t>(length), family});
        if (it != routes.end()) return it->second;
    }
    return 0;
}

Address inside(const Prefix& p, std::mt19937_64& engine) {
    Address a = p.address;
    for (unsigned bit = (p.family == Family::ip4 ? 96u : 0u) + p.length; bit < 128; ++bit)
        if (engine() % 2) a.bytes[bit / 8] |= static_cast<std::uint8_t>(0x80u >> (bit % 8));
    return a;
}

}  // namespace

TEST_CASE("fib: real tables under random churn and a reading worker", "[route][churn]") {
    ensure_eal();
    std::mt19937_64 engine = random_engine();
    std::vector<Prefix> prefixes = every("dfz-v4.txt.gz", 30);
    const auto v6 = every("dfz-v6.txt.gz", 12);
    if (prefixes.empty() || v6.empty()) {
        say_skipped("no routing tables in ../shared/cases/fib");
        return;
    }
    prefixes.insert(prefixes.end(), v6.begin(), v6.end());
    // Long ones below the real ones, which need second-level groups, and the defaults.
    for (unsigned i = 0; i < 400; ++i) {
        const Prefix& p = prefixes[engine() % prefixes.size()];
        const auto length = static_cast<std::uint8_t>(p.family == Family::ip4 ? 25 + engine() % 8 : 49 + engine() % 80);
        prefixes.push_back({with_tail(inside(p, engine), p.family, length, false), length, p.family});
    }
    const auto hop = [&] { return static_cast<std::uint16_t>(1 + engine() % 250); };
    Vrf::Options o;
    o.max_routes = 1u << 17;
    Vrf vrf("churn", o);
    std::vector<RouteChange> batch = {{prefix("0.0.0.0/0"), hop()}, {prefix("::/0"), hop()}};
    for (const Prefix& p : prefixes) batch.push_back({p, hop()});
    Routes routes;
    apply_to(routes, batch);
    publish(vrf, batch);

    std::vector<Address> watched;
    for (unsigned i = 0; i < 1024; ++i) watched.push_back(inside(prefixes[engine() % prefixes.size()], engine));
    std::atomic<const FibView*> published{vrf.view().get()}, seen{nullptr};
    std::atomic<bool> stop{false};
    std::atomic<unsigned> lost{0}, rounds{0};
    std::thread reader([&] {
        while (!stop.load(std::memory_order_acquire)) {
            const FibView* view = published.load(std::memory_order_acquire);
            for (const std::uint16_t next_hop : bulk(*view, watched)) lost += next_hop == 0;  // the defaults stay
            ++rounds;
            seen.store(view, std::memory_order_release);
        }
    });
    for (int round = 0; round < 40; ++round) {
        batch.clear();
        for (unsigned i = 0; i < 500; ++i) {
            const Prefix& p = prefixes[engine() % prefixes.size()];
            batch.push_back({p, engine() % 3 == 0 ? std::nullopt : std::optional(hop())});
        }
        if (round % 8 == 0) batch.push_back({prefix(round % 16 == 0 ? "0.0.0.0/0" : "::/0"), hop()});
        apply_to(routes, batch);
        const auto old = vrf.view();
        const auto view = vrf.apply(batch);
        published.store(view.get(), std::memory_order_release);
        std::vector<Address> probes;
        for (unsigned i = 0; i < 500; ++i) probes.push_back(inside(prefixes[engine() % prefixes.size()], engine));
        for (const RouteChange& c : batch) probes.push_back(inside(c.prefix, engine));
        const auto found = bulk(*view, probes);
        for (std::size_t i = 0; i < probes.size(); ++i) {
            if (found[i] == longest(routes, probes[i])) continue;
            INFO(round << ": " << net::to_string(probes[i]));
            CHECK(found[i] == longest(routes, probes[i]));
        }
        while (seen.load(std::memory_order_acquire) != view.get()) std::this_thread::yield();
        vrf.grace_period_over();
    }
    stop.store(true, std::memory_order_release);
    reader.join();
    CHECK(lost == 0);
    CHECK(rounds > 0);
    CHECK(vrf.routes() == routes);
}
