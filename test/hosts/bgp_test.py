#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""BIRD in the namespace of a twin, with a neighbor on the wire: sessions come up through cachewire, what they bring is forwarded by, and
goes again. What else is for the router's addresses reaches the kernel; ARP, ND and echo requests stay cachewire's.

    host 0 (BIRD, AS 65001) --TAP-- p0 edge p1 --TAP-- host 1
    10.77.0.2                      .1   10.78.0.1      10.78.0.2
                            cw-lan in netns "twin" (BIRD, AS 65000)
"""
import gzip
import os
import shutil
import subprocess
import sys
import time

import hosts
from hosts import ADDRESSES, GATEWAYS, Taps, harness, ip, make_space

BIRD, BIRDC = "/usr/sbin/bird", "/usr/sbin/birdc"
BEHIND = ("10.100.5.1", "2001:db8:a005::1")  # host 0's, in networks that only BGP tells of
OSPF = ("10.99.0.1", "2001:db8:99::1")
TABLE = os.path.join(harness.ROOT, "..", "shared", "cases", "fib", "dfz-v4.txt.gz")

CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)"

COMMON = """
log "{log}" all;
router id {router_id};
protocol device {{ scan time 1; }}
"""
ROUTER = COMMON + """
protocol kernel k4 {{ ipv4 {{ import none; export where source != RTS_DEVICE; }}; merge paths on; scan time 60; }}
protocol kernel k6 {{ ipv6 {{ import none; export where source != RTS_DEVICE; }}; scan time 60; }}
protocol bfd {{ interface "cw-lan" {{ min rx interval 500 ms; min tx interval 500 ms; multiplier 20; }}; }}
protocol bgp peer4 {{
  local 10.77.0.1 as 65000; neighbor 10.77.0.2 as 65001; hold time 90; connect retry time 2; connect delay time 1; {bfd}
  ipv4 {{ import all; export none; }};
}}
protocol bgp peer6 {{
  local 2001:db8:77::1 as 65000; neighbor 2001:db8:77::2 as 65001; hold time 90; connect retry time 2; connect delay time 1;
  ipv6 {{ import all; export none; }};
}}
protocol ospf v2 area2 {{ ipv4 {{ import all; export none; }}; area 0 {{ interface "cw-lan" {{ hello 1; dead 20; wait 2; }}; }}; }}
protocol ospf v3 area3 {{ ipv6 {{ import all; export none; }}; area 0 {{ interface "cw-lan" {{ hello 1; dead 20; wait 2; }}; }}; }}
"""
PEER = COMMON + """
protocol static routes4 {{ disabled {off}; ipv4;
include "{folder}/routes4.conf";
}}
protocol static routes6 {{ disabled {off}; ipv6;
include "{folder}/routes6.conf";
}}
protocol bfd {{ interface "{interface}" {{ min rx interval 500 ms; min tx interval 500 ms; multiplier 20; }}; }}
protocol bgp router4 {{
  local 10.77.0.2 as 65001; neighbor 10.77.0.1 as 65000; hold time 90; connect retry time 2; connect delay time 1; {bfd}
  ipv4 {{ import none; export where proto = "routes4"; next hop self; }};
}}
protocol bgp router6 {{
  local 2001:db8:77::2 as 65001; neighbor 2001:db8:77::1 as 65000; hold time 90; connect retry time 2; connect delay time 1;
  ipv6 {{ import none; export where proto = "routes6"; next hop self; }};
}}
protocol ospf v2 area2 {{ ipv4 {{ import none; export none; }}; area 0 {{ interface "{interface}" {{ hello 1; dead 20; wait 2; }}; stubnet 10.99.0.0/24; }}; }}
protocol ospf v3 area3 {{ ipv6 {{ import none; export none; }}; area 0 {{ interface "{interface}" {{ hello 1; dead 20; wait 2; }}; stubnet 2001:db8:99::/64; }}; }}
"""


class Twin(Taps):
    tools = ("bird", "birdc")
    routes4 = [f"10.100.{n // 256}.{n % 256}/32" for n in range(999)] + [f"{BEHIND[0]}/32"]
    routes6 = [f"2001:db8:a{n:03x}::/48" for n in range(200)]
    router, peer = ROUTER, PEER
    bfd = "bfd on;"
    mbufs = 32768

    @classmethod
    def config(cls):
        config = super().config()
        config["memory"] = {"mbufs": cls.mbufs}
        config["tenants"] = [{"name": "edge", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "sessions": "track"}]
        config["acl"] = []
        for interface in config["interfaces"]:
            interface["tenant"] = "edge"
        config["interfaces"][0]["kernel"] = {"ifname": "cw-lan", "netns": cls.twin}
        config["interfaces"][1]["kernel"] = {"ifname": "cw-wan", "netns": cls.twin}
        return config

    @classmethod
    def before(cls):
        cls.twin = cls.spaces[0] + "t"
        make_space(cls.cleanup, cls.twin)

    @classmethod
    def after(cls):
        super().after()
        for address in (*BEHIND, *OSPF):
            ip("-n", cls.spaces[0], "addr", "add", address, "dev", "lo")
        folder = cls.cachewire.folder
        for number, routes in ((4, cls.routes4), (6, cls.routes6)):
            with open(f"{folder}/routes{number}.conf", "w", encoding="utf-8") as file:
                file.writelines(f"route {route} blackhole;\n" for route in routes)
        cls.start_bird("router", cls.twin, cls.router, router_id="10.77.0.1")
        cls.start_bird("peer", cls.spaces[0], cls.peer, router_id="10.77.0.2", interface=cls.names[0], off="on")

    @classmethod
    def start_bird(cls, name, space, text, **fields):
        folder = cls.cachewire.folder
        with open(f"{folder}/{name}.conf", "w", encoding="utf-8") as file:
            file.write(text.format(folder=folder, log=f"{folder}/{name}.log", bfd=cls.bfd, **fields))
        process = subprocess.Popen(["ip", "netns", "exec", space, BIRD, "-f", "-c", f"{folder}/{name}.conf", "-s", f"{folder}/{name}.ctl"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.cleanup.callback(process.wait)
        cls.cleanup.callback(process.kill)

    def birdc(self, name, *words):
        done = subprocess.run([BIRDC, "-s", f"{self.cachewire.folder}/{name}.ctl", *words], capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr

    def why(self):
        text = self.birdc("router", "show", "protocols") + self.birdc("peer", "show", "protocols")
        with open(f"{self.cachewire.folder}/router.log", encoding="utf-8") as log:
            return f"{text}{log.read()[-3000:]}{self.cachewire.ask('/cachewire/slow_path/stats')}{self.cachewire.ask('/cachewire/kernel/list')}"

    def until(self, what, condition, seconds=60):
        begin = time.monotonic()
        while not condition():
            if time.monotonic() - begin > seconds:
                self.fail(f"{what}: {self.why()}")
            time.sleep(0.05)
        return time.monotonic() - begin

    def established(self, *protocols):
        for protocol in protocols:
            self.until(protocol, lambda: "Established" in self.birdc("router", "show", "protocols", protocol))

    def kernel_routes(self):
        return self.cachewire.ask("/cachewire/route/stats,edge")["kernel"]

    def lookup(self, address):
        return self.cachewire.ask(f"/cachewire/route/lookup,edge,{address}")

    def reaches(self, address):
        out, _ = self.inside(1, "ping", "-c", "1", "-W", "1", address).communicate(timeout=30)
        return " 0% packet loss" in out


class Routing(Twin):
    def test_1_sessions_come_up_and_routes_come_and_go_with_them(self):
        self.established("peer4", "peer6")
        self.until("BFD", lambda: "Up" in self.birdc("router", "show", "bfd", "sessions"))
        for address in BEHIND:
            self.assertFalse(self.reaches(address))
        before = self.kernel_routes()
        for protocol in ("routes4", "routes6"):
            self.birdc("peer", "enable", protocol)
        self.until("all routes", lambda: self.kernel_routes() == before + len(self.routes4) + len(self.routes6))
        for address, via in zip(BEHIND, ADDRESSES[0]):
            found = self.lookup(address)
            self.assertEqual((found["source"], found["via"], found["interface"]), ("kernel", via, "i0"))
            self.until("traffic", lambda: self.reaches(address))

        # A reload with another list leaves routes and twins alone.
        index = self.ifindex("cw-lan")
        config = self.config()
        config["acl"] = [{"name": "open", "default": "permit", "rules": []}]
        config["tenants"][0]["acl"] = "open"
        self.cachewire.write(config)
        self.assertTrue(self.cachewire.control(command="reload")["ok"])
        self.assertEqual(self.kernel_routes(), before + len(self.routes4) + len(self.routes6))
        self.assertEqual(self.ifindex("cw-lan"), index)
        self.assertTrue(self.reaches(BEHIND[0]))
        self.assertIn("Established", self.birdc("router", "show", "protocols", "peer4"))

        for protocol in ("routes4", "routes6"):
            self.birdc("peer", "disable", protocol)
        self.until("withdrawal", lambda: self.kernel_routes() == before)
        for address in BEHIND:
            self.assertFalse(self.reaches(address))

    def ifindex(self, name):
        done = subprocess.run(["ip", "-n", self.twin, "-o", "link", "show", name], check=True, capture_output=True, text=True)
        return done.stdout.split(":")[0]

    def test_2_ospf_speaks_to_its_groups(self):
        for address, prefix in zip(OSPF, ("10.99.0.0/24", "2001:db8:99::/64")):
            self.until(f"OSPF {prefix}", lambda: self.lookup(address).get("prefix") == prefix)
            self.until("traffic", lambda: self.reaches(address))
        self.assertGreater(self.cachewire.ask("/cachewire/slow_path/stats")["punted"]["kernel_ospf"], 0)

    def test_3_the_kernel_answers_what_cachewire_does_not(self):
        for n in (0, 1):
            for address in GATEWAYS[n]:
                self.ping_passes(count=5, host=n, addresses=[address])
        server = subprocess.Popen(["ip", "netns", "exec", self.twin, sys.executable, "-c", hosts.SERVE, GATEWAYS[1][0]], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.kill)
        port = server.stdout.readline().strip()
        sent = self.output(self.inside(1, sys.executable, "-c", hosts.SEND, GATEWAYS[1][0], port, "0")).strip()
        self.assertEqual(server.communicate(timeout=60)[0].split(), ["0", sent])
        refused = subprocess.run(["ip", "netns", "exec", self.spaces[1], sys.executable, "-c", CONNECT, GATEWAYS[1][1], "9"], capture_output=True, text=True, check=False)
        self.assertIn("refused", refused.stdout + refused.stderr)

    def test_4_static_routes_addresses_and_a_resync(self):
        prefix, network = "192.0.2.0/24", "198.51.100.0/24"
        ip("-n", self.twin, "route", "add", prefix, "nexthop", "via", "10.77.0.2", "weight", "2", "nexthop", "via", "10.78.0.2")
        self.until("ECMP", lambda: self.lookup("192.0.2.9").get("action") == "ecmp")
        self.assertIn("10.77.0.2 weight 2", self.lookup("192.0.2.9")["via"])
        ip("-n", self.twin, "route", "replace", prefix, "via", "10.78.0.2")
        self.until("replaced", lambda: self.lookup("192.0.2.9").get("via") == "10.78.0.2")
        ip("-n", self.twin, "route", "add", prefix, "metric", "50", "via", "10.77.0.2")
        ip("-n", self.twin, "route", "del", prefix, "metric", "0")
        self.until("the other metric", lambda: self.lookup("192.0.2.9").get("via") == "10.77.0.2")
        ip("-n", self.twin, "route", "add", "blackhole", network)
        self.until("blackhole", lambda: self.lookup("198.51.100.1").get("action") == "drop")
        ip("-n", self.twin, "addr", "add", "203.0.113.1/32", "dev", "lo")
        self.until("an address", lambda: self.lookup("203.0.113.1").get("action") == "local")
        self.ping_passes(count=5, host=1, addresses=["203.0.113.1"])
        # The kernel doesn't say that these went with the interface.
        ip("-n", self.twin, "link", "set", "cw-lan", "down")
        self.until("gone with it", lambda: self.lookup("192.0.2.9").get("action") == "no_route")
        ip("-n", self.twin, "link", "set", "cw-lan", "up")
        ip("-n", self.twin, "route", "del", network)
        ip("-n", self.twin, "addr", "del", "203.0.113.1/32", "dev", "lo")
        self.until("all gone", lambda: self.lookup("198.51.100.1").get("action") == self.lookup("203.0.113.1").get("action") == "no_route")

    def test_4b_a_longer_prefix_takes_a_neighbor_from_its_link(self):
        address = "10.77.0.5"
        ip("-n", self.spaces[0], "addr", "add", f"{address}/32", "dev", self.names[0])
        self.until("a neighbor", lambda: self.reaches(address))
        self.assertEqual(self.lookup(address)["prefix"], f"{address}/32")
        ip("-n", self.twin, "route", "add", "10.77.0.4/30", "via", "10.78.0.2")
        self.until("the route", lambda: self.lookup(address)["via"] == "10.78.0.2")
        ip("-n", self.twin, "route", "del", "10.77.0.4/30")
        self.until("the neighbor again", lambda: self.lookup(address)["prefix"] == f"{address}/32")
        self.assertTrue(self.reaches(address))

    def test_5_a_namespace_that_is_not_there_is_refused(self):
        config = self.config()
        good = config["interfaces"][0]["kernel"]
        config["interfaces"][0]["kernel"] = {"ifname": "cw-lan", "netns": "cw-nowhere"}
        self.cachewire.write(config)
        answer = self.cachewire.control(command="reload")
        self.assertFalse(answer["ok"])
        self.assertIn("netns cw-nowhere: there is no such network namespace", answer["error"])
        config["interfaces"][0]["kernel"] = good
        self.cachewire.write(config)
        self.assertTrue(self.cachewire.control(command="reload")["ok"])
        self.established("peer4")


class FullTable(Twin):
    """Slow: real prefixes, one in nine; says how long they took."""

    routes6 = []
    bfd = ""
    eal = ["--no-huge", "-m", "1024"]
    one_in, most = 9, 100000

    @classmethod
    def before(cls):
        super().before()
        with gzip.open(TABLE, "rt", encoding="ascii") as file:
            cls.routes4 = [line.split()[0] for line in file][::cls.one_in][:cls.most]

    @classmethod
    def setUpClass(cls):
        if not os.environ.get("CACHEWIRE_SLOW"):
            cls.reason = "slow: wants CACHEWIRE_SLOW=1"
        elif not os.path.exists(TABLE):
            cls.reason = "no routing tables in ../shared/cases/fib"
        else:
            super().setUpClass()

    def test_routes_come_and_go(self):
        self.established("peer4")
        before = self.kernel_routes()
        begin = time.monotonic()
        self.birdc("peer", "enable", "routes4")
        self.until("all routes", lambda: self.kernel_routes() >= before + len(self.routes4), 300)
        print(f"{len(self.routes4)} routes by BGP in force after {time.monotonic() - begin:.1f} s", flush=True)
        inside = [self.lookup(self.routes4[n].split("/")[0]) for n in range(0, len(self.routes4), 9973)]
        self.assertEqual({found["via"] for found in inside}, {ADDRESSES[0][0]})
        begin = time.monotonic()
        self.birdc("peer", "disable", "routes4")
        # OSPF may have brought one or two more since `before`.
        self.until("withdrawal", lambda: self.kernel_routes() < before + 10, 300)
        print(f"withdrawn after {time.monotonic() - begin:.1f} s", flush=True)
        left = [self.lookup(self.routes4[n].split("/")[0]) for n in range(0, len(self.routes4), 9973)]
        self.assertNotIn(ADDRESSES[0][0], {found.get("via") for found in left})


class WholeTable(FullTable):
    """Slow: the whole table, some 900 000 prefixes."""

    eal = ["--no-huge", "-m", "3072"]
    one_in, most = 1, None


if __name__ == "__main__":
    harness.main()
