# SPDX-License-Identifier: BSD-3-Clause
"""Puts an XDP program that lets everything pass on an interface: bpf(2) and rtnetlink, so that no compiler and no library is wanted."""
import ctypes
import json
import os
import socket
import struct
import subprocess
import time

PROG_LOAD, PROG_TYPE_XDP = 5, 6
SYS_BPF = {"x86_64": 321, "aarch64": 280}
PASS = struct.pack("<BBhi", 0xB7, 0, 0, 2) + struct.pack("<BBhi", 0x95, 0, 0, 0)  # r0 = XDP_PASS; exit
RTM_SETLINK, REQUEST_ACK = 19, 5
IFLA_XDP, XDP_FD, XDP_FLAGS, DRV_MODE = 43, 1, 3, 4


def load(name=b"cwtest"):
    instructions, license_ = ctypes.create_string_buffer(PASS, len(PASS)), ctypes.create_string_buffer(b"BSD")
    # type, instructions, their address, license, log level, size, buffer, kernel version, flags, name
    request = struct.pack("<IIQQIIQII16s", PROG_TYPE_XDP, len(PASS) // 8, ctypes.addressof(instructions), ctypes.addressof(license_), 0, 0, 0, 0, 0, name)
    libc = ctypes.CDLL(None, use_errno=True)
    program = libc.syscall(SYS_BPF[os.uname().machine], PROG_LOAD, request, len(request))
    if program < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return program


def attribute(kind, payload):
    return struct.pack("=HH", 4 + len(payload), kind) + payload


def attach(interface):
    """Its id, as attached() says it."""
    program = load()
    try:
        body = struct.pack("=BBHiII", 0, 0, 0, socket.if_nametoindex(interface), 0, 0)
        body += attribute(IFLA_XDP | 0x8000, attribute(XDP_FD, struct.pack("=i", program)) + attribute(XDP_FLAGS, struct.pack("=I", DRV_MODE)))
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as wire:
            wire.send(struct.pack("=IHHII", 16 + len(body), RTM_SETLINK, REQUEST_ACK, 1, 0) + body)
            error = struct.unpack_from("=i", wire.recv(4096), 16)[0]
            if error != 0:
                raise OSError(-error, os.strerror(-error))
    finally:
        os.close(program)
    for _ in range(50):  # while somebody else takes his off, two may be on it, and neither is said to be the one
        if (found := attached(interface)) is not None:
            return found
        time.sleep(0.02)
    raise AssertionError(f"the program is not on {interface}")


def attached(interface):
    """The id of the program that is on it, or None."""
    out = subprocess.run(["ip", "-j", "-d", "link", "show", interface], check=True, capture_output=True, text=True).stdout
    return json.loads(out)[0].get("xdp", {}).get("prog", {}).get("id")
