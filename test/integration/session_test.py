#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of a running process: counted, listed, looked up, ended, limited."""
import contextlib
import json
import os
import subprocess

import harness
import packets as p
from harness import HOST, MAC, Cachewire

CWCTL = os.path.join(os.path.dirname(os.path.dirname(harness.BINARY)), "tools", "cwctl")
FLOWS = 300
STATS = "capacity active created expired evicted closed quota_denied table_full bucket_full time_to_full_s"
STATES = "new one_sided established half_close time_wait reset closed"
FIELDS = ("proto src src_port dst dst_port reply_src reply_src_port reply_dst reply_dst_port state age_s idle_s packets bytes reply_packets "
          "reply_bytes verdict rule next_hop reply_next_hop")


class Sessions(harness.Case):
    @contextlib.contextmanager
    def running(self, quota=None, **sessions):
        """Port 0 receives UDP flows 1000 to 1299 without end; there is no reply."""
        folder = self.folder()
        frames = [p.ether(MAC[0], HOST[0], p.udp_packet("198.18.1.9", "198.18.2.9", 1000 + n, 53)) for n in range(FLOWS)]
        p.write_pcap(f"{folder}/in.pcap", frames)
        config = harness.router(f"net_pcap0,rx_pcap={folder}/in.pcap,infinite_rx=1", "net_null1,no-rx=1")
        for key in ("interfaces", "neighbors", "routes"):
            config[key] = [{"tenant": "red", **entry} for entry in config[key]]
        config["tenants"] = [{"name": "red", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "acl": "list"},
                             {"name": "blue", "id": 2}]
        if quota:
            config["tenants"][0]["quota"] = quota
        config["acl"] = [{"name": "list", "stateful": True, "rules": [{"name": "dns", "action": "permit", "proto": "udp", "dst_ports": 53}]}]
        config["sessions"].update(sessions)
        with Cachewire(config, folder=folder) as cachewire:
            cachewire.wait_received(FLOWS)
            yield cachewire, config
            result = cachewire.stop()
            self.assertEqual(result.status, 0, result)
            self.assertIn("MiB in all", result.stderr)

    def stats(self, cachewire, tenant="red"):
        return cachewire.ask(f"/cachewire/session/stats,{tenant}")

    def listed(self, cachewire, tenant="red", count=7):
        sessions, cursor = {}, 0
        while cursor is not None:
            page = cachewire.ask(f"/cachewire/session/list,{tenant},{cursor},{count}")
            cursor = page.pop("next", None)
            self.assertLessEqual(len(page), count)
            self.assertFalse(set(page) & set(sessions))
            sessions.update(page)
        return sessions

    def test_counted_listed_and_looked_up(self):
        with self.running() as (cachewire, _):
            stats = self.stats(cachewire)
            self.assertLessEqual(set(STATS.split()), set(stats))
            self.assertEqual(sum(stats[f"state_{name}"] for name in STATES.split()), FLOWS)
            self.assertEqual((stats["active"], stats["created"], stats["state_new"]), (FLOWS, FLOWS, FLOWS))
            self.assertEqual(cachewire.ask("/cachewire/session/stats")["active"], FLOWS)
            self.assertEqual(self.stats(cachewire, "blue")["active"], 0)
            sessions = self.listed(cachewire)
            self.assertEqual(sorted(s["src_port"] for s in sessions.values()), list(range(1000, 1000 + FLOWS)))
            self.assertEqual(self.listed(cachewire, count=1000000).keys(), sessions.keys())
            self.assertEqual(self.listed(cachewire, "blue"), {})
            one = cachewire.ask("/cachewire/session/get,red,udp,198.18.1.9,1007,198.18.2.9,53")
            self.assertEqual(set(one), set(FIELDS.split()))
            expected = {"proto": "udp", "src": "198.18.1.9", "src_port": 1007, "dst": "198.18.2.9", "dst_port": 53,
                        "reply_src": "198.18.2.9", "reply_src_port": 53, "reply_dst": "198.18.1.9", "reply_dst_port": 1007,
                        "state": "new", "idle_s": 0, "reply_packets": 0, "reply_bytes": 0, "verdict": "permit", "rule": "dns",
                        "next_hop": "10.2.0.2 on i1", "reply_next_hop": "not known"}
            self.assertEqual({key: one[key] for key in expected}, expected)
            self.assertGreater(one["packets"], 0)
            self.assertEqual(one["bytes"], one["packets"] * 42)
            # From the reply's side it is the same session.
            turned = cachewire.ask("/cachewire/session/get,red,udp,198.18.2.9,53,198.18.1.9,1007")
            self.assertEqual(turned["src_port"], 1007)
            for wrong in ("get,red,udp,198.18.1.9,1,198.18.2.9,53", "get,red,udp,198.18.1.9", "get,red,what,198.18.1.9,1,198.18.2.9,2",
                          "get,red,udp,198.18.1.9,1,2001:db8::1,2", "get,red,udp,198.18.1.9,x,198.18.2.9,2", "list,nobody,0,1", "list",
                          "list,red,0,0", "stats,nobody"):
                with self.subTest(wrong=wrong):
                    self.assertIn("error", cachewire.ask(f"/cachewire/session/{wrong}"))

    def test_ended_by_a_filter(self):
        with self.running() as (cachewire, _):
            self.assertEqual(cachewire.control(command="sessions_kill", filter="tenant=red src_port=1007")["killed"], 1)
            self.assertEqual(cachewire.control(command="sessions_kill", filter="tenant=blue")["killed"], 0)
            # They come back at their next packet, so most but not all may be there at once.
            self.assertGreater(cachewire.control(command="sessions_kill", filter="proto=udp")["killed"], 0)
            cachewire.wait("every flow again", lambda c: self.stats(c)["active"] == FLOWS)
            self.assertGreater(self.stats(cachewire)["killed"], 1)
            for request in ({}, {"filter": ""}, {"filter": 5}, {"filter": "tenant=nobody"}, {"filter": "port=1"}, {"filter": "all", "now": True}):
                with self.subTest(request=request):
                    answer = cachewire.control(command="sessions_kill", **request)
                    self.assertFalse(answer["ok"])
                    self.assertTrue(answer["error"])

    def test_cwctl(self):
        if not os.path.exists(CWCTL):
            self.skipTest(f"{CWCTL} is not built")
        with self.running() as (cachewire, _):
            def cwctl(*arguments, status=0):
                done = subprocess.run([CWCTL, "-p", cachewire.prefix, *arguments], capture_output=True, text=True, timeout=harness.PATIENCE, check=False)
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                return done.stdout + done.stderr
            self.assertIn("state_new", cwctl("show", "sessions"))
            self.assertEqual(json.loads(cwctl("-j", "show", "sessions", "--tenant", "red"))["active"], FLOWS)
            self.assertEqual(len(json.loads(cwctl("-j", "sessions", "list", "--tenant", "red"))), FLOWS)
            self.assertIn("198.18.1.9:1007", cwctl("sessions", "list", "--tenant", "red"))
            self.assertEqual(cwctl("sessions", "kill", "tenant=red", "src_port=1007"), "1 sessions ended\n")
            cwctl("sessions", "kill", "tenant=nobody", status=1)
            cwctl("sessions", "kill", status=2)

    def test_a_quota_holds_and_a_reload_lifts_it(self):
        with self.running(quota={"sessions": 100}) as (cachewire, config):
            stats = self.stats(cachewire)
            self.assertEqual((stats["capacity"], stats["active"], stats["time_to_full_s"]), (100, 100, 0))
            self.assertGreater(stats["quota_denied"], 0)
            self.assertGreater(cachewire.ask("/cachewire/drops,red")["session_quota"], 0)
            del config["tenants"][0]["quota"]
            cachewire.write(config)
            self.assertTrue(cachewire.control(command="reload")["ok"])
            cachewire.wait("every flow", lambda c: self.stats(c)["active"] == FLOWS)

    def test_time_outs_and_eviction(self):
        with self.running(capacity=256, high_watermark="50%", timeouts={"new": "1s"}) as (cachewire, _):
            stats = cachewire.wait("evictions", lambda c: self.stats(c)["evicted"] > 1000 and self.stats(c))
            self.assertLessEqual(stats["active"], 128 + 64)
        with self.running(capacity=256, on_full="deny_new") as (cachewire, _):
            stats = self.stats(cachewire)
            self.assertEqual((stats["active"], stats["evicted"]), (230, 0))
            self.assertGreater(cachewire.ask("/cachewire/drops")["session_table_full"], 0)


if __name__ == "__main__":
    harness.main()
