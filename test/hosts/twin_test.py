#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What happens to twins from outside: neighbors entered in their namespace, a twin that is deleted, a namespace that goes and comes
back, a flood against the rate of what goes to the kernel."""
import subprocess
import time

from bgp_test import BEHIND, Twin, harness
from hosts import HOST_MAC, ip

SILENT = ("10.77.0.9", "2001:db8:77::9")  # the first host's, and it doesn't say so
NAMED = "10.77.0.8"  # the configuration's neighbor
FLOOD = """
import socket, sys, time
wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 3
while time.monotonic() < end:
    for _ in range(50):
        wire.sendto(b"x", (sys.argv[1], 7))
    time.sleep(0.01)
"""


class Outside(Twin):
    bfd = ""

    @classmethod
    def config(cls):
        config = super().config()
        config["neighbors"] = [{"tenant": "edge", "address": NAMED, "mac": "02:00:00:00:08:08"}]
        config["kernel"] = {"punt": {"other": "40pps"}}
        return config

    def neighbor(self, address):
        for entry in self.cachewire.ask("/cachewire/neighbor/list,edge").values():
            if isinstance(entry, dict) and entry["address"] == address:
                return entry["state"], entry["mac"]
        return None

    def neighbors_in(self, action, address, *more):
        ip("-n", self.twin, "neigh", action, address, "dev", "cw-lan", *more)

    def test_1_neighbors_of_the_kernel(self):
        for address, length in zip(SILENT, (32, 128)):
            ip("-n", self.spaces[0], "addr", "add", f"{address}/{length}", "dev", "lo")
            self.addCleanup(ip, "-n", self.spaces[0], "addr", "del", f"{address}/{length}", "dev", "lo")
        for name in ("all", self.names[0]):
            subprocess.run(["ip", "netns", "exec", self.spaces[0], "sysctl", "-qw", f"net.ipv4.conf.{name}.arp_ignore=1"], check=True)
        for address in SILENT:
            self.assertFalse(self.reaches(address))
            self.neighbors_in("add", address, "lladdr", "02:00:00:00:99:99", "nud", "permanent")
            self.until("it is static", lambda a=address: self.neighbor(a) == ("static", "02:00:00:00:99:99"))
            self.assertFalse(self.reaches(address))
            self.neighbors_in("replace", address, "lladdr", HOST_MAC[0], "nud", "permanent")
            self.until("another MAC address", lambda a=address: self.lookup(a).get("mac") == HOST_MAC[0])
            self.until("traffic", lambda a=address: self.reaches(a))
            self.assertTrue(self.cachewire.control(command="reload")["ok"])
            self.assertEqual(self.neighbor(address), ("static", HOST_MAC[0]))
            self.assertTrue(self.reaches(address))
            self.neighbors_in("del", address)
            self.until("it is gone", lambda a=address: (self.neighbor(a) or ("",))[0] != "static")
            self.until("its route too", lambda a=address: self.lookup(a).get("source") != "neighbor")
            self.assertFalse(self.reaches(address))

    def test_2_the_configuration_goes_first(self):
        self.neighbors_in("replace", NAMED, "lladdr", "02:00:00:00:77:77", "nud", "permanent")
        self.neighbors_in("replace", "192.0.2.77", "lladdr", "02:00:00:00:77:77", "nud", "permanent")  # on no network of the link
        self.neighbors_in("replace", "10.77.0.7", "lladdr", "02:00:00:00:77:77", "nud", "permanent")  # told last
        self.until("the last one", lambda: self.neighbor("10.77.0.7") == ("static", "02:00:00:00:77:77"))
        self.assertEqual(self.neighbor(NAMED), ("static", "02:00:00:00:08:08"))
        self.assertEqual(self.lookup(NAMED)["mac"], "02:00:00:00:08:08")
        self.assertIsNone(self.neighbor("192.0.2.77"))
        self.assertEqual(self.cachewire.ask("/cachewire/kernel/list")["0"]["netns_neighbors"], 3)
        self.assertEqual(self.cachewire.ask("/cachewire/kernel/list")["0"]["state"], "there")

    def test_3_for_a_time(self):
        self.neighbors_in("replace", "10.77.0.6", "lladdr", HOST_MAC[0], "nud", "reachable")
        self.until("it is known", lambda: (self.neighbor("10.77.0.6") or ("", ""))[1] == HOST_MAC[0])
        self.assertNotEqual(self.neighbor("10.77.0.6")[0], "static")

    def test_4_a_twin_that_is_deleted_comes_back(self):
        self.established("peer4", "peer6")
        for protocol in ("routes4", "routes6"):
            self.birdc("peer", "enable", protocol)
        for address in BEHIND:
            self.until("traffic", lambda a=address: self.reaches(a))
        for name in ("cw-lan", "cw-wan"):
            ip("-n", self.twin, "link", "del", name)
            self.until("it is there again", lambda n=name: "10.7" in self.addresses(n))
        self.until("routes went", lambda: self.lookup(BEHIND[0])["action"] == "no_route" or "Established" in self.birdc("router", "show", "protocols", "peer4"))
        self.established("peer4", "peer6")
        for address in BEHIND:
            self.until("traffic", lambda a=address: self.reaches(a))
        self.assertIn("its twin cw-lan in netns", self.log())

    def addresses(self, name):
        return subprocess.run(["ip", "-n", self.twin, "-br", "addr", "show", name], check=False, capture_output=True, text=True).stdout

    def test_5_a_flood_is_held_to_its_rate_and_takes_nothing_from_bgp(self):
        self.established("peer4")
        before = self.cachewire.ask("/cachewire/slow_path/stats")
        floods = [self.inside(host, "python3", "-c", FLOOD, "10.77.0.1") for host in range(2)]
        begin = time.monotonic()
        for flood in floods:
            self.output(flood)
        seconds = time.monotonic() - begin
        after = self.cachewire.ask("/cachewire/slow_path/stats")
        passed = after["punted"]["kernel_other"] - before["punted"]["kernel_other"]
        limited = after["limited"]["kernel_other"] - before["limited"]["kernel_other"]
        print(f"{passed + limited} packets in {seconds:.1f} s by two ports at 40 a second: {passed} passed", flush=True)
        self.assertGreater(limited, 0)
        self.assertLessEqual(passed, 32 + 40 * (seconds + 1))  # both ports together
        self.assertIn("Established", self.birdc("router", "show", "protocols", "peer4"))

    def test_6_a_namespace_that_comes_back_has_its_twins(self):
        ip("netns", "del", self.twin)
        self.until("the loss", lambda: "went with its namespace" in self.log())
        self.until("routes went", lambda: self.lookup(BEHIND[0])["action"] == "no_route")
        ip("netns", "add", self.twin)
        for name in ("cw-lan", "cw-wan"):
            self.until("it is there again", lambda n=name: "10.7" in self.addresses(n))
        ip("-n", self.twin, "route", "add", f"{BEHIND[0]}/32", "via", "10.77.0.2")
        self.until("a route", lambda: self.lookup(BEHIND[0]).get("via") == "10.77.0.2")


if __name__ == "__main__":
    harness.main()
