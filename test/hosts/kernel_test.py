#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two Linux hosts with cachewire between them on veth pairs, as kernel:IFNAME: AF_XDP and AF_PACKET, partial checksums, super-frames,
interfaces that go down, go away and come back, ports that are set down, and what is left of it all afterwards."""
import json
import os
import re
import subprocess
import sys
import time

from hosts import ADDRESSES, SEND, SERVE, Traffic, Veths, harness, ip, why_not

DATAGRAM = """
import socket, sys
wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
wire.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: cut nothing that fits
wire.sendto(bytes(int(sys.argv[2])), (sys.argv[1], 9))
"""
ROUNDS = 50 if harness.SLOW else 5


class AfXdp(Traffic, Veths):
    def test_the_log_names_the_driver_and_why(self):
        for name in self.names:
            self.assertRegex(self.log(), rf"interface {name} uses AF_XDP: kernel, driver veth and 1 queue allow it; offloads: none")
        stats = self.cachewire.ask("/cachewire/port/stats,p0")
        self.assertEqual((stats["driver"], stats["offloads"]), ("net_af_xdp", "none"))

    def test_a_host_without_offloads_is_left_alone(self):
        for host in range(2):
            self.output(self.inside(host, "ethtool", "-K", f"{self.names[host]}h", "tx", "off"))
        self.addCleanup(lambda: [self.output(self.inside(host, "ethtool", "-K", f"{self.names[host]}h", "tx", "on")) for host in range(2)])
        self.transfer(10)


class AfPacket(Traffic, Veths):
    """Two queues rule AF_XDP out on veth. Checksums stay partial."""

    queues = 2
    ethtool = [("tso", "off", "gso", "off")]

    def test_the_log_names_the_driver_and_why(self):
        for name in self.names:
            self.assertRegex(self.log(), rf"interface {name} uses AF_PACKET: AF_XDP on veth needs one active queue and it has 2; `ethtool -L {name} rx 1 tx 1`")
        self.assertEqual(self.cachewire.ask("/cachewire/port/stats,p0")["driver"], "net_af_packet")


class AfPacketTxOff(Veths):
    queues = 2
    ethtool = [("tx", "off")]

    def test_ping_and_tcp(self):
        self.ping_passes(5)
        self.transfer(20)


class AfPacketJumbo(Veths):
    """A ring with longer slots, and buffers to match."""

    queues = 2
    mtu = 3800
    ethtool = [("tso", "off", "gso", "off")]

    @classmethod
    def config(cls):
        return {**super().config(), "memory": {"mbufs": 16384, "mbuf_size": 4352}}

    def test_ping_and_tcp(self):
        self.ping_passes()
        self.transfer(20)


class SuperFrames(Veths):
    """The sender leaves cutting TCP to a NIC: frames of up to 64 KiB, which no buffer holds."""

    queues = 2

    def test_they_are_counted_and_one_warning_says_what_to_do(self):
        self.ping_passes(5)
        server = self.inside(1, sys.executable, "-c", SERVE, ADDRESSES[1][0])
        self.addCleanup(server.kill)
        client = self.inside(0, sys.executable, "-c", SEND, ADDRESSES[1][0], server.stdout.readline().strip(), "50")
        self.addCleanup(client.kill)
        dropped = self.cachewire.wait("super-frames", lambda c: c.ask("/cachewire/drops")["frame_oversize"])
        self.cachewire.wait("the warning", lambda c: "ethtool -K IF tso off gso off" in c.output()[1])
        self.assertGreaterEqual(self.cachewire.ask("/cachewire/port/stats,p0")["rx_errors"], dropped)
        self.assertEqual(len(re.findall("port p0: frames longer than 1522 bytes", self.log())), 1)
        client.kill()
        server.kill()
        self.ping_passes(5)  # what lay beside them in the pool is whole


class LongFrames(Veths):
    """B76: both ends' MTU raised from outside, the port's stays: nothing of a long frame gets through, and neighbours are whole."""

    queues = 2
    ethtool = [("tso", "off", "gso", "off")]
    SIZES = (1514, 1515, 1522, 1523, 1981, 1982, 1983, 2015, 2016, 2017, 2047, 2048, 2049, 4096, 9014)

    def test_they_are_dropped_and_counted(self):
        ip("link", "set", self.names[0], "mtu", "9000")
        ip("-n", self.spaces[0], "link", "set", f"{self.names[0]}h", "mtu", "9000")
        before = self.cachewire.ask("/cachewire/drops")
        stats = self.cachewire.ask("/cachewire/port/stats,p0")["rx_errors"]
        for size in self.SIZES:
            self.output(self.inside(0, sys.executable, "-c", DATAGRAM, ADDRESSES[1][0], str(size - 42)))
        long = sum(size > 1522 for size in self.SIZES)
        drops = self.cachewire.wait("drops", lambda c: (d := c.ask("/cachewire/drops"))["frame_oversize"] >= before["frame_oversize"] + long and d)
        self.assertEqual(drops["frame_oversize"] - before["frame_oversize"], long)
        cut = sum(1514 < size <= 1522 for size in self.SIZES)  # over the MTU, and whole
        self.cachewire.wait("pieces", lambda c: c.ask("/cachewire/ledger")["consumed"] == cut)
        self.assertEqual(self.cachewire.ask("/cachewire/port/stats,p0")["rx_errors"] - stats, long)
        ip("-n", self.spaces[0], "link", "set", f"{self.names[0]}h", "mtu", "1500")
        self.transfer(10)


class Changes:
    """Under traffic: a ping without end. Addresses and neighbours of a host go with its link, so they are set anew each time."""

    def setUp(self):
        super().setUp()
        self.stream = self.inside(0, "ping", "-i", "0.01", "-q", ADDRESSES[1][0])
        self.addCleanup(self.stream.kill)

    def tearDown(self):
        self.stream.kill()
        self.stream.wait()
        super().tearDown()

    def back(self, what):
        """Pings until one is answered; how long that took goes to the output, not into a verdict."""
        begin = time.monotonic()
        while True:
            process = self.inside(0, "ping", "-c", "1", "-W", "1", ADDRESSES[1][0])
            process.communicate(timeout=60)
            if process.returncode == 0:
                break
            self.assertLess(time.monotonic() - begin, harness.PATIENCE, what + self.log())
        return time.monotonic() - begin

    def report(self, what, times):
        print(f"{what}: traffic back after {max(times):.2f} s at worst, {sorted(times)[len(times) // 2]:.2f} s in the middle", flush=True)

    def test_the_link_of_a_host_goes_down_and_up(self):
        times = []
        for _ in range(ROUNDS):
            ip("-n", self.spaces[1], "link", "set", f"{self.names[1]}h", "down")
            time.sleep(0.2)
            self.configure(1, f"{self.names[1]}h")
            times.append(self.back("link up"))
        self.report("host's link up", times)

    def test_the_own_end_goes_down_and_up(self):
        times = []
        for _ in range(ROUNDS):
            ip("link", "set", self.names[1], "down")
            time.sleep(0.2)
            ip("link", "set", self.names[1], "up")
            times.append(self.back("own end up"))
        self.report("own end up", times)

    def test_a_pair_is_deleted_and_made_again(self):
        times = []
        free = []
        for round_ in range(1, ROUNDS + 1):
            ip("link", "del", self.names[1])
            self.cachewire.wait("the report", lambda c, n=round_: len(re.findall(f"interface {self.names[1]} is gone", c.output()[1])) >= n)
            before = self.cachewire.ask("/cachewire/drops")["port_down"]
            self.cachewire.wait("drops", lambda c, n=before: c.ask("/cachewire/drops")["port_down"] > n)
            self.assertEqual(self.cachewire.ask("/cachewire/port/stats,p1")["link"], "down")
            self.make_wire(1)
            times.append(self.back("made again"))
            free.append(self.cachewire.ask("/cachewire/memory")["mbufs"]["free"])
        self.report("interface made again", times)
        # AF_XDP's driver closes with 2048 buffers in its ring; what is in flight in between varies by some bursts.
        self.assertLess(max(free) - min(free), 512, f"the pool drains: {free}")
        self.assertEqual(self.cachewire.ask("/cachewire/memory")["mbufs"]["lost"], 0)

    def test_a_port_is_set_down_and_up_by_reload(self):
        times = []
        config = self.config()
        for _ in range(ROUNDS):
            config["ports"][1]["admin"] = "down"
            self.cachewire.write(config)
            self.assertTrue(self.cachewire.control(command="reload")["ok"])
            before = self.cachewire.ask("/cachewire/drops")["port_down"]
            self.cachewire.wait("drops", lambda c, n=before: c.ask("/cachewire/drops")["port_down"] > n)
            config["ports"][1]["admin"] = "up"
            self.cachewire.write(config)
            self.assertTrue(self.cachewire.control(command="reload")["ok"])
            times.append(self.back("admin up"))
        self.report("admin up", times)

    def test_a_port_is_taken_out_and_put_in_by_reload(self):
        times, free = [], []
        half = self.config()
        half["ports"].pop(1)
        half["interfaces"].pop(1)
        half.update(neighbors=[], routes=[])
        for tenant in half.get("tenants", []):
            tenant["match"] = [match for match in tenant["match"] if match["port"] == "p0"]
        for _ in range(ROUNDS):
            for config in (half, self.config()):
                self.cachewire.write(config)
                answer = self.cachewire.control(command="reload")
                self.assertTrue(answer["ok"], answer)
                self.assertEqual(len(self.cachewire.ask("/ethdev/list")), len(config["ports"]))
            times.append(self.back("put in"))
            free.append(self.cachewire.ask("/cachewire/memory")["mbufs"]["free"])
        self.report("port put in", times)
        self.assertLess(max(free) - min(free), 512, f"the pool drains: {free}")

    def test_mtu_promiscuity_and_address_change_by_reload(self):
        config = self.config()
        config["ports"][1].update(mtu=1400, promiscuous=True)
        self.cachewire.write(config)
        self.assertTrue(self.cachewire.control(command="reload")["ok"])
        link = json.loads(subprocess.run(["ip", "-j", "link", "show", self.names[1]], check=True, capture_output=True, text=True).stdout)[0]
        self.assertEqual(link["mtu"], 1400)
        self.assertIn("PROMISC", link["flags"])
        config["ports"][1]["mtu"] = 3000
        self.cachewire.write(config)
        answer = self.cachewire.control(command="reload")
        self.assertFalse(answer["ok"])
        self.assertIn("an mtu of 3000 and 22 bytes of Ethernet and VLAN headers make frames of 3022", answer["error"])
        self.cachewire.write(self.config())
        self.assertTrue(self.cachewire.control(command="reload")["ok"])
        self.back("as before")


class AfXdpChanges(Changes, Veths):
    pass


class AfPacketChanges(Changes, Veths):
    queues = 2


class Afterwards(harness.Case):
    """What a port changed of an interface that outlives it is as before: address, MTU, promiscuity."""

    def setUp(self):
        if reason := why_not("ethtool"):
            self.skipTest(reason)
        self.name = f"cwaft{os.getpid() % 100000}"

    def make(self, queues):
        more = ["numrxqueues", str(queues), "numtxqueues", str(queues)]
        ip("link", "add", self.name, "mtu", "1400", *more, "type", "veth", "peer", "name", f"{self.name}h", *more)
        self.addCleanup(subprocess.run, ["ip", "link", "del", self.name], check=False, capture_output=True)

    def state(self):
        link = json.loads(subprocess.run(["ip", "-j", "link", "show", self.name], check=True, capture_output=True, text=True).stdout)[0]
        return {"promiscuous": "PROMISC" in link["flags"], "mtu": link["mtu"], "mac": link["address"]}

    def config(self, second):
        config = harness.router(f"kernel:{self.name}", second)
        config["memory"] = {"mbufs": 16384, "mempool_cache": 64}
        config["ports"][0]["promiscuous"] = True
        return config

    def test_the_interface_is_as_before(self):
        for queues, driver in ((1, "net_af_xdp"), (2, "net_af_packet")):
            for promiscuous in ("off", "on"):
                with self.subTest(driver=driver, promiscuous=promiscuous):
                    self.make(queues)
                    ip("link", "set", self.name, "promisc", promiscuous)
                    before = self.state()
                    with harness.Cachewire(self.config("net_null1")) as cachewire:
                        cachewire.wait_running()
                        self.assertEqual(cachewire.ask("/cachewire/port/stats,p0")["driver"], driver)
                        self.assertEqual((self.state()["promiscuous"], self.state()["mtu"]), (True, 1500))
                        self.assertEqual(cachewire.stop().status, 0)
                    self.assertEqual(self.state(), before)
                    ip("link", "del", self.name)

    def test_also_when_the_start_fails(self):
        self.make(1)
        before = self.state()
        with harness.Cachewire(self.config("kernel:cwnothere")) as cachewire:
            self.assertEqual(cachewire.finish().status, 3)
        self.assertEqual(self.state(), before)


class Missing(harness.Case):
    def test_an_interface_that_is_not_there_ends_the_start_with_3(self):
        config = harness.router("kernel:cwnothere", "net_null1")
        with harness.Cachewire(config) as cachewire:
            result = cachewire.finish()
        self.assertEqual(result.status, 3, result)
        self.assertIn("port p0 (kernel:cwnothere): this machine has no interface cwnothere in this network namespace; `ip -br link` lists them", result.stderr)


if __name__ == "__main__":
    harness.main()
