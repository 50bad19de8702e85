"""The client/network/server pie of the published example: its six frames as two captures, through the whole command."""

import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
SYN, ACK, PSH = 2, 16, 8
# (sent by the client, flags, seq, ack, payload): SYN, SYN-ACK, ACK, negotiate request, its ACK, response.
FRAMES = [
    (True, SYN, 0, 0, 0),
    (False, SYN | ACK, 0, 1, 0),
    (True, ACK, 1, 1, 0),
    (True, ACK | PSH, 1, 1, 159),
    (False, ACK, 1, 160, 0),
    (False, ACK | PSH, 1, 160, 168),
]
# RelT columns of the article's tables, microseconds.
NEAR_CLIENT = [0, 253718, 254104, 254111, 506815, 763442]
NEAR_SERVER = [0, 59, 254091, 254363, 254773, 512241]


def frame(from_client, flags, seq, ack, payload):
    client, server = (bytes([10, 0, 0, 1]), 1025), (bytes([10, 0, 0, 2]), 445)
    (source, sport), (destination, dport) = (client, server) if from_client else (server, client)
    tcp = struct.pack(
        "!HHIIBBHHH", sport, dport, 1000 + seq, 1000 + ack if flags & ACK else 0, 5 << 4, flags, 65535, 0, 0
    )
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + payload, 1, 0x4000, 64, 6, 0, source, destination)
    return bytes(12) + b"\x08\x00" + ip + tcp + bytes(payload)


def capture(path, times):
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for time, fields in zip(times, FRAMES, strict=True):
            data = frame(*fields)
            out.write(
                struct.pack("<IIII", 1_300_000_000 + time // 1_000_000, time % 1_000_000, len(data), len(data)) + data
            )
    return path


def test_the_articles_own_arithmetic(tmp_path):
    near_client = capture(tmp_path / "client.pcap", NEAR_CLIENT)
    near_server = capture(tmp_path / "server.pcap", NEAR_SERVER)
    run = subprocess.run(
        [WEIR, "pie", near_client, near_server, "-f", "json"], capture_output=True, check=True, timeout=60
    )
    pie = {p["method"]: p for p in json.loads(run.stdout)["pie"]}["ARTICLE"]
    assert pie["clientSeconds"] == pytest.approx(0.000393, abs=1e-9)
    assert pie["serverSeconds"] == pytest.approx(0.257937, abs=1e-9)
    assert pie["networkSeconds"] == pytest.approx(0.505112, abs=1e-9)


def test_measured_beside_it(tmp_path):
    near_client = capture(tmp_path / "client.pcap", NEAR_CLIENT)
    near_server = capture(tmp_path / "server.pcap", NEAR_SERVER)
    run = subprocess.run(
        [WEIR, "pie", near_client, near_server, "-f", "json"], capture_output=True, check=True, timeout=60
    )
    pies = {p["method"]: p for p in json.loads(run.stdout)["pie"]}
    measured = pies["MEASURED"]
    # SYN-ACK to request; SYN to SYN-ACK, and request to response, in which the pure ACK counts for nothing.
    assert measured["clientSeconds"] == pytest.approx(0.000393, abs=1e-9)
    assert measured["serverSeconds"] == pytest.approx(0.000059 + 0.257878, abs=1e-9)
    assert measured["totalSeconds"] == pytest.approx(0.763442, abs=1e-9)
    # At the client alone: the round trip of SYN and SYN-ACK is taken off what the server seems to need.
    assert pies["ONE_TAP"]["serverSeconds"] == pytest.approx(0.763442 - 0.254111 - 0.252704, abs=1e-9)


def test_one_capture_has_the_pie_of_one_tap(tmp_path):
    near_client = capture(tmp_path / "client.pcap", NEAR_CLIENT)
    run = subprocess.run([WEIR, "pie", near_client, "-f", "json"], capture_output=True, check=True, timeout=60)
    (pie,) = json.loads(run.stdout)["pie"]
    assert pie["method"] == "ONE_TAP" and pie["uncertaintySeconds"] >= 0
    parts = pie["clientSeconds"] + pie["networkSeconds"] + pie["serverSeconds"]
    assert parts == pytest.approx(pie["totalSeconds"], abs=1e-9)
    assert pie["serverSeconds"] == pytest.approx(0.763442 - 0.254111 - 0.252704, abs=2e-3)


def test_both_captures_in_one_analysis(tmp_path):
    near_client = capture(tmp_path / "client.pcap", NEAR_CLIENT)
    near_server = capture(tmp_path / "server.pcap", NEAR_SERVER)
    for order in ([near_client, near_server], [near_server, near_client]):
        run = subprocess.run([WEIR, "analyze", *order, "-f", "json"], capture_output=True, check=True, timeout=60)
        answer = json.loads(run.stdout)
        assert [tap["file"] for tap in answer["taps"]] == [str(near_client), str(near_server)]
        (leg,) = answer["legs"]
        assert (leg["matched"], leg["onlyFrom"], leg["onlyTo"]) == ("6", "0", "0")
        # The offset lies between the differences of the fastest packets forward and backward.
        low, high = -0.253659, 0.000252
        middle, width = leg["offsetSeconds"], leg["offsetWidthSeconds"]
        assert middle - width / 2 <= (low + high) / 2 <= middle + width / 2
        assert {pie["method"] for pie in answer["pie"]} == {"MEASURED", "ARTICLE", "ONE_TAP"}
    text = subprocess.run([WEIR, "analyze", *order], capture_output=True, check=True, timeout=60).stdout.decode()
    assert "client ──[client.pcap]── leg 1 ──[server.pcap]── server" in text


def test_a_file_given_twice_is_refused(tmp_path):
    near_client = capture(tmp_path / "client.pcap", NEAR_CLIENT)
    run = subprocess.run([WEIR, "analyze", near_client, near_client], capture_output=True, timeout=60)
    assert run.returncode == 1
    assert b"client.pcap: given twice" in run.stderr


def test_a_capture_without_packets_is_refused(tmp_path):
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    run = subprocess.run([WEIR, "pie", empty, empty], capture_output=True, timeout=60)
    assert run.returncode == 1
    assert b"empty.pcap" in run.stderr
