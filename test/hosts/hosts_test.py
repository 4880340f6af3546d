#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two Linux hosts with cachewire between them on net_tap ports: ping, TCP, HTTP, in both families; offloads as Linux has them."""
from hosts import ADDRESSES, Taps, Traffic, harness


class Tap(Traffic, Taps):
    def test_the_second_host_can_not_begin(self):
        before = self.cachewire.ask("/cachewire/drops")["acl_default"]
        process = self.inside(1, "ping", "-c", "3", "-i", "0.05", "-W", "1", ADDRESSES[0][0])
        out, _ = process.communicate(timeout=60)
        self.assertIn("100% packet loss", out)
        self.assertEqual(self.cachewire.ask("/cachewire/drops")["acl_default"], before + 3)


if __name__ == "__main__":
    harness.main()
