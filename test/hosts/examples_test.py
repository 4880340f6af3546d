#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every example of conf/ starts, forwards where something drives it, and stops; virtio and memif from a second process."""
import glob
import os
import re
import shutil
import subprocess

from hosts import HOST_MAC, ROUTER_MAC, harness, ip, packets, why_not

BUILD = os.path.dirname(os.path.dirname(harness.BINARY))


def example(name):
    with open(os.path.join(harness.ROOT, "conf", name), encoding="utf-8") as file:
        return file.read()


class Examples(harness.Case):
    def setUp(self):
        if reason := why_not():
            self.skipTest(reason)

    def run_example(self, text, then=lambda cachewire: None):
        text = text.replace("build/tools/", f"{BUILD}/tools/")
        # Each run has names of its own.
        tag = f"{os.getpid() % 100000}"
        for name in ("/tmp/cachewire-", "cw-"):
            text = text.replace(name, f"{name}{tag}-" if name.startswith("/") else f"cw{tag}")
        for path in glob.glob(f"/tmp/cachewire-{tag}-*"):
            os.unlink(path)
        with harness.Cachewire(text, eal=[]) as cachewire:
            cachewire.wait_running()
            then(cachewire)
            ledger = cachewire.ask("/cachewire/ledger")
            result = cachewire.stop()
        self.assertEqual(result.status, 0, result)
        self.assert_closed(ledger)
        return text, result

    def peer(self, vdevs, frames):
        """testpmd as the other end: what it receives on its first port it sends to its second. Frames come from and go to captures."""
        if shutil.which("dpdk-testpmd") is None:
            self.skipTest("dpdk-testpmd is not installed")
        folder = self.folder()
        packets.write_pcap(f"{folder}/in.pcap", frames)
        command = ["dpdk-testpmd", *harness.lcores(), "--no-huge", "-m", "256", "--no-pci", "--single-file-segments", "--file-prefix", f"cwpeer{os.getpid()}",
                   *[f"--vdev={vdev}" for vdev in vdevs], f"--vdev=net_pcap9,rx_pcap={folder}/in.pcap,tx_pcap={folder}/out.pcap", "--", "--no-flush-rx", "--no-mlockall",
                   "--total-num-mbufs=8192", "--forward-mode=io", "--auto-start", "--stats-period=1"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_kernel(self):
        names = [f"v{side}{os.getpid() % 10000}" for side in "AB"]
        for name in names:
            ip("link", "add", name, "type", "veth", "peer", "name", f"{name}h")
            self.addCleanup(subprocess.run, ["ip", "link", "del", name], check=False)
        self.run_example(example("kernel.yaml").replace("kernel:vA", f"kernel:{names[0]}").replace("kernel:vB", f"kernel:{names[1]}"))

    def test_pcap(self):
        text, _ = self.run_example(example("pcap.yaml"), lambda c: c.wait_received(1))
        path = re.search(r"tx_pcap=(/tmp/cachewire-\d+-right.pcap)", text)[1]
        self.assertTrue(packets.read_pcap(path))

    def test_null(self):
        def sees_frames(cachewire):
            cachewire.wait("frames", lambda c: c.ask("/cachewire/drops")["total"] > 1000)
        self.run_example(example("null.yaml"), sees_frames)

    def test_router(self):
        self.run_example(example("router.yaml"))

    def test_qos(self):
        self.run_example(example("qos.yaml"), lambda c: self.assertEqual(len(c.ask("/cachewire/qos/stats")), 2))

    def frames(self):
        return [packets.ether(ROUTER_MAC[0], HOST_MAC[0], packets.udp_packet("10.77.0.2", "10.78.0.2", sport=1000 + n)) for n in range(100)]

    def test_memif(self):
        def drive(cachewire):
            paths = sorted(set(re.findall(r"/tmp/cachewire-\d+-\w+\.sock", open(cachewire.config_path, encoding="utf-8").read())))
            self.peer([f"net_memif0,role=client,socket={paths[-2]},socket-abstract=no"], self.frames())
            cachewire.wait("the frames", lambda c: c.ask("/cachewire/port/stats,left")["rx_packets"] >= 100)
            self.assertGreaterEqual(cachewire.ask("/cachewire/port/stats,right")["tx_packets"] + cachewire.ask("/cachewire/ledger")["held"] + cachewire.ask("/cachewire/drops")["tx_full"], 100)
        self.run_example(example("memif.yaml"), drive)

    def test_vhost(self):
        def drive(cachewire):
            path = re.search(r"/tmp/cachewire-\d+-guest\.sock", open(cachewire.config_path, encoding="utf-8").read())[0]
            self.peer([f"net_virtio_user0,path={path}"], self.frames())
            cachewire.wait("the frames", lambda c: c.ask("/cachewire/port/stats,guest")["rx_packets"] >= 100)
            cachewire.wait("sent", lambda c: c.ask("/cachewire/port/stats,host")["tx_packets"] >= 100)
        self.run_example(example("vhost.yaml"), drive)


if __name__ == "__main__":
    harness.main()
