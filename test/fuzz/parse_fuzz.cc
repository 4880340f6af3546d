// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: any bytes through the parser, held against the slow one. The first byte says whether a right MAC address
// and IPv4 checksum are put in, which random bytes would not find. Run it: build/test/fuzz/parse_fuzz -max_len=400
// CORPUS
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "net/checksum.h"
#include "pipeline/parse_oracle.h"
#include "pipeline/parser.h"

using namespace cachewire;

namespace {

pipeline::Port fuzz_port() {
    pipeline::Port port;
    port.mac = test::kRouterMac;
    port.untagged = {1, 10};
    port.tagged = {{100, 0, {2, 20}}, {100, 7, {3, 30}}, {101, 0, {4, pipeline::kNoInterface}}};
    port.wildcards = {{200, 0, {6, 60}}};
    port.by_vlan = pipeline::attachments_by_vlan(port);
    return port;
}

void help(std::uint8_t how, test::Bytes& frame) {
    if ((how & 1) != 0 && frame.size() >= 6) std::memcpy(frame.data(), test::kRouterMac.bytes.data(), 6);
    if ((how & 2) == 0) return;
    const std::size_t ip = (how & 4) != 0 ? 18 : 14;
    if (frame.size() < ip + 20) return;
    const std::size_t header = (frame[ip] & 15u) * 4u;
    if (header < 20 || ip + header > frame.size()) return;
    frame[ip + 10] = frame[ip + 11] = 0;
    const std::uint16_t sum = net::checksum(std::span(frame).subspan(ip, header));
    std::memcpy(&frame[ip + 10], &sum, 2);
}

bool same(const pipeline::Parsed& parsed, const net::FlowKey& key, const test::OracleResult& slow) {
    return parsed.in_interface == slow.in_interface && parsed.l3_offset == slow.l3_offset &&
           parsed.l3_length == slow.l3_length && parsed.l4_offset == slow.l4_offset && parsed.ttl == slow.ttl &&
           std::memcmp(&key, &slow.key, sizeof key) == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const pipeline::Port port = fuzz_port();
    if (size == 0) return 0;
    test::Bytes frame(data + 1, data + size);
    help(data[0], frame);
    pipeline::Parsed parsed;
    net::FlowKey key;
    const pipeline::Frame view{frame.data(), static_cast<std::uint32_t>(frame.size())};
    const auto drop = pipeline::parse_packet(view, port, net::HashSeed{}, parsed, key);
    const test::OracleResult slow = test::parse_slowly(frame, port);
    if (drop != slow.drop || parsed.tenant != slow.tenant || (!drop && !same(parsed, key, slow))) {
        std::fprintf(stderr, "the parsers differ\n");
        std::abort();
    }
    return 0;
}
