#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""B73: a device that takes 10 Mbit/s and ingress of ten times as much. Ten minutes in the slow tests, seconds otherwise; then the limit
goes and everything forwards again."""
import subprocess
import time

from hosts import ADDRESSES, Veths, harness

SECONDS = 600 if harness.SLOW else 8
# UDP as fast as 100 Mbit/s, from the first host.
FLOOD = """
import socket, sys, time
wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + float(sys.argv[2])
payload = bytes(1400)
while (now := time.monotonic()) < end:
    for _ in range(9):
        try: wire.sendto(payload, (sys.argv[1], 9))
        except OSError: pass
    time.sleep(max(0, 0.001 - (time.monotonic() - now)))
"""


class Backlog(Veths):
    """net_af_packet goes through Linux's queueing only when told; AF_XDP never does."""

    tools = ("ethtool", "tc")
    queues = 2
    ethtool = [("tso", "off", "gso", "off")]

    @classmethod
    def devices(cls):
        return [f"net_af_packet{n},iface={name},qdisc_bypass=0" for n, name in enumerate(cls.names)]

    @classmethod
    def before(cls):
        super().before()
        for name in cls.names:
            subprocess.run(["ip", "link", "set", name, "up"], check=True)

    def test_a_slow_device_drains_nothing(self):
        self.ping_passes(5)
        subprocess.run(["tc", "qdisc", "add", "dev", self.names[1], "root", "tbf", "rate", "10mbit", "burst", "16kb", "latency", "100ms"], check=True)
        low = []
        flood = self.inside(0, "python3", "-c", FLOOD, ADDRESSES[1][0], str(SECONDS))
        self.addCleanup(flood.kill)
        while flood.poll() is None:
            time.sleep(1)
            low.append(self.cachewire.ask("/cachewire/memory")["mbufs"]["free"])
        ledger = self.cachewire.ask("/cachewire/ledger")
        self.assertEqual(ledger["unaccounted"], 0)
        self.assertLess(max(low) - min(low), 4096, "the pool follows the backlog")
        stats = self.cachewire.ask("/cachewire/port/stats,p1")
        missed = self.cachewire.ask("/cachewire/port/stats,p0")["rx_missed"]
        print(f"after {SECONDS} s: {ledger}, {stats}, rx_missed {missed}", flush=True)
        subprocess.run(["tc", "qdisc", "del", "dev", self.names[1], "root"], check=True)
        self.ping_passes(5)
        self.transfer(20)


if __name__ == "__main__":
    harness.main()
