#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own secondary processes attach: dpdk-proc-info and dpdk-dumpcap, on 2 MB pages that the test reserves and gives back."""
import os
import shutil
import struct
import subprocess
import tempfile

import harness
import packets as p
from harness import HOST, MAC, Cachewire

PAGES = 256  # of 2 MB
POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB"


def number(path, value=None):
    with open(path, "r+" if value is not None else "r", encoding="ascii") as file:
        if value is not None:
            file.write(str(value))
            file.seek(0)
        return int(file.read())


class HugePages:
    """PAGES free 2 MB pages and a mount of its own for them; None when the machine has none to give."""

    def __init__(self):
        self.added, self.mount = 0, None

    def reserve(self):
        if os.geteuid() != 0:
            return "needs root"
        if not os.path.isdir(POOL):
            return "the kernel has no 2 MB pages"
        try:
            free = number(f"{POOL}/free_hugepages")
            if free < PAGES:
                before = number(f"{POOL}/nr_hugepages")
                self.added = number(f"{POOL}/nr_hugepages", before + PAGES - free) - before
            if number(f"{POOL}/free_hugepages") < PAGES:
                return f"fewer than {PAGES} pages of 2 MB are to be had"
            self.mount = tempfile.mkdtemp(prefix="cachewire-huge-")
            if subprocess.run(["mount", "-t", "hugetlbfs", "-o", "pagesize=2M", "none", self.mount], capture_output=True, check=False).returncode:
                return "mount -t hugetlbfs is not allowed here"
        except OSError as error:
            return f"2 MB pages: {error}"
        return None

    def release(self):
        if self.mount:
            subprocess.run(["umount", self.mount], capture_output=True, check=False)
            os.rmdir(self.mount)
        if self.added:
            number(f"{POOL}/nr_hugepages", max(0, number(f"{POOL}/nr_hugepages") - self.added))


def pcapng_packets(path):
    """Enhanced packet blocks of a pcapng file."""
    with open(path, "rb") as file:
        data = file.read()
    count, at = 0, 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if length < 12:
            break
        count += kind == 6
        at += length
    return count


class Secondary(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.pages = HugePages()
        cls.why_not = cls.pages.reserve()

    @classmethod
    def tearDownClass(cls):
        cls.pages.release()

    def setUp(self):
        if self.why_not:
            self.skipTest(self.why_not)

    def start(self, left=None):
        folder = self.folder()
        p.write_pcap(f"{folder}/in.pcap", [p.ether(MAC[0], HOST[0], p.udp_packet("198.18.1.9", "198.18.2.9", n, 53)) for n in range(64)])
        config = harness.router(left or f"net_pcap0,rx_pcap={folder}/in.pcap,infinite_rx=1", "net_null1,no-rx=1")
        cachewire = Cachewire(config, folder=folder, eal=["-m", "256", "--huge-dir", self.pages.mount])
        self.addCleanup(cachewire.__exit__)
        cachewire.start().wait_received(1)
        return cachewire

    def tool(self, name):
        path = shutil.which(name)
        if path is None:
            self.skipTest(f"{name} is not installed")
        return path

    def test_proc_info_reads_the_ports(self):
        cachewire = self.start("net_null0")  # with net_pcap 22.11's proc-info prints everything and then crashes in that driver
        done = subprocess.run([self.tool("dpdk-proc-info"), "--file-prefix", cachewire.prefix, "--huge-dir", self.pages.mount, "--no-pci", "--", "--stats"],
                              capture_output=True, text=True, timeout=harness.PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"RX-packets: *[1-9]")
        result = cachewire.stop()
        self.assertEqual(result.status, 0, result)

    def test_dumpcap_captures_packets(self):
        cachewire = self.start()
        path = cachewire.path("dump.pcapng")
        done = subprocess.run([self.tool("dpdk-dumpcap"), f"--file-prefix={cachewire.prefix}", "-i", "0", "-c", "50", "-w", path],
                              capture_output=True, text=True, timeout=harness.PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreaterEqual(pcapng_packets(path), 50, done.stdout + done.stderr)
        ledger = cachewire.wait_received(1)
        self.assert_closed(ledger)
        result = cachewire.stop()
        self.assertEqual(result.status, 0, result)

    def test_killed_on_huge_pages_it_starts_again(self):
        """B94: the dead process's hugepage files don't block the next start with the same prefix."""
        cachewire = self.start()
        cachewire.process.kill()
        cachewire.process.wait()
        self.assertNotEqual(os.listdir(self.pages.mount), [], "nothing left behind, so nothing shown")
        with Cachewire(None, folder=cachewire.folder, prefix=cachewire.prefix, eal=["-m", "256", "--huge-dir", self.pages.mount]) as again:
            again.wait_received(1)
            result = again.stop()
        self.assertEqual(result.status, 0, result)


if __name__ == "__main__":
    harness.main()
