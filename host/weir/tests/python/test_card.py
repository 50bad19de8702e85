"""Record frames on a port: the answer is that of the capture that the records were made from; what the link loses shows."""

import csv
import json
import os
import re
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
CAPTURE = ROOT / "docs" / "demo" / "demo.pcap"
SIZE = 64
# Kinds of records (proto/records.toml).
OPEN, CLOSE = 1, 7


def weir(*arguments):
    result = subprocess.run([WEIR, *map(str, arguments)], capture_output=True, timeout=120)
    assert result.returncode == 0, result.stderr.decode()
    return result


def frames(records, at_a_time=139, total=0):
    """The frames that a card would send (proto/records.toml, frame) after it has sent so many records."""
    made = []
    for first in range(0, len(records), at_a_time):
        some = records[first : first + at_a_time]
        epoch = 0
        head = bytes(6) + bytes(6) + b"\x88\xb5"
        head += struct.pack("<BBHHIQQQ", 1, 0, epoch, len(some), total, len(made), 1000 + len(made), total) + bytes(16)
        made.append(head + b"".join(some))
        total += len(some)
    return made


def pcap(path, packets):
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for packet in packets:
            file.write(struct.pack("<IIII", 1, 0, len(packet), len(packet)) + packet)
    return path


@pytest.fixture(scope="module")
def records():
    data = weir("records", "-f", "binary", CAPTURE).stdout
    return [data[i : i + SIZE] for i in range(0, len(data), SIZE)]


def capture(path):
    result = weir("capture", "--card", f"pcap:{path}", "-f", "json")
    return json.loads(result.stdout), result.stderr.decode()


def test_record_frames_give_the_answer_of_the_capture(records, tmp_path):
    answer, said = capture(pcap(tmp_path / "link.pcap", frames(records)))
    assert answer == json.loads(weir("analyze", CAPTURE, "-f", "json").stdout)
    told = re.search(r"card: (\S+) records in (\S+) frames$", said, re.M)
    assert told and re.sub(r"\D", "", told[1]) == str(len(records)), said


def test_what_the_link_does_is_counted(records, tmp_path):
    sent = frames(records, 20)
    lost, again, late = 3, 6, 9
    damaged = bytearray(sent[12])
    damaged[18] = 0
    arp = bytes(12) + b"\x08\x06" + bytes(46)
    link = [*sent[:lost], *sent[lost + 1 : again], sent[again], arp, *sent[again:late], sent[late + 1], sent[late]]
    link += [sent[late + 2], bytes(damaged), sent[13][:-1], *sent[14:]]
    _, said = capture(pcap(tmp_path / "link.pcap", link))
    for part in ("4 frames lost", "80 records lost", "FOREIGN", "REPEATED", "LATE", "COUNT", "LENGTH"):
        assert part in said, said


def test_a_card_that_begins_anew_leaves_no_gap_in_the_log(records, tmp_path):
    link = pcap(tmp_path / "link.pcap", [*frames(records, 20), *later(frames(records, 20))])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [WEIR, "serve", "--card", f"pcap:{link}", "--listen", f"127.0.0.1:{port}", "--data", tmp_path / "data"]
    with subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE) as daemon:
        try:
            for _ in range(200):
                asked = subprocess.run([WEIR, "query", "status", "--server", url, "-f", "json"], capture_output=True)
                if asked.returncode == 0 and b'"restarts":"1"' in asked.stdout and b'"finished":true' in asked.stdout:
                    break
                time.sleep(0.1)
            status = json.loads(asked.stdout)
        finally:
            daemon.terminate()
            daemon.communicate(timeout=30)
    assert status["capture"]["link"]["records"] == str(2 * len(records)), status
    assert status["appliance"]["records"] == str(2 * len(records)), "a GAP was put into the log"


def later(sent):
    """The same frames, sent after those: the card's measuring was reset."""
    return [frame[:32] + struct.pack("<Q", 1_000_000 + i) + frame[40:] for i, frame in enumerate(sent)]


def served(tmp_path, link):
    """weir serve --card with a store, from its start to its end in order: the connections stored."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    store = tmp_path / "store"
    command = [WEIR, "serve", "--card", f"pcap:{link}", "--data", tmp_path / "data", "--store", store]
    command += ["--listen", f"127.0.0.1:{port}"]
    status = [WEIR, "query", "status", "--server", f"http://127.0.0.1:{port}", "-f", "json"]
    with subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE) as daemon:
        for _ in range(200):
            asked = subprocess.run(status, capture_output=True)
            if asked.returncode == 0 and b'"finished":true' in asked.stdout:
                break
            time.sleep(0.1)
        daemon.terminate()
        _, said = daemon.communicate(timeout=30)
    assert daemon.returncode == 0, said.decode()
    rows = weir("export", "--store", store, "-f", "csv", "--table", "connections").stdout.decode()
    return list(csv.DictReader(rows.splitlines()))


def number(flow):
    return str(int.from_bytes(flow, "little"))


def test_what_is_open_when_the_daemon_ends_is_stored_once(records, tmp_path):
    """A card tells no end of the flows that go on: a daemon sees the first half of the records, the next one the rest."""
    half = len(records) // 2
    flows = {record[8:16] for record in records[:half] if record[0] == OPEN}
    ended = {record[8:16] for record in records[:half] if record[0] == CLOSE}
    first = served(tmp_path, pcap(tmp_path / "link.pcap", frames(records[:half])))
    assert len(flows - ended) > 3
    assert sorted(row["id"] for row in first) == sorted(number(flow) for flow in flows)
    # Of some the FINs were seen, though nobody said that the flow is over.
    opened = {row["id"] for row in first if row["close_kind"] == "OPEN"}
    assert opened and opened <= {number(flow) for flow in flows - ended}
    both = served(tmp_path, pcap(tmp_path / "link.pcap", later(frames(records[half:], total=half))))
    ids = [row["id"] for row in both]
    assert len(ids) == len(set(ids)) > len(first), "a connection is stored twice"
    assert all(row in both for row in first)
