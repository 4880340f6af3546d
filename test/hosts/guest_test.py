#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A real guest on a vhost-user port: qemu (TCG, no KVM needed) boots the distribution's cloud kernel with its own virtio driver and a
busybox, and talks through cachewire to a Linux host on a TAP. Kernel and busybox are downloaded as packages and unpacked in a folder of
the test's own; nothing is installed."""
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys

from hosts import ADDRESSES, HOST_MAC, HTTP_SERVE, MEGABYTE, ROUTER_MAC, SERVE, Hosts, harness, ip

QEMU = "qemu-system-x86_64"
# In the order in which they need each other.
MODULES = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "failover", "net_failover", "virtio_net"]
MEGABYTES = 8
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
for module in {modules}; do insmod /modules/$module.ko || echo "no module $module"; done
ip link set eth0 up
ip addr add {address}/24 dev eth0
arp -s {gateway} {router}
ip route add default via {gateway}
ping -c 10 -W 5 {peer}
ping -c 5 -W 5 -s 1472 {peer}
wget -q -O /file http://{peer}:{http}/file.bin
echo "fetched $(sha256sum < /file)"
nc {peer} {tcp} < /file
echo "guest is done"
sync
reboot -f
"""


class Packages:
    """Kernel, modules and busybox out of the distribution's packages."""

    def __init__(self, folder):
        self.folder = folder
        meta = subprocess.run(["apt-cache", "depends", "linux-image-cloud-amd64"], check=True, capture_output=True, text=True).stdout
        kernel = re.search(r"Depends: (linux-image-\S+)", meta)[1]
        subprocess.run(["apt-get", "download", kernel, "busybox-static"], check=True, capture_output=True, cwd=folder)
        for package in glob.glob(f"{folder}/*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, folder], check=True, capture_output=True)
        self.kernel = glob.glob(f"{folder}/boot/vmlinuz-*")[0]

    def content(self, pattern):
        with open(glob.glob(f"{self.folder}/{pattern}", recursive=True)[0], "rb") as file:
            return file.read()


def why_no_guest():
    if os.uname().machine != "x86_64":
        return "the guest is an x86-64 one"
    for tool in (QEMU, "apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed; ./tools/install-deps --slow brings qemu"
    return None


def archive(files):
    """A cpio archive (newc) of {path: (mode, content)}."""
    out = bytearray()
    for number, (path, (mode, content)) in enumerate([*files.items(), ("TRAILER!!!", (0, b""))]):
        name = path.encode() + b"\0"
        out += b"070701" + b"".join(b"%08x" % field for field in (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)) + name
        out += bytes(-len(out) % 4) + content
        out += bytes(-len(out) % 4)
    return bytes(out)


class Guest(Hosts):
    @classmethod
    def devices(cls):
        cls.socket = f"/tmp/{cls.names[0]}.sock"
        return [f"net_vhost0,iface={cls.socket}", f"net_tap1,iface={cls.names[1]}"]

    @classmethod
    def setUpClass(cls):
        cls.reason = why_no_guest()
        if not cls.reason:
            super().setUpClass()

    @classmethod
    def after(cls):
        ip("link", "set", cls.names[1], "netns", cls.spaces[1])
        cls.configure(1, cls.names[1])

    def initramfs(self, unpacked, init):
        files = {name: (0o040755, b"") for name in ("bin", "dev", "proc", "sys", "modules")}
        files["bin/busybox"] = (0o100755, unpacked.content("**/bin/busybox"))
        files["init"] = (0o100755, init.encode())
        files |= {f"modules/{name}.ko": (0o100644, unpacked.content(f"**/{name}.ko")) for name in MODULES}
        path = self.cachewire.path("initramfs")
        with open(path, "wb") as file:
            file.write(archive(files))
        return path

    def boot(self, unpacked, init):
        memory = ["-m", "256M", "-object", "memory-backend-memfd,id=m,size=256M,share=on", "-numa", "node,memdev=m"]
        wire = ["-chardev", f"socket,id=c,path={self.socket}", "-netdev", "vhost-user,id=n,chardev=c", "-device", f"virtio-net-pci,netdev=n,mac={HOST_MAC[0]},romfile=,vectors=0"]
        process = subprocess.Popen(
            [QEMU, "-machine", "q35,accel=tcg", "-cpu", "max", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio", *memory, *wire,
             "-kernel", unpacked.kernel, "-initrd", self.initramfs(unpacked, init), "-append", "console=ttyS0 quiet panic=-1"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_it_pings_fetches_and_sends(self):
        try:
            unpacked = Packages(self.folder())
        except (subprocess.CalledProcessError, TypeError) as error:
            self.skipTest(f"apt has no kernel or busybox for the guest: {getattr(error, 'stderr', error)}")
        content = os.urandom(MEGABYTES * MEGABYTE)
        with open(self.cachewire.path("file.bin"), "wb") as file:
            file.write(content)
        servers = [self.inside(1, sys.executable, "-c", code, ADDRESSES[1][0]) for code in (HTTP_SERVE, SERVE.replace("settimeout(60)", "settimeout(400)"))]
        for server in servers:
            self.addCleanup(server.kill)
        http_port, tcp_port = (server.stdout.readline().strip() for server in servers)
        guest = self.boot(unpacked, INIT.format(modules=" ".join(MODULES), address=ADDRESSES[0][0], gateway="10.77.0.1", router=ROUTER_MAC[0], peer=ADDRESSES[1][0],
                                                http=http_port, tcp=tcp_port))
        out, _ = guest.communicate(timeout=600)
        self.assertIn("guest is done", out)
        self.assertIn("10 packets transmitted, 10 packets received", out)
        self.assertIn("5 packets transmitted, 5 packets received", out)  # frames of 1514 bytes
        digest = hashlib.sha256(content).hexdigest()
        self.assertEqual(re.search(r"fetched (\w+)", out)[1], digest)
        received, _ = servers[1].communicate(timeout=60)
        self.assertEqual(received.split(), [str(len(content)), digest])
        stats = self.cachewire.ask("/cachewire/port/stats,p0")
        self.assertGreater(stats["tx_packets"], len(content) // 1500)
        print(f"guest: {stats}", flush=True)


if __name__ == "__main__":
    harness.main()
