"""Which end is the server, where connections were open before the capture began and both ports are high."""

import json
import struct
import subprocess

import pytest
from test_pie import ACK, PSH, SYN, WEIR

SERVER, SERVICE = bytes([10, 0, 0, 2]), 50_051


def packet(source, destination, flags, seq, ack, payload):
    ports = struct.pack("!HH", source[1], destination[1])
    tcp = ports + struct.pack("!IIBBHHH", seq, ack, 5 << 4, flags, 65535, 0, 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + payload, 0, 0x4000, 64, 6, 0, source[0], destination[0])
    return bytes(12) + b"\x08\x00" + ip + tcp + bytes(payload)


def connection(client, begin, handshake=False, server=(SERVER, SERVICE)):
    """(ms, frame): one request, answered after 30 ms."""
    if handshake:
        yield begin - 3, packet(client, server, SYN, 999, 0, 0)
        yield begin - 2, packet(server, client, SYN | ACK, 4999, 1000, 0)
        yield begin - 1, packet(client, server, ACK, 1000, 5000, 0)
    yield begin, packet(client, server, ACK | PSH, 1000, 5000, 80)
    yield begin + 1, packet(server, client, ACK, 5000, 1080, 0)
    yield begin + 31, packet(server, client, ACK | PSH, 5000, 1080, 400)
    yield begin + 32, packet(client, server, ACK, 1080, 5400, 0)


def analyze(path, *connections):
    frames = sorted((frame for frames in connections for frame in frames), key=lambda timed: timed[0])
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for time, data in frames:
            out.write(struct.pack("<IIII", 1_300_000_000, 1000 * time, len(data), len(data)) + data)
    run = subprocess.run([WEIR, "analyze", path, "-f", "json"], capture_output=True, check=True, timeout=60)
    return json.loads(run.stdout)


def client(number, port=40_000):
    return bytes([10, 0, 1, number]), port + number


def judge(answer, known_by, server=SERVICE):
    """All connections have this server, and its time is the server's."""
    for found in answer["connections"]:
        assert found["server"]["port"] == server
    assert {c["clientKnownBy"] for c in answer["connections"]} == known_by
    for exchange in (t for t in answer["transactions"] if t["kind"] != "SETUP"):
        assert exchange["requestBytes"] == "80"
        assert exchange["serverSeconds"] == pytest.approx(0.031, abs=1e-6)


def guessed(answer):
    quality = [f for f in answer.get("findings", []) if f["kind"] == "CAPTURE_QUALITY"]
    return quality[0]["values"]["clientsGuessed"] if quality else 0


def test_a_later_handshake_tells(tmp_path):
    answer = analyze(tmp_path / "a.pcap", connection(client(1), 10), connection(client(2), 100, handshake=True))
    judge(answer, {"SERVER", "SYN"})
    assert guessed(answer) == 0


def test_the_port_that_several_share_tells(tmp_path):
    several = [connection(client(number), 10 * number) for number in (1, 2, 3)]
    answer = analyze(tmp_path / "a.pcap", *several)
    judge(answer, {"SERVER"})
    assert guessed(answer) == 0


def test_two_alone_are_guessed_and_said_to_be(tmp_path):
    answer = analyze(tmp_path / "a.pcap", connection(client(1), 10), connection(client(2), 20))
    assert {c["clientKnownBy"] for c in answer["connections"]} == {"PORT"}
    assert guessed(answer) == 2


def test_a_clients_port_that_went_to_several_servers_is_none(tmp_path):
    """Linux gives one port to connections of different destinations."""
    crawler = client(1)
    several = [connection(crawler, 10 * n, server=(bytes([10, 0, 2, n]), 443)) for n in range(1, 6)]
    judge(analyze(tmp_path / "a.pcap", *several), {"PORT"}, server=443)


def test_a_beginning_beyond_the_first_look_is_seen_where_servers_are_in_doubt(tmp_path):
    """The handshake is the 6,001st frame."""
    other = [connection(client(n % 200, port=20_000 + n), n // 10, server=(SERVER, 80)) for n in range(1500)]
    answer = analyze(
        tmp_path / "a.pcap",
        connection(client(1), 1),
        *other,
        connection(client(2), 900, handshake=True),
    )
    found = {c["clientKnownBy"] for c in answer["connections"] if c["server"]["port"] == SERVICE}
    assert found == {"SERVER", "SYN"}
