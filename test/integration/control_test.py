#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asking and changing a running process: telemetry, the control socket, cwctl, reload."""
import contextlib
import copy
import json
import os
import signal
import shutil
import subprocess
import threading
import time

import harness
import packets as p
from harness import HOST, MAC, Cachewire

CWCTL = os.path.join(os.path.dirname(os.path.dirname(harness.BINARY)), "tools", "cwctl")
ENDPOINTS = {
    "/cachewire/info": "version dpdk pid uptime_s state config_file config_sha256 config_generation overrides restart_pending workers",
    "/cachewire/port/stats,p0": "rx_packets rx_bytes tx_packets tx_bytes rx_missed rx_errors rx_nombuf tx_dropped driver link",
    "/cachewire/ledger": "rx tx dropped punted consumed originated held unaccounted",
    "/cachewire/stage/stats": "rx parse session acl route qos tx",
}
STAGE = "packets bursts cycles cycles_per_packet"
WORKER = "lcore core socket rx tx busy_cycles total_cycles busy_percent longest_gap_us queues"


def router(folder):
    """Port 0 receives flow 53 and flow 54 without end; a list permits both."""
    frames = [p.ether(MAC[0], HOST[0], p.udp_packet("198.18.1.9", "198.18.2.9", n, dport)) for n in range(16) for dport in (53, 54)]
    p.write_pcap(f"{folder}/in.pcap", frames)
    config = harness.router(f"net_pcap0,rx_pcap={folder}/in.pcap,infinite_rx=1", "net_null1,no-rx=1")
    for key in ("interfaces", "neighbors", "routes"):
        config[key] = [{"tenant": "all", **entry} for entry in config[key]]
    config["tenants"] = [{"name": "all", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "acl": "list"}]
    config["acl"] = [{"name": "list", "default": "deny", "rules": [{"action": "permit", "proto": "udp", "dst_ports": "53-54"}]}]
    return config


def denying(config, port):
    changed = copy.deepcopy(config)
    changed["acl"][0]["rules"].insert(0, {"name": "changed", "action": "deny", "proto": "udp", "dst_ports": port})
    return changed


class Control(harness.Case):
    @contextlib.contextmanager
    def running(self):
        folder = self.folder()
        config = router(folder)
        with Cachewire(config, folder=folder) as cachewire:
            cachewire.wait_received(1)
            yield cachewire, config
            result = cachewire.stop()
            self.assertEqual(result.status, 0, result)

    def cwctl(self, cachewire, *arguments, status=0):
        done = subprocess.run([CWCTL, "-p", cachewire.prefix, *arguments], capture_output=True, text=True, timeout=harness.PATIENCE, check=False)
        self.assertEqual(done.returncode, status, f"cwctl {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def generation(self, cachewire):
        return cachewire.ask("/cachewire/info")["config_generation"]

    def test_endpoints_answer_in_their_documented_shape(self):
        with self.running() as (cachewire, _):
            for endpoint, keys in ENDPOINTS.items():
                with self.subTest(endpoint=endpoint):
                    self.assertLessEqual(set(keys.split()), set(cachewire.ask(endpoint)))
            info = cachewire.ask("/cachewire/info")
            self.assertEqual((info["state"], info["pid"], info["config_generation"], info["config_file"]), ("running", cachewire.process.pid, 1, cachewire.config_path))
            self.assertLessEqual(set(STAGE.split()), set(cachewire.ask("/cachewire/stage/stats")["parse"]))
            ports = cachewire.ask("/cachewire/port/list")
            self.assertEqual([ports[str(n)]["name"] for n in range(2)], ["p0", "p1"])
            workers = cachewire.ask("/cachewire/worker/stats")
            self.assertLessEqual(set(WORKER.split()), set(next(iter(workers.values()))))
            self.assertIsInstance(cachewire.ask("/cachewire/memory"), dict)
            for wrong in ("/cachewire/port/stats,nowhere", "/cachewire/drops,nobody"):
                self.assertIn("error", cachewire.ask(wrong) or {"error": "null answer"})

    def test_the_ledger_closes_while_packets_pass(self):
        with self.running() as (cachewire, _):
            last = 0
            for _ in range(200):
                ledger = cachewire.ask("/cachewire/ledger")
                self.assert_closed(ledger)
                self.assertGreaterEqual(ledger["rx"], last)
                last = ledger["rx"]

    def test_hangup_reloads_and_the_new_rules_hold(self):
        with self.running() as (cachewire, config):
            self.assertEqual(cachewire.ask("/cachewire/drops")["acl_deny"], 0)
            cachewire.write(denying(config, 54))
            cachewire.send(signal.SIGHUP)
            cachewire.wait("generation 2", lambda c: self.generation(c) == 2)
            cachewire.wait("denied packets", lambda c: c.ask("/cachewire/drops")["acl_deny"] > 1000)

    def test_a_wrong_file_changes_nothing(self):
        with self.running() as (cachewire, config):
            before = cachewire.ask("/cachewire/info")
            wrong = denying(config, 53)
            wrong["routes"].append({"tenant": "nobody", "prefix": "203.0.113.0/24", "via": "10.2.0.2"})
            cachewire.write(wrong)
            answer = cachewire.control(command="reload")
            self.assertFalse(answer["ok"])
            self.assertIn("routes[", json.dumps(answer))
            cachewire.send(signal.SIGHUP)
            cachewire.wait("the refusal", lambda c: "routes[" in "".join(c.output()))
            after = cachewire.ask("/cachewire/info")
            self.assertEqual((before["config_generation"], before["config_sha256"]), (after["config_generation"], after["config_sha256"]))
            self.assertEqual(cachewire.ask("/cachewire/drops")["acl_deny"], 0)

    def test_dry_run_says_and_does_not(self):
        with self.running() as (cachewire, config):
            cachewire.write(denying(config, 54))
            self.assertTrue(cachewire.control(command="reload", dry_run=True)["ok"])
            self.assertEqual(self.generation(cachewire), 1)
            self.assertTrue(cachewire.control(command="reload")["ok"])
            self.assertEqual(self.generation(cachewire), 2)

    def test_a_denied_flow_never_passes_over_a_hundred_reloads(self):
        """Rules are neither absent nor stale for a moment: every packet of the denied flow is counted as denied."""
        with self.running() as (cachewire, config):
            cachewire.write(denying(config, 54))
            self.assertTrue(cachewire.control(command="reload")["ok"])
            time.sleep(0.2)
            first = cachewire.ask("/cachewire/ledger")
            for number in range(100):
                config["acl"][0]["rules"] = [{"name": f"r{number}", "action": "permit", "proto": "udp", "dst_ports": 53}]
                cachewire.write(denying(config, 54))
                self.assertTrue(cachewire.control(command="reload")["ok"])
            last = cachewire.ask("/cachewire/ledger")
            self.assert_closed(last)
            self.assertEqual(self.generation(cachewire), 102)
            # Half of the capture's frames are the denied flow, and they alternate.
            sent, denied = last["tx"] - first["tx"], last["dropped"] - first["dropped"]
            self.assertGreater(denied, 1000)
            self.assertLessEqual(abs(sent - denied), 256 + 64, "packets passed that are denied, or were lost that are permitted")

    def test_malformed_control_requests_are_refused(self):
        with self.running() as (cachewire, _):
            for request in ({}, {"command": "no-such"}, {"command": 5}, {"command": "reload", "dry_run": "yes"},
                            {"command": "reload", "confirm": 120}):
                with self.subTest(request=request):
                    answer = cachewire.control(**request)
                    self.assertFalse(answer["ok"])
                    self.assertTrue(answer["error"])
            self.assertTrue(cachewire.control(command="reload", dry_run=True)["ok"])

    def test_cwctl_shows_and_reloads(self):
        if not os.path.exists(CWCTL):
            self.skipTest(f"{CWCTL} is not built")
        with self.running() as (cachewire, config):
            for what in ("info", "ports", "workers", "stages", "drops", "ledger", "memory"):
                with self.subTest(show=what):
                    self.assertTrue(self.cwctl(cachewire, "show", what).strip())
                    self.assertIsInstance(json.loads(self.cwctl(cachewire, "-j", "show", what)), (dict, list))
            self.assertEqual(json.loads(self.cwctl(cachewire, "-j", "show", "info"))["pid"], cachewire.process.pid)
            self.cwctl(cachewire, "reload", "--dry-run")
            self.cwctl(cachewire, "reload")
            self.assertEqual(self.generation(cachewire), 2)
            cachewire.write("version: 1\nprots: []\n")
            self.assertIn("prots", self.cwctl(cachewire, "reload", status=1))
            self.cwctl(cachewire, "show", "nonsense", status=2)
            self.cwctl(cachewire, status=2)
            cachewire.write(config)
        self.cwctl(cachewire, "show", "info", status=3)

    def test_the_log_says_who_changed_what(self):
        with self.running() as (cachewire, config):
            cachewire.write(denying(config, 54))
            self.cwctl(cachewire, "reload")
            self.cwctl(cachewire, "memoize", "off")
            self.cwctl(cachewire, "sessions", "kill", "proto=tcp")
            cachewire.write("version: 1\nprots: []\n")
            self.cwctl(cachewire, "reload", status=1)
            log = "".join(cachewire.output())
            who = rf"control socket: pid \d+, uid {os.getuid()}: "
            for line in (r'info: WHO\{"command":"reload","dry_run":false\}: done \{"generation":2\}', r'info: WHO\{"command":"memoize","on":false\}: done',
                         r'info: WHO\{"command":"sessions_kill","filter":"proto=tcp"\}: done \{"killed":0\}', r"error: .*:2:1: error: prots: unknown key",
                         r'warning: WHO\{"command":"reload","dry_run":false\}: refused: "the file has errors'):
                self.assertRegex(log, line.replace("WHO", who))

    def test_keys_that_wait_for_a_restart_are_counted(self):
        def pending():
            return cachewire.ask("/cachewire/info")["restart_pending"]
        with self.running() as (cachewire, config):
            self.assertEqual(pending(), 0)
            changed = copy.deepcopy(config)
            changed["sessions"]["capacity"] = 8192
            changed["memory"]["mbufs"] = 8192
            cachewire.write(changed)
            self.assertFalse(cachewire.control(command="reload", dry_run=True)["ok"])
            self.assertEqual(pending(), 0)
            answer = cachewire.control(command="reload")
            self.assertIn("sessions.capacity", answer["error"])
            self.assertEqual(pending(), 2)
            cachewire.write("version: 1\n")  # wrong: nothing new is known
            self.assertFalse(cachewire.control(command="reload")["ok"])
            self.assertEqual(pending(), 2)
            cachewire.write(config)
            self.assertTrue(cachewire.control(command="reload")["ok"])
            self.assertEqual(pending(), 0)

    def test_objects_are_listed(self):
        folder = self.folder()
        config = router(folder)
        config["tenants"][0].update(policer={"in": "slow", "out": "wide"}, quota={"sessions": 100}, sessions="track")
        config["tenants"].append({"name": "idle", "id": 7, "match": []})
        config["qos"] = {"policers": [{"name": "slow", "rate": "1Mbit", "burst": "3000B"}, {"name": "wide", "rate": "100Gbit", "burst": "1GiB"}, {"name": "unused", "rate": "1Gbit"}]}
        with Cachewire(config, folder=folder) as cachewire:
            cachewire.wait("violations", lambda c: c.ask("/cachewire/qos/stats")["0"]["violate_packets"] > 1000)
            interfaces = cachewire.ask("/cachewire/interface/list")
            self.assertEqual([interfaces[str(n)]["name"] for n in range(2)], ["i0", "i1"])
            self.assertEqual(interfaces["1"], {"name": "i1", "tenant": "all", "port": "p1", "vlan": 0, "inner_vlan": 0, "mtu": 1500, "mac": MAC[1], "admin": "up",
                                               "addresses": ["10.2.0.1/16", "2001:db8:2::1/64"]})
            self.assertEqual(len(cachewire.ask("/cachewire/interface/list,all")), 2)
            self.assertEqual(cachewire.ask("/cachewire/interface/list,idle"), {})
            self.assertEqual(list(cachewire.ask("/cachewire/interface/list,all,1,1")), ["1"])
            tenant = cachewire.ask("/cachewire/tenant/stats,all")
            fixed = {"name": "all", "id": 1, "sessions_quota": 100, "new_sessions_per_second_quota": "none", "session_mode": "track", "acl": "list", "policer_in": "slow", "policer_out": "wide"}
            self.assertEqual({key: tenant[key] for key in fixed}, fixed)
            self.assertEqual([cachewire.ask("/cachewire/tenant/list")[str(n)]["name"] for n in range(2)], ["all", "idle"])
            policers = cachewire.ask("/cachewire/qos/stats")
            self.assertEqual([(p["policer"], p["tenant"], p["direction"]) for p in policers.values()], [("slow", "all", "in"), ("wide", "all", "out")])
            slow = cachewire.ask("/cachewire/qos/stats,slow")["0"]
            self.assertEqual((slow["rate_bps"], slow["burst_bytes"], slow["exceed_packets"], slow["exceed_bytes"]), (1000000, 3000, 0, 0))
            self.assertEqual(slow["violate_bytes"] % slow["violate_packets"], 0)  # all frames are as long
            self.assertEqual(cachewire.ask("/cachewire/qos/stats,unused"), {})
            for wrong in ("interface/list,nobody", "tenant/stats", "tenant/stats,nobody", "qos/stats,nobody", "qos/stats,slow,x"):
                self.assertIn("error", cachewire.ask(f"/cachewire/{wrong}"), wrong)
            for what in ("interfaces", "tenants", "qos"):
                self.assertIn("all", self.cwctl(cachewire, "show", what))
            with open(cachewire.config_path, encoding="utf-8") as file:
                text = file.read()
            shown = json.loads(self.cwctl(cachewire, "-j", "show", "config"))
            self.assertEqual((shown["text"], shown["generation"], shown["sha256"]), (text, 1, cachewire.ask("/cachewire/info")["config_sha256"]))
            header, body = self.cwctl(cachewire, "show", "config").split("\n", 1)
            self.assertTrue(header.startswith(f"# {cachewire.config_path}, generation 1, sha256 "), header)
            self.assertEqual(body.rstrip("\n"), text)
            result = cachewire.stop()
            self.assertEqual(result.status, 0, result)

    def test_show_offers_what_answers_and_nothing_else(self):
        with self.running() as (cachewire, _):
            offered = self.cwctl(cachewire, "show", "nonsense", status=2).split("there are: ")[1].strip().split(", ")
            self.assertGreater(len(offered), 10)
            for what in offered:
                with self.subTest(show=what):
                    self.cwctl(cachewire, "show", what)
            for what in {"acl", "routes", "neighbors", "services"} - set(offered):
                with self.subTest(show=what):
                    self.assertIn("not supported yet", self.cwctl(cachewire, "show", what, status=2))

    def test_the_stock_client_works(self):
        client = shutil.which("dpdk-telemetry.py")
        if client is None:
            self.skipTest("dpdk-telemetry.py is not installed")
        with self.running() as (cachewire, _):
            done = subprocess.run([client, "-f", cachewire.prefix], input="/cachewire/info\n/ethdev/list\nquit\n", capture_output=True, text=True,
                                  timeout=harness.PATIENCE, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('"config_generation"', done.stdout)
            self.assertIn('"/ethdev/list"', done.stdout)

    def test_asked_all_the_time_from_before_start_until_after_stop(self):
        """B88. Every command that the socket lists, every 10 ms, over starts, reloads and stops."""
        for _ in range(5 if harness.SLOW else 2):
            folder = self.folder()
            config = router(folder)
            cachewire = Cachewire(config, folder=folder)
            done, asked, broken = threading.Event(), [], []

            def hammer():
                while not done.is_set():
                    try:
                        commands = [name for name in cachewire.ask("/") if name.startswith(("/cachewire", "/ethdev/list", "/eal"))]
                        for command in commands:
                            cachewire.ask(command)
                            asked.append(command)
                    except (OSError, KeyError):
                        pass  # not there yet, or not any more
                    except ValueError as error:
                        if "Expecting value: line 1 column 1" not in str(error):  # closed in the middle
                            broken.append(error)
                    time.sleep(0.01)
            thread = threading.Thread(target=hammer)
            thread.start()
            try:
                with cachewire:
                    cachewire.wait_received(1)
                    for number in range(20):
                        cachewire.write(denying(config, 54 - number % 2))
                        self.assertTrue(cachewire.control(command="reload")["ok"])
                    result = cachewire.stop()
                time.sleep(0.1)
            finally:
                done.set()
                thread.join()
            self.assertEqual(result.status, 0, result)
            self.assertEqual(broken, [])
            self.assertGreater(len(set(asked)), 5)


if __name__ == "__main__":
    harness.main()
