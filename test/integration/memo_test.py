#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The memo of a running process: its counters, the switch, and that traffic doesn't notice."""
import os
import subprocess

import harness
import packets as p
from harness import HOST, MAC, Cachewire

CWCTL = os.path.join(os.path.dirname(os.path.dirname(harness.BINARY)), "tools", "cwctl")
KEYS = ("hits misses stale bypass_fragment bypass_icmp_error bypass_options bypass_outcome_full bypass_other "
        "shadow_checked shadow_mismatch alarm memoize shadow_check").split()


class Memo(harness.Case):
    def test_the_switch_holds_over_reloads_and_no_packet_is_dropped(self):
        folder = self.folder()
        frames = [p.ether(MAC[0], HOST[0], p.udp_packet("198.18.1.9", "198.18.2.9", n + 1, 53)) for n in range(16)]
        p.write_pcap(f"{folder}/in.pcap", frames)
        config = harness.router(f"net_pcap0,rx_pcap={folder}/in.pcap,infinite_rx=1", "net_null1,no-rx=1")
        for key in ("interfaces", "neighbors", "routes"):
            config[key] = [{"tenant": "all", **entry} for entry in config[key]]
        config["tenants"] = [{"name": "all", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "acl": "list"}]
        config["acl"] = [{"name": "list", "stateful": True, "rules": [{"action": "permit", "proto": "udp"}]}]
        config["pipeline"] = {"shadow_check": 10}
        with Cachewire(config, folder=folder) as cachewire:
            def stats():
                return cachewire.ask("/cachewire/memo/stats")

            def rising(key, others=()):
                before = stats()
                cachewire.wait(f"{key} rises", lambda c: stats()[key] > before[key] + 1000)
                after = stats()
                for other in others:
                    self.assertEqual(after[other], before[other], other)

            def cwctl(*arguments):
                subprocess.run([CWCTL, "-p", cachewire.prefix, *arguments], check=True, capture_output=True, timeout=harness.PATIENCE)

            cachewire.wait_received(1)
            self.assertEqual(list(stats()), KEYS)
            rising("hits")
            rising("shadow_checked", ["stale", "bypass_other"])
            cwctl("memoize", "off")
            self.assertEqual(stats()["memoize"], 0)
            rising("bypass_other", ["hits", "stale", "misses"])
            self.assertEqual(cachewire.ask("/cachewire/info")["overrides"], 1)
            self.assertEqual(cachewire.ask("/cachewire/override/list"), {"0": {"what": "memoize", "value": "off"}})
            self.assertTrue(cachewire.control(command="reload")["ok"])
            self.assertEqual(stats()["memoize"], 0)
            cwctl("memoize", "on")
            self.assertEqual(cachewire.ask("/cachewire/info")["overrides"], 0)
            rising("hits", ["bypass_other"])
            self.assertEqual((stats()["shadow_mismatch"], stats()["alarm"]), (0, 0))
            self.assertEqual(cachewire.ask("/cachewire/drops")["total"], 0)
            self.assertEqual(cachewire.stop().status, 0)


if __name__ == "__main__":
    harness.main()
