#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A transparent pair between two hosts of one subnet, who find each other through it: ping, TCP, a list, and what is no IP. What leaves
is what came in, byte for byte."""
import shutil
import subprocess
import sys
import time

import hosts
from hosts import HOST_MAC, Taps, Veths, harness, ip, packets
from vlan_test import SEND

ADDRESSES = [("10.77.0.2", "2001:db8:77::2"), ("10.77.0.3", "2001:db8:77::3")]
CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2)
    print("connected")
except socket.timeout: print("silence")
except ConnectionRefusedError: print("refused")
"""
GROUP = "01:00:5e:00:00:05"


def odd_frames(n):
    """What a router would not pass on, drop or rewrite."""
    src, dst = HOST_MAC[0], HOST_MAC[1]
    udp = packets.udp_packet("10.77.0.2", "10.77.0.3", sport=n, dport=9, payload=bytes([n]) * n, ttl=1)
    return [
        packets.ether(dst, src, udp, vlans=[(0x8100, 100)], pad_to=60, pad=b"\xee"),
        packets.ether(dst, src, udp, vlans=[(0x88a8, 200), (0x8100, 7)], pad_to=60, pad=b"\xee"),
        packets.ether(dst, src, udp, vlans=[(0x8100, 0x6000)], pad_to=60),
        packets.ether(dst, src, packets.udp_packet("2001:db8:77::2", "2001:db8:77::3", sport=n, dport=9, hop_limit=1), pad_to=60),
        packets.ether("ff:ff:ff:ff:ff:ff", src, packets.udp_packet("0.0.0.0", "255.255.255.255", sport=68, dport=67, payload=b"dhcp"), pad_to=60),
        packets.ether(GROUP, src, packets.ipv4("10.77.0.2", "224.0.0.5", b"hello", proto=89, ttl=1), pad_to=60),
        packets.ether(dst, src, bytes([n]) * (46 + n), ethertype=0x88b5),
        packets.ether(dst, src, b"tagged" * 8, ethertype=0x88b5, vlans=[(0x8100, 100)]),
        packets.ether("01:80:c2:00:00:0e", src, b"lldp" * 12, ethertype=0x88cc),
        packets.ether("01:80:c2:00:00:00", src, b"\x42\x42\x03" + bytes(43), ethertype=46),  # 802.3 with a length: spanning tree
    ]


class Pair:
    tools = ()

    @classmethod
    def config(cls):
        return {
            "version": 1,
            "memory": {"mbufs": 32768},
            "sessions": {"capacity": 4096},
            "ports": [{"name": f"p{n}", "device": device} for n, device in enumerate(cls.devices())],
            "tenants": [{"name": "line", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "acl": "inline", "sessions": "track"}],
            "cross_connects": [{"name": "inline", "ports": ["p0", "p1"], "non_ip": "forward", "link_follow": True}],
            "acl": [{"name": "inline", "default": "deny", "stateful": True, "rules": [
                {"name": "closed", "action": "deny", "proto": "tcp", "dst_ports": 8080},
                {"name": "rejected", "action": "reject", "proto": "tcp", "dst_ports": 8081},
                {"name": "outwards", "action": "deny", "proto": "tcp", "dst_ports": 8082, "out": "p1"},
                {"name": "from-first", "action": "permit", "in": "p0"}]}],
        }

    @classmethod
    def configure(cls, n, interface):
        space = cls.spaces[n]
        ip("-n", space, "link", "set", interface, "address", HOST_MAC[n], "up")
        for address, bits in zip(ADDRESSES[n], (24, 64)):
            ip("-n", space, "addr", "replace", f"{address}/{bits}", "dev", interface, *(["nodad"] if ":" in address else []))

    def drops(self, reason):
        return self.cachewire.ask("/cachewire/drops")[reason]

    def test_hosts_find_each_other_and_ping(self):
        self.ping_passes(addresses=ADDRESSES[1])
        self.assertEqual(self.cachewire.ask("/cachewire/ledger")["originated"], 0)

    def test_a_tcp_transfer_arrives_whole(self):
        self.transfer(addresses=ADDRESSES[1])
        memo = self.cachewire.ask("/cachewire/memo/stats")
        self.assertGreater(memo["hits"], 100 * memo["misses"])

    def test_rules_stop_ports_and_nobody_answers(self):
        for port, expected in ((8080, "silence"), (8081, "silence"), (8082, "silence"), (8083, "refused")):
            with self.subTest(port=port):
                before = self.drops("acl_deny")
                said = self.output(self.inside(0, sys.executable, "-c", CONNECT, ADDRESSES[1][0], str(port))).strip()
                self.assertEqual(said, expected)
                self.assertEqual(self.drops("acl_deny") > before, expected == "silence")
        self.assertEqual(self.output(self.inside(1, sys.executable, "-c", CONNECT, ADDRESSES[0][0], "8083")).strip(), "silence")
        self.assertGreater(self.drops("acl_default"), 0)

    def test_what_is_no_business_of_ours_passes_byte_for_byte(self):
        if shutil.which("tcpdump") is None:
            self.skipTest("tcpdump is not installed")
        sent = [frame for n in range(1, 21) for frame in odd_frames(n) if self.carries(frame)]
        packets.write_pcap(self.cachewire.path("sent.pcap"), sent)
        seen = self.cachewire.path("seen.pcap")
        capture = self.inside(1, "tcpdump", "-B", "16384", "-U", "-Z", "root", "-s", "0", "-i", self.host_end(1), "-w", seen, "ether", "src", HOST_MAC[0])
        self.addCleanup(capture.kill)
        self.assertIn("listening", capture.stderr.readline())
        before = self.cachewire.ask("/cachewire/port/stats,p1")["tx_packets"]
        self.output(self.inside(0, sys.executable, "-c", SEND, self.host_end(0), self.cachewire.path("sent.pcap"), f"{harness.ROOT}/test/support"))
        self.cachewire.wait("all of them", lambda c: c.ask("/cachewire/port/stats,p1")["tx_packets"] >= before + len(sent))
        time.sleep(3)  # what the kernel has gathered is handed over once a second
        capture.terminate()
        _, counts = capture.communicate(timeout=60)
        # What the host's kernel says on its own is none of these. What is no IP may overtake what is, within a burst.
        got = [frame for frame in packets.read_pcap(seen) if frame in set(sent)]
        self.assertEqual(len(got), len(sent), counts)
        self.assert_frames(sorted(got), sorted(sent))

    def has_link(self, n):
        done = subprocess.run(["ip", "-n", self.spaces[n], "link", "show", self.host_end(n)], check=True, capture_output=True, text=True)
        return "LOWER_UP" in done.stdout

    def test_the_link_of_one_side_follows_the_other(self):
        for n in (0, 1):
            with self.subTest(side=n):
                self.assertTrue(self.has_link(1 - n))
                ip("-n", self.spaces[n], "link", "set", self.host_end(n), "down")
                self.cachewire.wait("a link that goes along", lambda c: not self.has_link(1 - n))
                self.configure(n, self.host_end(n))  # up, and with the address that IPv6 forgets meanwhile
                self.cachewire.wait("a link that is back", lambda c: self.has_link(1 - n))
                self.cachewire.wait("packets", lambda c: " 0% packet loss" in self.inside(0, "ping", "-c", "1", "-W", "1", ADDRESSES[1][0]).communicate()[0])
                self.ping_passes(count=5, addresses=ADDRESSES[1])


class TapPair(Pair, Taps):
    def host_end(self, n):
        return self.names[n]

    def carries(self, frame):
        return True


class VethPair(Pair, Veths):
    queues = 2
    ethtool = [("tso", "off", "gso", "off")]

    def host_end(self, n):
        return f"{self.names[n]}h"

    def carries(self, frame):
        return frame[12:14] != b"\x88\xa8"  # AF_PACKET makes 802.1Q of it


if __name__ == "__main__":
    harness.main()
