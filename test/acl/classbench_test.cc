// SPDX-License-Identifier: BSD-3-Clause
// Public rule sets and traces with precomputed first matches, where they are present.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "acl/classifier.h"
#include "acl/judge_all.h"
#include "acl/linear.h"
#include "support/catch.h"
#include "support/eal.h"
#include "support/skip.h"

namespace cachewire::acl {

namespace {

const std::filesystem::path kFolder = std::filesystem::path(CACHEWIRE_SHARED) / "cases" / "acl";

// "@SRC DST LO : HI LO : HI PROTO/MASK [FLAGS/MASK]"; the flags column is not read, as in the expected results.
Rule parse_rule(const std::string& line) {
    std::istringstream in(line.substr(1));
    std::string src, dst, colon, proto;
    unsigned src_first, src_last, dst_first, dst_last;
    in >> src >> dst >> src_first >> colon >> src_last >> dst_first >> colon >> dst_last >> proto;
    REQUIRE(!in.fail());
    Rule rule;
    rule.action = Action::permit;
    rule.src = net::parse_prefix(src).value().prefix;
    rule.dst = net::parse_prefix(dst).value().prefix;
    rule.src_ports = {static_cast<std::uint16_t>(src_first), static_cast<std::uint16_t>(src_last)};
    rule.dst_ports = {static_cast<std::uint16_t>(dst_first), static_cast<std::uint16_t>(dst_last)};
    const unsigned long value = std::stoul(proto, nullptr, 16);
    const unsigned long mask = std::stoul(proto.substr(proto.find('/') + 1), nullptr, 16);
    REQUIRE((mask == 0 || mask == 0xff));
    if (mask != 0) rule.proto = static_cast<std::uint8_t>(value);
    return rule;
}

List read_rules(const std::filesystem::path& path) {
    List list;
    list.name = path.filename().string();
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!line.empty() && line[0] == '@') list.rules.push_back(parse_rule(line));
    }
    REQUIRE(!list.rules.empty());
    return list;
}

// "SRC DST SPORT DPORT PROTO ...": IPv4 addresses as decimal numbers, IPv6 ones as text.
net::Address parse_trace_address(const std::string& text) {
    if (text.find(':') != std::string::npos) return net::parse_address(text).value().address;
    return net::Address::from_v4(static_cast<std::uint32_t>(std::stoul(text)));
}

std::vector<net::FlowKey> read_trace(const std::filesystem::path& path) {
    std::vector<net::FlowKey> keys;
    std::ifstream file(path);
    std::string src, dst;
    unsigned src_port, dst_port, proto;
    for (std::string line; std::getline(file, line);) {
        std::istringstream in(line);
        if (!(in >> src >> dst >> src_port >> dst_port >> proto)) continue;
        net::FlowKey key;
        key.src = parse_trace_address(src);
        key.dst = parse_trace_address(dst);
        key.src_port_be = __builtin_bswap16(static_cast<std::uint16_t>(src_port));
        key.dst_port_be = __builtin_bswap16(static_cast<std::uint16_t>(dst_port));
        key.proto = static_cast<std::uint8_t>(proto);
        key.match_flags = net::kL4Known;
        keys.push_back(key);
    }
    return keys;
}

std::vector<std::uint32_t> read_expected(const std::filesystem::path& path) {
    std::vector<std::uint32_t> expected;
    std::ifstream file(path);
    for (long index; file >> index;) expected.push_back(index < 0 ? kDefaultRule : static_cast<std::uint32_t>(index));
    return expected;
}

struct Set {
    const char* rules;
    const char* trace;
};
constexpr Set kSets[] = {{"acl_1k", "acl_1k_trace"}, {"acl_1k.v6", "acl_1k_trace.v6"}, {"fw_1k", "fw_1k_trace"}};

bool absent() {
    if (std::filesystem::exists(kFolder)) return false;
    test::say_skipped("no rule sets in ../shared/cases/acl");
    return true;
}

}  // namespace

TEST_CASE("acl: ClassBench traces get the first match that is on record", "[acl][shared]") {
    if (absent()) return;
    test::ensure_eal();
    for (const Set& set : kSets) {
        const auto classifier = Classifier::build(read_rules(kFolder / set.rules), -1);
        const auto keys = read_trace(kFolder / set.trace);
        const auto expected = read_expected(kFolder / (std::string(set.trace) + ".expected"));
        REQUIRE(keys.size() == expected.size());
        const auto verdicts = test::judge_all(*classifier, keys);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            INFO(set.trace << " line " << i + 1);
            REQUIRE(verdicts[i].rule == expected[i]);
            if (i % 16 == 0) REQUIRE(classify_linear(classifier->list(), keys[i]).rule == expected[i]);
        }
    }
}

TEST_CASE("acl: ten thousand ClassBench rules build, and answer as the linear walk does", "[.][slow][acl][shared]") {
    if (absent()) return;
    test::ensure_eal();
    for (const char* rules : {"acl1_10k", "ipc1_10k", "fw1_10k"}) {
        const auto classifier = Classifier::build(read_rules(kFolder / rules), -1);
        INFO(rules << ": " << classifier->memory_bytes() << " bytes, " << classifier->build_time_us() << " us");
        // The first address, port and protocol of every 23rd rule: a header that at least that rule matches.
        for (std::size_t i = 0; i < classifier->list().rules.size(); i += 23) {
            const Rule& rule = classifier->list().rules[i];
            net::FlowKey key;
            key.src = rule.src->address;
            key.dst = rule.dst->address;
            key.src_port_be = __builtin_bswap16(rule.src_ports.first);
            key.dst_port_be = __builtin_bswap16(rule.dst_ports.first);
            key.proto = rule.proto.value_or(6);
            key.match_flags = net::kL4Known;
            const Verdict verdict = classifier->judge(key);
            REQUIRE(verdict.rule == classify_linear(classifier->list(), key).rule);
            REQUIRE(verdict.rule <= i);
        }
    }
}

}  // namespace cachewire::acl
