#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A port that is added and deleted a hundred times while packets leave by it (B80): who doesn't use it loses nothing, who does loses
packets by name, and nothing stays behind: no mbuf, no memory of DPDK's heap, no file, no thread, no line of telemetry."""
import copy
import os
import time
import unittest

import harness
import packets as p
from harness import HOST, MAC, Cachewire

ROUNDS = 100
FLOWS = 32  # of each tenant
VLAN = 7
# What becomes of packets whose way out goes: no route any more, for a moment a port that is no more, or a queue that is full.
GOING = {"no_route", "port_down", "tx_full"}


def flows(port, network, vlan=None):
    tags = [(0x8100, vlan)] if vlan else []
    return [p.ether(MAC[0], HOST[0], p.udp_packet("198.18.1.9", f"198.18.{network}.9", port + n, 53), vlans=tags) for n in range(FLOWS)]


def config(folder, device, with_port):
    """Port 0 receives without end; what `staying` sends leaves by port 1, what `going` sends (VLAN 7) by the port that comes and goes."""
    result = harness.router(f"net_pcap0,rx_pcap={folder}/in.pcap,infinite_rx=1", "net_null1,no-rx=1")
    result["memory"]["mbufs"] = "auto"
    for key in ("interfaces", "neighbors", "routes"):
        result[key] = [{"tenant": "staying", **entry} for entry in result[key]]
    result["tenants"] = [
        {"name": "staying", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "acl": "all", "sessions": "track"},
        {"name": "going", "id": 2, "match": [{"port": "p0", "vlan": VLAN}], "acl": "all", "sessions": "track"}]
    result["acl"] = [{"name": "all", "default": "permit"}]
    result["interfaces"].append({"name": "i0-going", "tenant": "going", "port": "p0", "vlan": VLAN, "addresses": ["10.1.0.1/16"]})
    result["sessions"]["timeouts"] = {"new": "1h"}  # no reply ever comes
    if with_port:
        result["ports"].append({"name": "extra", "device": device, "mac": "02:00:00:00:01:02", "txq": 1, "rxq": 1})
        result["tenants"][1]["match"].append({"port": "extra"})
        result["interfaces"].append({"name": "i2", "tenant": "going", "port": "extra", "addresses": ["10.3.0.1/16"]})
        result["neighbors"].append({"tenant": "going", "address": "10.3.0.2", "mac": "02:00:00:00:02:02"})
        result["routes"].append({"tenant": "going", "prefix": "198.18.3.0/24", "via": "10.3.0.2"})
    return result


class Ports(harness.Case):
    def reload(self, cachewire, wanted):
        cachewire.write(wanted)
        answer = cachewire.control(command="reload")
        self.assertTrue(answer["ok"], answer)

    def drops(self, cachewire, tenant):
        return {reason: n for reason, n in cachewire.ask(f"/cachewire/drops,{tenant}").items() if n and reason != "total"}

    def fewest(self, folder):
        """A client of the telemetry socket has a file and a thread for a while after it has gone."""
        counts = []
        for _ in range(20):
            counts.append(len(os.listdir(folder)))
            time.sleep(0.02)
        return min(counts)

    def at_rest(self, cachewire, wanted):
        """With port 0 down: what is in use when nothing is on its way."""
        down = copy.deepcopy(wanted)
        down["ports"][0]["admin"] = "down"
        self.reload(cachewire, down)
        # The capture's device keeps a copy of each of its packets.
        cachewire.wait("an empty pipeline", lambda c: c.ask("/cachewire/ledger")["held"] == 0)
        cachewire.wait("all mbufs", lambda c: (m := c.ask("/cachewire/memory")["mbufs"])["free"] == m["size"] - 2 * FLOWS)
        heap = cachewire.ask("/eal/heap_info,0")
        process = f"/proc/{cachewire.process.pid}"
        rest = {"lost": cachewire.ask("/cachewire/memory")["mbufs"]["lost"],
                "heap": (heap["Alloc_size"], heap["Alloc_count"]), "files": self.fewest(f"{process}/fd"), "threads": self.fewest(f"{process}/task"),
                "devices": cachewire.ask("/ethdev/list"), "pools": cachewire.ask("/mempool/list"), "zones": cachewire.ask("/eal/memzone_list"),
                "commands": cachewire.ask("/")}
        for name in ("port", "interface", "tenant", "neighbor"):
            rest[name] = [entry.get("name", entry.get("address")) for entry in cachewire.ask(f"/cachewire/{name}/list").values() if isinstance(entry, dict)]
        rest["drops"] = sorted(cachewire.ask("/cachewire/drops"))
        self.reload(cachewire, wanted)
        return rest

    def come_and_go(self, device, workers, also=()):
        folder = self.folder()
        p.write_pcap(f"{folder}/in.pcap", flows(1000, 2) + flows(2000, 3, VLAN))
        without, with_port = (config(folder, device, yes) for yes in (False, True))
        cpus = sorted(os.sched_getaffinity(0))
        cachewire = Cachewire(without, folder=folder)
        cachewire.command[1:3] = ["--lcores", f"0@{cpus[0]},(1-{workers})@{cpus[-1]}"]
        # Two workers on one CPU fill the ring to the one that doesn't run.
        shared = {"handoff_full"} if workers > 1 else set()
        with cachewire:
            cachewire.wait_received(4 * FLOWS)
            before, sent = None, 0
            for number in range(ROUNDS):
                if number == 3:  # what is made once is made
                    before = self.at_rest(cachewire, without)
                self.reload(cachewire, with_port)
                sent = cachewire.wait("packets by the port", lambda c, s=sent: (n := c.ask("/cachewire/port/stats,extra")["tx_packets"]) > s + FLOWS and n)
                self.reload(cachewire, without)
                self.assertEqual(cachewire.ask("/ethdev/list"), [0, 1])
                if number % 10 == 0:
                    self.assert_closed(cachewire.ask("/cachewire/ledger"))
            self.assertEqual(self.at_rest(cachewire, without), before)
            self.assertLessEqual(set(self.drops(cachewire, "staying")), shared)
            lost = self.drops(cachewire, "going")
            self.assertGreater(lost["no_route"], 0)
            self.assertLessEqual(set(lost), GOING | shared | set(also))
            stats = cachewire.ask("/cachewire/session/stats,staying")
            self.assertEqual((stats["created"], stats["active"]), (FLOWS, FLOWS), stats)
            result = cachewire.stop()
        self.assertEqual(result.status, 0, result)
        self.assertIn("unaccounted 0", result.stdout)
        self.assertNotIn("not returned to their pool", result.stderr)

    # What a ring device sends it receives, so frames lie in it when it is deleted.
    def test_a_ring_port_comes_and_goes_under_load(self):
        self.come_and_go("net_ring2", 1)

    def test_a_ring_port_comes_and_goes_under_load_of_two_workers(self):
        self.come_and_go("net_ring2", 2)

    @unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/net/tun"), "needs root and /dev/net/tun")
    def test_a_tap_comes_and_goes_under_load(self):
        # Linux asks for routers on an interface of its own.
        self.come_and_go(f"net_tap2,iface=cwgo{os.getpid() % 100000}", 1, {"multicast"})


if __name__ == "__main__":
    harness.main()
