#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""B73: a device that takes less than what comes in, or nothing, ten minutes in the slow tests and seconds otherwise; then it takes all
again. The pool keeps its level, what does not fit is dropped by name, and everything forwards again."""
import os
import shutil
import signal
import subprocess
import time

from hosts import ADDRESSES, Veths, harness

SECONDS = 600 if harness.SLOW else 8
# UDP, about 100 Mbit/s.
FLOOD = """
import socket, sys, time
wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begin, sent, payload = time.monotonic(), 0, bytes(1400)
while (passed := time.monotonic() - begin) < float(sys.argv[2]):
    while sent < passed * 8900:
        try: wire.sendto(payload, (sys.argv[1], 9))
        except OSError: pass
        sent += 1
    time.sleep(0.001)
"""


class Overload:
    tools = ("ethtool", "tc")

    def flood(self, while_slow=lambda: None):
        """Under the flood the pool keeps its level; the counters at its end."""
        free = []
        flood = self.inside(0, "python3", "-c", FLOOD, ADDRESSES[1][0], str(SECONDS))
        self.addCleanup(flood.kill)
        while flood.poll() is None:
            time.sleep(1)
            while_slow()
            free.append(self.cachewire.ask("/cachewire/memory")["mbufs"]["free"])
        ledger = self.cachewire.ask("/cachewire/ledger")
        self.assert_closed(ledger)
        self.assertLess(max(free) - min(free), 4096, "the pool follows the backlog")
        print(f"after {SECONDS} s: {ledger}", flush=True)
        return self.cachewire.ask("/cachewire/port/stats,p1")


class SlowQueue(Overload, Veths):
    """Linux's own queueing behind net_af_packet, at 10 Mbit/s. The driver waits for it, so what is too much stays outside."""

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

    def test_it_forwards_when_the_limit_goes(self):
        self.ping_passes(5)
        subprocess.run(["tc", "qdisc", "add", "dev", self.names[1], "root", "tbf", "rate", "10mbit", "burst", "16kb", "latency", "100ms"], check=True)
        self.flood()
        subprocess.run(["tc", "qdisc", "del", "dev", self.names[1], "root"], check=True)
        self.ping_passes(5)
        self.transfer(20)


class StoppedPeer(Overload, Veths):
    """Behind a memif a process that stops reading: its ring is full, then the TX buffer, then packets are dropped as tx_full."""

    ethtool = [("tx", "off", "tso", "off", "gso", "off")]

    @classmethod
    def devices(cls):
        cls.socket = f"/tmp/{cls.names[1]}.sock"
        return [f"kernel:{cls.names[0]}", f"net_memif0,role=server,socket={cls.socket},socket-abstract=no"]

    @classmethod
    def after(cls):
        if shutil.which("dpdk-testpmd") is None:
            cls.reason = "dpdk-testpmd is not installed"
            return
        subprocess.run(["ip", "link", "set", cls.names[1], "up", "promisc", "on"], check=True)
        cls.start_peer()

    @classmethod
    def start_peer(cls):
        cls.peer = subprocess.Popen(
            ["dpdk-testpmd", *harness.lcores(), "--no-huge", "-m", "256", "--no-pci", "--single-file-segments", "--file-prefix", f"cwpeer{os.getpid()}",
             f"--vdev=net_memif0,role=client,socket={cls.socket},socket-abstract=no", f"--vdev=net_af_packet0,iface={cls.names[1]}", "--",
             "--no-mlockall", "--total-num-mbufs=8192", "--forward-mode=io", "--auto-start", "--stats-period=1000"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.cleanup.callback(cls.peer.wait)
        cls.cleanup.callback(cls.peer.kill)

    def test_it_forwards_when_the_peer_goes_on(self):
        self.peer_is_there()
        self.peer.send_signal(signal.SIGSTOP)
        stats = self.flood()
        self.assertGreater(stats["tx_dropped"], 1000)
        self.assertEqual(self.cachewire.ask("/cachewire/drops")["tx_full"], stats["tx_dropped"])
        self.peer.send_signal(signal.SIGCONT)
        self.cachewire.wait("what was held", lambda c: c.ask("/cachewire/ledger")["held"] == 0)
        self.ping_passes(5)

    def peer_is_there(self):
        self.cachewire.wait("the peer", lambda c: c.ask("/cachewire/port/stats,p1")["link"] == "up")
        time.sleep(2)  # its other port
        self.ping_passes(5)

    def test_it_forwards_with_a_new_peer(self):
        """The one before is killed under the flood."""
        for _ in range(20 if harness.SLOW else 3):
            self.peer_is_there()
            flood = self.inside(0, "python3", "-c", FLOOD, ADDRESSES[1][0], "60")
            self.addCleanup(flood.kill)
            before = self.cachewire.ask("/cachewire/port/stats,p1")["tx_packets"]
            self.cachewire.wait("the flood", lambda c, n=before: c.ask("/cachewire/port/stats,p1")["tx_packets"] > n + 1000)
            self.peer.kill()
            self.peer.wait()
            self.cachewire.wait("the loss", lambda c: c.ask("/cachewire/port/stats,p1")["link"] == "down")
            before = self.cachewire.ask("/cachewire/port/stats,p1")["tx_dropped"]
            self.cachewire.wait("drops", lambda c, n=before: c.ask("/cachewire/port/stats,p1")["tx_dropped"] > n + 100)
            flood.kill()
            flood.wait()
            self.start_peer()
        self.peer_is_there()


if __name__ == "__main__":
    harness.main()
