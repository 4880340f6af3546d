# SPDX-License-Identifier: BSD-3-Clause
"""Frames as bytes, built by hand so that any field can be wrong on purpose, and capture files of them.

Every builder computes what a correct sender would write and takes an override for what a broken one does.
`routed()` is the oracle of forwarding: new MAC addresses, one hop less, the header checksum computed from nothing.
"""
import ipaddress
import struct

ETHER_IPV4, ETHER_IPV6, ETHER_ARP, ETHER_VLAN, ETHER_QINQ = 0x0800, 0x86DD, 0x0806, 0x8100, 0x88A8
ICMP, TCP, UDP, ICMP6, SCTP = 1, 6, 17, 58, 132
HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, NO_NEXT, DESTINATION_OPTIONS = 0, 43, 44, 51, 59, 60


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def checksum(data):
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ether(dst, src, payload, ethertype=None, vlans=(), pad_to=0, pad=b"\0"):
    """`vlans`: (tag's EtherType, id) from the outside in. The EtherType follows from the payload's version unless given."""
    if ethertype is None:
        ethertype = ETHER_IPV6 if payload[:1] and payload[0] >> 4 == 6 else ETHER_IPV4
    tags = b"".join(struct.pack("!HH", tpid, vid) for tpid, vid in vlans)
    frame = mac(dst) + mac(src) + tags + struct.pack("!H", ethertype) + payload
    return frame + pad * max(0, pad_to - len(frame))


def ipv4(src, dst, payload=b"", proto=UDP, ttl=64, ident=0x1234, more_fragments=False, fragment_offset=0, options=b"", tos=0,
         version=4, ihl=None, total_length=None, header_checksum=None, dont_fragment=False):
    """`fragment_offset` in bytes."""
    header_length = 20 + len(options)
    flags = (0x4000 if dont_fragment else 0) | (0x2000 if more_fragments else 0) | fragment_offset // 8
    header = struct.pack("!BBHHHBBH4s4s", version << 4 | (header_length // 4 if ihl is None else ihl), tos,
                         header_length + len(payload) if total_length is None else total_length, ident, flags, ttl, proto, 0,
                         ipaddress.IPv4Address(src).packed, ipaddress.IPv4Address(dst).packed) + options
    value = checksum(header) if header_checksum is None else header_checksum
    return header[:10] + struct.pack("!H", value) + header[12:] + payload


def ipv6(src, dst, payload=b"", next_header=UDP, hop_limit=64, traffic_class=0, flow_label=0, version=6, payload_length=None):
    return struct.pack("!IHBB16s16s", version << 28 | traffic_class << 20 | flow_label,
                       len(payload) if payload_length is None else payload_length, next_header, hop_limit,
                       ipaddress.IPv6Address(src).packed, ipaddress.IPv6Address(dst).packed) + payload


def extension(next_header, body=b"", length=None):
    """An IPv6 hop-by-hop, routing or destination-options header; `body` is padded to whole 8 octets with PadN."""
    room = -(2 + len(body)) % 8
    padding = b"" if room == 0 else b"\0" if room == 1 else bytes([1, room - 2]) + bytes(room - 2)
    body += padding
    return bytes([next_header, (2 + len(body)) // 8 - 1 if length is None else length]) + body


def fragment_header(next_header, offset, more, ident=7):
    return struct.pack("!BBHI", next_header, 0, offset | int(more), ident)


def pseudo_header(src, dst, proto, length):
    src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    if src.version == 4:
        return src.packed + dst.packed + struct.pack("!BBH", 0, proto, length)
    return src.packed + dst.packed + struct.pack("!IHBB", length, 0, 0, proto)


def with_checksum(segment, at, src, dst, proto):
    value = checksum(pseudo_header(src, dst, proto, len(segment)) + segment)
    if proto == UDP and value == 0:
        value = 0xFFFF
    return segment[:at] + struct.pack("!H", value) + segment[at + 2:]


def udp(src, dst, sport, dport, payload=b"", length=None):
    datagram = struct.pack("!HHHH", sport, dport, 8 + len(payload) if length is None else length, 0) + payload
    return with_checksum(datagram, 6, src, dst, UDP)


def tcp(src, dst, sport, dport, payload=b"", flags=0x02, seq=1, ack=0, data_offset=5, options=b""):
    segment = struct.pack("!HHIIBBHHH", sport, dport, seq, ack, data_offset << 4, flags, 0xFFFF, 0, 0) + options + payload
    return with_checksum(segment, 16, src, dst, TCP)


def icmp(kind, code=0, rest=b"\0\0\0\0", payload=b""):
    message = struct.pack("!BBH", kind, code, 0) + rest + payload
    return message[:2] + struct.pack("!H", checksum(message)) + message[4:]


def icmp6(src, dst, kind, code=0, rest=b"\0\0\0\0", payload=b""):
    return with_checksum(struct.pack("!BBH", kind, code, 0) + rest + payload, 2, src, dst, ICMP6)


def ip(src, dst, upper, proto, **fields):
    """IPv4 or IPv6, as the addresses say."""
    if ipaddress.ip_address(src).version == 4:
        return ipv4(src, dst, upper, proto, **fields)
    return ipv6(src, dst, upper, proto, **fields)


def udp_packet(src, dst, sport=1000, dport=2000, payload=b"", **fields):
    return ip(src, dst, udp(src, dst, sport, dport, payload), UDP, **fields)


def tcp_packet(src, dst, sport=1000, dport=80, payload=b"", flags=0x02, **fields):
    return ip(src, dst, tcp(src, dst, sport, dport, payload, flags), TCP, **fields)


def routed(frame, src, dst):
    """The frame as a router sends it on: MAC addresses of the next hop's link, TTL or hop limit less one."""
    packet = bytearray(frame[14:])
    if packet[0] >> 4 == 4:
        packet[8] -= 1
        packet[10:12] = b"\0\0"
        packet[10:12] = struct.pack("!H", checksum(bytes(packet[:(packet[0] & 15) * 4])))
    else:
        packet[7] -= 1
    return mac(dst) + mac(src) + frame[12:14] + bytes(packet)


def write_pcap(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for number, frame in enumerate(frames):
            file.write(struct.pack("<IIII", 1_700_000_000, number % 1_000_000, len(frame), len(frame)) + frame)


def read_pcap(path):
    """Frames of a classic capture, either byte order, micro- or nanoseconds."""
    with open(path, "rb") as file:
        data = file.read()
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">"}.get(data[:4])
    if order is None:
        raise ValueError(f"{path} is not a capture file")
    frames, at = [], 24
    while at + 16 <= len(data):
        length = struct.unpack_from(order + "I", data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return frames
