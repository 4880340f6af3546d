#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Start, stop and being killed: exit statuses, signals, what a killed process leaves behind, a second instance."""
import json
import os
import random
import signal
import socket
import time

import harness
import packets as p
from harness import HOST, MAC, Cachewire

SINKS = ("net_null0,no-rx=1", "net_null1,no-rx=1")


def busy(folder):
    """Port 0 receives without end what leaves by port 1."""
    p.write_pcap(f"{folder}/in.pcap", [p.ether(MAC[0], HOST[0], p.udp_packet("198.18.1.9", "198.18.2.9", n, 53)) for n in range(64)])
    return harness.router(f"net_pcap0,rx_pcap={folder}/in.pcap,infinite_rx=1", "net_null1,no-rx=1")


class Ends(harness.Case):
    def test_signals_under_load_end_with_0_and_a_closed_ledger(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            folder = self.folder()
            with self.subTest(signal=number.name), Cachewire(busy(folder), folder=folder) as cachewire:
                cachewire.wait_received(1000 * 64)
                result = cachewire.stop(number)
                self.assertEqual(result.status, 0, result)
                self.assertRegex(result.stdout + result.stderr, r"(?i)unaccounted\D*\b0\b")

    def test_signals_while_starting_end_with_0(self):
        for delay in (0.0, 0.05, 0.2, 0.4):
            with self.subTest(delay=delay), Cachewire(harness.router(*SINKS)) as cachewire:
                time.sleep(delay)
                result = cachewire.stop()
                # Before the handlers are in place the signal's default ends the process; nothing runs yet that could be lost.
                self.assertIn(result.status, (0, -signal.SIGTERM) if delay < 0.1 else (0,), result)

    def test_duration_ends_with_0(self):
        begin = time.monotonic()
        with Cachewire(harness.router(*SINKS), "--duration", "1") as cachewire:
            result = cachewire.finish()
        self.assertEqual(result.status, 0, result)
        self.assertGreaterEqual(time.monotonic() - begin, 1)

    def test_stats_period_prints_a_table(self):
        folder = self.folder()
        with Cachewire(busy(folder), "--duration", "3", "--stats-period", "1", folder=folder) as cachewire:
            result = cachewire.finish()
        self.assertEqual(result.status, 0, result)
        for word in ("p0", "p1", "drop"):
            self.assertIn(word, result.stdout)

    def test_wrong_usage_ends_with_2(self):
        folder = self.folder()
        path = f"{folder}/good.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write("version: 1\n")
        for arguments in ([], ["--"], ["--", "--config"], ["--", "--config", path, "--no-such-option"], ["check"],
                          ["--", "--config", path, "--duration", "soon"], ["no-such-command"]):
            with self.subTest(arguments=arguments):
                result = harness.run(*arguments)
                self.assertEqual(result.status, 2, result)
                self.assertTrue(result.stderr.strip(), "says nothing")

    def test_wrong_configuration_ends_with_1_and_names_every_error(self):
        text = "version: 1\nports:\n  - {name: a, device: net_null0, mtuu: 1500}\ninterfaces:\n  - {name: i, port: nowhere}\n"
        with Cachewire(text) as cachewire:
            result = cachewire.finish()
            path = cachewire.config_path
            checked = harness.run("check", path)
        for each in (result, checked):
            self.assertEqual(each.status, 1, each)
            self.assertRegex(each.stderr, rf"(?m)^{path}:3:\d+: error: ports\[0\]\.mtuu: .*mtu")
            self.assertRegex(each.stderr, rf"(?m)^{path}:5:\d+: error: interfaces\[0\]\.port: ")

    def test_a_wrong_eal_option_is_its_owners_fault_and_one_sentence(self):
        folder, lcores = self.folder(), harness.lcores()
        for eal, line, status, checked in ((["--no-hugh"], [], 1, 1), (["--vdev"], [], 1, 1), (["--iova-mode=x"], [], 1, 0), ([], ["--iova-mode=x"], 2, 0),
                                           (["--iova-mode=x"], ["-m", "64"], None, 0), ([], ["--no-hugh"], 2, 0)):
            with self.subTest(file=eal, line=line):
                path = f"{folder}/config.yaml"
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(harness.router(*SINKS, eal=[*lcores, "--no-huge", "--file-prefix", f"cwtest{os.getpid()}-eal", *eal]), file)
                result = harness.run(*line, "--", "--config", path)
                self.assertIn(result.status, (1, 2) if status is None else (status,), result)
                self.assertLess(len((result.stdout + result.stderr).splitlines()), 10, result)
                self.assertNotIn("Usage:", result.stdout)
                self.assertEqual(harness.run("check", path).status, checked)
        result = harness.run("-h", "--", "--config", path)
        self.assertIn("--iova-mode", result.stdout)

    def test_a_missing_file_ends_with_1(self):
        result = harness.run("--no-huge", "--", "--config", "/nonexistent/cachewire.yaml")
        self.assertEqual(result.status, 1, result)
        self.assertIn("/nonexistent/cachewire.yaml", result.stderr)

    def test_what_the_machine_lacks_ends_with_3(self):
        cases = {
            "memory for the mbufs": harness.router(*SINKS, memory={"mbufs": 4_000_000}),
            "a device that is not there": harness.router("net_pcap0,rx_pcap=/nonexistent.pcap", "net_null1"),
            "a driver that is not there": harness.router("net_nosuchdriver0", "net_null1"),
        }
        for what, config in cases.items():
            with self.subTest(what=what), Cachewire(config) as cachewire:
                result = cachewire.finish()
                self.assertEqual(result.status, 3, result)
                self.assertTrue(result.stderr.strip() or result.stdout.strip(), "says nothing")

    def test_too_few_queues_ends_with_3_and_names_the_port(self):
        config = harness.router("net_af_packet0,iface=lo", "net_null1")
        config["ports"][0]["rxq"] = 8
        with Cachewire(config) as cachewire:
            result = cachewire.finish()
        self.assertEqual(result.status, 3, result)
        self.assertIn("p0", result.stderr + result.stdout)


class Instances(harness.Case):
    def test_killed_at_any_moment_it_starts_again(self):
        """B94. With the same file prefix, so that the dead process's sockets and files are in the way."""
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        rng = random.Random(seed)
        prefix = f"cwkill{seed}"
        folder = self.folder()
        for _ in range(20 if harness.SLOW else 6):
            cachewire = Cachewire(busy(folder), folder=folder, prefix=prefix).start()
            time.sleep(rng.uniform(0, 1.5))
            cachewire.send(signal.SIGKILL)
            self.assertEqual(cachewire.finish().status, -signal.SIGKILL)
        with Cachewire(busy(folder), folder=folder, prefix=prefix) as cachewire:
            cachewire.wait_received(1)
            self.assertEqual(cachewire.stop().status, 0)

    def test_stops_within_five_seconds_with_clients_attached(self):
        folder = self.folder()
        with Cachewire(busy(folder), folder=folder) as cachewire:
            cachewire.wait_received(1)
            clients = []
            for name, kind in (("dpdk_telemetry.v2", socket.SOCK_SEQPACKET), ("cachewire_control", socket.SOCK_STREAM)):
                for _ in range(3):
                    client = socket.socket(socket.AF_UNIX, kind)
                    client.connect(cachewire.runtime_path(name))
                    self.addCleanup(client.close)
                    clients.append(client)
            begin = time.monotonic()
            result = cachewire.stop()
            self.assertEqual(result.status, 0, result)
            self.assertLess(time.monotonic() - begin, 5)

    def test_a_second_instance_with_the_same_prefix_is_refused(self):
        """B90. And the first one does not notice."""
        with Cachewire(harness.router(*SINKS)) as first:
            first.wait_running()
            with Cachewire(harness.router(*SINKS), prefix=first.prefix) as second:
                second.runtime_path = lambda name: f"{second.folder}/{name}"  # the sockets are the first one's
                result = second.finish()
            self.assertEqual(result.status, 3, result)
            self.assertTrue(result.stderr.strip(), result)
            self.assertEqual(first.ask("/cachewire/info")["pid"], first.process.pid)
            self.assertTrue(first.control(command="reload", dry_run=True)["ok"])
            self.assertEqual(first.stop().status, 0)

    def test_instances_with_different_prefixes_run_beside_each_other(self):
        with Cachewire(harness.router(*SINKS)) as first, Cachewire(harness.router(*SINKS)) as second:
            for each in (first, second):
                each.wait_running()
                self.assertEqual(each.ask("/cachewire/info")["pid"], each.process.pid)
            for each in (first, second):
                self.assertEqual(each.stop().status, 0)


if __name__ == "__main__":
    harness.main()
