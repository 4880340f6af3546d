#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A loopback interface: addresses of the tenant's on no link. Hosts ping them by any interface and nobody is told by ARP where they are;
BIRD beside the twins peers from them, over two hops."""
import subprocess
import sys

import bgp_test
from bgp_test import BEHIND, COMMON, Twin, harness
from hosts import ip

LOOPBACK = ("203.0.113.1", "2001:db8:ff::1")
PLAIN = ("203.0.113.2", "2001:db8:ff::2")  # of a second one, which has no twin

ROUTER = COMMON + """
protocol direct {{ ipv4; ipv6; interface "cw-*"; }}
protocol kernel k4 {{ ipv4 {{ import none; export where source != RTS_DEVICE; }}; scan time 60; }}
protocol kernel k6 {{ ipv6 {{ import none; export where source != RTS_DEVICE; }}; scan time 60; }}
protocol bgp peer4 {{
  local 203.0.113.1 as 65000; neighbor 10.77.0.2 as 65001; multihop 2; connect retry time 2; connect delay time 1; {bfd}
  ipv4 {{ import all; export none; }};
}}
protocol bgp peer6 {{
  local 2001:db8:ff::1 as 65000; neighbor 2001:db8:77::2 as 65001; multihop 2; connect retry time 2; connect delay time 1;
  ipv6 {{ import all; export none; }};
}}
"""
PEER = COMMON + """
protocol static routes4 {{ disabled {off}; ipv4;
include "{folder}/routes4.conf";
}}
protocol static routes6 {{ disabled {off}; ipv6;
include "{folder}/routes6.conf";
}}
# {interface}
protocol bgp router4 {{
  local 10.77.0.2 as 65001; neighbor 203.0.113.1 as 65000; multihop 2; connect retry time 2; connect delay time 1; {bfd}
  ipv4 {{ import none; export where proto = "routes4"; next hop self; }};
}}
protocol bgp router6 {{
  local 2001:db8:77::2 as 65001; neighbor 2001:db8:ff::1 as 65000; multihop 2; connect retry time 2; connect delay time 1;
  ipv6 {{ import none; export where proto = "routes6"; next hop self; }};
}}
"""


class Loopback(Twin):
    router, peer = ROUTER, PEER
    bfd = ""

    @classmethod
    def config(cls):
        config = super().config()
        config["interfaces"] += [
            {"name": "lo0", "loopback": True, "tenant": "edge", "addresses": [f"{LOOPBACK[0]}/32", f"{LOOPBACK[1]}/128"],
             "kernel": {"ifname": "cw-lo0", "netns": cls.twin}},
            {"name": "lo1", "loopback": True, "tenant": "edge", "addresses": [f"{PLAIN[0]}/32", f"{PLAIN[1]}/128"]},
        ]
        return config

    def test_1_every_host_reaches_them(self):
        for host in range(2):
            self.ping_passes(count=5, host=host, addresses=LOOPBACK + PLAIN)
        self.assertEqual(self.lookup(LOOPBACK[0])["action"], "local")
        for address in PLAIN:  # nobody listens there
            refused = subprocess.run(["ip", "netns", "exec", self.spaces[1], sys.executable, "-c", bgp_test.CONNECT, address, "9"], capture_output=True, text=True, check=False)
            self.assertIn("refused", refused.stderr)

    def test_2_no_link_is_told_that_they_are_on_it(self):
        for host in range(2):
            ip("-n", self.spaces[host], "route", "add", LOOPBACK[0], "dev", self.names[host])
            self.addCleanup(ip, "-n", self.spaces[host], "route", "del", LOOPBACK[0], "dev", self.names[host])
            out, _ = self.inside(host, "ping", "-c", "1", "-W", "2", LOOPBACK[0]).communicate(timeout=30)
            self.assertIn("100% packet loss", out)
            shown = subprocess.run(["ip", "-n", self.spaces[host], "neigh", "show", LOOPBACK[0]], check=True, capture_output=True, text=True).stdout
            self.assertNotIn("lladdr", shown)

    def test_3_bgp_from_them(self):
        self.established("peer4", "peer6")
        for protocol in ("routes4", "routes6"):
            self.birdc("peer", "enable", protocol)
        for address, via in zip(BEHIND, ("10.77.0.2", "2001:db8:77::2")):
            self.until("the route", lambda a=address, v=via: self.lookup(a).get("via") == v)
            self.until("traffic", lambda a=address: self.reaches(a))

    def test_4_a_reload_takes_one_and_brings_it_back(self):
        config = self.config()
        config["interfaces"].pop()
        self.cachewire.write(config)
        self.assertTrue(self.cachewire.control(command="reload")["ok"])
        self.assertEqual(self.lookup(PLAIN[0])["action"], "no_route")
        self.cachewire.write(self.config())
        self.assertTrue(self.cachewire.control(command="reload")["ok"])
        self.ping_passes(count=5, host=1, addresses=PLAIN)
        listed = {i["name"]: i for i in self.cachewire.ask("/cachewire/interface/list").values() if isinstance(i, dict)}
        self.assertEqual((listed["lo1"]["port"], listed["lo1"]["admin"]), ("", "up"))
        self.established("peer4", "peer6")


if __name__ == "__main__":
    harness.main()
