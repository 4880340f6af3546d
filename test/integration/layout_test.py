#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`pipeline.metadata: mbuf_dynfield` forwards what `session` forwards, byte for byte, drops the same under the same names, and counts
the same for sessions and rules."""
import glob
import ipaddress
import os

import captures_test
import harness
import packets as p
from harness import HOST, MAC


def layout(metadata, make, **pipeline):
    """The configuration that `make` returns, in this layout."""
    def config(*devices):
        return {**make(*devices), "pipeline": {"metadata": metadata, **pipeline}}
    return config


def forwarded(frames):
    """Without what the router says itself, which is limited by rates and so by time: ARP, ND, ICMP."""
    def is_own(frame):
        kind = frame[12:14]
        if kind == b"\x08\x00":
            return frame[26:30] in (b"\x0a\x01\x00\x01", b"\x0a\x02\x00\x01")
        if kind == b"\x86\xdd":
            return frame[22:24] == b"\xfe\x80" or frame[22:38] in OWN_IP6
        return kind == b"\x08\x06"
    return [frame for frame in frames if not is_own(frame)]


OWN_IP6 = [ipaddress.ip_address(f"2001:db8:{n}::1").packed for n in (1, 2)]


class Layout(harness.Case):
    def both(self, frames, right=(), **pipeline):
        results = [self.forward(frames, right, config=layout(metadata, captures_test.open_router, **pipeline))
                   for metadata in ("session", "mbuf_dynfield")]
        for port in range(2):
            self.assert_frames(forwarded(results[1][0][port]), forwarded(results[0][0][port]))
        # How much ARP and ND is over the rate goes by time; what is not over it is punted.
        drops = [{reason: count for reason, count in result[1].items() if reason not in ("arp", "nd")} for result in results]
        self.assertEqual(drops[1], drops[0], "drops")
        for lines in (("rx",), ("dropped", "punted")):
            self.assertEqual(*(sum(result[2][line] for line in lines) for result in reversed(results)), lines)
        return results[0]

    def test_flows_of_both_directions_and_families(self):
        frames, right = [], []
        for n in range(300):
            src, dst = f"198.18.1.{1 + n % 50}", f"198.18.2.{1 + n % 40}"
            frames.append(p.ether(MAC[0], HOST[0], p.udp_packet(src, dst, 1000 + n % 60, 53, payload=b"x" * (n % 90))))
            right.append(p.ether(MAC[1], HOST[1], p.udp_packet(dst, src, 53, 1000 + n % 60)))
            frames.append(p.ether(MAC[0], HOST[0], p.tcp_packet("2001:db8:11::1", "2001:db8:22::1", 2000 + n % 9, 80, flags=0x02 if n < 9 else 0x10)))
            frames.append(p.ether(MAC[0], HOST[0], p.tcp_packet(src, dst, 1000 + n % 60, 23)))  # the list's deny
            frames.append(p.ether(MAC[0], HOST[0], p.udp_packet(src, dst, 1, 2, ttl=1)))
        out, drops, ledger = self.both(frames, right)
        self.assertGreater(len(out[1]), 500)
        self.assertGreater(len(out[0]), 100)
        self.assertGreater(drops["acl_deny"], 100)
        self.assertEqual(ledger["rx"], len(frames) + len(right))

    def test_every_category_of_captures(self):
        files = sorted(glob.glob(os.path.join(captures_test.CAPTURES, "*", "*.pcap")))
        if not files:
            self.skipTest("no captures in ../shared/cases/pcaps")
        forwarded = 0
        for category in sorted({os.path.dirname(path) for path in files}):
            frames = [captures_test.aimed(frame) for path in files if os.path.dirname(path) == category for frame in p.read_pcap(path) if frame]
            with self.subTest(category=os.path.basename(category)):
                # A SYN and its answer in one burst, which only a file has, find no session; longer bursts than 4 end by time.
                forwarded += self.both(frames, burst=4)[2]["tx"]
        print(f"{len(files)} files, {forwarded} packets forwarded by both layouts")
        self.assertGreater(forwarded, 1000)

    def test_sessions_and_rules_count_the_same(self):
        counts = []
        for metadata in ("session", "mbuf_dynfield"):
            folder = self.folder()
            frames = [p.ether(MAC[0], HOST[0], p.udp_packet("198.18.1.9", f"198.18.2.{1 + n % 5}", 7, 53, payload=b"y" * 20)) for n in range(1000)]
            p.write_pcap(f"{folder}/in.pcap", frames)
            config = captures_test.open_router(f"net_pcap0,rx_pcap={folder}/in.pcap", "net_null1,no-rx=1")
            config["acl"] = [{"name": "some", "default": "deny", "stateful": True, "rules": [{"name": "dns", "action": "permit", "proto": "udp"}]}]
            with harness.Cachewire({**config, "pipeline": {"metadata": metadata}}, folder=folder) as cachewire:
                cachewire.wait_received(len(frames))
                sessions = cachewire.wait("5 sessions", lambda c: len(page := c.ask("/cachewire/session/list,all,0,20")) >= 5 and page)
                sessions.pop("next", None)
                counts.append(sorted((s["packets"], s["bytes"]) for s in sessions.values()))
                self.assertEqual(cachewire.stop().status, 0)
        self.assertEqual(counts[0], [(200, 200 * 62)] * 5)
        self.assertEqual(counts[1], counts[0])


if __name__ == "__main__":
    harness.main()
