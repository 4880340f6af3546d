#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a Linux host expects of routers: ARP and ND, ping, traceroute, path MTU, unreachables (B26, B29, B31, B33, B35, B36). Two routers
on the way, both of them tenants of one cachewire, and nobody's MAC address is configured:

    host 0 --TAP-- p0 red p1 --veth-- p2 blue p3 --TAP-- host 1
    10.77.0.2      .1     10.90.0.1   .2      10.78.0.1   10.78.0.2
"""
import json
import re
import shutil
import socket
import subprocess
import sys
import time

import hosts
from hosts import ADDRESSES, GATEWAYS, HOST_MAC, ROUTER_MAC, harness, ip, packets

MIDDLE = [("10.90.0.1", "2001:db8:90::1"), ("10.90.0.2", "2001:db8:90::2")]
MACS = [ROUTER_MAC[0], "02:00:00:00:09:01", "02:00:00:00:09:02", ROUTER_MAC[1]]
BEHIND = "198.51.100.1"  # an address of host 1, which is its gateway
BITS = (24, 64)

FLOOD = """
import socket, sys, time
sys.path.insert(0, sys.argv[2])
import packets
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
    wire.bind((sys.argv[1], 0))
    frames = packets.read_pcap(sys.argv[3])
    begin, sent = time.monotonic(), 0
    while (passed := time.monotonic() - begin) < float(sys.argv[4]):
        while sent < passed * 10000:  # more than any class's rate, less than what overflows the host's own queue
            try: wire.send(frames[sent % len(frames)])
            except OSError: pass
            sent += 1
        time.sleep(0.001)
print(sent)
"""
MAXSEG = """
import socket, sys
server = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET)
print(server.getsockname()[1], flush=True)
peer, _ = server.accept()
print(peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG), flush=True)
"""
DATAGRAM = """
import socket, sys
wire = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
wire.settimeout(30)
wire.connect((sys.argv[1], 9))
wire.send(b"x")
wire.recv(1)
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)"


class Routers(hosts.Hosts):
    tools = ("traceroute", "tracepath")
    last_mtu = 1500
    clamp = {}

    @classmethod
    def config(cls):
        def interface(n, tenant, addresses, **more):
            return {"name": f"i{n}", "port": f"p{n}", "tenant": tenant, "addresses": [f"{a}/{b}" for a, b in zip(addresses, BITS)], **more}

        def routes(tenant, to, via):
            return [{"tenant": tenant, "prefix": prefix, "via": v} for prefix, v in zip((f"10.{to}.0.0/24", f"2001:db8:{to}::/64"), via)]
        return {
            "version": 1,
            "memory": {"mbufs": 32768},
            "sessions": {"capacity": 4096},
            "ports": [{"name": f"p{n}", "device": device, "mac": MACS[n]} for n, device in enumerate(cls.devices())],
            "tenants": [{"name": "red", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "sessions": "track"},
                        {"name": "blue", "id": 2, "match": [{"port": "p2"}, {"port": "p3"}]}],
            "interfaces": [interface(0, "red", GATEWAYS[0]), interface(1, "red", MIDDLE[0]), interface(2, "blue", MIDDLE[1]),
                           interface(3, "blue", GATEWAYS[1], mtu=cls.last_mtu, **cls.clamp)],
            "routes": routes("red", 78, MIDDLE[1]) + routes("blue", 77, MIDDLE[0]) + [
                {"tenant": "red", "prefix": f"{BEHIND}/32", "via": MIDDLE[1][0]}, {"tenant": "blue", "prefix": f"{BEHIND}/32", "via": ADDRESSES[1][0]}],
        }

    @classmethod
    def devices(cls):
        middle = [f"{cls.names[0]}m", f"{cls.names[1]}m"]
        return [f"net_tap0,iface={cls.names[0]}", f"kernel:{middle[0]}", f"kernel:{middle[1]}", f"net_tap1,iface={cls.names[1]}"]

    @classmethod
    def before(cls):
        middle = [f"{cls.names[0]}m", f"{cls.names[1]}m"]
        ip("link", "add", middle[0], "type", "veth", "peer", "name", middle[1])
        cls.cleanup.callback(subprocess.run, ["ip", "link", "del", middle[0]], check=False, capture_output=True)
        for name in middle:  # this machine's kernel has nothing to say there
            subprocess.run(["sysctl", "-q", "-w", f"net.ipv6.conf.{name}.disable_ipv6=1"], check=False, capture_output=True)

    @classmethod
    def after(cls):
        for n, tap in enumerate(cls.names):
            ip("link", "set", tap, "netns", cls.spaces[n])
            cls.configure(n, tap)

    @classmethod
    def configure(cls, n, interface, mac=None):
        space = cls.spaces[n]
        ip("-n", space, "link", "set", interface, "address", mac or HOST_MAC[n], "up")
        for address, gateway, bits in zip(ADDRESSES[n], GATEWAYS[n], BITS):
            ip("-n", space, "addr", "replace", f"{address}/{bits}", "dev", interface, *(["nodad"] if ":" in address else []))
            ip("-n", space, "route", "replace", "default", "via", gateway, "dev", interface)
        if n == 1:
            ip("-n", space, "addr", "replace", f"{BEHIND}/32", "dev", "lo")

    def ping(self, address, *options, host=0, count=5):
        return self.output(self.inside(host, "ping", "-n", "-c", str(count), "-i", "0.05", "-W", "5", *options, address))

    def answer(self, *command, host=0):
        """What a command prints, whatever its status."""
        process = self.inside(host, *command)
        out, err = process.communicate(timeout=120)
        return out + err

    def neighbors(self, tenant):
        answer = self.cachewire.ask(f"/cachewire/neighbor/list,{tenant}")
        return {n["address"]: n for n in answer.values() if isinstance(n, dict)}

    def host_state(self, host, address):
        out = json.loads(subprocess.run(["ip", "-n", self.spaces[host], "-j", "neigh", "show", address], check=True, capture_output=True, text=True).stdout)
        return out[0]["state"] if out else []


class Path(Routers):
    def test_ping_and_every_address_on_the_way(self):
        for address in (*ADDRESSES[1], *GATEWAYS[0], *MIDDLE[0], *MIDDLE[1], *GATEWAYS[1]):
            with self.subTest(address=address):
                self.assertIn(" 0% packet loss", self.ping(address))
        self.assertIn(" 0% packet loss", self.ping(GATEWAYS[0][0], "-s", "1472"))
        self.assertIn(" 0% packet loss", self.ping(ADDRESSES[0][0], host=1))

    def test_the_first_packet_of_all_is_not_lost(self):
        for round_ in range(3):
            self.assertTrue(self.cachewire.control(command="neighbors_flush")["ok"])
            with self.subTest(round=round_):
                self.assertIn("1 received", self.ping(ADDRESSES[1][round_ % 2], count=1))

    def test_traceroute_names_both_routers(self):
        for option, hops in (("-4", (GATEWAYS[0][0], MIDDLE[1][0], ADDRESSES[1][0])), ("-6", (GATEWAYS[0][1], MIDDLE[1][1], ADDRESSES[1][1]))):
            for method in ([], ["-I"], ["-T", "-p", "7"]):
                with self.subTest(option=option, method=method):
                    self.ping(hops[2])
                    out = self.answer("traceroute", option, "-n", "-q", "1", "-w", "5", *method, hops[2])
                    self.assertEqual(re.findall(r"^ *\d+ +([0-9a-f.:]+) ", out, re.M), list(hops), out)

    def test_hosts_believe_in_the_router(self):
        """B36: whoever goes on talking reaches REACHABLE."""
        stream = [self.inside(0, "ping", "-i", "0.2", "-q", address) for address in ADDRESSES[1]]
        for process in stream:
            self.addCleanup(process.kill)
        for host in range(2):
            for gateway in GATEWAYS[host]:
                self.cachewire.wait(f"{gateway} REACHABLE", lambda c, h=host, g=gateway: self.host_state(h, g) == ["REACHABLE"])
        self.cachewire.wait("both hosts", lambda c: self.neighbors("red")[ADDRESSES[0][0]]["state"] == "reachable" or self.neighbors("red")[ADDRESSES[0][0]]["mac"] == HOST_MAC[0])
        self.assertEqual(self.neighbors("blue")[ADDRESSES[1][1]]["mac"], HOST_MAC[1])
        self.assertEqual(self.neighbors("red")[MIDDLE[1][0]]["mac"], MACS[2])
        self.assertEqual(self.neighbors("red")[MIDDLE[1][0]]["gateway"], 1)

    def test_unreachable_and_refused(self):
        out = self.answer("ping", "-n", "-c", "1", "-W", "5", "203.0.113.1")
        self.assertIn(f"From {GATEWAYS[0][0]} icmp_seq=1 Destination Net Unreachable", out)
        out = self.answer("ping", "-n", "-c", "1", "-W", "8", "10.78.0.99")
        self.assertIn(f"From {MIDDLE[1][0]} icmp_seq=1 Destination Host Unreachable", out)
        out = self.answer("ping", "-n", "-c", "1", "-W", "8", "2001:db8:78::99")
        self.assertIn(f"From {MIDDLE[1][1]} icmp_seq=1 Destination unreachable: Address unreachable", out)
        for address in GATEWAYS[0]:
            out = self.answer(sys.executable, "-c", CONNECT, address, "179")
            self.assertIn("ConnectionRefusedError", out)
            self.assertIn("ConnectionRefusedError", self.answer(sys.executable, "-c", DATAGRAM, address))

    def test_only_the_address_that_was_asked_for_is_answered(self):
        """B33: who-has for an address of the other interface has no answer, and above all none with a third address."""
        before = self.cachewire.ask("/cachewire/slow_path/stats")
        subprocess.run(["ip", "-n", self.spaces[0], "route", "replace", f"{MIDDLE[0][0]}/32", "dev", self.names[0]], check=True)
        self.addCleanup(ip, "-n", self.spaces[0], "route", "del", f"{MIDDLE[0][0]}/32", "dev", self.names[0])
        self.answer("ping", "-n", "-c", "1", "-W", "1", MIDDLE[0][0])
        after = self.cachewire.wait("the question", lambda c: (s := c.ask("/cachewire/slow_path/stats"))["arp_received"] > before["arp_received"] and s)
        self.assertNotIn("lladdr", self.answer("ip", "neigh", "show", MIDDLE[0][0]))
        self.assertEqual(after["malformed"], before["malformed"])

    def test_flush(self):
        self.ping(ADDRESSES[1][0])
        answer = self.cachewire.control(command="neighbors_flush", tenant="blue")
        self.assertTrue(answer["ok"])
        self.assertGreaterEqual(answer["flushed"], 2)
        self.assertFalse(self.cachewire.control(command="neighbors_flush", tenant="green")["ok"])
        self.assertIn(" 0% packet loss", self.ping(ADDRESSES[1][0]))

    def test_a_gateway_goes_and_comes_back_with_another_mac(self):
        """B35: its route and addresses stay, and it is found again by broadcast."""
        self.assertIn(" 0% packet loss", self.ping(BEHIND))
        ip("-n", self.spaces[1], "link", "set", self.names[1], "arp", "off")
        subprocess.run(["ip", "-n", self.spaces[1], "link", "set", self.names[1], "down"], check=True)
        self.addCleanup(self.cachewire.control, command="neighbors_flush")  # it takes its old address again without a word
        self.addCleanup(self.configure, 1, self.names[1])
        self.cachewire.wait("its failure", lambda c: self.neighbors("blue")[ADDRESSES[1][0]]["state"] == "failed")
        out = self.answer("ping", "-n", "-c", "1", "-W", "5", BEHIND)
        self.assertIn(f"From {MIDDLE[1][0]} icmp_seq=1 Destination Host Unreachable", out)
        other = "02:00:00:00:70:99"
        ip("-n", self.spaces[1], "link", "set", self.names[1], "arp", "on")
        self.configure(1, self.names[1], other)
        begin = time.monotonic()
        self.cachewire.wait("traffic", lambda c: "1 received" in self.answer("ping", "-n", "-c", "1", "-W", "1", BEHIND))
        print(f"gateway back after {time.monotonic() - begin:.1f} s", flush=True)
        self.assertEqual(self.neighbors("blue")[ADDRESSES[1][0]]["mac"], other)
        self.assertIn(" 0% packet loss", self.ping(BEHIND))

    def test_a_storm_and_a_scan_leave_forwarding_alone(self):
        """Broadcast ARP at five times the rate that is looked at, with forged senders, and packets to a thousand hosts that aren't there."""
        self.ping(ADDRESSES[1][0])
        arp = [packets.ether("ff:ff:ff:ff:ff:ff", f"02:00:00:01:00:{n:02x}",
                             bytes.fromhex("0001080006040001" + f"02000001{0:02x}{n:02x}" + f"0a4d00{n:02x}" + "000000000000" + "0a4d0001"), ethertype=packets.ETHER_ARP)
               for n in range(3, 250)]
        scan = [packets.ether(ROUTER_MAC[0], HOST_MAC[0], packets.udp_packet(ADDRESSES[0][0], f"10.78.0.{n}")) for n in range(3, 250)]
        scan += [packets.ether(ROUTER_MAC[0], HOST_MAC[0], packets.udp_packet(ADDRESSES[0][1], f"2001:db8:78::{n:x}")) for n in range(3, 2500)]
        packets.write_pcap(self.cachewire.path("storm.pcap"), arp + scan)
        storm = self.inside(0, sys.executable, "-c", FLOOD, self.names[0], f"{harness.ROOT}/test/support", self.cachewire.path("storm.pcap"), "8")
        self.addCleanup(storm.kill)
        lost = self.ping(ADDRESSES[1][0], count=100)
        self.assertIn(" 0% packet loss", lost)
        sent = int(self.output(storm))
        stats = self.cachewire.ask("/cachewire/slow_path/stats")
        drops = self.cachewire.ask("/cachewire/drops")
        print(f"storm of {sent} frames: {stats}, arp {drops['arp']}, no_neighbor {drops['no_neighbor']}", flush=True)
        self.assertLessEqual(stats["neighbors_unresolved"], 1024)
        self.assertLessEqual(stats["neighbors"], 8192 + 8)
        self.assertLessEqual(stats["waiting"], 512)
        self.assertIn(" 0% packet loss", self.ping(ADDRESSES[1][0]))
        self.cachewire.control(command="neighbors_flush")


class Narrow(Routers):
    """The last link lets 1280 bytes through."""

    last_mtu = 1280

    def forget_mtu(self):
        """What the first host has learned: it would cut packets itself, or send smaller ones."""
        for family in ("-4", "-6"):
            ip("-n", self.spaces[0], family, "route", "flush", "cache")

    def test_tracepath_finds_the_mtu(self):
        for address in ADDRESSES[1]:
            with self.subTest(address=address):
                self.ping(address)
                out = self.answer("tracepath", "-n", address)
                self.assertIn("pmtu 1280", out)
                self.assertRegex(out, rf"(?m)^ *\d+: +{re.escape(address)} .*reached")

    def test_errors_have_the_right_size_and_source(self):
        """B26: 576 and 1280 bytes at most, from the side that the packet came in by."""
        if shutil.which("tcpdump") is None:
            self.skipTest("tcpdump is not installed")
        for family, (what, limit) in enumerate((("icmp[icmptype] == 3", 576), ("icmp6 and ip6[40] == 2", 1280))):
            self.ping(ADDRESSES[1][family])
            self.forget_mtu()
            seen = self.cachewire.path(f"seen{family}.pcap")
            capture = self.inside(0, "tcpdump", "-U", "-Z", "root", "-s", "0", "-c", "1", "-i", self.names[0], "-w", seen, what)
            self.addCleanup(capture.kill)
            self.assertIn("listening", capture.stderr.readline())
            self.answer("ping", "-n", "-c", "2", "-W", "1", "-M", "do", "-s", "1372", ADDRESSES[1][family])
            capture.communicate(timeout=60)
            (frame,) = packets.read_pcap(seen)
            self.assertEqual(len(frame), 14 + limit)
            self.assertEqual(int.from_bytes(frame[14 + (26 if family == 0 else 46):][:2], "big"), 1280)
            source = frame[26:30] if family == 0 else frame[22:38]
            self.assertEqual(source, socket.inet_pton(socket.AF_INET if family == 0 else socket.AF_INET6, MIDDLE[1][family]))

    def test_tcp_survives_it(self):
        self.transfer(20)

    def test_what_may_be_cut_is_cut(self):
        self.ping(ADDRESSES[1][0])
        self.forget_mtu()
        before = self.cachewire.ask("/cachewire/ledger")
        for size in ("1273", "1400", "3000", "20000"):
            with self.subTest(size=size):
                self.assertIn(" 0% packet loss", self.ping(ADDRESSES[1][0], "-M", "dont", "-s", size, count=20))
        after = self.cachewire.ask("/cachewire/ledger")
        self.assertGreaterEqual(after["consumed"] - before["consumed"], 80)
        self.assert_closed(after)


class Clamped(Narrow):
    clamp = {"mss_clamp": "auto"}

    def test_a_syn_says_what_the_link_lets_through(self):
        for address, mss in zip(ADDRESSES[1], (1240, 1220)):
            server = self.inside(1, sys.executable, "-c", MAXSEG, address)
            self.addCleanup(server.kill)
            port = server.stdout.readline().strip()
            self.output(self.inside(0, sys.executable, "-c", CONNECT, address, port))
            # Linux takes its timestamp option off.
            self.assertLessEqual(int(self.output(server)), mss)


if __name__ == "__main__":
    harness.main()
