"""Frames for benches: Ethernet, VLAN, IPv4, TCP."""

import struct

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
IPV4, IPV6, ARP, VLAN = 0x0800, 0x86DD, 0x0806, 0x8100
BEAT = 64


def ethernet(payload, kind=IPV4, source=b"\x02\0\0\0\0\x01", destination=b"\x02\0\0\0\0\x02", vlan=None):
    tag = struct.pack(">HH", VLAN, vlan) if vlan is not None else b""
    return (destination + source + tag + struct.pack(">H", kind) + payload).ljust(60, b"\0")


def ipv4(payload, source, destination, protocol=6, ttl=64, ip_id=1, fragment=0, tos=0):
    length = 20 + len(payload)
    head = struct.pack(">BBHHHBBH", 0x45, tos, length, ip_id, fragment, ttl, protocol, 0)
    return head + source + destination + payload


def tcp(source, destination, seq, ack, flags, window=1000, options=b"", payload=b""):
    options = options.ljust((len(options) + 3) // 4 * 4, b"\0")
    offset = (20 + len(options)) // 4 << 4
    head = struct.pack(">HHIIBBHHH", source, destination, seq % 2**32, ack % 2**32, offset, flags, window, 0, 0)
    return head + options + payload


def option_mss(mss):
    return struct.pack(">BBH", 2, 4, mss)


def option_scale(shift):
    return bytes([1, 3, 3, shift])


def beats(frame):
    """[(data, keep, last)] of 64 bytes."""
    parts = [frame[i : i + BEAT] for i in range(0, len(frame), BEAT)]
    return [(int.from_bytes(part, "little"), (1 << len(part)) - 1, i == len(parts) - 1) for i, part in enumerate(parts)]
