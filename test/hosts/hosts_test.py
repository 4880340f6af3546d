#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two Linux hosts with cachewire between them on net_tap ports: ping, TCP, HTTP, in both families; offloads as Linux has them; a TAP deleted under
traffic."""
import json
import re
import sys

from hosts import ADDRESSES, HTTP_SERVE, Taps, Traffic, harness, ip, why_not


class Tap(Traffic, Taps):
    def test_the_second_host_can_not_begin(self):
        before = self.cachewire.ask("/cachewire/drops")["acl_default"]
        process = self.inside(1, "ping", "-c", "3", "-i", "0.05", "-W", "1", ADDRESSES[0][0])
        out, _ = process.communicate(timeout=60)
        self.assertIn("100% packet loss", out)
        self.assertEqual(self.cachewire.ask("/cachewire/drops")["acl_default"], before + 3)

    def test_iperf3_and_curl(self):
        if reason := why_not("iperf3", "curl"):
            self.skipTest(reason)
        for address in ADDRESSES[1]:
            for direction in ([], ["-R"]):
                with self.subTest(address=address, direction=direction):
                    server = self.inside(1, "iperf3", "-s", "-1", "--forceflush", "-B", address)
                    self.addCleanup(server.kill)
                    while "listening" not in (line := server.stdout.readline()):
                        self.assertTrue(line, "the server ended")
                    result = json.loads(self.output(self.inside(0, "iperf3", "-J", "-c", address, "-n", "30M", *direction)))
                    self.assertNotIn("error", result)
                    self.assertGreaterEqual(result["end"]["sum_sent"]["bytes"], 30 << 20)
                    # The server's sum lacks what is on its way when the client ends.
                    self.assertGreaterEqual(result["end"]["sum_received"]["bytes"], 15 << 20)
            web = self.inside(1, sys.executable, "-c", HTTP_SERVE, address)
            self.addCleanup(web.kill)
            host = f"[{address}]" if ":" in address else address
            url = f"http://{host}:{web.stdout.readline().strip()}/config.yaml"
            fetched = self.output(self.inside(0, "curl", "-sS", "-g", "--noproxy", "*", "--max-time", "60", url))
            with open(self.cachewire.path("config.yaml"), encoding="utf-8") as file:
                self.assertEqual(fetched, file.read())

    def test_driver_and_offloads_are_said_and_shown(self):
        for n in range(2):
            self.assertIn(f"port p{n}: net_tap{n} uses the driver net_tap, offloads: tx multi_segs", self.log())
            stats = self.cachewire.ask(f"/cachewire/port/stats,p{n}")
            self.assertEqual((stats["driver"], stats["offloads"]), ("net_tap", "tx multi_segs"))

    def test_a_deleted_interface_is_noticed_and_made_again(self):
        stream = self.inside(0, "ping", "-i", "0.01", "-q", ADDRESSES[1][0])
        self.addCleanup(stream.wait)
        self.addCleanup(stream.kill)
        tap = self.names[1]
        for round_ in range(1, 4):
            self.ping_passes(5)
            ip("-n", self.spaces[1], "link", "del", tap)
            self.cachewire.wait("the report", lambda c, n=round_: len(re.findall(f"port p1: interface {tap} is gone", c.output()[1])) >= n)
            before = self.cachewire.ask("/cachewire/drops")["port_down"]
            self.cachewire.wait("the new one", lambda c, n=round_: len(re.findall(f"port p1: interface {tap} is back", c.output()[1])) >= n)
            ip("link", "set", tap, "netns", self.spaces[1])
            self.configure(1, tap)
            self.assertGreaterEqual(self.cachewire.ask("/cachewire/drops")["port_down"], before)
        self.ping_passes(5)
        self.assertEqual(self.cachewire.ask("/cachewire/memory")["mbufs"]["lost"], 0)


if __name__ == "__main__":
    harness.main()
