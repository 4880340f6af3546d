#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A port of 100 Mbit/s that is asked for more, as hosts see it: priority, weights, the rate, order, and another port beside it."""
import json
import os
import sys

from hosts import ADDRESSES, Veths, harness

RATE = 100_000_000
TOS = {"voice": 46 << 2, "video": 34 << 2, "bulk": 8 << 2, "none": 0}
FRAME = 1442

# Numbered datagrams at a rate, in bit/s of frames: `send ADDRESS PORT TOS RATE SECONDS`. Prints how many.
SEND = """
import socket, struct, sys, time
address, port, tos, rate, seconds = sys.argv[1], *map(int, sys.argv[2:])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
    out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    begin, sent, rest = time.monotonic(), 0, bytes(1396)
    while (now := time.monotonic() - begin) < seconds:
        if sent * 1442 * 8 > now * rate:
            time.sleep(0.0005)
            continue
        out.sendto(struct.pack("!I", sent) + rest, (address, port))
        sent += 1
print(sent)
"""
# Prints its port, then by TOS how many datagrams had come when, and how many of them behind a later one of their TOS.
COUNT = """
import json, socket, struct, sys, time
counts, last, samples, reordered, next_sample = {}, {}, [], 0, 0
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as into:
    into.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    into.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    into.bind((sys.argv[1], 0))
    print(into.getsockname()[1], flush=True)
    into.settimeout(30)
    try:
        while True:
            data, extra, _, _ = into.recvmsg(2048, 256)
            tos, number = extra[0][2][0], struct.unpack("!I", data[:4])[0]
            reordered += number < last.get(tos, 0)
            last[tos] = number
            counts[tos] = counts.get(tos, 0) + 1
            if (now := time.monotonic()) >= next_sample:
                samples.append([now, dict(counts)])
                next_sample = now + 0.1
                into.settimeout(2)
    except TimeoutError:
        pass
print(json.dumps({"samples": samples, "counts": counts, "reordered": reordered}))
"""


class Scheduled(Veths):
    """p1 is scheduled, p0 is not. The burst is a sixth of a second, because a busy machine lets the scheduler wait."""

    tools = ("ethtool",)
    ethtool = (("tx", "off"),)
    cpus = sorted(os.sched_getaffinity(0))
    lcores = f"0@{cpus[0]},1@{cpus[-1]},2@{cpus[0]}"  # the last is the scheduler's

    @classmethod
    def config(cls):
        config = super().config()
        config["qos"] = {"classes": [{"name": "voice", "dscp": "ef", "priority": 1}, {"name": "video", "dscp": "af41"}, {"name": "bulk", "dscp": "cs1"}],
                         "schedulers": [{"port": "p1", "rate": f"{RATE}bit", "burst": "2MiB",
                                         "classes": [{"name": "voice"}, {"name": "video", "weight": 3}, {"name": "bulk", "weight": 1}]}]}
        config["acl"][0]["default"] = "permit"
        return config

    def passed(self, loads, back=0):
        """`loads`: {class: bit/s offered} to the second host for ten seconds, `back` to the first. By class the share of what was sent that
        arrived, and its rate in the middle of it, in bit/s of frames."""
        counters = [self.inside(n, sys.executable, "-c", COUNT, ADDRESSES[n][0]) for n in range(2)]
        for counter in counters:
            self.addCleanup(counter.kill)
        ports = [counter.stdout.readline().strip() for counter in counters]
        senders = {}
        for host, of, rate in [(0, of, rate) for of, rate in loads.items()] + ([(1, "none", back)] if back else []):
            senders[of] = self.inside(host, sys.executable, "-c", SEND, ADDRESSES[1 - host][0], ports[1 - host], str(TOS[of]), str(rate), "10")
            self.addCleanup(senders[of].kill)
        sent = {of: int(self.output(sender)) for of, sender in senders.items()}
        if not back:
            counters[0].kill()
        said = [json.loads(self.output(counter)) for counter in (counters if back else counters[1:])]
        shares, rates = {}, {}
        for of in sent:
            counts = said[0 if of == "none" else -1]
            self.assertEqual(counts["reordered"], 0, of)
            samples = counts["samples"]
            middle = [(at, by) for at, by in samples if samples[0][0] + 2 < at < samples[0][0] + 9]
            tos = str(TOS[of])
            rates[of] = (middle[-1][1][tos] - middle[0][1][tos]) * FRAME * 8 / (middle[-1][0] - middle[0][0])
            shares[of] = counts["counts"][tos] / sent[of]
        return shares, rates

    def by_class(self):
        entries = self.cachewire.ask("/cachewire/qos/classes,p1")
        return {entry["class"]: entry for entry in entries.values() if isinstance(entry, dict)}

    def near(self, value, expected, what):
        self.assertLess(abs(value - expected), 0.03 * expected, f"{what}: {value / 1e6:.2f}, expected {expected / 1e6:.2f} Mbit/s; {self.where_packets_are()} {self.by_class()}")

    def test_priority_holds_under_congestion_and_the_other_port_is_undisturbed(self):
        before, other = self.by_class(), self.cachewire.ask("/cachewire/port/stats,p0")["tx_dropped"]
        shares, rates = self.passed({"voice": 30_000_000, "bulk": 120_000_000}, back=20_000_000)
        after = self.by_class()
        # A busy machine loses a few in its own queues.
        self.assertGreater(shares["voice"], 0.97, f"{self.where_packets_are()} {after}")
        self.assertGreater(shares["none"], 0.97, self.where_packets_are())
        self.near(rates["voice"] + rates["bulk"], RATE, "the port")
        self.assertEqual(self.cachewire.ask("/cachewire/port/stats,p0")["tx_dropped"], other)
        self.assertEqual({of: (entry["rate_bps"], entry["order"]) for of, entry in after.items()},
                         {"none": (RATE, "last"), "voice": (RATE, "priority 1"), "video": (RATE, "weight 3"), "bulk": (RATE, "weight 1")})
        self.assertGreater(after["bulk"]["tx_dropped"] - before["bulk"]["tx_dropped"], 5000)
        drops = self.cachewire.ask("/cachewire/drops")
        self.assertEqual(sum(of["tx_dropped"] for of in after.values()), drops["scheduler_full"] + drops["scheduler_feed_full"])
        self.assertEqual(sum(of["tx_dropped"] for of in after.values()), self.cachewire.ask("/cachewire/port/stats,p1")["tx_dropped"])

    def test_weights_hold_under_congestion(self):
        _, rates = self.passed({"video": 100_000_000, "bulk": 60_000_000})
        self.near(rates["video"] + rates["bulk"], RATE, "the port")
        self.near(rates["video"], RATE * 3 / 4, "weight 3")
        self.near(rates["bulk"], RATE / 4, "weight 1")

    def test_an_idle_port_delays_nothing(self):
        self.ping_passes()
        self.transfer(20)

    def test_a_reload_keeps_schedulers_and_says_why(self):
        config = self.config()
        config["qos"]["schedulers"][0]["rate"] = "1Gbit"
        try:
            self.cachewire.write(config)
            answer = self.cachewire.control(command="reload")
        finally:
            self.cachewire.write(self.config())
        self.assertFalse(answer["ok"])
        self.assertIn("qos.schedulers: their lcore, rings and queues are made at the start", answer["error"])
        answer = self.cachewire.control(command="reload")
        self.assertTrue(answer["ok"], answer)
        self.ping_passes(5)


if __name__ == "__main__":
    harness.main()
