#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Captures in, captures out: what is forwarded comes out byte for byte as the oracle says, and in order."""
import random

import harness
import packets as p
from harness import HOST, MAC


def to_router(packet, port=0, **fields):
    return p.ether(MAC[port], HOST[port], packet, **fields)


V4 = ("198.18.1.9", "198.18.2.9")                # behind port 0, behind port 1
V6 = ("2001:db8:11::9", "2001:db8:22::9")
BOTH = (V4, V6)


class Forward(harness.Case):
    def check(self, frames, config=None):
        """All frames go in at port 0 and leave by port 1."""
        out, drops, ledger = self.forward(frames, config=config)
        self.assertEqual(drops, {})
        self.assertEqual(ledger["tx"], len(frames))
        self.assertEqual(out[0], [])
        self.assert_frames(out[1], [p.routed(frame, MAC[1], HOST[1]) for frame in frames])

    def test_every_protocol_in_both_families(self):
        frames = []
        for src, dst in BOTH:
            frames += [to_router(packet) for packet in (
                p.udp_packet(src, dst, 1, 2, b"udp"),
                p.udp_packet(src, dst, 1, 2, b""),                  # B11: eight bytes are a whole datagram
                p.udp_packet(src, dst, 1, 2, bytes(1400)),
                p.tcp_packet(src, dst, 1, 2, b"syn", flags=0x02),
                p.tcp_packet(src, dst, 1, 2, b"data", flags=0x18),
                p.ip(src, dst, bytes(12) + b"sctp chunk", p.SCTP),
                p.ip(src, dst, b"some protocol", 47),
                p.udp_packet(src, dst, 1, 2, ttl=2) if src == V4[0] else p.udp_packet(src, dst, 1, 2, hop_limit=2),
            )]
        frames.append(to_router(p.ipv4(*V4, p.icmp(8, payload=b"ping"), p.ICMP)))
        frames.append(to_router(p.ipv6(*V6, p.icmp6(*V6, 128, payload=b"ping"), p.ICMP6)))
        frames.append(to_router(p.ipv4(*V4, p.udp(*V4, 1, 2, b"options"), options=b"\x07\x07\x04\0\0\0\0\0")))  # record route, with room
        frames.append(to_router(p.ipv4(*V4, p.udp(*V4, 1, 2, b"nops"), options=b"\x01\x01\x01\x00")))
        self.check(frames)

    def test_ipv6_extension_headers_and_fragments(self):
        upper = p.udp(*V6, 1, 2, b"behind headers")
        fragment = bytes(range(64))
        self.check([to_router(packet) for packet in (
            p.ipv6(*V6, p.extension(p.UDP) + upper, p.HOP_BY_HOP),
            p.ipv6(*V6, p.extension(p.DESTINATION_OPTIONS) + p.extension(p.UDP) + upper, p.HOP_BY_HOP),
            p.ipv6(*V6, b"".join(p.extension(p.DESTINATION_OPTIONS) for _ in range(7)) + p.extension(p.UDP) + upper, p.DESTINATION_OPTIONS),
            p.ipv6(*V6, p.fragment_header(p.UDP, 0, True) + upper[:8] + fragment, p.FRAGMENT),
            p.ipv6(*V6, p.fragment_header(p.UDP, 72, False) + fragment, p.FRAGMENT),
            p.ipv4(*V4, p.udp(*V4, 1, 2, bytes(56))[:64], more_fragments=True),
            p.ipv4(*V4, fragment, fragment_offset=64),
        )])

    def test_what_is_nested_counts_as_one_packet(self):
        """B14: the outer header says where to; nothing below it is opened, however deep."""
        four, six, gre = p.udp(*V4, 1, 2), p.udp(*V6, 1, 2), p.udp(*V4, 1, 2)
        for layer in range(20):
            four = p.ipv4(*V4, four, 4 if layer else p.UDP)
            six = p.ipv6(*V6, six, 41 if layer else p.UDP)
            gre = p.ipv4(*V4, (b"\0\0\x08\0" if layer else b"") + gre, 47 if layer else p.UDP)
        self.check([to_router(packet) for packet in (four, six, gre)])

    def test_checksum_update_at_the_carries(self):
        """RFC 1624: every value of the checksum's high byte, so that each carry and the 0xffff corner come by."""
        frames, ident = [], 0
        wanted = {high << 8 | low for high in range(256) for low in (0x00, 0xFE, 0xFF)}
        while wanted and ident < 65536:
            packet = p.ipv4(*V4, p.udp(*V4, 1, 2), ident=ident, ttl=64)
            value = int.from_bytes(packet[10:12], "big")
            if value in wanted:
                wanted.discard(value)
                frames.append(to_router(packet))
            ident += 1
        self.assertGreater(len(frames), 700)
        self.check(frames)

    def test_link_layer_padding_changes_nothing(self):
        """B02: padding that is not zero, to the minimum and to the MTU; the datagram that leaves is the same."""
        packet = p.ipv4(*V4, p.udp(*V4, 1, 2, b"padded"))
        sizes = (0, 60, 200, 1514)
        out, drops, _ = self.forward([to_router(packet, pad_to=size, pad=b"\xa5") for size in sizes])
        self.assertEqual(drops, {})
        expected = p.routed(to_router(packet), MAC[1], HOST[1])
        self.assertEqual([frame[:len(expected)] for frame in out[1]], [expected] * len(sizes))

    def test_both_directions_mixed_families_in_order(self):
        """B47: bursts of every make-up; each packet's fate is as if it came alone."""
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        rng = random.Random(seed)
        frames, expected, drops = [], [], {}
        for n in range(1000):
            kind = rng.randrange(4)
            src, dst = BOTH[kind % 2]
            if kind == 3:
                frames.append(to_router(bytes(28), ethertype=0x88CC))
                drops["not_ip"] = drops.get("not_ip", 0) + 1
            elif kind == 2 and rng.random() < 0.3:
                frames.append(to_router(p.udp_packet(src, "127.0.0.5" if "." in src else "::1", n, 2)))
                drops["martian_destination"] = drops.get("martian_destination", 0) + 1
            else:
                frame = to_router(p.udp_packet(src, dst, 1024 + n, 53, bytes(rng.randrange(200))))
                frames.append(frame)
                expected.append(p.routed(frame, MAC[1], HOST[1]))
        back = [p.ether(MAC[1], HOST[1], p.udp_packet(dst, src, 53, 1024 + n)) for n in range(100) for src, dst in BOTH]
        out, dropped, _ = self.forward(frames, back)
        self.assertEqual(dropped, drops)
        self.assert_frames(out[1], expected)
        self.assert_frames(out[0], [p.routed(frame, MAC[0], HOST[0]) for frame in back])

    def test_frames_longer_than_a_buffer_are_handled_whole(self):
        """They arrive in chained buffers and are over the MTU; their neighbours in the burst don't notice."""
        frames, expected, jumbos = [], [], 0
        for n in range(200):
            src, dst = BOTH[n % 2]
            size = (100, 3000, 1400, 8000)[n // 2 % 4]
            whole = {"dont_fragment": True} if "." in src else {}
            frames.append(to_router(p.udp_packet(src, dst, 1, n, bytes(size), **whole)))
            jumbos += size > 1500
            if size < 1500:
                expected.append(p.routed(frames[-1], MAC[1], HOST[1]))
        out, drops, _ = self.forward(frames)
        self.assertEqual(drops, {"mtu_exceeded": jumbos})
        self.assert_frames(out[1], expected)

    def test_exit_on_idle_forwards_everything_first(self):
        folder = self.folder()
        frames = [to_router(p.udp_packet(*V4, n, 2)) for n in range(500)]
        p.write_pcap(f"{folder}/in0.pcap", frames)
        p.write_pcap(f"{folder}/in1.pcap", [])
        config = harness.router(*(f"net_pcap{n},rx_pcap={folder}/in{n}.pcap,tx_pcap={folder}/out{n}.pcap" for n in range(2)))
        with harness.Cachewire(config, "--exit-on-idle", "1", folder=folder) as cachewire:
            result = cachewire.finish()
        self.assertEqual(result.status, 0, result)
        self.assert_frames(p.read_pcap(f"{folder}/out1.pcap"), [p.routed(frame, MAC[1], HOST[1]) for frame in frames])


if __name__ == "__main__":
    harness.main()
