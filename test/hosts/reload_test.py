#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""While a reload reads and builds a large table the router goes on answering: ICMP, ARP, and the first packet to a neighbor."""
import os
import re
import subprocess
import time

from hosts import ADDRESSES, GATEWAYS, Taps, harness, ip

ROUTES = 200_000


class LargeTable(Taps):
    eal = ["--no-huge", "-m", "2048"]

    @classmethod
    def config(cls):
        config = super().config()
        config["tenants"][0].pop("acl")
        config.pop("acl")
        cls.table = f"/tmp/cachewire-table-{os.getpid()}.txt"
        cls.cleanup.callback(lambda: os.path.exists(cls.table) and os.remove(cls.table))
        cls.write_table(ADDRESSES[1][0])
        config["routes"] = [{"tenant": "hosts", "file": cls.table, "format": "prefixes"}]
        return config

    @classmethod
    def write_table(cls, via):
        with open(cls.table, "w", encoding="ascii") as file:
            file.writelines(f"{11 + n // 65536}.{n // 256 % 256}.{n % 256}.0/24 via {via}\n" for n in range(ROUTES))

    def test_the_router_answers_while_it_reloads(self):
        ip("-n", self.spaces[1], "addr", "add", "12.0.0.1/32", "dev", "lo")
        other = "10.78.0.77"
        ip("-n", self.spaces[1], "addr", "add", f"{other}/24", "dev", self.names[1])
        self.write_table(other)  # every route has another next hop, which nobody has asked for
        for _ in range(2):
            ping = self.inside(0, "ping", "-D", "-i", "0.01", "-w", "60", GATEWAYS[0][0])
            self.addCleanup(ping.kill)
            ping.stdout.readline()  # it runs
            ping.stdout.readline()
            subprocess.run(["ip", "-n", self.spaces[0], "neigh", "flush", "dev", self.names[0]], check=False, capture_output=True)
            begin = time.time()
            answer = self.cachewire.control(command="reload")
            end = time.time()
            ping.terminate()
            self.assertTrue(answer["ok"], answer)
            out = ping.communicate(timeout=30)[0]
            times = [float(at) for at in re.findall(r"^\[([0-9.]+)\] .*icmp_seq", out, re.M)]
            # By quarters of the time that it took: an answer in each but the outer ones, where a wait of its own might lie.
            quarters = {int(4 * (at - begin) / (end - begin)) for at in times if begin < at < end}
            self.assertLessEqual({1, 2}, quarters, f"{end - begin:.2f} s: {out[-500:]}")
            print(f"a reload of {ROUTES} routes took {end - begin:.2f} s; {sum(begin < at < end for at in times)} pings answered meanwhile", flush=True)
        self.assertEqual(self.cachewire.ask("/cachewire/route/lookup,hosts,12.0.0.1")["via"], other)
        out = self.output(self.inside(0, "ping", "-c", "3", "-i", "0.2", "-w", "20", "12.0.0.1"))
        self.assertIn("3 received", out)


if __name__ == "__main__":
    harness.main()
