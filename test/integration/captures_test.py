#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hostile and real captures from outside the checkout: whatever comes in, the process lives and the ledger closes.

Unicast destination MAC addresses are rewritten to the port's own, or nothing would reach layer 3. With ./tools/run-tests --sanitize
the same runs are under AddressSanitizer and UndefinedBehaviorSanitizer."""
import glob
import os

import harness
import packets as p
from harness import MAC

CAPTURES = os.path.join(harness.ROOT, "..", "shared", "cases", "pcaps")


def open_router(*devices):
    """Routes for everything, so that what parses goes through the whole path: sessions, a list with rules, a policer."""
    config = harness.router(*devices)
    for key in ("interfaces", "neighbors", "routes"):
        config[key] = [{"tenant": "all", **entry} for entry in config[key]]
    config["routes"] += [{"tenant": "all", "prefix": "0.0.0.0/0", "via": "10.2.0.2"}, {"tenant": "all", "prefix": "::/0", "via": "2001:db8:2::2"}]
    config["tenants"] = [{"name": "all", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "acl": "some", "policer": {"in": "much"}}]
    config["acl"] = [{"name": "some", "default": "permit", "stateful": True, "rules": [
        {"action": "deny", "proto": "tcp", "dst_ports": 23}, {"action": "permit", "proto": "udp", "src": "10.0.0.0/8", "dst_ports": "53-123"},
        {"action": "deny", "proto": "icmp", "icmp": {"type": 5}}, {"action": "permit", "dst": "2001::/16"}]}]
    config["qos"] = {"policers": [{"name": "much", "type": "single", "rate": "10Gbit"}]}
    return config


def aimed(frame):
    """To the port's own address, unless it is a group address or too short to have one."""
    return frame if len(frame) < 6 or frame[0] & 1 else p.mac(MAC[0]) + frame[6:]


class Captures(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.files = sorted(glob.glob(os.path.join(CAPTURES, "*", "*.pcap")))

    def check(self, files):
        frames = []
        for path in files:
            # A frame of no bytes is not Ethernet, and net_pcap has no mbuf for more than 9 KiB of these buffers.
            frames += [aimed(frame) for frame in p.read_pcap(path) if frame]
        out, _, ledger = self.forward(frames, config=open_router)
        self.assertEqual(ledger["rx"], len(frames))
        self.assertEqual(len(out[0]) + len(out[1]), ledger["tx"])
        return ledger

    def test_every_category_closes_the_ledger(self):
        if not self.files:
            self.skipTest("no captures in ../shared/cases/pcaps")
        forwarded = 0
        categories = sorted({os.path.dirname(path) for path in self.files})
        for category in categories:
            with self.subTest(category=os.path.basename(category)):
                forwarded += self.check([path for path in self.files if os.path.dirname(path) == category])["tx"]
        print(f"{len(self.files)} files in {len(categories)} categories, {forwarded} packets forwarded")
        self.assertGreater(forwarded, 1000, "hardly anything got as far as the egress")

    def test_every_file_alone(self):
        if not self.files:
            self.skipTest("no captures in ../shared/cases/pcaps")
        if not harness.SLOW:
            self.skipTest("slow; --slow runs it")
        for path in self.files:
            with self.subTest(file=os.path.relpath(path, CAPTURES)):
                self.check([path])


if __name__ == "__main__":
    harness.main()
