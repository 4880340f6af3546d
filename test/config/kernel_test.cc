// SPDX-License-Identifier: BSD-3-Clause
#include "support/catch.h"
#include "wrong_files.h"

namespace {

using cachewire::test::kPort;
using cachewire::test::WrongFile;

constexpr const char* kTwoNulls = "version: 1\nports: [{name: a, device: net_null0}, {name: b, device: net_null1}]\n";

const WrongFile kWrongKernels[] = {
    {kPort, "interfaces: [{port: wan, kernel: {ifname: cw-lan}}]\n",
     "f.yaml:3:34: error: interfaces[0].kernel.netns: this key is missing\n"},
    {kPort, "interfaces: [{port: wan, kernel: {ifname: a-name-that-is-too-long, netns: ../a}}]\n",
     "f.yaml:3:43: error: interfaces[0].kernel.ifname: 'a-name-that-is-too-long' is no name; allowed: up to 15 "
     "letters, "
     "digits and ._-\n"
     "f.yaml:3:75: error: interfaces[0].kernel.netns: '../a' is no name; allowed: up to 64 letters, digits and ._-\n"},
    {kTwoNulls, "interfaces: [{port: a, kernel: {ifname: x, netns: n}}, {port: b, kernel: {ifname: x, netns: n}}]\n",
     "f.yaml:3:13: error: interfaces: interfaces 'a' and 'b' have twins of one name, x in netns 'n'\n"},
    {kTwoNulls,
     "tenants: [{name: s, id: 1, match: [{port: a}]}, {name: t, id: 2, match: [{port: b}]}]\n"
     "interfaces: [{port: a, kernel: {ifname: x, netns: n}}, {port: b, kernel: {ifname: y, netns: n}}]\n",
     "f.yaml:4:13: error: interfaces: interfaces 'a' and 'b' are of two tenants, and both have their twin in netns "
     "'n'; "
     "allowed: one netns a tenant\n"},
    {kPort, "kernel: {punt: {bgp: 1Mbit, ospf: 0pps, bfd: 2Mpps, other: fast, ssh: 1pps}}\n",
     "f.yaml:3:22: error: kernel.punt.bgp: '1Mbit' is no rate of packets; allowed: 1pps to 1Mpps\n"
     "f.yaml:3:35: error: kernel.punt.ospf: '0pps' is no rate of packets; allowed: 1pps to 1Mpps\n"
     "f.yaml:3:46: error: kernel.punt.bfd: '2Mpps' is no rate of packets; allowed: 1pps to 1Mpps\n"
     "f.yaml:3:60: error: kernel.punt.other: 'fast' is not a number with a unit; allowed: 1pps to 1Mpps\n"
     "f.yaml:3:66: error: kernel.punt.ssh: unknown key; allowed: bgp, ospf, bfd, other, description\n"},
};

}  // namespace

TEST_CASE("config: twins without a place, or with another's, are refused", "[config]") {
    for (const WrongFile& wrong : kWrongKernels) {
        CAPTURE(wrong.text);
        CHECK(cachewire::test::errors_of(wrong) == wrong.errors);
    }
}

TEST_CASE("config: a twin and its rates", "[config]") {
    const auto loaded = cachewire::config::load_text(
        std::string(kPort) +
            "interfaces: [{port: wan, kernel: {ifname: cw-lan, netns: edge}}]\nkernel: {punt: {bgp: 10kpps}}\n",
        "f.yaml");
    REQUIRE(loaded.config);
    CHECK(loaded.config->interfaces[0].kernel == cachewire::config::KernelTwin{"cw-lan", "edge"});
    CHECK(loaded.config->kernel_punt.bgp_pps == 10000);
    CHECK(loaded.config->kernel_punt.ospf_pps == 1000);
    CHECK(loaded.config->kernel_punt.bfd_pps == 2000);
    CHECK(loaded.config->kernel_punt.other_pps == 100);
}
