# SPDX-License-Identifier: BSD-3-Clause
"""Starts cachewire as a user would, asks it over its sockets, stops it; and runs test cases so that tools/count-tests can count.

A configuration is a dictionary and is written as JSON, which is YAML. Every process gets a folder and a DPDK file prefix of its own,
so that runs don't meet. $CACHEWIRE names the binary, $CACHEWIRE_SLOW asks for the long versions.
"""
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "support"))
import packets  # noqa: E402

BINARY = os.environ.get("CACHEWIRE", os.path.join(ROOT, "build", "app", "cachewire"))
SLOW = bool(os.environ.get("CACHEWIRE_SLOW"))
PATIENCE = 60  # seconds until something that must happen counts as missing: a loaded machine with sanitizers is slow
COUNTER = itertools.count()

MAC = ["02:00:00:00:01:00", "02:00:00:00:01:01"]    # the router's two ports
HOST = ["02:00:00:00:02:00", "02:00:00:00:02:01"]   # the stations behind them


def cpus():
    return len(os.sched_getaffinity(0))


def lcores():
    """Main lcore and one worker, also where there is one CPU."""
    return ["-l", ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))] if cpus() > 1 else ["--lcores", "(0-1)@0"]


def router(left, right, **more):
    """Two ports on networks 10.1/16 and 10.2/16, 2001:db8:1::/64 and 2001:db8:2::/64, each with a station that has addresses .2 and
    ::2 and is the way to 198.18.N/24 and 2001:db8:NN::/48. `left` and `right` are device strings; `more` replaces top-level keys."""
    config = {
        "version": 1,
        "memory": {"mbufs": 4096, "mempool_cache": 64},
        "sessions": {"capacity": 4096},
        "ports": [{"name": f"p{n}", "device": device, "mac": MAC[n]} for n, device in enumerate([left, right])],
        "interfaces": [{"name": f"i{n}", "port": f"p{n}", "addresses": [f"10.{n + 1}.0.1/16", f"2001:db8:{n + 1}::1/64"]} for n in range(2)],
        "neighbors": [{"address": address, "mac": HOST[n]} for n in range(2) for address in (f"10.{n + 1}.0.2", f"2001:db8:{n + 1}::2")],
        "routes": [{"prefix": prefix, "via": via} for n in range(2) for prefix, via in
                   ((f"198.18.{n + 1}.0/24", f"10.{n + 1}.0.2"), (f"2001:db8:{n + 1}{n + 1}::/48", f"2001:db8:{n + 1}::2"))],
    }
    config.update(more)
    return config


class Result:
    def __init__(self, status, stdout, stderr):
        self.status, self.stdout, self.stderr = status, stdout, stderr

    def __repr__(self):
        return f"status {self.status}\n--- stdout\n{self.stdout[-6000:]}\n--- stderr\n{self.stderr[-6000:]}"


class Cachewire:
    """One process. As a context manager it is killed at the end, unless it ended by itself."""

    def __init__(self, config, *options, eal=None, prefix=None, folder=None, launcher=()):
        self.folder = folder or tempfile.mkdtemp(prefix="cachewire-test-")
        self.own_folder = folder is None
        self.prefix = prefix or f"cwtest{os.getpid()}-{next(COUNTER)}"
        self.config_path = os.path.join(self.folder, "config.yaml")
        if config is not None:
            self.write(config)
        eal = ["--no-huge", "-m", "256"] if eal is None else eal
        self.command = [*launcher, BINARY, *lcores(), *eal, "--file-prefix", self.prefix, "--", "--config", self.config_path, *options]
        self.process = None

    def write(self, config):
        """A dictionary, or the text of a file."""
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write(config if isinstance(config, str) else json.dumps(config, indent=1))

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        self.stdout, self.stderr = open(self.path("stdout"), "w+b"), open(self.path("stderr"), "w+b")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.stdout, stderr=self.stderr, cwd=self.folder)
        return self

    def output(self):
        with open(self.path("stdout"), "rb") as out, open(self.path("stderr"), "rb") as err:
            return out.read().decode(errors="replace"), err.read().decode(errors="replace")

    def runtime_path(self, name):
        base = "/var/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "/tmp")
        return os.path.join(base, "dpdk", self.prefix, name)

    def ask(self, command):
        """The answer of DPDK's telemetry socket, without the command's name around it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(PATIENCE)
            client.connect(self.runtime_path("dpdk_telemetry.v2"))
            limit = json.loads(client.recv(4096))["max_output_len"]
            client.send(command.encode())
            return json.loads(client.recv(limit))[command.split(",")[0]]

    def control(self, **request):
        """One request over the control socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(PATIENCE)
            client.connect(self.runtime_path("cachewire_control"))
            client.sendall(json.dumps(request).encode() + b"\n")
            with client.makefile() as file:
                line = file.readline()
        if not line:
            raise AssertionError(f"cachewire gave no answer to {request}: {self.finish()!r}")
        return json.loads(line)

    def wait(self, what, condition):
        """Until `condition(self)` holds; what it answers. Fails when the process ends or patience does."""
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError, KeyError, ValueError, TypeError):
                answer = condition(self)
                if answer:
                    return answer
            if self.process.poll() is not None:
                raise AssertionError(f"cachewire ended while waiting for {what}: {self.finish()!r}")
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {PATIENCE} s for {what}: {self.output()}")
            time.sleep(0.05)

    def wait_running(self):
        self.wait("state running", lambda c: c.ask("/cachewire/info")["state"] == "running")
        return self

    def wait_received(self, count):
        """Until `count` packets came in and each of them is accounted for."""
        return self.wait(f"{count} packets", lambda c: (ledger := c.ask("/cachewire/ledger"))["rx"] >= count and ledger["held"] == 0 and ledger)

    def send(self, number):
        self.process.send_signal(number)
        return self

    def finish(self):
        """Waits for the end; the process's status and output."""
        status = self.process.wait(PATIENCE)
        self.stdout.close()
        self.stderr.close()
        return Result(status, *self.output())

    def stop(self, number=signal.SIGTERM):
        return self.send(number).finish()

    def __enter__(self):
        return self.start() if self.process is None else self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.runtime_path(""), ignore_errors=True)
        if self.own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def run(*arguments, **options):
    """cachewire with these arguments until it ends."""
    done = subprocess.run([BINARY, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False, **options)
    return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


class Case(unittest.TestCase):
    """A test class with what most cases need."""

    maxDiff = None

    def folder(self):
        path = tempfile.mkdtemp(prefix="cachewire-test-")
        self.addCleanup(shutil.rmtree, path, ignore_errors=True)
        return path

    def forward(self, left_frames, right_frames=(), config=None, received=None, ports=2):
        """Replays the frames into the ports of `router()`; (frames out by port, drops that are not zero, ledger)."""
        folder = self.folder()
        devices = []
        for n, frames in zip(range(ports), [left_frames, right_frames, *[()] * ports]):
            packets.write_pcap(f"{folder}/in{n}.pcap", frames)
            devices.append(f"net_pcap{n},rx_pcap={folder}/in{n}.pcap,tx_pcap={folder}/out{n}.pcap")
        total = len(left_frames) + len(right_frames) if received is None else received
        with Cachewire((config or router)(*devices), folder=folder) as cachewire:
            ledger = cachewire.wait_received(total)
            drops = cachewire.ask("/cachewire/drops")
            result = cachewire.stop()
        self.assertEqual(result.status, 0, result)
        self.assert_closed(ledger)
        self.assertEqual(drops.pop("total"), ledger["dropped"])
        return ([packets.read_pcap(f"{folder}/out{n}.pcap") for n in range(ports)], {k: v for k, v in drops.items() if v}, ledger)

    def assert_closed(self, ledger):
        self.assertEqual(ledger["unaccounted"], 0, ledger)
        self.assertEqual(ledger["rx"] + ledger["originated"],
                         ledger["tx"] + ledger["dropped"] + ledger["punted"] + ledger["consumed"] + ledger["held"], ledger)

    def assert_frames(self, got, expected):
        """Byte for byte and in order, with the first difference readable."""
        for number, (a, b) in enumerate(zip(got, expected)):
            self.assertEqual(a.hex(" "), b.hex(" "), f"frame {number}")
        self.assertEqual(len(got), len(expected))


class _Result(unittest.TextTestResult):
    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"SKIPPED: {test.id()}: {reason}", flush=True)


def main():
    """unittest's main, ending with the line that tools/count-tests reads."""
    program = unittest.main(module="__main__", exit=False, verbosity=2, testRunner=unittest.TextTestRunner(sys.stdout, resultclass=_Result, verbosity=2))
    result = program.result
    # A failed subTest names its case once; a failed setUpClass names no case at all.
    failed_cases = {re.sub(r" [\[(].*", "", test.id()) for test, _ in result.failures + result.errors}
    failed = len(failed_cases) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    print(f"{max(0, result.testsRun - failed - skipped)} passed, {failed} failed, {skipped} skipped", flush=True)
    sys.exit(0 if result.wasSuccessful() else 1)
