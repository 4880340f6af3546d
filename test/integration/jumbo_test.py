#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Frames over one buffer: net_pcap hands them over in chains, and the payload comes out as it went in. Small frames between them use the
same buffers."""
from harness import HOST, MAC, Case, main, packets, router

ROOM = 2048  # of a buffer


class Jumbo(Case):
    def config(self, left, right):
        config = router(left, right)
        for port in config["ports"]:
            port["mtu"] = 9000
        return config

    def test_chains_pass_untouched(self):
        frames, expected = [], []
        for number, size in enumerate([60, ROOM - 1, ROOM, ROOM + 1, 90, 2 * ROOM - 1, 2 * ROOM, 2 * ROOM + 1, 60, 9014, 5000, 60] * 3):
            for family in (4, 6):
                source, destination = ("10.1.0.2", "198.18.2.7") if family == 4 else ("2001:db8:1::2", "2001:db8:22::7")
                payload = bytes((number + i) % 251 for i in range(max(0, size - (42 if family == 4 else 62))))
                frame = packets.ether(MAC[0], HOST[0], packets.udp_packet(source, destination, payload=payload))
                frames.append(frame)
                expected.append(packets.routed(frame, MAC[1], HOST[1]))
        (_, out), drops, ledger = self.forward(frames, config=self.config)
        self.assertEqual(drops, {})
        self.assert_frames(out, expected)
        self.assertEqual(ledger["tx"], len(frames))


if __name__ == "__main__":
    main()
