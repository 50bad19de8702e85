"""The simulated card from outside: its records, its answer through DPDK and gRPC, its registers over the socket.

bin/weir-nic-sim and the command are built by `make nic-sim-test`; WEIR_BIN names the command.
"""

import json
import os
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest
import weir_records as records

ROOT = Path(__file__).resolve().parent.parent
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
CAPTURE = ROOT / "docs" / "demo" / "demo.pcap"
SIZE = records.RECORD_BYTES
READ, WRITE = 1, 2
DONE, REFUSED, MALFORMED = 0, 1, 2


def weir(*arguments, **more):
    result = subprocess.run([WEIR, *map(str, arguments)], capture_output=True, timeout=300, **more)
    assert result.returncode == 0, result.stderr.decode()
    return result


def packets(path):
    data, place = path.read_bytes(), 24
    while place < len(data):
        length = struct.unpack_from("<IIII", data, place)[2]
        yield data[place + 16 : place + 16 + length]
        place += 16 + length


def blocks(path):
    """(port, bytes) of each frame of a pcapng file."""
    data, place = path.read_bytes(), 0
    while place < len(data):
        kind, length = struct.unpack_from("<II", data, place)
        assert struct.unpack_from("<I", data, place + length - 4) == (length,)
        if kind == 6:
            port, _, _, captured, wire = struct.unpack_from("<5I", data, place + 8)
            assert captured == wire
            yield port, data[place + 28 : place + 28 + captured]
        place += length


def crossed(frames):
    """What came in on one port leaves by the other."""
    return [(1 - port, frame) for port, frame in frames]


def split(data):
    return [data[i : i + SIZE] for i in range(0, len(data), SIZE)]


def without_cut(record):
    """PORT counts frames that the capture cut; the card receives them filled with zeros, as a link carries frames whole."""
    if record[0] == records.Kind.PORT and not record[1] & records.Flag.CONTINUATION:
        return record[:52] + bytes(4) + record[56:]
    return record


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_records_are_those_of_the_software(tmp_path):
    link = tmp_path / "link.pcap"
    said = weir("nic-sim", "--wire0", CAPTURE, "--records", link).stderr.decode()
    frames = sum(1 for _ in packets(CAPTURE))
    assert f"{frames} frames, {frames} passed" in said
    hardware = [without_cut(r) for frame in packets(link) for r in split(frame[SIZE:])]
    software = split(weir("records", "--profile", "nic", "-f", "binary", CAPTURE).stdout)
    software = [without_cut(r) for r in software]

    # The end of the file closes flows in software; a card has no end, it goes on until they time out.
    def time_of(record):
        return records.parse(record)["time"]

    end = time_of(software[-1])
    before = [r for r in software if time_of(r) < end]
    assert len(before) > 500
    assert [r for r in hardware if time_of(r) < end] == before


def in_microseconds(source, path):
    """The capture with the times that DPDK's reader of files has."""
    data = source.read_bytes()
    out, place = [struct.pack("<I", 0xA1B2C3D4), data[4:24]], 24
    while place < len(data):
        seconds, nanoseconds, length, wire = struct.unpack_from("<IIII", data, place)
        out.append(struct.pack("<IIII", seconds, nanoseconds // 1000, length, wire))
        out.append(data[place + 16 : place + 16 + length])
        place += 16 + length
    path.write_bytes(b"".join(out))
    return path


@pytest.mark.parametrize("link", ["file", "veth"])
def test_the_appliance_in_simulation_gives_the_answer_of_make_run(link, tmp_path):
    capture = in_microseconds(CAPTURE, tmp_path / "capture.pcap")
    if link == "veth" and os.geteuid() != 0:
        pytest.skip("needs root")

    def answer(**environment):
        result = subprocess.run(
            [ROOT / ".ci" / "demo.sh", WEIR, capture],
            env={**os.environ, "WEIR_PORT": str(free_port()), "FORMAT": "json", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        if environment.get("LINK") == "veth":
            assert "--card eth:" in result.stdout, result.stdout
        found = json.loads(next(line for line in result.stdout.splitlines() if line.startswith("{")))
        # Connections come in the order in which they end, and software ends all that are left at the end of the file.
        found["connections"].sort(key=lambda c: int(c["id"]))
        found["transactions"].sort(key=lambda t: (int(t["connectionId"]), int(t["index"])))
        found["findings"].sort(key=lambda f: json.dumps(f, sort_keys=True))
        del found["summary"]["cutPackets"]  # the capture's, see without_cut
        return found

    software, card = answer(), answer(NIC="sim", LINK=link)
    assert len(software["connections"]) == 13
    assert card == software


class Host:
    """The socket as the host has it."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        for _ in range(300):
            try:
                self.socket.connect(str(path))
                return
            except (FileNotFoundError, ConnectionRefusedError):
                time.sleep(0.1)
        raise AssertionError("nobody listens")

    def exchange(self, operation, address, value=0, version=1, tag=7):
        self.socket.sendall(struct.pack("<BBHII", version, operation, tag, address, value))
        answer = b""
        while len(answer) < 8:
            piece = self.socket.recv(8 - len(answer))
            assert piece, "hung up"
            answer += piece
        got_version, status, got_tag, got = struct.unpack("<BBHI", answer)
        assert (got_version, got_tag) == (1, tag)
        return status, got


def test_the_host_has_the_registers_and_starts_the_card(tmp_path):
    link, path = tmp_path / "link.pcap", tmp_path / "card.socket"
    command = [WEIR, "nic-sim", "--wire0", CAPTURE, "--records", link, "--socket", path, "--hold"]
    with subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True) as process:
        host = Host(path)
        assert host.exchange(READ, 0x0000) == (DONE, 0x57454952)
        assert host.exchange(WRITE, 0x011C, 0x12345678)[0] == DONE
        assert host.exchange(READ, 0x011C) == (DONE, 0x12345678)
        assert host.exchange(READ, 0x00F0)[0] == REFUSED
        # Frames wait until measuring is let go; the CPU stays in reset. With a seed of 0 all keys would be one.
        for i in range(13):
            assert host.exchange(WRITE, 0x0400 + 4 * i, 0x9E3779B9 * (i + 1) & 0xFFFFFFFF)[0] == DONE
        assert host.exchange(READ, 0x0340 + 0x0C) == (DONE, 0)
        assert host.exchange(WRITE, 0x0100, 1)[0] == DONE
        for _ in range(600):
            if host.exchange(READ, 0x034C)[1] == sum(1 for _ in packets(CAPTURE)):
                break
            time.sleep(0.1)
        status, _ = host.exchange(READ, 0x0001)
        assert status == MALFORMED
        assert host.socket.recv(1) == b""
        said = process.communicate(timeout=120)[1]
    assert "695 records" in said, said
    assert not path.exists()


def test_the_link_passes_frames_before_anything_runs_and_a_signal_ends_it_in_order(tmp_path):
    seen, passed, path = (tmp_path / name for name in ("seen.pcapng", "passed.pcapng", "card.socket"))
    command = [WEIR, "nic-sim", "--wire0", CAPTURE, "--wire1", CAPTURE, "--records", tmp_path / "link.pcap"]
    command += ["--socket", path, "--hold", "--pace", 500, "--seen", seen, "--passed", passed]
    with subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True) as process:
        first, second = Host(path), Host(path)
        # Two hosts, by turns.
        for value in range(20):
            assert first.exchange(WRITE, 0x011C, value)[0] == DONE
            assert second.exchange(READ, 0x011C) == (DONE, value)
        while second.exchange(READ, 0x034C)[1] < 100:
            time.sleep(0.05)
        process.terminate()
        said = process.communicate(timeout=60)[1]
    came = list(blocks(seen))
    # The other port may be a few frames behind the one that was asked.
    assert 150 <= len(came) < 2 * 686, said
    assert sorted({port for port, _ in came}) == [0, 1]
    for port in (0, 1):
        assert [f for p, f in crossed(came) if p == port] == [f for p, f in blocks(passed) if p == port]
    # Whole frames of the capture, in its order.
    whole = list(packets(CAPTURE))
    for mine in ([f for p, f in came if p == port] for port in (0, 1)):
        assert [frame[: len(w)] for frame, w in zip(mine, whole, strict=False)] == whole[: len(mine)]
    assert not path.exists()


def test_what_is_missing_or_wrong_is_told(tmp_path):
    def fails(*arguments, **more):
        result = subprocess.run([WEIR, "nic-sim", *map(str, arguments)], capture_output=True, text=True, **more)
        assert result.returncode != 0
        return result.stderr

    link = tmp_path / "link.pcap"
    assert "/nowhere.pcap" in fails("--wire0", "/nowhere.pcap", "--records", link)
    assert "nosuch0" in fails("--wire0", CAPTURE, "--records", "eth:nosuch0")
    assert "--drain needs a value" in fails("--wire0", CAPTURE, "--records", link, "--drain")
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes(CAPTURE.read_bytes()[:1000])
    assert "ends within a frame" in fails("--wire0", damaged, "--records", link)
    lost = (
        fails("--help", env={"PATH": "/nonexistent"}, cwd=tmp_path)
        if Path(WEIR).parent.name != "bin"
        else "make nic-sim"
    )
    assert "make nic-sim" in lost
