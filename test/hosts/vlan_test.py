#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""B77 and B83: untagged, priority-tagged, 802.1Q, 802.1ad and doubly tagged frames mixed, so that buffers are used again by another
kind of frame. What leaves is the documented rewrite, byte for byte, and never a tag that no interface has."""
import shutil
import sys
import time

from hosts import HOST_MAC, ROUTER_MAC, Taps, Veths, harness, packets

SEND = """
import socket, sys
sys.path.insert(0, sys.argv[3])
import packets, time
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
    wire.bind((sys.argv[1], 0))
    for frame in packets.read_pcap(sys.argv[2]):
        wire.send(frame)
        time.sleep(0.0002)
"""
# What comes in, and whether an interface has these tags. VID 0 is untagged with a priority.
TAGS = [[], [(0x8100, 0x6000)], [(0x8100, 100)], [(0x88a8, 0x2000 | 100)], [(0x88a8, 200), (0x8100, 7)], [(0x8100, 200), (0x8100, 7)]]
FOREIGN = [[(0x8100, 101)], [(0x88a8, 200), (0x8100, 8)]]
WAYS = [("10.78.0.2", []), ("10.79.0.2", [(0x8100, 300)]), ("10.80.0.2", [(0x88a8, 400), (0x8100, 9)])]


class Tagged:
    @classmethod
    def config(cls):
        config = super().config()
        config["memory"] = {"mbufs": 16384, "mempool_cache": 64}
        config["tenants"] = [{"name": "hosts", "id": 1, "match": [
            {"port": "p0"}, {"port": "p0", "vlan": 100}, {"port": "p0", "vlan": 200, "inner_vlan": 7}, {"port": "p1"}, {"port": "p1", "vlan": 300}, {"port": "p1", "vlan": 400, "inner_vlan": 9}]}]
        config["interfaces"] = [
            {"name": "in", "port": "p0", "addresses": ["10.77.0.1/24"]},
            {"name": "in100", "port": "p0", "vlan": 100, "addresses": ["10.70.0.1/24"]},
            {"name": "in200.7", "port": "p0", "vlan": 200, "inner_vlan": 7, "addresses": ["10.71.0.1/24"]},
            {"name": "out", "port": "p1", "addresses": ["10.78.0.1/24"]},
            {"name": "out300", "port": "p1", "vlan": 300, "addresses": ["10.79.0.1/24"]},
            {"name": "out400.9", "port": "p1", "vlan": 400, "inner_vlan": 9, "addresses": ["10.80.0.1/24"]}]
        config["neighbors"] = [{"tenant": "hosts", "address": address, "mac": HOST_MAC[1]} for address, _ in WAYS]
        config["acl"] = []
        return config

    def test_mixed_tags_come_through_as_configured(self):
        if shutil.which("tcpdump") is None:
            self.skipTest("tcpdump is not installed")
        sent, expected = [], []
        for number in range(39):
            for tags in TAGS + FOREIGN:
                address, out_tags = WAYS[number % 3]
                body = bytes([number]) * (7 * number)
                frame = packets.udp_packet("10.77.0.2", address, sport=1000 + number, payload=body)
                sent.append(packets.ether(ROUTER_MAC[0], HOST_MAC[0], frame, vlans=tags, pad_to=60, pad=b"\xee"))
                if tags in TAGS:
                    after = packets.udp_packet("10.77.0.2", address, sport=1000 + number, payload=body, ttl=63)
                    expected.append(packets.ether(HOST_MAC[1], ROUTER_MAC[1], after, vlans=out_tags))
        packets.write_pcap(self.cachewire.path("sent.pcap"), sent)
        seen = self.cachewire.path("seen.pcap")
        capture = self.inside(1, "tcpdump", "-B", "16384", "-U", "-Z", "root", "-s", "0", "-i", self.host_end(1), "-w", seen, "ether", "src", ROUTER_MAC[1], "and", "ether", "dst", HOST_MAC[1])
        self.addCleanup(capture.kill)
        self.assertIn("listening", capture.stderr.readline())
        before = self.cachewire.ask("/cachewire/drops")["no_interface"]
        self.output(self.inside(0, sys.executable, "-c", SEND, self.host_end(0), self.cachewire.path("sent.pcap"), f"{harness.ROOT}/test/support"))
        self.cachewire.wait("all of them", lambda c: c.ask("/cachewire/port/stats,p1")["tx_packets"] >= len(expected))
        self.assertEqual(self.cachewire.ask("/cachewire/drops")["no_interface"] - before, 39 * len(FOREIGN))
        time.sleep(3)  # what the kernel has gathered is handed over once a second
        capture.terminate()
        _, counts = capture.communicate(timeout=60)
        # A device may pad to 60 bytes; nothing of an earlier frame may stand there.
        # ARP between the two is no part of it.
        got = [frame for frame in packets.read_pcap(seen) if b"\x08\x06" not in (frame[12:14], frame[16:18], frame[20:22])]
        wanted = [frame + bytes(max(0, len(g) - len(frame))) for frame, g in zip(expected, got)]
        self.assert_frames(got, wanted)
        self.assertEqual(len(got), len(expected), counts)


class TapTags(Tagged, Taps):
    def host_end(self, n):
        return self.names[n]


class AfXdpTags(Tagged, Veths):
    def host_end(self, n):
        return f"{self.names[n]}h"


class AfPacketTags(Tagged, Veths):
    queues = 2
    ethtool = [("tso", "off", "gso", "off")]

    def test_the_limit_is_said_once_a_port(self):
        for port in ("p0", "p1"):
            self.assertEqual(self.log().count(f"port {port}: AF_PACKET hands every outer VLAN tag over as 802.1Q"), 1)

    def host_end(self, n):
        return f"{self.names[n]}h"


if __name__ == "__main__":
    harness.main()
