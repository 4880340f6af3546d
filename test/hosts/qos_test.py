#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Rates and marks as hosts see them: a policed tenant beside one that is not, one rate over two workers, DSCP and VLAN priorities."""
import json
import os
import subprocess
import sys
import time

from hosts import ADDRESSES, HOST_MAC, FourHosts, Taps, harness

RATE = 50_000_000

# Sends N datagrams with a TOS: `mark ADDRESS PORT TOS N`.
MARK = """
import socket, sys, time
address, port, tos, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
six = ':' in address
with socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM) as out:
    out.setsockopt(socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP, socket.IPV6_TCLASS if six else socket.IP_TOS, tos)
    for n in range(count):
        out.sendto(bytes(1000), (address, port))
        time.sleep(0.002)
"""
# Prints its port, then the TOS of each datagram that comes, until none has come for two seconds after the first.
SEE = """
import socket, struct, sys
six = ':' in sys.argv[1]
with socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM) as into:
    into.setsockopt(socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP, socket.IPV6_RECVTCLASS if six else socket.IP_RECVTOS, 1)
    into.bind((sys.argv[1], 0))
    print(into.getsockname()[1], flush=True)
    into.settimeout(30)
    try:
        while True:
            _, extra, _, _ = into.recvmsg(2048, 256)
            print(extra[0][2][0], flush=True)
            into.settimeout(2)
    except TimeoutError:
        pass
"""
# Prints the VLAN priority and the TOS of each IPv4 frame that comes in by an interface, until none has come for two seconds.
TAGS = """
import socket, struct, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as wire:
    wire.bind((sys.argv[1], 3))
    wire.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA
    print("ready", flush=True)
    wire.settimeout(30)
    try:
        while True:
            frame, extra, _, address = wire.recvmsg(2048, 256)
            if address[2] == 4:  # outgoing
                continue
            tci = struct.unpack("IIIHHHH", extra[0][2][:20])[5] if extra else 0
            at = 12
            if frame[at:at + 2] == b"\\x81\\x00":
                tci, at = struct.unpack("!H", frame[14:16])[0], 16
            if frame[at:at + 2] == b"\\x08\\x00" and frame[at + 11] == 17:
                print(tci & 0xfff, tci >> 13, frame[at + 3], flush=True)
                wire.settimeout(2)
    except TimeoutError:
        pass
"""


class Rates(FourHosts):
    """red is policed, blue is not; both send at once. The bucket holds a third of a second, because a busy machine lets cachewire wait, and
    is empty when the measurement begins."""

    tools = ("iperf3",)

    @classmethod
    def config(cls):
        config = super().config()
        config["tenants"][0]["policer"] = {"in": "half"}
        config["qos"] = {"policers": [{"name": "half", "type": "single", "rate": f"{RATE}bit", "burst": "2MiB"}]}
        return config

    def load(self, tenant, bits, flows):
        """iperf3 from the tenant's first host to its second, once it sends: on a busy machine its streams may not come about."""
        said = []
        for _ in range(5):
            server = self.inside(2 * tenant + 1, "iperf3", "-s", "-1", "--forceflush")
            self.addCleanup(server.kill)
            for line in server.stdout:
                if "listening" in line:
                    break
            before = self.received(2 * tenant + 1)[1]
            client = self.inside(2 * tenant, "iperf3", "-J", "-u", "-c", ADDRESSES[1][0], "-b", str(bits // flows), "-P", str(flows), "-l", "1400", "-t", "12")
            self.addCleanup(client.kill)
            give_up = time.monotonic() + 10
            while client.poll() is None and time.monotonic() < give_up:
                if self.received(2 * tenant + 1)[1] > before + 1000000:
                    return client
                time.sleep(0.1)
            client.kill()
            server.kill()
            said.append(client.communicate()[0][-300:])
        self.fail(f"iperf3 did not begin: {said}")

    def received(self, port):
        """When, and how many bytes of frames the host behind the port has received by then."""
        shown = subprocess.run(["ip", "-n", self.spaces[port], "-s", "-j", "link", "show", self.names[port]], capture_output=True, text=True, check=True)
        return time.monotonic(), json.loads(shown.stdout)[0]["stats64"]["rx"]["bytes"]

    def rates(self, ports, seconds):
        before = [self.received(port) for port in ports]
        time.sleep(seconds)
        after = [self.received(port) for port in ports]
        return [(b1 - b0) * 8 / (t1 - t0) for (t0, b0), (t1, b1) in zip(before, after)]

    def test_a_policed_tenant_has_its_rate_and_the_other_is_not_disturbed(self):
        for flows in (1, 4):
            with self.subTest(flows=flows):
                red, blue = self.load(0, 2 * RATE, flows), self.load(1, RATE // 2, 1)
                time.sleep(2)
                before = self.cachewire.ask("/cachewire/qos/stats,half")["0"]
                policed, undisturbed = self.rates((1, 3), 5)
                after = self.cachewire.ask("/cachewire/qos/stats,half")["0"]
                self.output(red)
                total = json.loads(self.output(blue))["end"]["sum"]
                self.assertLess(abs(policed - RATE), 0.03 * RATE)
                self.assertLess(abs(undisturbed - RATE / 2 * 1442 / 1400), 0.03 * RATE / 2)
                # A busy machine loses a few in its own queues.
                self.assertLess(total["lost_packets"], 0.02 * total["packets"])
                self.assertEqual(self.cachewire.ask("/cachewire/drops,blue")["policer"], 0)
                self.assertGreater(after["violate_packets"] - before["violate_packets"], 10000)
                self.assertEqual((after["attached_to"], after["name"], after["rate_bps"]), ("tenant", "red", RATE))


class Sessions(Rates):
    """Each of red's sessions has the rate for itself, so n of them have n times as much."""

    @classmethod
    def config(cls):
        config = super().config()
        config["qos"]["policers"][0].update(rate=f"{RATE // 4}bit", burst="512KiB", per_session=True)
        return config

    def test_a_policed_tenant_has_its_rate_and_the_other_is_not_disturbed(self):
        for flows in (1, 2, 4):
            with self.subTest(flows=flows):
                load = self.load(0, flows * RATE // 2, flows)
                time.sleep(2)
                policed, = self.rates((1,), 5)
                self.output(load)
                self.assertLess(abs(policed - flows * RATE / 4), 0.03 * flows * RATE / 4)
        stats = self.cachewire.ask("/cachewire/qos/stats,half")["0"]
        self.assertEqual((stats["per_session"], stats["rate_bps"]), (1, RATE // 4))


class TwoWorkers(Rates):
    """The same rate with the flows spread over two workers."""

    cpus = sorted(os.sched_getaffinity(0))
    lcores = f"0@{cpus[0]},(1-2)@{cpus[-1]}"


class Marks(Taps):
    @classmethod
    def config(cls):
        config = super().config()
        config["qos"] = {"policers": [{"name": "mark", "type": "trtcm_2698", "cir": "8kbit", "pir": "8kbit", "cbs": "5200B", "pbs": "16000B", "yellow": {"dscp": "af12"}, "red": "drop"}],
                         "classes": [{"name": "gold", "dscp": "ef", "pcp": 5}, {"name": "ruled", "dscp": "cs3", "pcp": 3}]}
        config["acl"][0]["rules"] = [{"name": "marked", "action": "permit", "in": "p0", "proto": "udp", "dscp": "af11", "policer": "mark"},
                                     {"name": "classed", "action": "permit", "in": "p0", "proto": "udp", "dscp": "cs1", "class": "ruled"}] + config["acl"][0]["rules"]
        config["interfaces"].append({"name": "tagged", "port": "p1", "vlan": 300, "tenant": "hosts", "addresses": ["10.79.0.1/24"]})
        config["tenants"][0]["match"].append({"port": "p1", "vlan": 300})
        config["neighbors"] = [{"tenant": "hosts", "address": "10.79.0.2", "mac": HOST_MAC[1]}]
        return config

    def marked(self, address, tos, count):
        see = self.inside(1, sys.executable, "-c", SEE, address)
        self.addCleanup(see.kill)
        port = see.stdout.readline().strip()
        self.output(self.inside(0, sys.executable, "-c", MARK, address, port, str(tos), str(count)))
        return [int(line) for line in self.output(see).split()]

    def test_what_exceeds_arrives_with_another_dscp(self):
        # Four frames of 1042 bytes are green, eleven more yellow, the others red but for one a second that the rate brings.
        got = self.marked(ADDRESSES[1][0], 10 << 2 | 2, 30)
        self.assertEqual(got[:4], [10 << 2 | 2] * 4, got)
        self.assertEqual(set(got), {10 << 2 | 2, 12 << 2 | 2}, got)
        self.assertGreaterEqual(got.count(12 << 2 | 2), 8, got)
        self.assertTrue(15 <= len(got) < 30, got)
        stats = self.cachewire.ask("/cachewire/qos/stats,mark")["0"]
        self.assertEqual((stats["attached_to"], stats["name"]), ("rule", "stateful/marked"))
        self.assertEqual(stats["conform_packets"] + stats["exceed_packets"], len(got))
        self.assertEqual(stats["violate_packets"], 30 - len(got))

    def test_a_rules_class_marks_both_families(self):
        for address in ADDRESSES[1]:
            with self.subTest(address=address):
                self.assertEqual(self.marked(address, 8 << 2 | 1, 5), [24 << 2 | 1] * 5)
                self.assertEqual(self.marked(address, 46 << 2, 5), [46 << 2] * 5)
                self.assertEqual(self.marked(address, 26 << 2, 5), [26 << 2] * 5)

    def test_a_dscp_becomes_a_vlan_priority(self):
        for tos, expected in ((46 << 2 | 1, ["300", "5", str(46 << 2 | 1)]), (8 << 2, ["300", "3", str(24 << 2)]), (0, ["300", "0", "0"])):
            with self.subTest(tos=tos):
                see = self.inside(1, sys.executable, "-c", TAGS, self.names[1])
                self.addCleanup(see.kill)
                self.assertEqual(see.stdout.readline().strip(), "ready")
                self.output(self.inside(0, sys.executable, "-c", MARK, "10.79.0.2", "9", str(tos), "5"))
                seen = [line.split() for line in self.output(see).splitlines()]
                self.assertEqual([line for line in seen if line[0] == "300"], [expected] * 5, seen)


if __name__ == "__main__":
    harness.main()
