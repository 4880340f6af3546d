# SPDX-License-Identifier: BSD-3-Clause
"""One to four workers as a user starts them, on as many CPUs as there are: all sessions met from both sides, order inside each, the
ledger, a worker that is stopped for two seconds, an idle one that sleeps. Frames are sent through TAP devices, at a pace that lcores
which share a CPU can keep up with."""
import concurrent.futures
import contextlib
import ctypes
import json
import os
import select
import socket
import struct
import time

import harness
import packets

FLOWS = 10000 if harness.SLOW else 2000
AHEAD = 128      # frames on their way at a time: what a TAP's queue and the kernel's socket buffer hold easily
ETH_P_IP = 0x0800
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207


def lcores(workers):
    """The main lcore on the first CPU, the workers on the last one: more lcores than CPUs."""
    cpus = sorted(os.sched_getaffinity(0))
    return ["--lcores", f"0@{cpus[0]},(1-{workers})@{cpus[-1]}" if workers > 1 else f"0@{cpus[0]},1@{cpus[-1]}"]


class Wire:
    """The kernel's end of a TAP."""

    def __init__(self, name):
        with open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "w", encoding="ascii") as file:
            file.write("1")
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.bind((name, ETH_P_IP))
        self.name = name

    def send(self, frame):
        self.socket.send(frame)

    def receive(self, seconds=0.0):
        """Every frame that has come from cachewire, waiting for the first one."""
        frames = []
        while select.select([self.socket], [], [], 0 if frames else seconds)[0]:
            frame, address = self.socket.recvfrom(4096)
            if address[2] != socket.PACKET_OUTGOING:
                frames.append(frame)
        return frames


def flow(number):
    return f"198.18.1.{1 + number % 200}", f"198.18.2.{1 + number // 200 % 200}", 1024 + number


def forward_frame(number, sequence=0):
    client, server, port = flow(number)
    return packets.ether(harness.MAC[0], harness.HOST[0], packets.udp_packet(client, server, port, 53, struct.pack("!II", number, sequence)))


def reverse_frame(number, sequence=0):
    client, server, port = flow(number)
    return packets.ether(harness.MAC[1], harness.HOST[1], packets.udp_packet(server, client, 53, port, struct.pack("!II", number, sequence)))


def numbers(frame):
    return struct.unpack("!II", frame[42:50])


class Workers(harness.Case):
    def setUp(self):
        if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
            self.skipTest("TAP devices need root and /dev/net/tun")

    def start(self, count, /, **more):
        tag = f"{os.getpid() % 10000}w{count}"
        names = [f"cwt{tag}{side}" for side in "ab"]
        config = harness.router(*(f"net_tap{n},iface={name}" for n, name in enumerate(names)),
                                acl=[{"name": "edge", "stateful": True, "rules": [{"action": "permit", "in": "p0"}]}],
                                tenants=[{"name": "red", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "acl": "edge"}],
                                **{"sessions": {"capacity": 65536, "timeouts": {"new": "10m", "established_udp": "10m"}},
                                   "memory": {"mbufs": 32768, "mempool_cache": 64}, **more})
        for key in ("neighbors", "routes"):
            for item in config[key]:
                item["tenant"] = "red"
        cachewire = harness.Cachewire(config)
        at = cachewire.command.index("--file-prefix")
        cachewire.command = [harness.BINARY, *lcores(count), "--no-huge", "-m", "512", *cachewire.command[at:]]
        self.addCleanup(cachewire.__exit__)
        cachewire.start().wait_running()
        return cachewire, [Wire(name) for name in names]

    def exchange(self, source, target, frames):
        """Sends all of them, AHEAD at a time; what came out."""
        out, sent = [], 0
        while len(out) < len(frames):
            for frame in frames[sent:len(out) + AHEAD]:
                source.send(frame)
            sent = max(sent, min(len(frames), len(out) + AHEAD))
            got = target.receive(10)
            if not got:
                break
            out += got
        return out

    def assert_in_order(self, frames):
        last = {}
        for frame in frames:
            number, sequence = numbers(frame)
            self.assertEqual(sequence, last.get(number, -1) + 1, f"flow {number}")
            last[number] = sequence

    def test_every_session_is_met_from_both_sides(self):
        for workers, metadata in ((1, "session"), (2, "session"), (4, "session"), (2, "mbuf_dynfield")):
            with self.subTest(workers=workers, metadata=metadata):
                cachewire, (west, east) = self.start(workers, pipeline={"metadata": metadata})
                out = self.exchange(west, east, [forward_frame(n) for n in range(FLOWS)])
                self.assertEqual(len(out), FLOWS)
                back = self.exchange(east, west, [reverse_frame(n) for n in range(FLOWS)])
                self.assertEqual(len(back), FLOWS)  # the list lets nothing in from there that has no session
                sessions = cachewire.ask("/cachewire/session/stats")
                self.assertEqual((sessions["active"], sessions["created"]), (FLOWS, FLOWS))
                self.assertGreaterEqual(cachewire.ask("/cachewire/memo/stats")["hits"], FLOWS)
                per_worker = cachewire.ask("/cachewire/worker/stats")
                self.assertEqual(sorted(per_worker), [str(n) for n in range(1, workers + 1)])
                self.assertEqual(sum(w["sessions"] for w in per_worker.values()), FLOWS)
                for stats in per_worker.values():
                    self.assertGreater(stats["sessions"], FLOWS / workers / 2)
                    self.assertGreater(stats["share_percent"], 100 / workers / 2)
                self.assertEqual(sum(w["handed_in"] for w in per_worker.values()), sum(w["handed_out"] for w in per_worker.values()))
                stages = cachewire.ask("/cachewire/stage/stats")
                alone = [cachewire.ask(f"/cachewire/stage/stats,{n}") for n in range(1, workers + 1)]
                self.assertEqual(stages["session"]["packets"], sum(s["session"]["packets"] for s in alone))
                self.assert_closed(cachewire.ask("/cachewire/ledger"))
                result = cachewire.stop()
                self.assertEqual(result.status, 0, result)
                self.assertNotIn("were not returned", result.stderr)
                if workers > 1:
                    self.assertIn(f"{workers} workers: sessions are spread in software", result.stderr)
                    self.assertIn("rss is not used", result.stderr)

    def test_order_inside_a_session_holds_while_it_reloads(self):
        cachewire, (west, east) = self.start(4)
        out = []
        reloads = 20
        for sequence in range(reloads):
            out += self.exchange(west, east, [forward_frame(n, sequence) for n in range(100)])
            self.assertTrue(cachewire.control(command="reload")["ok"])
        self.assertEqual(len(out), 100 * reloads)
        self.assert_in_order(out)
        self.assertEqual(cachewire.ask("/cachewire/info")["config_generation"], 1 + reloads)
        self.assert_closed(cachewire.ask("/cachewire/ledger"))

    def test_sessions_move_to_another_worker_under_traffic(self):
        cachewire, (west, east) = self.start(2)
        flows, rounds, out = 200, 0, []

        def traffic(count):
            nonlocal rounds, out
            for _ in range(count):
                got = self.exchange(west, east, [forward_frame(n, rounds) for n in range(flows)])
                self.assertEqual(len(got), flows)
                out += got
                rounds += 1

        def move(**how):
            answer = cachewire.control(command="rebalance", **how)
            self.assertTrue(answer["ok"], answer)
            self.assertEqual(sum(m["lost"] for m in answer["moves"]), 0)
            traffic(1)
            return answer["moves"]

        traffic(1)
        for turn in range(10):
            source = 1 + turn % 2
            moved = move(**{"from": source, "to": 3 - source, "buckets": 40})
            self.assertEqual((moved[0]["from"], moved[0]["to"], moved[0]["buckets"]), (source, 3 - source, 40))
        # All to one, and back by what the load says.
        move(**{"from": 2, "to": 1, "buckets": 512})
        workers = cachewire.ask("/cachewire/worker/stats")
        self.assertEqual([workers[n]["buckets"] for n in "12"], [512, 0])
        self.assertEqual([workers[n]["sessions"] for n in "12"], [flows, 0])
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            traffic(1)
        workers = cachewire.ask("/cachewire/worker/stats")
        self.assertEqual([workers[n]["load_percent"] for n in "12"], [200, 0])
        moved = move()
        self.assertEqual([(m["from"], m["to"]) for m in moved], [(1, 2)])
        workers = cachewire.ask("/cachewire/worker/stats")
        self.assertEqual(sum(workers[n]["buckets"] for n in "12"), 512)
        self.assertGreater(workers["2"]["sessions"], flows // 5)
        self.assertEqual(sum(workers[n]["sessions"] for n in "12"), flows)
        self.assertEqual(len(self.exchange(east, west, [reverse_frame(n) for n in range(flows)])), flows)
        self.assert_in_order(out)
        sessions = cachewire.ask("/cachewire/session/stats")
        self.assertEqual((sessions["active"], sessions["created"], sessions["evicted"]), (flows, flows, 0))
        memo = cachewire.ask("/cachewire/memo/stats")
        self.assertEqual((memo["misses"], memo["hits"]), (flows, rounds * flows))
        self.assert_closed(cachewire.ask("/cachewire/ledger"))
        for wrong in ({"from": 1, "to": 1, "buckets": 1}, {"from": 1, "to": 9, "buckets": 1}, {"from": 1}, {"spread": 2}):
            self.assertFalse(cachewire.control(command="rebalance", **wrong)["ok"], wrong)

    @contextlib.contextmanager
    def stopped(self, cachewire, lcore):
        """The worker's thread stands still, the others go on."""
        threads = {}
        for thread in os.listdir(f"/proc/{cachewire.process.pid}/task"):
            with open(f"/proc/{cachewire.process.pid}/task/{thread}/comm", encoding="ascii") as file:
                threads[file.read().strip()] = int(thread)
        names = [name for name in threads if name in (f"lcore-worker-{lcore}", f"dpdk-worker{lcore}", f"rte-worker-{lcore}")]
        self.assertEqual(len(names), 1, threads)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        if libc.ptrace(PTRACE_SEIZE, threads[names[0]], None, None) != 0:
            self.skipTest("ptrace is not allowed here")
        libc.ptrace(PTRACE_INTERRUPT, threads[names[0]], None, None)
        os.waitpid(threads[names[0]], 0x40000000)  # __WALL
        try:
            yield
        finally:
            libc.ptrace(PTRACE_DETACH, threads[names[0]], None, None)

    def test_a_move_waits_for_a_worker_that_is_stopped_and_so_do_reloads(self):
        flows = 200
        for lcore in (1, 2):
            with self.subTest(lcore=lcore):
                cachewire, (west, east) = self.start(2)
                out = self.exchange(west, east, [forward_frame(n) for n in range(flows)])
                with self.stopped(cachewire, lcore), concurrent.futures.ThreadPoolExecutor(1) as beside:
                    move = beside.submit(cachewire.control, command="rebalance", **{"from": 1, "to": 2, "buckets": 512})
                    # The loop goes on: others have their answers before this one has.
                    cachewire.wait("that it goes on", lambda c: c.control(command="rebalance").get("error") == "another rebalance is going on")
                    self.assertEqual(cachewire.control(command="config")["generation"], 1)
                    self.assertFalse(move.done())
                    answer = move.result()
                    self.assertIn(f"it waits for the worker on lcore {lcore}, and goes on when that comes round", answer["error"])
                    for number in range(flows):
                        west.send(forward_frame(number, 1))
                    self.assertIn(f"a rebalance waits for the worker on lcore {lcore}; nothing was applied", cachewire.control(command="reload")["error"])
                    self.assertIn(f"the last move waits for the worker on lcore {lcore}", cachewire.control(command="rebalance")["error"])
                    self.assert_closed(cachewire.ask("/cachewire/ledger"))
                cachewire.wait("the move's end", lambda c: c.ask("/cachewire/worker/stats,2")["buckets"] == 512)
                while len(out) < 2 * flows and (got := east.receive(10)):
                    out += got
                out += self.exchange(west, east, [forward_frame(n, 2) for n in range(flows)])
                self.assertEqual(len(out), 3 * flows)
                self.assert_in_order(out)
                self.assertEqual(cachewire.ask("/cachewire/worker/stats,2")["sessions"], flows)
                sessions = cachewire.ask("/cachewire/session/stats")
                self.assertEqual((sessions["active"], sessions["created"]), (flows, flows))
                drops = cachewire.ask("/cachewire/drops")
                self.assertEqual(drops["total"], drops["multicast"])  # what Linux says on an interface of its own
                self.assert_closed(cachewire.ask("/cachewire/ledger"))
                self.assertTrue(cachewire.control(command="reload")["ok"])
                self.assertTrue(cachewire.control(command="rebalance", **{"from": 2, "to": 1, "buckets": 512})["ok"])
                self.assertEqual(cachewire.stop().status, 0)

    def test_a_worker_that_is_stopped_is_named_and_nothing_else_suffers(self):
        cachewire, (west, east) = self.start(2)
        self.exchange(west, east, [forward_frame(n) for n in range(200)])
        with self.stopped(cachewire, 2):
            for number in range(200):
                west.send(forward_frame(number, 1))
            cachewire.wait("the watchdog", lambda c: "lcore 2 has not come round" in c.output()[1])
            time.sleep(2)
            refused = cachewire.control(command="reload")  # builds; the one after it finds this one unfinished
            self.assertTrue(refused["ok"], refused)
            refused = cachewire.control(command="reload")
            self.assertFalse(refused["ok"])
            self.assertIn("lcore 2", refused["error"])
            self.assert_closed(cachewire.ask("/cachewire/ledger"))
        cachewire.wait("the end of it", lambda c: "lcore 2 comes round again after" in c.output()[1])
        ledger = cachewire.wait("empty rings", lambda c: (ledger := c.ask("/cachewire/ledger"))["held"] == 0 and ledger)
        self.assert_closed(ledger)
        self.assertGreater(cachewire.ask("/cachewire/worker/stats,2")["longest_gap_us"], 2_000_000)
        self.assertLess(cachewire.ask("/cachewire/worker/stats,1")["longest_gap_us"], 2_000_000)
        east.receive()
        self.assertEqual(len(self.exchange(west, east, [forward_frame(n, 2) for n in range(50)])), 50)

    def test_an_idle_worker_sleeps_and_loses_nothing(self):
        cachewire, (west, east) = self.start(2, workers={"idle": "adaptive", "dispatch": "software"})
        for burst in range(20):
            time.sleep(0.02)
            self.assertEqual(len(self.exchange(west, east, [forward_frame(n, burst) for n in range(64)])), 64)
        stats = cachewire.ask("/cachewire/worker/stats")
        for worker in stats.values():
            self.assertGreater(worker["rests"], 0)
            self.assertLess(worker["busy_percent"], 50)
        drops = cachewire.ask("/cachewire/drops")
        self.assertEqual(drops["handoff_full"] + drops["tx_full"], 0, drops)
        self.assert_closed(cachewire.ask("/cachewire/ledger"))
        self.assertTrue(cachewire.control(command="reload")["ok"])


class Plan(harness.Case):
    def plan(self, workers, *options, more=""):
        path = os.path.join(self.folder(), "c.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"version: 1\nworkers: {workers}\nports: [{{name: a, device: net_null0}}]\n{more}")
        return harness.run("plan", path, *options)

    def test_it_says_how_to_start_here(self):
        result = self.plan("{}", "--json")
        self.assertEqual(result.status, 0, result)
        plan = json.loads(result.stdout)
        self.assertEqual(plan["eal"][0], "--lcores")
        self.assertEqual(plan["eal"][1], ",".join([f"0@{plan['main']['cpu']}", *(f"{w['lcore']}@{w['cpu']}" for w in plan["workers"])]))
        self.assertTrue({w["cpu"] for w in plan["workers"]} | {plan["main"]["cpu"]} <= os.sched_getaffinity(0))
        text = self.plan("{}")
        self.assertIn(f"EAL: --lcores '{plan['eal'][1]}'", text.stdout)

    def test_a_scheduler_has_an_lcore_behind_the_workers(self):
        scheduled = "qos: {classes: [{name: gold}], schedulers: [{port: a, rate: 1Gbit, classes: [{name: gold, weight: 1}]}]}\n"
        result = self.plan("{lcores: \"1-2\"}", "--json", more=scheduled)
        self.assertEqual(result.status, 0, result)
        plan = json.loads(result.stdout)
        self.assertEqual([w["lcore"] for w in plan["workers"]], [1, 2])
        self.assertEqual(plan["scheduler"]["lcore"], 3)
        self.assertTrue(plan["eal"][1].endswith(f",3@{plan['scheduler']['cpu']}"), plan)
        text = self.plan("{lcores: \"1-2\"}", more=scheduled).stdout
        self.assertIn("scheduler", text.split("EAL:")[0].split("cores\n")[1])
        self.assertIn("lcore 3: the scheduler of a\n", text)
        # What it says is what a start takes.
        path = os.path.join(self.folder(), "c.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"version: 1\nworkers: {{lcores: \"1-2\", placement: ignore}}\nports: [{{name: a, device: net_null0}}]\ninterfaces: [{{port: a, addresses: [10.0.0.1/24]}}]\n{scheduled}")
        result = harness.run(*plan["eal"], "--no-huge", "-m", "512", "--file-prefix", f"cwsched{os.getpid()}", "--", "--config", path, "--duration", "1")
        self.assertEqual(result.status, 0, result)
        self.assertNotIn("scheduler", json.loads(self.plan("{}", "--json").stdout))

    def test_lcores_have_the_numbers_that_the_file_gives_them(self):
        for lcores, main in (("3,5", "0@"), ("0,3", "1@")):
            result = self.plan(f"{{lcores: \"{lcores}\", placement: ignore}}", "--json", more="interfaces: [{port: a, addresses: [10.0.0.1/24]}]\n")
            self.assertEqual(result.status, 0, result)
            plan = json.loads(result.stdout)
            self.assertEqual(",".join(str(w["lcore"]) for w in plan["workers"]), lcores)
            self.assertTrue(plan["eal"][1].startswith(main), plan)
            # And a start takes them.
            path = os.path.join(self.folder(), "d.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"version: 1\nworkers: {{lcores: \"{lcores}\", placement: ignore}}\nports: [{{name: a, device: net_null0}}]\ninterfaces: [{{port: a, addresses: [10.0.0.1/24]}}]\n")
            result = harness.run(*plan["eal"], "--no-huge", "-m", "512", "--file-prefix", f"cwnum{os.getpid()}", "--", "--config", path, "--duration", "1")
            self.assertEqual(result.status, 0, result)

    def test_buckets_of_sessions_are_memory_of_the_plan_and_of_the_start(self):
        policers = ("sessions: {capacity: 1048576}\nqos: {policers: [{name: each, rate: 1Mbit, per_session: true}]}\n"
                    "tenants: [{name: red, id: 1, match: [{port: a}], sessions: cache%s}]\ninterfaces: [{tenant: red, port: a, addresses: [10.0.0.1/24]}]\n")
        for policer, mib in (("", 0), (", policer: {in: each}", 32), (", policer: {in: each, out: each}", 64)):
            with self.subTest(mib=mib):
                more = policers % policer
                result = self.plan("{}", "--rate", "1Mpps", "--json", more=more)
                self.assertEqual(result.status, 0, result)
                sessions = json.loads(result.stdout)["sizing"]["sessions"]
                self.assertEqual(sessions["bucket_bytes"], mib << 20)
                self.assertEqual(sessions["bytes"], (146 + mib) << 20)
                path = os.path.join(self.folder(), "c.yaml")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"version: 1\nworkers: {{lcores: \"1\", placement: ignore}}\nports: [{{name: a, device: net_null0}}]\n{more}")
                result = harness.run("--lcores", "(0-1)@0", "--no-huge", "-m", "256", "--file-prefix", f"cwbucket{os.getpid()}", "--", "--config", path, "--duration", "1")
                self.assertEqual(result.status, 0, result)
                self.assertIn(f"{146 + mib} MiB in all", result.stderr)
                self.assertEqual("per_session" in result.stderr, mib != 0)

    def test_strict_is_refused_where_lcores_would_share(self):
        many = f"{{lcores: \"1-{4 * os.cpu_count()}\", placement: strict}}"
        result = self.plan(many)
        self.assertEqual(result.status, 1, result)
        self.assertIn("share CPU", result.stdout)
        path = os.path.join(self.folder(), "c.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("version: 1\nworkers: {placement: strict}\nports: [{name: a, device: net_null0}]\n")
        result = harness.run("--lcores", "(0-1)@0", "--no-huge", "-m", "128", "--file-prefix", f"cwstrict{os.getpid()}", "--", "--config", path)
        self.assertEqual(result.status, 1, result)
        self.assertIn("main lcore 0 and lcore 1 share CPU 0", result.stderr)


class Refused(harness.Case):
    def test_topologies_that_cannot_be_say_what_to_change(self):
        folder = self.folder()
        path = os.path.join(folder, "c.yaml")
        cases = [
            ("{lcores: \"1,5\"}", "lcore 5 is not one of EAL's"),
            ("{lcores: \"0-1\"}", "lcore 0 is EAL's main one"),
            ("{lcores: \"1,1\"}", "lcore 1 stands twice"),
            ("{lcores: \"1-400000\"}", "out of range"),
        ]
        for workers, text in cases:
            with self.subTest(workers=workers):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"version: 1\nworkers: {workers}\nports: [{{name: a, device: net_null0}}]\n")
                result = harness.run("--lcores", "(0-3)@0", "--no-huge", "-m", "128", "--file-prefix", f"cwref{os.getpid()}", "--", "--config", path)
                self.assertEqual(result.status, 1, result)
                self.assertIn(text, result.stderr)


if __name__ == "__main__":
    harness.main()
