#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a running process can be told anew: everything of the file, ports included, without losing a packet or a session; reloads that
wait to be confirmed; files that are put together; what cwctl changes and no file says."""
import contextlib
import copy
import json
import os
import signal
import subprocess
import time

import harness
import packets as p
from harness import HOST, MAC, Cachewire

CWCTL = os.path.join(os.path.dirname(os.path.dirname(harness.BINARY)), "tools", "cwctl")
RELOADS = 1000 if harness.SLOW else 220
FLOWS = 64


def frame(number):
    return p.ether(MAC[0], HOST[0], p.udp_packet("198.18.1.9", "198.18.2.9", 1000 + number, 53))


def router(folder):
    """Port 0 receives FLOWS flows without end, one tenant tracks them, and all leave by port 1."""
    p.write_pcap(f"{folder}/in.pcap", [frame(n) for n in range(FLOWS)])
    config = harness.router(f"net_pcap0,rx_pcap={folder}/in.pcap,infinite_rx=1", "net_null1,no-rx=1")
    config["memory"]["mbufs"] = "auto"
    for key in ("interfaces", "neighbors", "routes"):
        config[key] = [{"tenant": "all", **entry} for entry in config[key]]
    config["tenants"] = [{"name": "all", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "acl": "list", "sessions": "track"}]
    config["acl"] = [{"name": "list", "default": "deny", "rules": [{"name": "dns", "action": "permit", "proto": "udp", "dst_ports": 53}]}]
    config["sessions"]["timeouts"] = {"new": "1h"}  # no reply ever comes
    return config


def with_tenant(config, name, port, vlan):
    """Another tenant with an interface of its own on that port."""
    config["tenants"].append({"name": name, "id": 100 + vlan, "match": [{"port": port, "vlan": vlan}], "acl": "list", "rpf": "loose"})
    config["interfaces"].append({"name": f"{name}-if", "tenant": name, "port": port, "vlan": vlan, "addresses": [f"172.16.{vlan % 250}.1/24"]})
    config["routes"].append({"tenant": name, "prefix": "203.0.113.0/24", "via": f"172.16.{vlan % 250}.2"})


def with_port(config, device, **more):
    config["ports"].append({"name": "extra", "device": device, "mac": "02:00:00:00:01:02", **more})
    config["tenants"][0]["match"].append({"port": "extra"})
    config["interfaces"].append({"name": "i2", "tenant": "all", "port": "extra", "addresses": ["10.3.0.1/16"]})
    config["neighbors"].append({"tenant": "all", "address": "10.3.0.2", "mac": "02:00:00:00:02:02"})
    config["routes"].append({"tenant": "all", "prefix": "198.18.3.0/24", "via": "10.3.0.2"})


def variant(base, number):
    """Every kind of change in turn: each of these differs from the ones before and after it."""
    config = copy.deepcopy(base)
    kind = number % 12
    if kind in (1, 6):
        config["acl"][0]["rules"].insert(0, {"name": f"r{number}", "action": "deny", "proto": "tcp", "dst_ports": 1 + number})
    if kind in (2, 6):
        with_tenant(config, f"t{number % 20}", "p1", 2 + number % 20)
    if kind in (3, 6):
        config["acl"].append({"name": f"other-{number}", "rules": [{"action": "permit", "dst": "192.0.2.0/24"}]})
    if kind in (4, 6):
        config["routes"] += [{"tenant": "all", "prefix": f"100.64.{n}.0/24", "via": "10.2.0.2"} for n in range(number % 50)]
    if kind in (5, 6):
        config["qos"] = {"policers": [{"name": "wide", "rate": "900Gbit", "burst": "1GiB"}]}
        config["tenants"][0]["policer"] = {"in": "wide"}
    if kind in (6, 7, 8, 9, 10):
        with_port(config, "net_null2,no-rx=1" if kind != 10 else "net_null3,no-rx=1", txq=1)
    if kind == 8:
        config["ports"].reverse()
    if kind == 9:
        config["ports"][2].update(admin="down", mac="02:00:00:00:01:03")
    if kind == 11:
        config["sessions"]["timeouts"]["icmp"] = f"{1 + number % 50}s"
        config["pipeline"] = {"burst": 16 + number % 32}
    return config


class Reloading(harness.Case):
    def cwctl(self, cachewire, *arguments, status=0):
        done = subprocess.run([CWCTL, "-p", cachewire.prefix, *arguments], capture_output=True, text=True, timeout=harness.PATIENCE, check=False)
        self.assertEqual(done.returncode, status, f"cwctl {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    @contextlib.contextmanager
    def running(self, change=lambda config: None, **options):
        folder = self.folder()
        config = router(folder)
        change(config)
        with Cachewire(config, folder=folder, **options) as cachewire:
            cachewire.wait_received(FLOWS)
            yield cachewire, config
            result = cachewire.stop()
            self.assertEqual(result.status, 0, result)
            self.assertNotIn("not returned to their pool", result.stderr)

    def reload(self, cachewire, config, **options):
        cachewire.write(config)
        answer = cachewire.control(command="reload", **options)
        self.assertTrue(answer["ok"], answer)
        return answer

    def generation(self, cachewire):
        return cachewire.ask("/cachewire/info")["config_generation"]

    def drops(self, cachewire):
        return {reason: count for reason, count in cachewire.ask("/cachewire/drops").items() if count}


class Reload(Reloading):
    def lose_nothing(self, workers):
        cpus = sorted(os.sched_getaffinity(0))
        lcores = ["--lcores", f"0@{cpus[0]},(1-{workers})@{cpus[-1]}"]
        folder = self.folder()
        base = router(folder)
        cachewire = Cachewire(base, folder=folder)
        cachewire.command[1:3] = lcores
        with cachewire:
            cachewire.wait_received(FLOWS)
            for number in range(1, RELOADS + 1):
                self.reload(cachewire, variant(base, number))
                if number % 50 == 0:
                    self.assert_closed(cachewire.ask("/cachewire/ledger"))
            self.reload(cachewire, base)
            self.assertEqual(self.generation(cachewire), RELOADS + 2)
            ports = cachewire.ask("/cachewire/port/list")
            self.assertEqual([ports[n]["name"] for n in ports], ["p0", "p1"])
            self.assertEqual(cachewire.ask("/ethdev/list"), [0, 1])
            # Two workers on one CPU fill the ring to the one that doesn't run; nothing else is ever lost.
            self.assertLessEqual(set(self.drops(cachewire)), {"handoff_full", "total"} if workers > 1 else set())
            stats = cachewire.ask("/cachewire/session/stats")
            self.assertEqual((stats["created"], stats["active"]), (FLOWS, FLOWS), stats)  # none was lost and begun anew
            before = cachewire.ask("/cachewire/ledger")
            sent = cachewire.ask("/ethdev/stats,0")["ipackets"]  # as the device counts what it has handed over
            after = cachewire.ask("/cachewire/ledger")
            self.assertLessEqual(before["rx"], sent)
            self.assertLessEqual(sent, after["rx"] + 64 * workers)
            result = cachewire.stop()
        self.assertEqual(result.status, 0, result)
        dropped = r"\d+" if workers > 1 else "0"
        self.assertRegex(result.stdout, rf"= tx \d+ \+ dropped {dropped} \+ punted 0 \+ consumed 0 \+ held 0, unaccounted 0")
        self.assertNotIn("not returned to their pool", result.stderr)

    def test_a_reload_gives_sessions_buckets_of_their_own(self):
        def change(config):
            config["tenants"][0].update(sessions="cache")
        with self.running(change) as (cachewire, config):
            before = cachewire.ask("/cachewire/memory")["sessions"]
            config["qos"] = {"policers": [{"name": "each", "rate": "8kbit", "burst": "2000B", "per_session": True}]}
            # Where nobody comes to it there is no array.
            config["acl"].append({"name": "unused", "stateful": True, "rules": [{"action": "permit", "policer": "each"}]})
            cachewire.write(config)
            self.assertEqual(cachewire.control(command="reload", dry_run=True)["memory"], {"sessions": {"more_bytes": 0}})
            self.reload(cachewire, config)
            self.assertEqual(cachewire.ask("/cachewire/memory")["sessions"]["bytes"], before["bytes"])
            config["tenants"][0]["policer"] = {"in": "each"}
            cachewire.write(config)
            more = cachewire.control(command="reload", dry_run=True)["memory"]["sessions"]["more_bytes"]
            self.assertGreaterEqual(more, 32 * before["capacity"])
            self.assertIn(f"buckets of sessions would take {more / 2**20:.1f} MiB more", self.cwctl(cachewire, "reload", "--dry-run"))
            self.assertEqual(cachewire.ask("/cachewire/memory")["sessions"]["bytes"], before["bytes"])
            self.reload(cachewire, config)
            self.assertEqual(cachewire.ask("/cachewire/memory")["sessions"]["bytes"], before["bytes"] + more)
            self.assertNotIn("would take", self.cwctl(cachewire, "reload", "--dry-run"))
            # Each session has its burst of some frames, and many times the rate comes.
            cachewire.wait("violations of all sessions", lambda c: c.ask("/cachewire/qos/stats")["0"]["violate_packets"] > 100 * before["active"])
            stats = cachewire.ask("/cachewire/qos/stats")["0"]
            self.assertEqual((stats["per_session"], stats["rate_bps"]), (1, 8000))
            self.assertGreater(stats["conform_bytes"], before["active"] * 2000 * 0.8)
            del config["tenants"][0]["policer"]
            del config["qos"]
            config["acl"].pop()
            self.reload(cachewire, config)
            self.assertEqual(cachewire.ask("/cachewire/qos/stats"), {})
            self.assertEqual(cachewire.ask("/cachewire/ledger")["unaccounted"], 0)

    def test_reloads_of_every_kind_at_full_rate_lose_nothing(self):
        self.lose_nothing(1)

    def test_reloads_of_every_kind_with_two_workers_lose_nothing(self):
        self.lose_nothing(2)

    def test_a_port_that_comes_by_reload_forwards_and_goes_again(self):
        with self.running() as (cachewire, base):
            folder = cachewire.folder
            p.write_pcap(f"{folder}/new.pcap", [p.ether("02:00:00:00:01:02", "02:00:00:00:02:02", p.udp_packet("198.18.3.9", "198.18.2.9", 7, 53)) for _ in range(100)])
            config = copy.deepcopy(base)
            with_port(config, f"net_pcap5,rx_pcap={folder}/new.pcap,tx_pcap={folder}/out.pcap")
            config["tenants"][0]["rpf"] = "strict"
            dry = cachewire.write(config) or cachewire.control(command="reload", dry_run=True)
            self.assertTrue(dry["ok"], dry)
            self.assertEqual(cachewire.ask("/ethdev/list"), [0, 1])
            self.reload(cachewire, config)
            cachewire.wait("its packets", lambda c: c.ask("/cachewire/port/stats,extra")["rx_packets"] == 100)
            self.assertEqual(cachewire.ask("/cachewire/port/stats,extra")["admin"], "up")
            self.assertEqual(self.drops(cachewire), {})
            # Rings of a device that stays are made once.
            changed = copy.deepcopy(config)
            changed["ports"][2]["rxd"] = 512
            cachewire.write(changed)
            answer = cachewire.control(command="reload")
            self.assertIn("ports[2].rxd/txd: a device's queues are made when it is opened", answer["error"])
            self.assertEqual(cachewire.ask("/cachewire/info")["restart_pending"], 1)
            # What can't be opened changes nothing.
            broken = copy.deepcopy(config)
            broken["ports"].append({"name": "broken", "device": "net_pcap6,rx_pcap=/no/such/file"})
            cachewire.write(broken)
            self.assertIn("broken", cachewire.control(command="reload")["error"])
            self.assertEqual(len(cachewire.ask("/ethdev/list")), 3)
            self.reload(cachewire, base)
            self.assertEqual(cachewire.ask("/ethdev/list"), [0, 1])
            self.assertIn("error", cachewire.ask("/cachewire/port/stats,extra"))
            # With the other rings: it was out in between. Under its name it counts on, and the capture is there once more.
            self.reload(cachewire, changed)
            self.assertEqual(len(cachewire.ask("/ethdev/list")), 3)
            cachewire.wait("its packets again", lambda c: c.ask("/cachewire/port/stats,extra")["rx_packets"] == 200)
            self.assertEqual(cachewire.ask("/cachewire/ledger")["unaccounted"], 0)

    def test_what_needs_a_restart_is_named_with_its_reason(self):
        with self.running() as (cachewire, base):
            for change, key, why in ((lambda c: c["memory"].update(mbuf_size=4096), "memory.mbuf_size", "the pool is made at the start"),
                                     (lambda c: c.update(workers={"idle": "adaptive"}), "workers.idle", "workers are told at the start"),
                                     (lambda c: c["ports"].append({"name": "nic", "device": "0000:03:00.0"}), "ports[2].device", "EAL is told of its NICs at the start"),
                                     (lambda c: c["ports"].append({"name": "again", "device": "net_null1,size=64"}) or c["ports"].pop(1), "ports[1].device", "is open as port 'p1'")):
                config = copy.deepcopy(base)
                change(config)
                for each in ("interfaces", "neighbors", "routes"):
                    if key == "ports[1].device":
                        config[each] = []
                if key == "ports[1].device":
                    config["tenants"][0]["match"].pop(1)
                cachewire.write(config)
                answer = cachewire.control(command="reload")
                self.assertFalse(answer["ok"])
                self.assertIn(f"{key}: {why}", answer["error"], answer)

    def test_a_reload_is_confirmed_or_goes_back(self):
        with self.running() as (cachewire, base):
            denying = copy.deepcopy(base)
            denying["acl"][0]["rules"] = []
            cachewire.write(denying)
            self.assertIn("is to be confirmed", self.cwctl(cachewire, "reload", "--dry-run", "--confirm", "9s", status=2))
            self.cwctl(cachewire, "reload", "--confirm", "2 minutes", status=2)
            self.assertIn("within 1s keeps it", self.cwctl(cachewire, "reload", "--confirm", "1s"))
            self.assertEqual(cachewire.ask("/cachewire/info")["confirm_in_s"], 1)
            self.assertIn("waits for `confirm`", cachewire.control(command="reload")["error"])
            cachewire.wait("the way back", lambda c: self.generation(c) == 3)
            self.assertEqual(cachewire.ask("/cachewire/info")["confirm_in_s"], 0)
            before = cachewire.ask("/cachewire/ledger")
            time.sleep(0.2)
            after = cachewire.ask("/cachewire/ledger")
            self.assertEqual(before["dropped"], after["dropped"])
            self.assertGreater(after["tx"], before["tx"])
            self.assertIn("was not confirmed", "".join(cachewire.output()))
            self.assertIn("no earlier configuration", self.cwctl(cachewire, "rollback", status=1))
            self.assertIn("no reload waits", self.cwctl(cachewire, "confirm", status=1))
            # Confirmed, it stays.
            self.cwctl(cachewire, "reload", "--confirm", "1s")
            self.assertIn("generation 4", self.cwctl(cachewire, "confirm"))
            time.sleep(1.5)
            self.assertEqual(self.generation(cachewire), 4)
            self.assertIn("generation 5", self.cwctl(cachewire, "rollback"))
            self.assertEqual(cachewire.ask("/cachewire/acl/list")["0"]["rules"], 1)

    def test_drift_between_files_and_running_is_shown(self):
        with self.running() as (cachewire, base):
            self.assertIn("generation 1 is what the files say", self.cwctl(cachewire, "show", "config", "--diff"))
            changed = copy.deepcopy(base)
            changed["acl"][0]["rules"][0]["name"] = "changed"
            cachewire.write(changed)
            said = self.cwctl(cachewire, "show", "config", "--diff", status=1)
            self.assertIn('-     "name": "dns"', said)
            self.assertIn('+     "name": "changed"', said)
            self.assertTrue(json.loads(self.cwctl(cachewire, "-j", "show", "config", "--diff", status=1))["drift"])
            self.cwctl(cachewire, "reload")
            self.cwctl(cachewire, "show", "config", "--diff")
            cachewire.write("version: 1\n")
            self.assertIn("ports: this key is missing", self.cwctl(cachewire, "show", "config", "--diff", status=1))
            self.cwctl(cachewire, "show", "info", "--diff", status=2)

    def test_included_files_are_read_anew(self):
        def including(config):
            config["include"] = ["tenants.d/*.yaml"]
            config["defaults"] = {"tenant": {"quota": {"sessions": 9}}}
        with self.running(including) as (cachewire, _):
            os.mkdir(cachewire.path("tenants.d"))
            sums = {cachewire.ask("/cachewire/info")["config_sha256"]}
            with open(cachewire.path("tenants.d/blue.yaml"), "w", encoding="utf-8") as file:
                file.write("tenants: [{name: blue, id: 2}]\n")
            cachewire.send(signal.SIGHUP)
            cachewire.wait("generation 2", lambda c: self.generation(c) == 2)
            self.assertEqual(cachewire.ask("/cachewire/tenant/stats,blue")["sessions_quota"], 9)
            sums.add(cachewire.ask("/cachewire/info")["config_sha256"])
            self.assertIn("tenants: [{name: blue, id: 2}]", self.cwctl(cachewire, "show", "config"))
            with open(cachewire.path("tenants.d/blue.yaml"), "w", encoding="utf-8") as file:
                file.write("# wrong\ntenants: [{name: blue, id: 1}]\n")
            answer = cachewire.control(command="reload")
            self.assertRegex(answer["diagnostics"][0], r"tenants.d/blue.yaml:2:28: error: tenants\[1\].id: 1 is the id of tenant 'all' already")
            os.unlink(cachewire.path("tenants.d/blue.yaml"))
            self.assertTrue(cachewire.control(command="reload")["ok"])
            self.assertIn("error", cachewire.ask("/cachewire/tenant/stats,blue"))
            sums.add(cachewire.ask("/cachewire/info")["config_sha256"])
            self.assertEqual(len(sums), 2)

    def test_a_dry_run_of_what_runs_counts_all_sessions(self):
        with self.running() as (cachewire, _):
            self.assertIn(f"0 of {FLOWS} live sessions", self.cwctl(cachewire, "reload", "--dry-run"))


class Overrides(Reloading):
    def counts(self, cachewire):
        return cachewire.ask("/cachewire/ledger"), self.drops(cachewire).get("blocked", 0)

    def blocked_wholly(self, cachewire):
        """From here on everything is dropped as blocked: nothing goes out any more."""
        time.sleep(0.1)
        before, _ = self.counts(cachewire)
        time.sleep(0.1)
        after, blocked = self.counts(cachewire)
        return before["tx"] == after["tx"] and blocked > 0

    def test_a_block_stops_sessions_at_once_and_ends_by_itself(self):
        for policy in ("revalidate", "keep", "kill"):
            def choose(config, policy=policy):
                config["sessions"]["on_policy_change"] = policy
                config["tenants"].append({"name": "free", "id": 2})
            with self.subTest(policy=policy), self.running(choose) as (cachewire, config):
                self.assertIn("there are several tenants", self.cwctl(cachewire, "block", "198.18.2.0/24", "--for", "9s", status=1))
                self.assertIn("the network is 198.18.2.0/24", self.cwctl(cachewire, "block", "198.18.2.9/24", "--tenant", "all", "--for", "9s", status=1))
                self.cwctl(cachewire, "block", "198.18.2.0/24", "--tenant", "nobody", "--for", "9s", status=1)
                self.cwctl(cachewire, "block", "198.18.2.0/24", "--tenant", "all", status=2)
                self.cwctl(cachewire, "block", "198.18.2.0/24", "--tenant", "free", "--for", "1h")  # another tenant's is not touched
                self.cwctl(cachewire, "block", "203.0.113.0/24", "--tenant", "all", "--for", "1h")
                self.assertEqual(self.drops(cachewire), {})
                self.assertIn("blocked for 2m", self.cwctl(cachewire, "block", "198.18.2.0/24", "--tenant", "all", "--for", "2m"))
                self.assertTrue(self.blocked_wholly(cachewire))
                self.assertEqual(cachewire.ask("/cachewire/info")["overrides"], 3)
                self.reload(cachewire, config)  # it survives that
                self.assertTrue(self.blocked_wholly(cachewire))
                self.assertIn("198.18.2.0/24", self.cwctl(cachewire, "show", "overrides"))
                self.cwctl(cachewire, "block", "198.18.2.0/24", "--tenant", "all", "--for", "1s")  # the same one, with another time
                cachewire.wait("its end", lambda c: c.ask("/cachewire/info")["overrides"] == 2)
                before, blocked = self.counts(cachewire)
                cachewire.wait("packets", lambda c: c.ask("/cachewire/ledger")["tx"] > before["tx"] + 10000)
                self.assertEqual(self.counts(cachewire)[1], blocked)
                self.assertEqual(cachewire.ask("/cachewire/session/stats")["created"], FLOWS)  # the sessions went on
                self.assertIn("no more", self.cwctl(cachewire, "unblock", "203.0.113.0/24", "--tenant", "all"))
                self.cwctl(cachewire, "unblock", "203.0.113.0/24", "--tenant", "all", status=1)
                self.assertEqual(set(self.drops(cachewire)), {"blocked", "total"})

    def test_a_tenant_without_list_and_without_sessions_is_blocked_too(self):
        def plain(config):
            del config["tenants"][0]["acl"]
            config["tenants"][0]["sessions"] = "none"
        with self.running(plain) as (cachewire, _):
            self.cwctl(cachewire, "block", "198.18.1.9", "--for", "1m")  # the source; the only tenant
            self.assertTrue(self.blocked_wholly(cachewire))
            self.cwctl(cachewire, "unblock", "198.18.1.9")
            self.assertEqual(cachewire.ask("/cachewire/info")["overrides"], 0)
            before = cachewire.ask("/cachewire/ledger")["tx"]
            cachewire.wait("packets", lambda c: c.ask("/cachewire/ledger")["tx"] > before)

    def test_blocks_are_bounded(self):
        with self.running() as (cachewire, _):
            for number in range(64):
                self.assertTrue(cachewire.control(command="block", prefix=f"203.0.113.{number}", for_s=60)["ok"])
            self.assertIn("which is the limit", cachewire.control(command="block", prefix="203.0.113.99", for_s=60)["error"])
            self.assertTrue(cachewire.control(command="block", prefix="203.0.113.5", for_s=90)["ok"])
            for wrong in ({}, {"prefix": "10.0.0.0/8"}, {"prefix": "x", "for_s": 5}, {"prefix": "10.0.0.0/8", "for_s": 0}, {"prefix": "10.0.0.0/8", "for_s": 5, "more": 1}):
                self.assertFalse(cachewire.control(command="block", **wrong)["ok"], wrong)

    def test_the_log_level_is_an_override(self):
        with self.running() as (cachewire, _):
            self.cwctl(cachewire, "log", "level", "loud", status=1)
            self.cwctl(cachewire, "log", "level", "warning")
            self.cwctl(cachewire, "reload")
            self.assertIn("warning", self.cwctl(cachewire, "show", "overrides"))
            said = len("".join(cachewire.output()))
            self.cwctl(cachewire, "memoize", "on")
            self.assertEqual(len("".join(cachewire.output())), said)
            self.cwctl(cachewire, "log", "level", "info")
            self.assertEqual(cachewire.ask("/cachewire/info")["overrides"], 0)
            self.cwctl(cachewire, "memoize", "off")
            self.assertRegex("".join(cachewire.output()), r'"memoize","on":false\}: done \{"memoize":"off"\}')


if __name__ == "__main__":
    harness.main()
