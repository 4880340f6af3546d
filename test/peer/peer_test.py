#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`cachewire-bench peer`: what it says of forwarders that forward, and of those that don't; and tools/peers/ovs-dpdk, where Open vSwitch
on DPDK is installed. No rate is asserted, only that there is one."""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
import harness  # noqa: E402

BENCH = os.environ.get("CACHEWIRE_BENCH", os.path.join(harness.ROOT, "build", "bench", "cachewire-bench"))
CACHEWIRE = os.environ.get("CACHEWIRE", os.path.join(harness.ROOT, "build", "app", "cachewire"))
OVS = os.path.join(harness.ROOT, "tools", "peers", "ovs-dpdk")
OVS_DAEMON = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
TESTPMD = ("dpdk-testpmd -l 0,1 {memory} --no-pci --file-prefix {prefix} --vdev {west} --vdev {east} -- --forward-mode=io --auto-start "
           "--stats-period=1000 --no-mlockall --total-num-mbufs=16384")


def free_huge_megabytes():
    with open("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", encoding="utf-8") as file:
        return 2 * int(file.read())


def processes_in(folder):
    """Command lines of what runs with a file of this folder's."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                line = file.read().replace("\0", " ")
        except OSError:
            continue
        if folder in line:
            found.append(line)
    return found


class PeerTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="peer-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def peer(self, *peers):
        """(exit status, variants by name)."""
        path = os.path.join(self.folder, "peer.json")
        command = [BENCH, "peer", "--starts", "1", "--json", path, "--cachewire", CACHEWIRE]
        for peer in peers:
            command += ["--peer", peer]
        done = subprocess.run(command, env={**os.environ, "TMPDIR": self.folder}, capture_output=True, text=True, timeout=280, check=False)
        print(done.stdout, done.stderr)
        self.assertTrue(os.path.exists(path), done.stdout + done.stderr)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual(processes_in(self.folder), [])
        self.assertEqual(os.listdir(self.folder), ["peer.json"], "a forwarder left files")
        return done.returncode, {v["name"]: v for v in document["variants"]}

    def assert_forwards(self, variant, frames):
        self.assertNotIn("failure", variant)
        self.assertEqual(len(variant["starts"]), 1)
        self.assertGreater(variant["starts"][0], 0)
        self.assertEqual(variant["frames"], frames)

    def test_one_that_forwards_and_one_that_ends(self):
        status, variants = self.peer("io=" + TESTPMD, "gone=echo what is wrong; exit 1")
        self.assertEqual(status, 3)
        self.assertEqual(list(variants), ["io", "gone", "cachewire", "cachewire-stateless"])
        self.assert_forwards(variants["io"], "as it was")
        self.assert_forwards(variants["cachewire"], "new MACs, TTL less")
        self.assert_forwards(variants["cachewire-stateless"], "new MACs, TTL less")
        self.assertNotIn("starts", variants["gone"])
        self.assertTrue(variants["gone"]["failure"].startswith("it has ended: it made none of its memif sockets"), variants["gone"])
        self.assertIn("what is wrong", variants["gone"]["failure"])

    def test_two_of_one_name_are_refused(self):
        done = subprocess.run([BENCH, "peer", "--peer", "a=true", "--peer", "a=false"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("two forwarders are called a", done.stderr)


class OvsTest(PeerTest):
    test_one_that_forwards_and_one_that_ends = None
    test_two_of_one_name_are_refused = None

    def setUp(self):
        if not os.path.exists(OVS_DAEMON):
            self.skipTest("openvswitch-switch-dpdk is not installed")
        if os.geteuid() != 0 or free_huge_megabytes() < 2048:
            self.skipTest("needs root and 2 GB of free 2 MB pages")
        super().setUp()

    def test_it_forwards_and_tracks(self):
        status, variants = self.peer(f"route={OVS} {{west}} {{east}} {{prefix}} --mode route", f"ct={OVS} {{west}} {{east}} {{prefix}} --mode ct")
        self.assertEqual(status, 0)
        self.assert_forwards(variants["route"], "new MACs, TTL less")
        self.assert_forwards(variants["ct"], "as it was")

    def test_what_it_started_goes_with_it(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            devices = [f"net_memif{n},role=server,socket={self.folder}/{number.name}{n}.sock,socket-abstract=no" for n in range(2)]
            with subprocess.Popen([OVS, *devices, "peer-test"], env={**os.environ, "TMPDIR": self.folder}, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) as process:
                said = []
                while not (said and said[-1].startswith("ready:")):
                    said.append(process.stdout.readline())
                    self.assertTrue(said[-1], "it does not start: " + "".join(said))
                self.assertEqual(len(processes_in(self.folder)), 3)
                process.send_signal(number)
                process.wait(20)
            deadline = time.monotonic() + 10
            while processes_in(self.folder) and time.monotonic() < deadline:
                time.sleep(0.1)
            self.assertEqual(processes_in(self.folder), [])
            if number == signal.SIGTERM:
                self.assertEqual(glob.glob(f"{self.folder}/ovs-dpdk-*"), [])

    def test_a_mode_that_there_is_not(self):
        done = subprocess.run([OVS, "a", "b", "c", "--mode", "fly"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("fly", done.stderr)


if __name__ == "__main__":
    harness.main()
