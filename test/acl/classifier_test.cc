// SPDX-License-Identifier: BSD-3-Clause
#include "acl/classifier.h"

#include "acl/judge_all.h"
#include "acl/linear.h"
#include "acl/random_rules.h"
#include "base/error.h"
#include "support/catch.h"
#include "support/eal.h"
#include "support/random.h"

namespace cachewire::acl {

namespace {

void require_same_as_linear(const Classifier& classifier, const std::vector<net::FlowKey>& keys) {
    const auto verdicts = test::judge_all(classifier, keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const Verdict expected = classify_linear(classifier.list(), keys[i]);
        INFO("key " << i << " of " << keys.size() << (keys[i].is_v4() ? " v4" : " v6"));
        REQUIRE(verdicts[i].rule == expected.rule);
        REQUIRE(verdicts[i].action == expected.action);
    }
}

net::FlowKey udp(const char* src, const char* dst, std::uint16_t src_port, std::uint16_t dst_port) {
    net::FlowKey k;
    k.src = net::parse_address(src).value().address;
    k.dst = net::parse_address(dst).value().address;
    k.src_port_be = __builtin_bswap16(src_port);
    k.dst_port_be = __builtin_bswap16(dst_port);
    k.proto = 17;
    k.match_flags = net::kL4Known;
    return k;
}

Rule rule(Action action) {
    Rule r;
    r.action = action;
    return r;
}

List list_of(std::vector<Rule> rules, Action by_default = Action::deny) {
    List list;
    list.name = "test";
    list.default_action = by_default;
    list.rules = std::move(rules);
    return list;
}

}  // namespace

TEST_CASE("acl: the classifier answers as the linear walk does, for random lists and mixed bursts", "[acl]") {
    test::ensure_eal();
    test::RandomRules random(test::random_engine());
    for (unsigned round = 0; round < 60; ++round) {
        const auto classifier = Classifier::build(random.list(random.below(40)), -1);
        for (unsigned size = 1; size <= 64; ++size) {
            std::vector<net::FlowKey> keys;
            for (unsigned i = 0; i < size; ++i) keys.push_back(random.key(classifier->list()));
            INFO("round " << round << ", " << classifier->list().rules.size() << " rules");
            require_same_as_linear(*classifier, keys);
        }
    }
}

TEST_CASE("acl: a list cut into several tries answers as one trie does", "[acl]") {
    test::ensure_eal();
    test::RandomRules random(test::random_engine());
    std::size_t most = 0;
    for (unsigned round = 0; round < 10; ++round) {
        const List list = random.list(20 + random.below(100));
        const auto one = Classifier::build(list, Classifier::Options{.split_from = ~std::size_t{0}});
        const auto split = Classifier::build(list, Classifier::Options{.split_from = 1});
        REQUIRE(one->tries() <= 2);
        most = std::max(most, split->tries());
        for (unsigned burst = 0; burst < 20; ++burst) {
            std::vector<net::FlowKey> keys;
            for (unsigned i = 0; i < 64; ++i) keys.push_back(random.key(list));
            require_same_as_linear(*one, keys);
            require_same_as_linear(*split, keys);
        }
    }
    CHECK(most > 4);
}

TEST_CASE("acl: every method that this machine has answers the same", "[acl]") {
    test::ensure_eal();
    test::RandomRules random(test::random_engine());
    const List list = random.list(200);
    unsigned methods = 0;
    for (const Method method :
         {Method::best, Method::scalar, Method::sse, Method::avx2, Method::avx512x16, Method::avx512x32}) {
        std::unique_ptr<Classifier> classifier;
        try {
            classifier = Classifier::build(list, Classifier::Options{.method = method});
        } catch (const base::MachineError&) {
            continue;
        }
        ++methods;
        std::vector<net::FlowKey> keys;
        for (unsigned i = 0; i < 200; ++i) keys.push_back(random.key(list));
        require_same_as_linear(*classifier, keys);
    }
    CHECK(methods >= 2);
}

TEST_CASE("acl: a bulk of the largest size with one family only or both comes back in order", "[acl]") {
    test::ensure_eal();
    test::RandomRules random(test::random_engine());
    const auto classifier = Classifier::build(random.list(100), -1);
    for (const int families : {4, 6, 46}) {
        std::vector<net::FlowKey> keys;
        while (keys.size() < kMaxBulk) {
            const net::FlowKey key = random.key(classifier->list());
            if (families == 46 || key.is_v4() == (families == 4)) keys.push_back(key);
        }
        require_same_as_linear(*classifier, keys);
    }
}

TEST_CASE("acl: an empty list answers its default and builds no trie", "[acl]") {
    test::ensure_eal();
    for (const Action by_default : {Action::permit, Action::deny}) {
        const auto classifier = Classifier::build(list_of({}, by_default), -1);
        CHECK(classifier->memory_bytes() == 0);
        for (const auto& key : {udp("10.0.0.1", "10.0.0.2", 1, 2), udp("2001:db8::1", "2001:db8::2", 1, 2)}) {
            const Verdict verdict = classifier->judge(key);
            CHECK(verdict.rule == kDefaultRule);
            CHECK(verdict.action == by_default);
        }
    }
}

TEST_CASE("acl: a list with rules of one family answers the other with its default", "[acl]") {
    test::ensure_eal();
    Rule r = rule(Action::permit);
    r.src = net::parse_prefix("::/0").value().prefix;
    const auto classifier = Classifier::build(list_of({r}), -1);
    CHECK(classifier->memory_bytes() > 0);
    CHECK(classifier->judge(udp("10.0.0.1", "10.0.0.2", 1, 2)).rule == kDefaultRule);
    CHECK(classifier->judge(udp("2001:db8::1", "2001:db8::2", 1, 2)).rule == 0);
}

TEST_CASE("acl: a rule without any key matches every packet of both families", "[acl]") {
    test::ensure_eal();
    const auto classifier = Classifier::build(list_of({rule(Action::permit), rule(Action::deny)}), -1);
    test::RandomRules random(test::random_engine());
    for (unsigned i = 0; i < 1000; ++i) {
        const Verdict verdict = classifier->judge(random.key(classifier->list()));
        REQUIRE(verdict.rule == 0);
        REQUIRE(verdict.action == Action::permit);
    }
}

TEST_CASE("acl: the first matching rule wins, whichever is more specific", "[acl]") {
    test::ensure_eal();
    Rule wide = rule(Action::deny);
    wide.dst = net::parse_prefix("10.0.0.0/8").value().prefix;
    Rule narrow = rule(Action::permit);
    narrow.dst = net::parse_prefix("10.1.2.3/32").value().prefix;
    const auto key = udp("192.0.2.1", "10.1.2.3", 1, 2);
    CHECK(Classifier::build(list_of({wide, narrow}), -1)->judge(key).action == Action::deny);
    CHECK(Classifier::build(list_of({narrow, wide}), -1)->judge(key).action == Action::permit);
}

TEST_CASE("acl: prefixes of every length match inside and not one bit outside", "[acl]") {
    test::ensure_eal();
    for (const char* text : {"203.0.113.165", "2001:db8:a5a5:5a5a:c3c3:3c3c:9696:6969"}) {
        const auto parsed = net::parse_address(text).value();
        const unsigned width = parsed.family == net::Family::ip4 ? 32 : 128;
        for (unsigned length = 0; length <= width; ++length) {
            INFO(text << "/" << length);
            Rule src = rule(Action::permit);
            src.src = net::parse_prefix(std::string(text) + "/" + std::to_string(length)).value().prefix;
            Rule dst = rule(Action::permit);
            dst.dst = src.src;
            const auto by_src = Classifier::build(list_of({src}), -1);
            const auto by_dst = Classifier::build(list_of({dst}), -1);
            net::FlowKey key = udp(text, text, 1, 2);
            const auto flip = [&](unsigned bit) {
                for (net::Address* a : {&key.src, &key.dst}) {
                    const unsigned at = 128 - width + bit;
                    a->bytes[at / 8] ^= static_cast<std::uint8_t>(0x80u >> (at % 8));
                }
            };
            REQUIRE(by_src->judge(key).rule == 0);
            REQUIRE(by_dst->judge(key).rule == 0);
            for (unsigned bit = 0; bit < width; ++bit) {
                flip(bit);
                const std::uint32_t expected = bit < length ? kDefaultRule : 0;
                REQUIRE(by_src->judge(key).rule == expected);
                REQUIRE(by_dst->judge(key).rule == expected);
                flip(bit);
            }
        }
    }
}

TEST_CASE("acl: port ranges hold at their edges", "[acl]") {
    test::ensure_eal();
    struct Case {
        std::uint16_t first, last;
    };
    for (const auto& [first, last] : {Case{0, 0}, Case{0, 65534}, Case{1, 65535}, Case{65535, 65535}, Case{80, 80},
                                      Case{80, 443}, Case{255, 256}, Case{256, 511}, Case{1024, 65535}, Case{0, 255}}) {
        Rule r = rule(Action::permit);
        r.dst_ports = {first, last};
        Rule s = rule(Action::permit);
        s.src_ports = {first, last};
        const auto by_dst = Classifier::build(list_of({r}), -1);
        const auto by_src = Classifier::build(list_of({s}), -1);
        for (const int port : {0, 1, first - 1, +first, first + 1, last - 1, +last, last + 1, 65534, 65535}) {
            if (port < 0 || port > 65535) continue;
            INFO(first << "-" << last << ", port " << port);
            const std::uint32_t expected = first <= port && port <= last ? 0 : kDefaultRule;
            const auto p = static_cast<std::uint16_t>(port);
            for (const char* address : {"10.0.0.1", "2001:db8::1"}) {
                REQUIRE(by_dst->judge(udp(address, address, 7, p)).rule == expected);
                REQUIRE(by_src->judge(udp(address, address, p, 7)).rule == expected);
            }
        }
    }
}

TEST_CASE("acl: TCP flags are compared under their mask, for all 256 values", "[acl]") {
    test::ensure_eal();
    constexpr std::uint8_t kFin = 1, kSyn = 2, kAck = 16;
    struct Case {
        std::uint8_t value, mask;
    };
    for (const auto& [value, mask] :
         {Case{kSyn, kSyn | kAck}, Case{0, kSyn}, Case{kFin | kSyn, kFin | kSyn}, Case{0, 0xff}, Case{0xff, 0xff}}) {
        Rule r = rule(Action::permit);
        r.proto = 6;
        r.tcp_flags = value;
        r.tcp_flags_mask = mask;
        const auto classifier = Classifier::build(list_of({r}), -1);
        for (unsigned flags = 0; flags < 256; ++flags) {
            net::FlowKey key = udp("10.0.0.1", "10.0.0.2", 1, 2);
            key.proto = 6;
            key.tcp_flags = static_cast<std::uint8_t>(flags);
            INFO("flags " << flags << ", rule " << +value << "/" << +mask);
            REQUIRE((classifier->judge(key).rule == 0) == ((flags & mask) == value));
        }
    }
}

// Deny UDP to port 53, permit the rest: a later fragment whose payload looks like port 53 must not be taken for it.
TEST_CASE("acl: later fragments never match a rule on L4 fields", "[acl]") {
    test::ensure_eal();
    Rule no_dns = rule(Action::deny);
    no_dns.proto = 17;
    no_dns.dst_ports = {53, 53};
    const auto classifier = Classifier::build(list_of({no_dns, rule(Action::permit)}), -1);
    struct Case {
        std::uint16_t dst_port;
        std::uint8_t match_flags;
        std::uint32_t rule;
    };
    for (const char* address : {"192.0.2.1", "2001:db8::1"}) {
        for (const auto& c :
             {Case{53, net::kL4Known, 0}, Case{54, net::kL4Known, 1}, Case{53, net::kL4Known | net::kFirstFragment, 0},
              Case{54, net::kL4Known | net::kFirstFragment, 1}, Case{0, net::kLaterFragment, 1}}) {
            net::FlowKey key = udp(address, address, 4000, c.dst_port);
            key.match_flags = c.match_flags;
            INFO(address << " port " << c.dst_port << " flags " << +c.match_flags);
            CHECK(classifier->judge(key).rule == c.rule);
        }
    }
}

TEST_CASE("acl: every kind of L4 key keeps a rule off later fragments, and fragment rules pick them", "[acl]") {
    test::ensure_eal();
    std::vector<Rule> l4(5, rule(Action::deny));
    l4[0].src_ports = {0, 100};
    l4[1].tcp_flags_mask = 2;
    l4[2].icmp_type = 0;
    l4[3].icmp_code = 0;
    l4[4].dst_ports = {0, 65534};
    Rule later = rule(Action::permit);
    later.match_flags = later.match_flags_mask = net::kLaterFragment;
    net::FlowKey key = udp("10.0.0.1", "10.0.0.2", 0, 0);
    for (const Rule& r : l4) {
        const auto classifier = Classifier::build(list_of({r, later}), -1);
        key.match_flags = net::kL4Known;
        CHECK(classifier->judge(key).rule == 0);
        key.match_flags = net::kLaterFragment;
        CHECK(classifier->judge(key).rule == 1);
        key.match_flags = 0;  // neither: a transport whose header isn't parsed
        CHECK(classifier->judge(key).rule == kDefaultRule);
    }
}

TEST_CASE("acl: a rule with several interfaces matches on each of them and on no other", "[acl]") {
    test::ensure_eal();
    Rule r = rule(Action::permit);
    r.in_interfaces = {0, 1, 256, 8191};
    const auto classifier = Classifier::build(list_of({rule(Action::deny), r}), -1);
    Rule other = rule(Action::deny);
    other.proto = 99;
    const auto second = Classifier::build(list_of({other, r}), -1);
    for (const int interface : {0, 1, 2, 255, 256, 257, 8190, 8191, 65535}) {
        net::FlowKey key = udp("10.0.0.1", "10.0.0.2", 1, 2);
        key.in_interface_be = __builtin_bswap16(static_cast<std::uint16_t>(interface));
        const bool listed = interface == 0 || interface == 1 || interface == 256 || interface == 8191;
        INFO("interface " << interface);
        CHECK(classifier->judge(key).rule == 0);
        CHECK(second->judge(key).rule == (listed ? 1 : kDefaultRule));
    }
}

TEST_CASE("acl: a rule with an ingress and an egress matches where both fit", "[acl]") {
    test::ensure_eal();
    Rule r = rule(Action::permit);
    r.in_interfaces = {1, 2};
    r.out_interfaces = {2, 300};
    const auto classifier = Classifier::build(list_of({r}), -1);
    CHECK(classifier->uses_egress());
    for (const char* address : {"10.0.0.1", "2001:db8::1"}) {
        for (const int in : {0, 1, 2, 3, 300}) {
            for (const int out : {0, 1, 2, 3, 44, 300, 512}) {
                net::FlowKey key = udp(address, address, 1, 2);
                key.in_interface_be = __builtin_bswap16(static_cast<std::uint16_t>(in));
                put_out_interface(key, static_cast<std::uint16_t>(out));
                const bool listed = (in == 1 || in == 2) && (out == 2 || out == 300);
                INFO(address << ", interfaces " << in << " and " << out);
                CHECK(classifier->judge(key).rule == (listed ? 0 : kDefaultRule));
            }
        }
    }
}

TEST_CASE("acl: two classifiers of lists with one name live beside each other", "[acl]") {
    test::ensure_eal();
    const auto permit = Classifier::build(list_of({rule(Action::permit)}), -1);
    const auto deny = Classifier::build(list_of({rule(Action::deny)}), -1);
    const auto key = udp("10.0.0.1", "10.0.0.2", 1, 2);
    CHECK(permit->judge(key).action == Action::permit);
    CHECK(deny->judge(key).action == Action::deny);
}

// rte_acl hands out an existing context for a name that is in use, and then both families would fill one trie.
TEST_CASE("acl: the families of one list, and lists built at any time, never share a context", "[acl]") {
    test::ensure_eal();
    const auto four = udp("10.0.0.1", "10.0.0.2", 1, 2);
    const auto six = udp("2001:db8::1", "2001:db8::2", 1, 2);
    std::vector<std::unique_ptr<Classifier>> alive;
    for (unsigned round = 0; round < 6; ++round) {
        // Lists with one family, the other, and both, in turn: the counts of tries by family drift apart and meet
        // again.
        for (const char* prefix : {"10.0.0.0/8", "2001:db8::/32", "2001:db8::/32", "10.0.0.0/8"}) {
            Rule one = rule(Action::permit);
            one.src = net::parse_prefix(prefix).value().prefix;
            alive.push_back(Classifier::build(list_of({one}), -1));
            alive.push_back(Classifier::build(list_of({one, rule(Action::permit)}), -1));
        }
    }
    for (std::size_t i = 0; i < alive.size(); i += 2) {
        const bool v4 = alive[i]->list().rules[0].src->family == net::Family::ip4;
        INFO("list " << i);
        CHECK(alive[i]->judge(four).rule == (v4 ? 0 : kDefaultRule));
        CHECK(alive[i]->judge(six).rule == (v4 ? kDefaultRule : 0));
        CHECK(alive[i + 1]->judge(four).rule == (v4 ? 0u : 1u));
        CHECK(alive[i + 1]->judge(six).rule == (v4 ? 1u : 0u));
    }
}

TEST_CASE("acl: a trie over its bound is refused with the list's name, and memory comes back", "[acl]") {
    test::ensure_eal();
    test::RandomRules random(test::random_engine());
    List list = random.list(30);
    list.name = "edge-in";
    try {
        Classifier::build(list, -1, 4096);
        FAIL("built within 4096 bytes");
    } catch (const base::MachineError& e) {
        CHECK(std::string(e.what()).find("acl edge-in: ") == 0);
        CHECK(std::string(e.what()).find("over 4096 bytes") != std::string::npos);
    }
    const std::size_t once = Classifier::build(list, -1)->memory_bytes();
    for (unsigned i = 0; i < 10; ++i) REQUIRE(Classifier::build(list, -1)->memory_bytes() == once);
}

TEST_CASE("acl: a port range that ends before it begins is refused", "[acl]") {
    test::ensure_eal();
    Rule r = rule(Action::permit);
    r.dst_ports = {443, 80};
    CHECK_THROWS_AS(Classifier::build(list_of({r}), -1), base::MachineError);
}

}  // namespace cachewire::acl
