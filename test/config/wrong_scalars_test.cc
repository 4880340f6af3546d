// SPDX-License-Identifier: BSD-3-Clause
#include "support/catch.h"
#include "wrong_files.h"

namespace {

using cachewire::test::kPort;
using cachewire::test::WrongFile;

// Text behind the prefix, and every error that it has, in order.
const WrongFile kWrongScalars[] = {
    {"", "version: 1\nports: [{name: wan, device: net_null0, mtu: 010}]\n",
     "f.yaml:2:45: error: ports[0].mtu: '010' has a leading zero, octal to some readers; allowed: 68 to 65535\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mtu: 0800}]\n",
     "f.yaml:2:45: error: ports[0].mtu: '0800' has a leading zero, octal to some readers; allowed: 68 to 65535\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, rxd: 1e3}]\n",
     "f.yaml:2:45: error: ports[0].rxd: '1e3' is not a whole number; allowed: 32 to 32768\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, rxd: 0x10}]\n",
     "f.yaml:2:45: error: ports[0].rxd: '0x10' is not decimal; allowed: 32 to 32768\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, rxd: 1_000}]\n",
     "f.yaml:2:45: error: ports[0].rxd: '1_000' has an underscore in a number; allowed: 32 to 32768\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mtu: -1}]\n",
     "f.yaml:2:45: error: ports[0].mtu: '-1' has a sign; allowed: 68 to 65535\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mtu: 1500.0}]\n",
     "f.yaml:2:45: error: ports[0].mtu: '1500.0' is not a whole number; allowed: 68 to 65535\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mtu: '1500'}]\n",
     "f.yaml:2:45: error: ports[0].mtu: '1500' is quoted and so is text, not a number; allowed: 68 to 65535\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mtu: many}]\n",
     "f.yaml:2:45: error: ports[0].mtu: 'many' is not a number; allowed: 68 to 65535\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mtu: 67}]\n",
     "f.yaml:2:45: error: ports[0].mtu: '67' is out of range; allowed: 68 to 65535\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mtu: 99999999999999999999}]\n",
     "f.yaml:2:45: error: ports[0].mtu: '99999999999999999999' is out of range; allowed: 68 to 65535\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mtu:}]\n",
     "f.yaml:2:40: error: ports[0].mtu: has no value; allowed: 68 to 65535\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mtu: [1500]}]\n",
     "f.yaml:2:45: error: ports[0].mtu: is a list; allowed: 68 to 65535\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, rxq: none}]\n",
     "f.yaml:2:45: error: ports[0].rxq: 'none' is not a number; allowed: auto or 1 to 1024\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, promiscuous: yes}]\n",
     "f.yaml:2:53: error: ports[0].promiscuous: 'yes' is not a boolean; allowed: true | false\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, promiscuous: off}]\n",
     "f.yaml:2:53: error: ports[0].promiscuous: 'off' is not a boolean; allowed: true | false\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, promiscuous: 'true'}]\n",
     "f.yaml:2:53: error: ports[0].promiscuous: 'true' is not a boolean but quoted text; allowed: true | false\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, promiscuous: 1}]\n",
     "f.yaml:2:53: error: ports[0].promiscuous: '1' is not a boolean; allowed: true | false\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mac: 12:34:56:78}]\n",
     "f.yaml:2:45: error: ports[0].mac: '12:34:56:78' is not a MAC address; allowed: auto, or a unicast MAC address "
     "such as \"02:00:00:00:00:01\"\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mac: 754974000}]\n",
     "f.yaml:2:45: error: ports[0].mac: '754974000' is not a MAC address; allowed: auto, or a unicast MAC address such "
     "as \"02:00:00:00:00:01\"\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mac: '01:00:5e:00:00:01'}]\n",
     "f.yaml:2:45: error: ports[0].mac: '01:00:5e:00:00:01' is a multicast address; allowed: auto, or a unicast MAC "
     "address such as \"02:00:00:00:00:01\"\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mac: '00:00:00:00:00:00'}]\n",
     "f.yaml:2:45: error: ports[0].mac: '00:00:00:00:00:00' is all zeroes; allowed: auto, or a unicast MAC address "
     "such as \"02:00:00:00:00:01\"\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, mtu: 1400, mtu: 1500}]\n",
     "f.yaml:2:51: error: ports[0].mtu: this key stands twice\n"},
    {"", "version: 1\nports: [{name: Wan, device: net_null0}]\n",
     "f.yaml:2:16: error: ports[0].name: 'Wan' is not a name; allowed: [a-z][a-z0-9_.-]{0,30}\n"},
    {"", "version: 1\nports: [{name: 2001:db8::1, device: net_null0}]\n",
     "f.yaml:2:16: error: ports[0].name: '2001:db8::1' is not a name; allowed: [a-z][a-z0-9_.-]{0,30}\n"},
    {"", "version: 1\nports: [{name: ~, device: net_null0}]\n",
     "f.yaml:2:10: error: ports[0].name: has no value; allowed: [a-z][a-z0-9_.-]{0,30}\n"},
    {"", "version: 1\nports: [{device: net_null0}]\n", "f.yaml:2:9: error: ports[0].name: this key is missing\n"},
    {"", "version: 1\nports: [{name: wan}]\n", "f.yaml:2:9: error: ports[0].device: this key is missing\n"},
    {"", "version: 1\nports: [{name: wan, device: eth0}]\n",
     "f.yaml:2:29: error: ports[0].device: 'eth0' is not a device; allowed: a Linux interface such as \"kernel:eth1\", "
     "a "
     "PCI address such as \"0000:03:00.0\", or a vdev such as \"net_tap0,iface=cw0\"\n"},
    {"", "version: 1\nports: [{name: wan, device: 'net_tap0,'}]\n",
     "f.yaml:2:29: error: ports[0].device: 'net_tap0,' is not a device; allowed: a Linux interface such as "
     "\"kernel:eth1\", a PCI address such as \"0000:03:00.0\", or a vdev such as \"net_tap0,iface=cw0\"\n"},
    {"", "version: 1\nports: [{name: wan, device: net_Tap0}]\n",
     "f.yaml:2:29: error: ports[0].device: 'net_Tap0' is not a device; allowed: a Linux interface such as "
     "\"kernel:eth1\", a PCI address such as \"0000:03:00.0\", or a vdev such as \"net_tap0,iface=cw0\"\n"},
    {"", "version: 1\nports: [{name: wan, device: '0000:03:3f.0'}]\n",
     "f.yaml:2:29: error: ports[0].device: '0000:03:3f.0' is not a device; allowed: a Linux interface such as "
     "\"kernel:eth1\", a PCI address such as \"0000:03:00.0\", or a vdev such as \"net_tap0,iface=cw0\"\n"},
    {"", "version: 1\nports: [{name: wan, device: net_tap0,iface=cw0}]\n",
     "f.yaml:2:38: error: ports[0].iface=cw0: a key without a value; quote the value: it contains a comma\n"},
    // What the start would refuse and can be known before.
    {"", "version: 1\nports: [{name: a, mtu: 2027, device: net_null0}]\n",
     "f.yaml:2:24: error: ports[0].mtu: frames of 2027 bytes and 22 of headers go over one buffer, and net_null does "
     "not spread "
     "them; allowed: up to 2026, or `memory: mbuf_size` of at least 2177\n"},
    // What misses a space, or has '=', is one word to YAML.
    {"", "version: 1\nports: [{name:a, device: net_null0}]\n",
     "f.yaml:2:9: error: ports[0].name: this key is missing\n"
     "f.yaml:2:10: error: ports[0].name:a: a key without a value; write 'name: a', with a space after the colon\n"},
    {"", "version: 1\nports: [{name = a, device: net_null0}]\n",
     "f.yaml:2:9: error: ports[0].name: this key is missing\n"
     "f.yaml:2:10: error: ports[0].name = a: a key without a value; write 'name: a', with a space after the colon\n"},
    {"", "version: 1\nports: [{name: a, device: net_tap0,mac=fixed}]\n",
     "f.yaml:2:36: error: ports[0].mac=fixed: a key without a value; write 'mac: fixed', with a space after the colon, "
     "or quote "
     "the value: it contains a comma\n"},
    {"", "version: 1\nports:\n  - {name: wan, device: '0000:03:00.0'}\n  - {name: lan, device: '03:00.0'}\n",
     "f.yaml:4:25: error: ports[1].device: device '0000:03:00.0' is port 'wan' already\n"},
    {"",
     "version: 1\nports:\n  - {name: wan, device: 'net_tap0,iface=a'}\n  - {name: lan, device: 'net_tap0,iface=b'}\n",
     "f.yaml:4:25: error: ports[1].device: device 'net_tap0' is port 'wan' already\n"},
    {"", "version: 1\nports:\n  - {name: wan, device: net_null0}\n  - {name: wan, device: net_null1}\n",
     "f.yaml:4:12: error: ports[1].name: a second port named 'wan'; the first stands in line 3\n"},
    {kPort, "eal: -l 0-1\n", "f.yaml:3:6: error: eal: is a single value; allowed: a list\n"},
    {kPort, "eal: [-m, 512]\n", "f.yaml:3:11: error: eal[1]: '512' is not text; allowed: \"512\" in quotes\n"},
    {kPort, "eal: ['']\n", "f.yaml:3:7: error: eal[0]: an EAL argument is empty; allowed: text\n"},
    {kPort, "workers: {lcores: 0-}\n",
     "f.yaml:3:19: error: workers.lcores: '' is not a number; allowed: auto, or a list such as \"1-3,5\"\n"},
    {kPort, "workers: {lcores: '3-1'}\n",
     "f.yaml:3:19: error: workers.lcores: '3-1' ends before it begins; allowed: auto, or a list such as \"1-3,5\"\n"},
    {kPort, "workers: {lcores: '1,1'}\n",
     "f.yaml:3:19: error: workers.lcores: lcore 1 stands twice; allowed: auto, or a list such as \"1-3,5\"\n"},
    {kPort, "workers: {lcores: 2000}\n",
     "f.yaml:3:19: error: workers.lcores: lcore 2000 is out of range; allowed: 0 to 1023; allowed: auto, or a list "
     "such as \"1-3,5\"\n"},
    {kPort, "memory: {mbufs: 1}\n",
     "f.yaml:3:17: error: memory.mbufs: '1' is out of range; allowed: auto or 512 to 67108864\n"},
    {kPort, "memory: {mbufs: 512, mempool_cache: 512}\n",
     "f.yaml:3:9: error: memory: a mempool_cache of 512 is too large for 512 mbufs; allowed: two thirds of mbufs\n"},
    {kPort, "memory: {mbuf_size: 100}\n",
     "f.yaml:3:21: error: memory.mbuf_size: '100' is out of range; allowed: 1536 to 65535\n"},
    {kPort, "pipeline: {burst: 0}\n", "f.yaml:3:19: error: pipeline.burst: '0' is out of range; allowed: 1 to 256\n"},
    {kPort, "pipeline: {memoize: sometimes}\n",
     "f.yaml:3:21: error: pipeline.memoize: 'sometimes' is not a boolean; allowed: true | false\n"},
    {kPort, "pipeline: {shadow_check: 1%}\n",
     "f.yaml:3:26: error: pipeline.shadow_check: '1%' is not a number; allowed: 0 to 1000000000\n"},
    {kPort, "sessions: {on_policy_change: forget}\n",
     "f.yaml:3:30: error: sessions.on_policy_change: 'forget' is not known; allowed: revalidate | keep | kill\n"},
    {kPort, "pipeline: {burst: 257}\n",
     "f.yaml:3:19: error: pipeline.burst: '257' is out of range; allowed: 1 to 256\n"},
    {kPort, "pipeline: {prefetch: {session: 0}}\n",
     "f.yaml:3:32: error: pipeline.prefetch.session: '0' is out of range; allowed: auto or 1 to 256\n"},
    {kPort, "pipeline: {prefetch: 8}\n",
     "f.yaml:3:22: error: pipeline.prefetch: is a single value; allowed: a map of keys\n"},
    {kPort, "sessions: {capacity: 0}\n",
     "f.yaml:3:22: error: sessions.capacity: '0' is out of range; allowed: 1 to 268435456\n"},
    {kPort, "sessions: {capacity: 1M}\n",
     "f.yaml:3:22: error: sessions.capacity: '1M' is not a number; allowed: 1 to 268435456\n"},
    {kPort, "qos: {policers: [{name: p, rate: 100}]}\n",
     "f.yaml:3:34: error: qos.policers[0].rate: '100' has no unit; allowed: 8kbit to 1Tbit, in bit, kbit, Mbit, Gbit "
     "or Tbit\n"},
    {kPort, "qos: {policers: [{name: p, rate: 100mbit}]}\n",
     "f.yaml:3:34: error: qos.policers[0].rate: '100mbit' has the unknown unit 'mbit'; allowed: 8kbit to 1Tbit, in "
     "bit, kbit, Mbit, Gbit or Tbit\n"},
    {kPort, "qos: {policers: [{name: p, rate: fast}]}\n",
     "f.yaml:3:34: error: qos.policers[0].rate: 'fast' is not a number with a unit; allowed: 8kbit to 1Tbit, in bit, "
     "kbit, Mbit, Gbit or Tbit\n"},
    {kPort, "qos: {policers: [{name: p, rate: 0Mbit}]}\n",
     "f.yaml:3:34: error: qos.policers[0].rate: '0Mbit' is out of range; allowed: 8kbit to 1Tbit, in bit, kbit, Mbit, "
     "Gbit or Tbit\n"},
    {kPort, "qos: {policers: [{name: p, rate: 1.5bit}]}\n",
     "f.yaml:3:34: error: qos.policers[0].rate: '1.5bit' is not a whole number of bit; allowed: 8kbit to 1Tbit, in "
     "bit, kbit, Mbit, Gbit or Tbit\n"},
    {kPort, "qos: {policers: [{name: p, rate: 010Mbit}]}\n",
     "f.yaml:3:34: error: qos.policers[0].rate: '010Mbit' is not a number with a unit; allowed: 8kbit to 1Tbit, in "
     "bit, kbit, Mbit, Gbit or Tbit\n"},
    {kPort, "qos: {policers: [{name: p, rate: 1Mbit, burst: 65536}]}\n",
     "f.yaml:3:48: error: qos.policers[0].burst: '65536' has no unit; allowed: auto, or 64B to 4GiB, in B, KiB, MiB, "
     "GiB, kB, MB or GB\n"},
    {kPort, "qos: {policers: [{name: p, rate: 100Gbit, burst: 2KiB}]}\n",
     "f.yaml:3:50: error: qos.policers[0].burst: too short to be metered at this rate; allowed: auto, or at least "
     "2500B\n"},
    {kPort, "qos: {policers: [{name: p, rate: 1Mbit, burst: 1B}]}\n",
     "f.yaml:3:48: error: qos.policers[0].burst: '1B' is out of range; allowed: auto, or 64B to 4GiB, in B, KiB, MiB, "
     "GiB, kB, MB or GB\n"},
    {kPort, "qos: {policers: [{name: p, rate: 1Mbit, accounting: l4}]}\n",
     "f.yaml:3:53: error: qos.policers[0].accounting: 'l4' is not known; allowed: l1 | l2 | l3\n"},
    {kPort, "qos: {policers: [{name: p, type: single}]}\n",
     "f.yaml:3:18: error: qos.policers[0].rate: this key is missing\n"},
};

}  // namespace

TEST_CASE("config: scalars are what their key says, never what YAML guesses", "[config]") {
    for (const WrongFile& wrong : kWrongScalars) {
        CAPTURE(wrong.text);
        CHECK(cachewire::test::errors_of(wrong) == wrong.errors);
    }
}
