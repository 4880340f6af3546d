#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two Linux hosts in network namespaces with cachewire between them on net_tap ports: ping, TCP, HTTP, in both families.

The TAP's kernel end is the host. It is born with the port's own MAC address, so it gets another; offloads stay as Linux has them.
ARP and neighbour discovery are not answered yet, so each host has the router as a permanent neighbour."""
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "integration"))
import harness  # noqa: E402
from harness import Cachewire  # noqa: E402

MEGABYTE = 1 << 20
ADDRESSES = [("10.77.0.2", "2001:db8:77::2"), ("10.78.0.2", "2001:db8:78::2")]
GATEWAYS = [("10.77.0.1", "2001:db8:77::1"), ("10.78.0.1", "2001:db8:78::1")]
ROUTER_MAC = ["02:00:00:00:07:07", "02:00:00:00:07:08"]
HOST_MAC = ["02:00:00:00:70:07", "02:00:00:00:70:08"]

# Runs in the namespace: `serve ADDRESS` prints the port, receives until the peer has done and prints the digest of all of it.
SERVE = """
import hashlib, socket, sys
server = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET)
server.settimeout(60)
print(server.getsockname()[1], flush=True)
peer, _ = server.accept()
peer.settimeout(60)
digest, size = hashlib.sha256(), 0
while chunk := peer.recv(1 << 20):
    digest.update(chunk)
    size += len(chunk)
print(size, digest.hexdigest(), flush=True)
"""
SEND = """
import hashlib, random, socket, sys
block = random.Random(1).randbytes(1 << 20)
digest = hashlib.sha256()
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60) as peer:
    for number in range(int(sys.argv[3])):
        chunk = number.to_bytes(8, "big") + block[8:]
        digest.update(chunk)
        peer.sendall(chunk)
print(digest.hexdigest())
"""
HTTP_SERVE = """
import http.server, socket, sys
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
server = Server((sys.argv[1], 0), http.server.SimpleHTTPRequestHandler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
HTTP_FETCH = """
import hashlib, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with opener.open(sys.argv[1], timeout=60) as answer:
    print(answer.status, hashlib.sha256(answer.read()).hexdigest())
"""


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def why_not():
    if os.geteuid() != 0:
        return "needs root for network namespaces and TAP devices"
    for tool in ("ip", "ping"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    if not os.path.exists("/dev/net/tun"):
        return "/dev/net/tun is not here"
    if subprocess.run(["ip", "netns", "add", f"cwprobe{os.getpid()}"], capture_output=True, check=False).returncode:
        return "network namespaces are not allowed here"
    subprocess.run(["ip", "netns", "del", f"cwprobe{os.getpid()}"], check=False)
    return None


class Hosts(harness.Case):
    """One cachewire for all cases; each host is a namespace with one interface."""

    @classmethod
    def setUpClass(cls):
        cls.reason = why_not()
        if cls.reason:
            return
        cls.cleanup = contextlib.ExitStack()
        cls.addClassCleanup(cls.cleanup.close)
        cls.spaces = [f"cwhost{os.getpid()}-{n}" for n in range(2)]
        taps = [f"cw{os.getpid() % 1000000}{'ab'[n]}" for n in range(2)]
        cls.cachewire = cls.cleanup.enter_context(Cachewire({
            "version": 1,
            "memory": {"mbufs": 16384},
            "sessions": {"capacity": 4096},
            "ports": [{"name": f"p{n}", "device": f"net_tap{n},iface={taps[n]}", "mac": ROUTER_MAC[n]} for n in range(2)],
            "tenants": [{"name": "hosts", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "acl": "stateful"}],
            "interfaces": [{"name": f"i{n}", "port": f"p{n}", "tenant": "hosts", "addresses": [f"{GATEWAYS[n][0]}/24", f"{GATEWAYS[n][1]}/64"]} for n in range(2)],
            "neighbors": [{"tenant": "hosts", "address": address, "mac": HOST_MAC[n]} for n in range(2) for address in ADDRESSES[n]],
            # The second host answers and never begins.
            "acl": [{"name": "stateful", "default": "deny", "stateful": True, "rules": [{"name": "from-first", "action": "permit", "in": "p0"}]}],
        }))
        cls.cachewire.wait_running()
        for n, (space, tap) in enumerate(zip(cls.spaces, taps)):
            ip("netns", "add", space)
            cls.cleanup.callback(subprocess.run, ["ip", "netns", "del", space], check=False)
            ip("link", "set", tap, "netns", space)
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "set", tap, "address", HOST_MAC[n], "up")
            for address, gateway, bits in zip(ADDRESSES[n], GATEWAYS[n], (24, 64)):
                more = ["nodad"] if ":" in address else []
                ip("-n", space, "addr", "add", f"{address}/{bits}", "dev", tap, *more)
                ip("-n", space, "neigh", "replace", gateway, "lladdr", ROUTER_MAC[n], "dev", tap, "nud", "permanent")
                ip("-n", space, "route", "add", "default", "via", gateway, "dev", tap)

    @classmethod
    def tearDownClass(cls):
        if not cls.reason:
            result = cls.cachewire.stop()
            assert result.status == 0, result

    def setUp(self):
        if self.reason:
            self.skipTest(self.reason)

    def tearDown(self):
        if not self.reason:
            ledger = self.cachewire.wait("a closed ledger", lambda c: (line := c.ask("/cachewire/ledger"))["held"] == 0 and line)
            self.assert_closed(ledger)

    def inside(self, host, *command):
        return subprocess.Popen(["ip", "netns", "exec", self.spaces[host], *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.cachewire.folder)

    def output(self, process):
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, f"{out}{err}{self.cachewire.ask('/cachewire/drops')}")
        return out

    def test_ping(self):
        for address in ADDRESSES[1]:
            with self.subTest(address=address):
                out = self.output(self.inside(0, "ping", "-c", "20", "-i", "0.05", "-W", "5", address))
                self.assertIn(" 0% packet loss", out)
                for size in ("56", "1472" if "." in address else "1452"):
                    self.assertIn(" 0% packet loss", self.output(self.inside(0, "ping", "-M", "do", "-c", "3", "-i", "0.05", "-s", size, address)))

    def test_a_tcp_transfer_arrives_whole(self):
        megabytes = 100
        for address in ADDRESSES[1]:
            with self.subTest(address=address):
                server = self.inside(1, sys.executable, "-c", SERVE, address)
                self.addCleanup(server.kill)
                port = server.stdout.readline().strip()
                sent = self.output(self.inside(0, sys.executable, "-c", SEND, address, port, str(megabytes))).strip()
                size, received = self.output(server).split()
                self.assertEqual(int(size), megabytes * MEGABYTE)
                self.assertEqual(received, sent)

    def test_http(self):
        content = os.urandom(MEGABYTE)
        with open(self.cachewire.path("file.bin"), "wb") as file:
            file.write(content)
        for address in ADDRESSES[1]:
            with self.subTest(address=address):
                server = self.inside(1, sys.executable, "-c", HTTP_SERVE, address)
                self.addCleanup(server.kill)
                port = server.stdout.readline().strip()
                host = f"[{address}]" if ":" in address else address
                answer = self.output(self.inside(0, sys.executable, "-c", HTTP_FETCH, f"http://{host}:{port}/file.bin"))
                self.assertEqual(answer.split(), ["200", hashlib.sha256(content).hexdigest()])
                server.kill()

    def test_the_second_host_can_not_begin(self):
        before = self.cachewire.ask("/cachewire/drops")["acl_default"]
        process = self.inside(1, "ping", "-c", "3", "-i", "0.05", "-W", "1", ADDRESSES[0][0])
        out, _ = process.communicate(timeout=60)
        self.assertIn("100% packet loss", out)
        self.assertEqual(self.cachewire.ask("/cachewire/drops")["acl_default"], before + 3)


if __name__ == "__main__":
    harness.main()
