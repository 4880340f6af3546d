# SPDX-License-Identifier: BSD-3-Clause
"""Two Linux hosts in network namespaces with cachewire between them, which find each other by ARP and neighbor discovery. How they are
wired is the subclass's: `devices` and `connect`."""
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "integration"))
import harness  # noqa: E402
from harness import Cachewire, packets  # noqa: E402,F401

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


def why_not(*tools):
    if os.geteuid() != 0:
        return "needs root for network namespaces and TAP devices"
    for tool in ("ip", "ping", *tools):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    if not os.path.exists("/dev/net/tun"):
        return "/dev/net/tun is not here"
    space = f"cwprobe{os.getpid()}"
    try:
        ip("netns", "add", space)
        ip("-n", space, "link", "set", "lo", "up")  # fails in a chroot, whose root can't be remounted
    except subprocess.CalledProcessError as error:
        return f"network namespaces don't work here: {error.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)
    return None


def make_space(cleanup, space):
    """A network namespace until `cleanup` closes."""
    ip("netns", "add", space)
    cleanup.callback(subprocess.run, ["ip", "netns", "del", space], check=False)
    ip("-n", space, "link", "set", "lo", "up")


class Hosts(harness.Case):
    """One cachewire for all cases; each host is a namespace with one interface."""

    tools = ()
    hosts = 2
    mtu = 1500
    port_keys = {}
    eal = None
    lcores = None  # as the harness has them

    @classmethod
    def config(cls):
        return {
            "version": 1,
            "memory": {"mbufs": 32768},
            "sessions": {"capacity": 4096},
            "ports": [{"name": f"p{n}", "device": device, "mac": ROUTER_MAC[n], "mtu": cls.mtu, **cls.port_keys} for n, device in enumerate(cls.devices())],
            "tenants": [{"name": "hosts", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "acl": "stateful"}],
            "interfaces": [{"name": f"i{n}", "port": f"p{n}", "tenant": "hosts", "addresses": [f"{GATEWAYS[n][0]}/24", f"{GATEWAYS[n][1]}/64"]} for n in range(2)],
            # The second host answers and never begins.
            "acl": [{"name": "stateful", "default": "deny", "stateful": True, "rules": [{"name": "from-first", "action": "permit", "in": "p0"}]}],
        }

    @classmethod
    def setUpClass(cls):
        if cls is Hosts:
            return
        cls.reason = why_not(*cls.tools)
        if cls.reason:
            return
        cls.cleanup = contextlib.ExitStack()
        cls.addClassCleanup(cls.cleanup.close)
        tag = f"{os.getpid() % 100000}{cls.__name__[:3].lower()}"
        cls.spaces = [f"cwhost{tag}{n}" for n in range(cls.hosts)]
        cls.names = [f"cw{tag}{'abcd'[n]}" for n in range(cls.hosts)]  # this machine's end, or the TAP
        for space in cls.spaces:
            make_space(cls.cleanup, space)
        cls.before()
        cachewire = Cachewire(cls.config(), eal=cls.eal)
        if cls.lcores:
            cachewire.command[1:3] = ["--lcores", cls.lcores]
        cls.cachewire = cls.cleanup.enter_context(cachewire)
        cls.cachewire.wait_running()
        cls.after()

    @classmethod
    def before(cls):
        """What has to be there when cachewire starts."""

    @classmethod
    def after(cls):
        """What can be done only then."""

    @classmethod
    def configure(cls, n, interface, mac=None):
        """The host's end, in its namespace already."""
        space = cls.spaces[n]
        ip("-n", space, "link", "set", interface, "address", mac or HOST_MAC[n], "mtu", str(cls.mtu), "up")
        for address, gateway, bits in zip(ADDRESSES[n], GATEWAYS[n], (24, 64)):
            more = ["nodad"] if ":" in address else []
            ip("-n", space, "addr", "replace", f"{address}/{bits}", "dev", interface, *more)
            ip("-n", space, "route", "replace", "default", "via", gateway, "dev", interface)

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

    def log(self):
        return self.cachewire.output()[1]

    def where_packets_are(self):
        drops = {reason: n for reason, n in self.cachewire.ask("/cachewire/drops").items() if n}
        return f"{self.cachewire.ask('/cachewire/ledger')} {drops} {[self.cachewire.ask(f'/cachewire/port/stats,p{n}') for n in range(2)]}"

    def ping_passes(self, count=20, host=0, addresses=ADDRESSES[1]):
        sizes = ["56"] if count < 20 else ["56", "full"]
        for address in addresses:
            with self.subTest(address=address):
                for size in sizes:
                    if size == "full":
                        size = str(self.mtu - (28 if "." in address else 48))
                    # Without -w ping waits two round trips for its last answers, which a loaded machine may need; with it it goes on sending
                    # until `count` answers are there.
                    out = self.output(self.inside(host, "ping", "-M", "do", "-c", str(count), "-i", "0.05", "-w", "30", "-s", size, address))
                    answered = [int(number) for number in re.findall(r"icmp_seq=(\d+)", out)]
                    self.assertEqual(answered[:count], list(range(1, count + 1)), f"{out}{self.where_packets_are()}")

    def transfer(self, megabytes=100, addresses=ADDRESSES[1]):
        """TCP from the first host to the second, digest against digest."""
        for address in addresses:
            with self.subTest(address=address):
                server = self.inside(1, sys.executable, "-c", SERVE, address)
                self.addCleanup(server.kill)
                port = server.stdout.readline().strip()
                sent = self.output(self.inside(0, sys.executable, "-c", SEND, address, port, str(megabytes))).strip()
                size, received = self.output(server).split()
                self.assertEqual(int(size), megabytes * MEGABYTE)
                self.assertEqual(received, sent)

    def http(self):
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


class Traffic:
    """What every wiring has to carry."""

    def test_ping(self):
        self.ping_passes()

    def test_a_tcp_transfer_arrives_whole(self):
        self.transfer()

    def test_http(self):
        self.http()


class Taps(Hosts):
    """The TAP's kernel end is the host. It is born with the port's own MAC address, so it gets another."""

    @classmethod
    def devices(cls):
        return [f"net_tap{n},iface={cls.names[n]}" for n in range(2)]

    @classmethod
    def after(cls):
        for n, tap in enumerate(cls.names):
            ip("link", "set", tap, "netns", cls.spaces[n])
            cls.configure(n, tap)


class Veths(Hosts):
    """A veth pair a host; offloads as Linux has them, but for what `ethtool` says (a list of lists of words behind `-K IF`)."""

    tools = ("ethtool",)
    queues = 1
    ethtool = ()

    @classmethod
    def devices(cls):
        return [f"kernel:{name}" for name in cls.names]

    @classmethod
    def make_wire(cls, n):
        own, peer = cls.names[n], f"{cls.names[n]}h"
        more = [] if cls.queues == 1 else ["numrxqueues", str(cls.queues), "numtxqueues", str(cls.queues)]
        ip("link", "add", own, *more, "type", "veth", "peer", "name", peer, *more)
        ip("link", "set", peer, "netns", cls.spaces[n])
        cls.configure(n, peer)
        for words in cls.ethtool:
            subprocess.run(["ip", "netns", "exec", cls.spaces[n], "ethtool", "-K", peer, *words], check=True, capture_output=True)

    @classmethod
    def before(cls):
        for n in range(2):
            cls.cleanup.callback(subprocess.run, ["ip", "link", "del", cls.names[n]], check=False, capture_output=True)
            cls.make_wire(n)


TENANTS = ["red", "blue"]


def mac_of(kind, n):
    return f"02:00:00:00:{kind:02x}:{n:02x}"


class FourHosts(Hosts):
    """Port n of four: tenant n // 2, side n % 2. Both tenants have the same addresses."""

    hosts = 4

    @classmethod
    def config(cls):
        return {
            "version": 1,
            "memory": {"mbufs": 32768},
            "sessions": {"capacity": 4096},
            "ports": [{"name": f"p{n}", "device": f"net_tap{n},iface={cls.names[n]}", "mac": mac_of(7, n)} for n in range(4)],
            "tenants": [{"name": name, "id": 1 + t, "match": [{"port": f"p{2 * t}"}, {"port": f"p{2 * t + 1}"}], "acl": "stateful"} for t, name in enumerate(TENANTS)],
            "interfaces": [{"name": f"i{n}", "port": f"p{n}", "addresses": [f"{GATEWAYS[n % 2][0]}/24", f"{GATEWAYS[n % 2][1]}/64"]} for n in range(4)],
            "neighbors": [{"tenant": TENANTS[n // 2], "address": address, "mac": mac_of(0x70, n)} for n in range(4) for address in ADDRESSES[n % 2]],
            "acl": [{"name": "stateful", "default": "permit", "stateful": True, "rules": []}],
        }

    @classmethod
    def after(cls):
        for n, (space, tap) in enumerate(zip(cls.spaces, cls.names)):
            ip("link", "set", tap, "netns", space)
            ip("-n", space, "link", "set", tap, "address", mac_of(0x70, n), "up")
            for address, gateway, bits in zip(ADDRESSES[n % 2], GATEWAYS[n % 2], (24, 64)):
                ip("-n", space, "addr", "replace", f"{address}/{bits}", "dev", tap, *(["nodad"] if ":" in address else []))
                ip("-n", space, "neigh", "replace", gateway, "lladdr", mac_of(7, n), "dev", tap, "nud", "permanent")
                ip("-n", space, "route", "replace", "default", "via", gateway, "dev", tap)
