// SPDX-License-Identifier: BSD-3-Clause
// Rules that never match, against comparing each with each.
#include "config/rule_coverage.h"

#include <random>

#include "config/load.h"
#include "support/catch.h"
#include "support/parsed.h"
#include "support/random.h"

namespace cachewire::config {

namespace {

using test::prefix;

class RandomRules {
  public:
    unsigned below(unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(engine_); }

    AclRule rule() {
        AclRule r;
        r.action = below(2) == 0 ? AclAction::permit : AclAction::deny;
        static constexpr const char* kFour[] = {"0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/9", "10.1.0.0/16", "10.1.2.3/32"};
        static constexpr const char* kSix[] = {"::/0", "2001:db8::/32", "2001:db8:8000::/33", "2001:db8::1/128"};
        const bool four = below(2) == 0;
        const auto any = [&] { return four ? prefix(kFour[below(5)]) : prefix(kSix[below(4)]); };
        if (below(3) != 0) r.src = any();
        if (below(3) != 0) r.dst = any();
        if (below(2) == 0) r.proto = below(2) == 0 ? 6 : 17;
        if (below(3) == 0)
            r.dst_ports = PortRange{static_cast<std::uint16_t>(below(3)), static_cast<std::uint16_t>(3 + below(3))};
        if (below(6) == 0) r.in = below(2) == 0 ? "a" : "b";
        if (below(6) == 0) r.out = below(2) == 0 ? "a" : "b";
        if (below(6) == 0) {
            r.tcp_flags_mask = static_cast<std::uint8_t>(1 + below(3));
            r.tcp_flags = static_cast<std::uint8_t>(below(4) & r.tcp_flags_mask);
        }
        if (below(8) == 0) r.fragment = static_cast<FragmentMatch>(below(5));
        if (below(8) == 0) r.dscp = static_cast<std::uint8_t>(below(2));
        return r;
    }

  private:
    std::mt19937_64 engine_ = test::random_engine();
};

std::string warnings_of(const std::string& text) {
    const auto loaded = load_text("version: 1\nports: [{name: wan, device: net_null0}]\n" + text, "f.yaml");
    CHECK(loaded.config.has_value());
    std::string out;
    for (const auto& diagnostic : loaded.diagnostics)
        if (diagnostic.key_path.find("rules") != std::string::npos) out += to_string(diagnostic) + "\n";
    return out;
}

}  // namespace

TEST_CASE("rule coverage: the search finds what comparing each with each finds", "[config]") {
    RandomRules random;
    std::size_t found = 0;
    for (unsigned round = 0; round < 200; ++round) {
        std::vector<AclRule> rules(random.below(40));
        for (AclRule& rule : rules) rule = random.rule();
        const Coverage coverage = find_covered(rules, std::chrono::seconds(60));
        REQUIRE(coverage.looked_at == rules.size());
        std::size_t next = 0;
        for (std::size_t later = 0; later < rules.size(); ++later) {
            std::size_t by = 0;
            while (by < later && !covers(rules[by], rules[later])) ++by;
            INFO("round " << round << ", rule " << later << " of " << rules.size());
            const bool listed = next < coverage.found.size() && coverage.found[next].rule == later;
            REQUIRE(listed == (by < later));
            if (!listed) continue;
            CHECK(coverage.found[next].by == by);
            CHECK(coverage.found[next].same == covers(rules[later], rules[by]));
            ++next;
        }
        found += next;
    }
    CHECK(found > 100);
}

TEST_CASE("rule coverage: both lines are named", "[config]") {
    CHECK(warnings_of("acl:\n"
                      "  - name: a\n"
                      "    rules:\n"
                      "      - {name: web, action: permit, proto: tcp, dst_ports: 80-443}\n"
                      "      - {action: deny, proto: tcp, dst_ports: 443}\n"
                      "      - {action: permit, proto: udp}\n"
                      "      - {action: deny, proto: udp}\n") ==
          "f.yaml:7:9: warning: acl[0].rules[1]: never matches: line 6 (web) matches all of its packets before\n"
          "f.yaml:9:9: warning: acl[0].rules[3]: never matches: line 8 matches the same packets before\n");
}

TEST_CASE("rule coverage: families are kept apart, whole ones too", "[config]") {
    AclRule four, any, six;
    four.src = prefix("0.0.0.0/0");
    six.dst = prefix("::/0");
    CHECK(covers(any, four));
    CHECK(covers(any, six));
    CHECK_FALSE(covers(four, any));
    CHECK_FALSE(covers(four, six));
    AclRule four_by_dst;
    four_by_dst.dst = prefix("10.0.0.0/8");
    CHECK(covers(four, four_by_dst));
    CHECK_FALSE(covers(four_by_dst, four));
}

TEST_CASE("rule coverage: it stops when its time is used up, and says how far it came", "[config]") {
    std::vector<AclRule> rules(2000);
    for (std::size_t i = 0; i < rules.size(); ++i) {
        const auto port = static_cast<std::uint16_t>(i + 1);
        rules[i].proto = 6;
        rules[i].dst_ports = PortRange{port, port};
    }
    CHECK(find_covered(rules, std::chrono::milliseconds(0)).looked_at < rules.size());
    CHECK(find_covered(rules, std::chrono::seconds(60)).looked_at == rules.size());
}

}  // namespace cachewire::config
