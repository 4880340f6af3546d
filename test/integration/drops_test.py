#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""B53: every drop reason moves its own counter and no other. The n-th reason's packet is sent n times in one run, so that
reasons which trade places show in the counts."""
import harness
import packets as p
from harness import HOST, MAC

V4 = ("198.18.1.9", "198.18.2.9")
V6 = ("2001:db8:11::9", "2001:db8:22::9")
ELSEWHERE = "02:00:00:00:99:99"
ALL_ONES = "ff:ff:ff:ff:ff:ff"

# Ports past the plain router's two, one for each thing that a tenant decides.
ACL, DEFAULT, STATEFUL, POLICED, NO_INTERFACE, NARROW = range(2, 8)

# Reasons that no packet in a capture brings about, and where they are tested instead.
ELSEWHERE_TESTED = {
    "headers_chained": "test/pipeline: the mempool has to be empty at that moment",
    "arp": "test/pipeline: more than the slow path takes",
    "nd": "test/pipeline: more than the slow path takes",
    "pair_non_ip": "test/control: a pair that drops it",
    "kernel_rate": "test/control and test/hosts: needs a network namespace",
    "leak_conflict": "test/pipeline: two sessions whose replies are the same",
    "handoff_full": "test/control: an owner that does not come round",
    "punt_full": "test/pipeline: a slow path that does not come round",
    "no_mbuf": "test/pipeline: the mempool has to be empty at that moment",
    "tx_full": "test/pipeline and test/port: a device that takes only part of a burst",
    "scheduler_full": "test/hosts/scheduler_test.py: a port that is asked for more than its rate",
    "scheduler_feed_full": "test/control: a scheduler that does not come round",
    "route_drop": "test/pipeline: no configuration says it yet",
    "blocked": "test/integration/reload_test.py: an operator says so at run time",
    "link_down": "test/pipeline and test/hosts: a peer that goes",
    "port_down": "test/hosts: needs a reload or an interface that goes",
    "frame_oversize": "test/hosts: needs a sender that leaves cutting TCP to a NIC",
    "tx_chained": "test/pipeline: a device that takes one buffer a packet",
    "shutdown": "test/pipeline: a device that takes nothing while draining",
    "session_table_full": "the second case below: it needs a table that is full",
    "session_bucket_full": "test/session: needs colliding hashes",
    "session_quota": "test/integration/session_test.py: needs a quota",
}


def mac(port):
    return MAC[port] if port < 2 else f"02:00:00:00:01:{port:02x}"


def to(port, packet=None, dst=None, **fields):
    if packet is None:
        packet = p.udp_packet(*V4)
    return p.ether(dst or mac(port), HOST[0], packet, **fields)


def v4(payload=None, src=V4[0], dst=V4[1], **fields):
    return to(0, p.ipv4(src, dst, p.udp(src, dst, 1, 2, b"12345678") if payload is None else payload, **fields))


def v6(payload=None, src=V6[0], dst=V6[1], next_header=p.UDP, **fields):
    return to(0, p.ipv6(src, dst, p.udp(src, dst, 1, 2, b"12345678") if payload is None else payload, next_header, **fields))


def tcp(**fields):
    return p.tcp(*V4, 1, 2, **fields)


def chain(count):
    return b"".join(p.extension(p.DESTINATION_OPTIONS) for _ in range(count - 1)) + p.extension(p.UDP) + p.udp(*V6, 1, 2)


UDP6 = p.udp(*V6, 1, 2, b"12345678")

# reason: the frames that bring it about, as (port, frame)
CASES = {
    "frame_short": [to(0)[:n] for n in (13, 6)],
    "vlan_truncated": [to(0, b"", ethertype=p.ETHER_VLAN) + b"\0\x05"[:n] for n in (0, 2)],
    "vlan_depth": [to(0, vlans=[(p.ETHER_QINQ, 5), (p.ETHER_VLAN, 6), (p.ETHER_VLAN, 7)])],
    "foreign_mac": [to(0, dst=ELSEWHERE), to(0, dst=ELSEWHERE, vlans=[(p.ETHER_VLAN, 5)]), to(0, p.udp_packet(*V6), dst=ELSEWHERE)],
    "not_ip": [to(0, bytes(46), ethertype=kind) for kind in (0x8847, 0x88CC, 0x002E)],
    "ip4_truncated": [to(0, p.ipv4(*V4)[:10], ethertype=p.ETHER_IPV4), to(0, b"", ethertype=p.ETHER_IPV4)],
    "ip4_version": [to(0, p.ipv4(*V4, p.udp(*V4, 1, 2), version=5), ethertype=p.ETHER_IPV4),
                    to(0, p.ipv4(*V4, p.udp(*V4, 1, 2), version=9, options=b"\x01\x01\x01\0"), ethertype=p.ETHER_IPV4)],
    "ip4_header_length": [v4(ihl=3), v4(ihl=0)],
    "ip4_total_length": [v4(total_length=19), v4(total_length=1000), v4(total_length=0)],
    "ip4_checksum": [v4(header_checksum=0xBAD)],
    "ip4_options": [v4(options=b"\x83\x07\x04\x0a\0\0\x01\0"), v4(options=b"\x89\x07\x04\x0a\0\0\x01\0"), v4(options=b"\x07\x28\x04\0")],
    "ip6_truncated": [to(0, p.ipv6(*V6)[:39], ethertype=p.ETHER_IPV6), to(0, b"", ethertype=p.ETHER_IPV6)],
    "ip6_version": [to(0, p.ipv6(*V6, UDP6, version=7), ethertype=p.ETHER_IPV6)],
    "ip6_payload_length": [v6(payload_length=1000),
                           v6(p.extension(p.UDP, b"\xc2\x04\0\1\0\0") + UDP6, next_header=p.HOP_BY_HOP, payload_length=0)],  # jumbogram, RFC 2675
    "ip6_extension_truncated": [v6(p.extension(p.UDP, length=255) + UDP6, next_header=p.HOP_BY_HOP),
                                v6(bytes([p.UDP, 0, 5, 200, 0, 0, 0, 0]) + UDP6, next_header=p.HOP_BY_HOP),
                                v6(b"\x11", next_header=p.DESTINATION_OPTIONS)],
    "ip6_extension_limit": [v6(chain(9), next_header=p.DESTINATION_OPTIONS), v6(chain(40), next_header=p.DESTINATION_OPTIONS),
                            v6(p.extension(p.UDP, bytes(262)) + UDP6, next_header=p.DESTINATION_OPTIONS)],
    "ip6_extension_order": [v6(p.extension(p.HOP_BY_HOP) + p.extension(p.UDP) + UDP6, next_header=p.DESTINATION_OPTIONS)],
    "ip6_routing_header": [v6(p.extension(p.UDP, b"\0\x01\0\0\0\0" + bytes(16)) + UDP6, next_header=p.ROUTING)],
    "martian_source": [v4(src="127.0.0.1"), v4(src="0.0.0.0"), v4(src="224.0.0.1"), v4(src="255.255.255.255"), v6(src="::1"), v6(src="ff02::1")],
    "martian_destination": [v4(dst="127.0.0.1"), v4(dst="0.0.0.0"), v6(dst="::1"), v6(dst="::")],
    "broadcast": [v4(dst="255.255.255.255"), v4(dst="10.2.255.255"), to(0, p.udp_packet(*V4), dst=ALL_ONES)],
    "multicast": [to(0, p.udp_packet(V4[0], "224.0.0.1"), dst="01:00:5e:00:00:01"), to(0, p.udp_packet(V6[0], "ff0e::1"), dst="33:33:00:00:00:01")],
    "fragment_length": [v4(bytes(64), fragment_offset=65528), v4(bytes(63), more_fragments=True),
                        v6(p.fragment_header(p.UDP, 65528, False) + bytes(64), next_header=p.FRAGMENT),
                        v6(p.fragment_header(p.UDP, 0, True) + bytes(63), next_header=p.FRAGMENT)],
    "fragment_offset": [v4(bytes(64), proto=p.TCP, fragment_offset=8), v6(p.fragment_header(p.TCP, 8, True) + bytes(64), next_header=p.FRAGMENT)],
    "l4_truncated": [v4(b"1234567"), v4(tcp()[:19], proto=p.TCP), v4(b"123", proto=p.ICMP), v4(bytes(11), proto=p.SCTP),
                     v6(b"1234567"), v6(b"123", next_header=p.ICMP6), v6(payload_length=0)],
    "tcp_data_offset": [v4(tcp(data_offset=n), proto=p.TCP) for n in (0, 4, 6, 15)],
    "udp_length": [v4(p.udp(*V4, 1, 2, b"12345678", length=n)) for n in (0, 1, 7, 17, 65535)] + [v6(p.udp(*V6, 1, 2, length=7))],
    "no_route": [v4(dst="203.0.113.1"), v6(dst="2001:db8:ffff::1")],
    "no_neighbor": [v4(dst="10.2.0.77"), v6(dst="2001:db8:2::77")],
    "local": [v4(dst="10.1.0.1"), v4(dst="10.2.0.1"), v6(dst="2001:db8:2::1")],
    "ttl_exceeded": [v4(ttl=1), v4(ttl=0), v6(hop_limit=1), v6(hop_limit=0)],
    "mtu_exceeded": [v4(p.udp(V4[0], "198.18.7.9", 1, 2, bytes(1300)), dst="198.18.7.9", dont_fragment=True)],
    "no_tenant": [(ACL, to(ACL, vlans=[(p.ETHER_VLAN, 7)]))],
    "no_interface": [(NO_INTERFACE, to(NO_INTERFACE))],
    "acl_deny": [(ACL, to(ACL, p.udp_packet(*V4, 1, 23))), (ACL, to(ACL, p.udp_packet(*V6, 1, 23)))],
    "acl_default": [(DEFAULT, to(DEFAULT))],
    "rpf": [(ACL, to(ACL, p.udp_packet(*V4, 1, 24)))],
    "icmp_quote": [(STATEFUL, to(STATEFUL, p.ipv4(*V4, b"\x03\x01" + bytes(6 + n), proto=p.ICMP))) for n in (0, 19, 28)],
    "session_state": [(STATEFUL, to(STATEFUL, p.tcp_packet(*V4, flags=0x10)))],
    "policer": [(POLICED, to(POLICED, p.udp_packet(*V4, payload=bytes(1000))))],
}


def device(folder, port):
    return f"net_pcap{port},rx_pcap={folder}/in{port}.pcap,tx_pcap={folder}/out{port}.pcap"


def config(devices):
    """The plain router is tenant "plain"; each further port has a tenant of its own that refuses for one reason."""
    base = harness.router(devices[0], devices[1])
    names = {ACL: "acl", DEFAULT: "default-deny", STATEFUL: "stateful", POLICED: "policed", NO_INTERFACE: "bare"}
    for key in ("interfaces", "neighbors", "routes"):
        base[key] = [{"tenant": "plain", **entry} for entry in base[key]]
    base["ports"] += [{"name": f"p{n}", "device": devices[n], "mac": mac(n)} for n in range(2, 8)]
    base["tenants"] = [{"name": "plain", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}, {"port": f"p{NARROW}"}]}]
    base["tenants"] += [{"name": name, "id": 10 + n, "match": [{"port": f"p{n}", "vlan": 0} if n == ACL else {"port": f"p{n}"}]} for n, name in names.items()]
    own = {tenant["name"]: tenant for tenant in base["tenants"]}
    own["acl"]["acl"], own["default-deny"]["acl"], own["stateful"]["acl"] = "no-telnet", "nothing", "stateful"
    own["acl"]["rpf"] = "strict"
    own["policed"]["policer"] = {"in": "trickle"}
    base["acl"] = [{"name": "no-telnet", "default": "permit", "rules": [{"action": "deny", "proto": "udp", "dst_ports": 23}]},
                   {"name": "nothing", "default": "deny", "rules": [{"action": "permit", "proto": "tcp"}]},
                   {"name": "stateful", "default": "permit", "stateful": True, "rules": []}]
    base["qos"] = {"policers": [{"name": "trickle", "type": "single", "rate": "8kbit", "burst": "100B"}]}
    base["interfaces"] += [{"name": f"i{n}", "port": f"p{n}", "tenant": name, "addresses": [f"10.{n + 1}.0.1/16"]} for n, name in names.items() if n != NO_INTERFACE]
    base["interfaces"].append({"name": f"i{NARROW}", "port": f"p{NARROW}", "tenant": "plain", "mtu": 1280, "addresses": ["10.8.0.1/16"]})
    base["neighbors"] += [{"tenant": "plain", "address": "10.8.0.2", "mac": HOST[1]}, {"tenant": "policed", "address": "10.6.0.2", "mac": HOST[1]}]
    base["routes"] += [{"tenant": "plain", "prefix": "198.18.7.0/24", "via": "10.8.0.2"}, {"tenant": "policed", "prefix": "198.18.2.0/24", "via": "10.6.0.2"}]
    return base


class Drops(harness.Case):
    def replay(self, cases):
        """Each reason's frames, the n-th reason's n times; what came out at each port, drops, what was expected of them."""
        folder = self.folder()
        frames = {port: [] for port in range(8)}
        expected = {}
        for times, (reason, entries) in enumerate(cases.items(), 1):
            for entry in entries:
                port, frame = entry if isinstance(entry, tuple) else (0, entry)
                frames[port] += [frame] * times
            expected[reason] = times * len(entries)
        for port, list_ in frames.items():
            p.write_pcap(f"{folder}/in{port}.pcap", list_)
        with harness.Cachewire(config([device(folder, n) for n in range(8)]), folder=folder) as cachewire:
            ledger = cachewire.wait_received(sum(expected.values()))
            drops = cachewire.ask("/cachewire/drops")
            result = cachewire.stop()
        self.assertEqual(result.status, 0, result)
        self.assert_closed(ledger)
        return [p.read_pcap(f"{folder}/out{n}.pcap") for n in range(8)], drops, expected

    def test_every_reason_is_covered(self):
        with harness.Cachewire(harness.router("net_null0,no-rx=1", "net_null1,no-rx=1")) as cachewire:
            reasons = set(cachewire.wait("drops", lambda c: c.ask("/cachewire/drops"))) - {"total"}
            cachewire.stop()
        self.assertEqual(reasons, set(CASES) | set(ELSEWHERE_TESTED))

    def test_each_reason_moves_its_own_counter(self):
        out, drops, expected = self.replay(CASES)
        total = drops.pop("total")
        self.assertEqual({k: v for k, v in drops.items() if v}, expected)
        self.assertEqual(total, sum(expected.values()))
        # What they say of dropped packets leaves, and no dropped packet does.
        said = [frame for frames in out for frame in frames]
        self.assertTrue(said)
        for frame in said:
            self.assertIn(frame[23] if frame[12:14] == b"\x08\0" else frame[20] if frame[12:14] == b"\x86\xdd" else "ARP", (p.ICMP, p.ICMP6, "ARP"), frame.hex())

    def test_each_frame_alone_has_its_reason(self):
        """One packet moves one counter by one; a process each, so that a failure names the frame."""
        for reason, entries in CASES.items():
            for number, entry in enumerate(entries):
                with self.subTest(reason=reason, frame=number):
                    _, drops, _ = self.replay({reason: [entry]})
                    self.assertEqual({k: v for k, v in drops.items() if v}, {reason: 1, "total": 1})

    def test_a_full_session_table_says_so(self):
        def small(*devices):
            more = {"tenants": [{"name": "tracked", "id": 1, "sessions": "track", "match": [{"port": "p0"}, {"port": "p1"}]}], "sessions": {"capacity": 64, "on_full": "deny_new"}}
            base = harness.router(*devices, **more)
            for key in ("interfaces", "neighbors", "routes"):
                base[key] = [{"tenant": "tracked", **entry} for entry in base[key]]
            return base
        frames = [to(0, p.udp_packet(*V4, 1000 + n, 53)) for n in range(200)]
        out, drops, ledger = self.forward(frames, config=small)
        refused = {reason: n for reason, n in drops.items() if reason in ("session_table_full", "session_bucket_full")}
        self.assertEqual(refused, drops)
        self.assertGreater(drops.get("session_table_full", 0), 0)
        self.assertEqual(ledger["tx"] + sum(drops.values()), len(frames))
        self.assertEqual(len(out[1]), ledger["tx"])
        self.assertLessEqual(ledger["tx"], 64)


if __name__ == "__main__":
    harness.main()
