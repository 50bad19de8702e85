"""VLAN ids and VNIs that differ by direction: one connection, through the commands that read captures."""

import json
import struct
import subprocess

import pytest
from test_pie import FRAMES, NEAR_CLIENT, WEIR, frame


def vlan(number, data):
    return data[:12] + struct.pack("!HH", 0x8100, number) + data[12:]


def vxlan(vni, data):
    udp = struct.pack("!HHHH", 50_000, 4789, 16 + len(data), 0) + struct.pack("!BxxxI", 8, vni << 8) + data
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0x4000, 64, 17, 0, bytes([10, 9, 0, 1]), bytes(4))
    return bytes(12) + b"\x08\x00" + ip + udp


def capture(path, wrap, to_server, to_client):
    """The published example's frames, those of each direction with these tags, one after the other."""
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for time, fields in zip(NEAR_CLIENT, FRAMES, strict=True):
            for place, tag in enumerate(to_server if fields[0] else to_client):
                data = wrap(tag, frame(*fields))
                out.write(struct.pack("<IIII", 1_300_000_000, time + 10 * place, len(data), len(data)) + data)
    return path


def weir(*arguments):
    run = subprocess.run([WEIR, *arguments], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run


@pytest.mark.parametrize("wrap", [vlan, vxlan])
def test_tags_that_differ_by_direction_are_left_out(tmp_path, wrap):
    path = capture(tmp_path / "a.pcap", wrap, [10], [20])
    run = weir("analyze", path, "-f", "json")
    (connection,) = json.loads(run.stdout)["connections"]
    assert connection["setup"]["outcome"] == "OK"
    assert (connection["clientToServer"]["packets"], connection["serverToClient"]["packets"]) == ("3", "3")
    assert "differ by direction in 1 of the first 1 connection:" in run.stderr
    assert len(json.loads(weir("packets", path, "-f", "json").stdout)["packets"]) == 6
    # As when the user says so.
    said = weir("analyze", path, "-f", "json", "--ignore-vlan")
    assert (said.stdout, said.stderr) == (run.stdout, "")


@pytest.mark.parametrize("wrap", [vlan, vxlan])
@pytest.mark.parametrize("tags", [([10], [10]), ([10, 20], [20, 10]), ([10, 20], [10, 20])])
def test_other_tags_are_part_of_what_makes_a_connection(tmp_path, wrap, tags):
    """The same in both directions; or of a router, captured on both sides: each packet twice; or the same ends twice."""
    run = weir("analyze", capture(tmp_path / "a.pcap", wrap, *tags), "-f", "json")
    answer = json.loads(run.stdout)
    assert len(answer["connections"]) == len(tags[0])
    (quality,) = [f for f in answer["findings"] if f["kind"] == "CAPTURE_QUALITY"] or [{"values": {"twins": 0}}]
    assert quality["values"]["twins"] == len(tags[0]) - 1
    assert run.stderr == ""
