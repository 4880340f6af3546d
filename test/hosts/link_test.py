#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What happens to the interface under a port: another process wants it, its XDP program is taken off or replaced, its link goes, frames come
faster than they are taken, another host stands behind it."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import xdp
from hosts import ADDRESSES, HOST_MAC, ROUTER_MAC, Taps, Veths, harness, ip

OTHER_MAC = "02:00:00:00:71:08"
# Frames to a port that nobody reads just now: more than any ring here holds. Prints how many the interface sent and how many it dropped itself.
FLOOD = """
import socket, sys
interface, destination, count = sys.argv[1], bytes.fromhex(sys.argv[2].replace(":", "")), int(sys.argv[3])
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind((interface, 0))
frame = destination + bytes.fromhex("02000000700788b5") + bytes(50)
for _ in range(count):
    try:
        wire.send(frame)
    except OSError:
        pass
"""


class OneInterface:
    """Two hosts, and a second cachewire that wants the first one's wire."""

    def second(self):
        config = harness.router(f"kernel:{self.names[0]}", "net_null1", memory={"mbufs": 16384, "mempool_cache": 64})
        with harness.Cachewire(config) as cachewire:
            return cachewire.finish()

    def test_a_second_cachewire_is_refused_and_the_first_goes_on(self):
        self.ping_passes(5)
        result = self.second()
        self.assertEqual(result.status, 3, result)
        self.assertIn(f"port p0 (kernel:{self.names[0]}): the interface {self.names[0]} is a port of a running cachewire already "
                      f"(pid {self.cachewire.ask('/cachewire/info')['pid']}); two can't share one", result.stderr)
        self.ping_passes(5)


class AfPacketOnce(OneInterface, Veths):
    queues = 2


class AfXdpOnce(OneInterface, Veths):
    def program(self, n=1):
        return xdp.attached(self.names[n])

    def test_the_program_is_taken_off_under_traffic_and_put_on_again(self):
        stream = self.inside(0, "ping", "-i", "0.01", "-q", ADDRESSES[1][0])
        self.addCleanup(stream.wait)
        self.addCleanup(stream.kill)
        before = self.log()
        for round_ in range(1, 4):
            self.ping_passes(5)
            ip("link", "set", "dev", self.names[1], "xdp", "off")
            self.cachewire.wait("the program", lambda c, n=round_: len(re.findall("port p1: its XDP program is back", c.output()[1])) >= n)
            self.assertTrue(self.program())
        self.ping_passes(5)
        after = self.log()[len(before):]
        self.assertEqual(len(re.findall("port p1: its XDP program is gone; its packets are dropped as port_down until it is back", after)), 3)
        self.assertEqual(self.cachewire.ask("/cachewire/port/stats,p1")["driver"], "net_af_xdp")
        self.assertEqual(self.cachewire.ask("/cachewire/memory")["mbufs"]["lost"], 0)


class AfXdpReplaced(Veths):
    def test_somebody_elses_program_stays_and_the_port_goes_on_by_af_packet(self):
        self.ping_passes(5)
        ip("link", "set", "dev", self.names[1], "xdp", "off")
        program = xdp.attach(self.names[1])
        self.cachewire.wait("AF_PACKET", lambda c: "port p1: attached again, by net_af_packet instead of net_af_xdp" in c.output()[1])
        self.assertIn(f"interface {self.names[1]} uses AF_PACKET: the XDP program cwtest is on it; `ip link set dev {self.names[1]} xdp off`", self.log())
        self.assertEqual(self.program_id(), program)
        self.ping_passes(5)

    def program_id(self):
        return xdp.attached(self.names[1])


class ForeignProgram(harness.Case):
    """Somebody's XDP program, there before the start: it is there afterwards."""

    def test_the_port_takes_af_packet(self):
        if reason := os.geteuid() != 0 and "needs root":
            self.skipTest(reason)
        name = f"cwfor{os.getpid() % 100000}"
        try:
            ip("link", "add", name, "type", "veth", "peer", "name", f"{name}h")
        except subprocess.CalledProcessError as error:
            self.skipTest(f"no veth here: {error.stderr}")
        self.addCleanup(subprocess.run, ["ip", "link", "del", name], check=False, capture_output=True)
        program = xdp.attach(name)
        with harness.Cachewire(harness.router(f"kernel:{name}", "net_null1", memory={"mbufs": 16384, "mempool_cache": 64})) as cachewire:
            cachewire.wait_running()
            self.assertIn(f"interface {name} uses AF_PACKET: the XDP program cwtest is on it", cachewire.output()[1])
            self.assertEqual(cachewire.stop().status, 0)
        self.assertEqual(xdp.attached(name), program)
        # As a device of its own it is refused, not replaced.
        with harness.Cachewire(harness.router(f"net_af_xdp0,iface={name}", "net_null1", memory={"mbufs": 16384, "mempool_cache": 64})) as cachewire:
            result = cachewire.finish()
        self.assertEqual(result.status, 3, result)
        self.assertIn("the XDP program cwtest is on it", result.stderr)
        self.assertEqual(xdp.attached(name), program)


class LinkFollows:
    """A host's end goes down and up again."""

    def set_host(self, n, state):
        ip("-n", self.spaces[n], "link", "set", self.host_end(n), state)

    def link(self, n):
        return self.cachewire.ask(f"/cachewire/port/stats,p{n}")["link"]

    def test_link_is_what_the_interface_says_and_nothing_goes_out_without(self):
        stream = self.inside(0, "ping", "-i", "0.01", "-q", ADDRESSES[1][0])
        self.addCleanup(stream.wait)
        self.addCleanup(stream.kill)
        times = []
        for _ in range(3):
            self.ping_passes(5)
            self.assertEqual([self.link(0), self.link(1)], ["up", "up"])
            before = self.cachewire.ask("/cachewire/drops")["link_down"]
            self.set_host(1, "down")
            self.cachewire.wait("the link", lambda c: self.link(1) == "down")
            self.cachewire.wait("drops", lambda c, n=before: c.ask("/cachewire/drops")["link_down"] > n)
            self.assertEqual(self.link(0), "up")
            self.configure(1, self.host_end(1))
            begin = time.monotonic()
            self.cachewire.wait("the link", lambda c: self.link(1) == "up")
            self.back()
            times.append(time.monotonic() - begin)
        print(f"link up: traffic back after {max(times):.2f} s at worst", flush=True)
        self.assertIn(f"port p1: interface {self.own_end(1)} has no link; what would go there is dropped as link_down", self.log())
        self.assertIn(f"port p1: interface {self.own_end(1)} has a link", self.log())

    def back(self):
        deadline = time.monotonic() + harness.PATIENCE
        while True:
            process = self.inside(0, "ping", "-c", "1", "-W", "1", ADDRESSES[1][0])
            process.communicate(timeout=60)
            if process.returncode == 0:
                return
            self.assertLess(time.monotonic(), deadline, self.log())

    def test_another_host_behind_the_same_link_is_found_at_once(self):
        self.ping_passes(5)
        for mac in (OTHER_MAC, HOST_MAC[1]):
            self.set_host(1, "down")  # and up before anybody can have looked
            self.configure(1, self.host_end(1), mac)
            self.cachewire.wait(f"the MAC address {mac}", lambda c, mac=mac: self.mac_addresses() == {mac})
            self.ping_passes(5)

    def mac_addresses(self):
        """Of the second host."""
        entries = [entry for entry in self.cachewire.ask("/cachewire/neighbor/list,hosts").values() if isinstance(entry, dict)]
        return {entry["mac"] for entry in entries if entry["address"] in ADDRESSES[1]}


class MissedFrames:
    """The process stands still while frames come: whatever the kernel took and didn't hand over is in rx_missed, exactly."""

    COUNT = 20000

    def sent(self):
        link = json.loads(subprocess.run(["ip", "-n", self.spaces[0], "-j", "-s", "link", "show", self.host_end(0)], check=True, capture_output=True, text=True).stdout)[0]
        return link["stats64"]["tx"]["packets"]

    def received(self):
        stats = self.cachewire.ask("/cachewire/port/stats,p0")
        return stats["rx_packets"] + stats["rx_missed"] + stats["rx_nombuf"] + stats["rx_errors"], stats

    def test_what_was_sent_is_received_or_missed(self):
        self.ping_passes(5)
        before_sent, (before, stats) = self.sent(), self.received()
        self.assertEqual(stats["rx_missed"], 0)
        self.cachewire.process.send_signal(signal.SIGSTOP)
        try:
            self.output_of_flood()
        finally:
            self.cachewire.process.send_signal(signal.SIGCONT)
        self.cachewire.wait("all of them", lambda c: self.received()[0] - before >= self.sent() - before_sent + self.dropped_by_sender())
        total, stats = self.received()
        self.assertEqual(total - before, self.sent() - before_sent + self.dropped_by_sender(), stats)
        self.assertGreater(stats["rx_missed"], self.COUNT // 2)
        self.ping_passes(5)

    def dropped_by_sender(self):
        return 0

    def output_of_flood(self):
        flood = self.inside(0, sys.executable, "-c", FLOOD, self.host_end(0), ROUTER_MAC[0], str(self.COUNT))
        _, err = flood.communicate(timeout=300)
        self.assertEqual(flood.returncode, 0, err)


class OnVeth(LinkFollows, MissedFrames):
    def host_end(self, n):
        return f"{self.names[n]}h"

    def own_end(self, n):
        return self.names[n]


class AfXdpLink(OnVeth, Veths):
    pass


class AfPacketLink(OnVeth, Veths):
    queues = 2


class TapLink(LinkFollows, MissedFrames, Taps):
    def host_end(self, n):
        return self.names[n]

    own_end = host_end

    def dropped_by_sender(self):
        """Its sender is the interface itself."""
        link = json.loads(subprocess.run(["ip", "-n", self.spaces[0], "-j", "-s", "link", "show", self.host_end(0)], check=True, capture_output=True, text=True).stdout)[0]
        return link["stats64"]["tx"]["dropped"]


if __name__ == "__main__":
    harness.main()
