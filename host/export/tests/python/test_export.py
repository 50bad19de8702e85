"""weir export through others' readers: tshark for pcapng and IPFIX files, nfcapd for IPFIX over UDP, a socket for TCP.

The capture is a small simulated megalodon: both its losses and its connections are known to weir analyze, which the
exports must agree with.
"""

import collections
import csv
import itertools
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest
from pyarrow import parquet

ROOT = Path(__file__).resolve().parents[4]
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
PATIENCE = 120


def weir(*arguments, status=0):
    run = subprocess.run([WEIR, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == status, run.stderr
    return run


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("megalodon")
    weir("scenario", "megalodon", "--scale", "0.02", "-o", folder)
    return folder / "megalodon-content.pcap"


@pytest.fixture(scope="module")
def answer(capture):
    return json.loads(weir("analyze", capture, "--segments", "-f", "json").stdout)


def tshark(path, *arguments):
    if not shutil.which("tshark"):
        pytest.skip("tshark is not here: apt-get install tshark")
    command = ["tshark", "-r", path, *arguments]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    return run.stdout


def packets(path, *fields):
    """Rows of these fields; several values of a field between ';'."""
    options = [option for field in fields for option in ("-e", field)]
    rows = tshark(path, "-T", "fields", "-E", "aggregator=;", "-E", "occurrence=a", *options).splitlines()
    return [dict(zip(fields, row.split("\t"), strict=True)) for row in rows]


def endpoint(connection):
    ends = connection["client"], connection["server"]
    return frozenset((end["address"], str(end["port"])) for end in ends)


def ends(row):
    return frozenset([(row["ip.src"], row["tcp.srcport"]), (row["ip.dst"], row["tcp.dstport"])])


ENDS = ("ip.src", "tcp.srcport", "ip.dst", "tcp.dstport")


def test_all_packets_are_the_captures_own_and_each_verdict_is_a_comment(capture, answer, tmp_path):
    weir("export", capture, "-f", "pcapng", "-o", tmp_path / "all.pcapng")
    same = ("frame.time_epoch", "frame.len", "frame.cap_len", "tcp.seq_raw", "ip.id")
    assert packets(tmp_path / "all.pcapng", *same) == packets(capture, *same)
    rows = packets(tmp_path / "all.pcapng", "frame.comment")
    said = collections.Counter()
    places = {"BEFORE_TAP": "lost upstream", "BEHIND_TAP": "lost downstream", "UNKNOWN": "where is not known"}
    for row in rows:
        for comment in filter(None, row["frame.comment"].split(";weir: ")):
            if "retransmission" in comment:
                said[next((place for place, words in places.items() if words in comment), "spurious")] += 1
    told = collections.Counter()
    for segment in answer["segments"]:
        if segment["class"] == "RETRANSMISSION":
            told[segment["place"] if segment["place"] in places else "spurious"] += 1
    assert said == told and len(told) == 4 and sum(told.values()) > 100
    begun = [row for row in rows if "begins" in row["frame.comment"]]
    assert len(begun) == len(answer["connections"])


def test_a_filter_selects_the_packets_of_its_connections(capture, answer, tmp_path):
    lossy = [c for c in answer["connections"] if int(c["serverToClient"].get("lostUpstream", 0)) > 0]
    assert 5 < len(lossy) < len(answer["connections"]) / 2
    out = tmp_path / "lost.pcapng"
    weir("export", capture, "-f", "pcapng", "-o", out, "--filter", "server_to_client.lost_upstream > 0")
    rows = packets(out, *ENDS, "frame.comment")
    # A port is used again: the ends of a connection may be those of another.
    assert {ends(row) for row in rows} == {endpoint(c) for c in lossy}
    count = sum(int(c[side]["packets"]) for c in lossy for side in ("clientToServer", "serverToClient"))
    assert len(rows) == count
    assert any("lost upstream" in row["frame.comment"] for row in rows)


def test_a_finding_selects_its_connections_and_a_time_its_packets(capture, answer, tmp_path):
    [finding] = [f for f in answer["findings"] if f["kind"] == "PERIODIC_LOSS"]
    ids = set(finding["connectionIds"])
    named = [c for c in answer["connections"] if c["id"] in ids]
    out = tmp_path / "finding.pcapng"
    weir("export", capture, "-f", "pcapng", "-o", out, "--finding", "kind = PERIODIC_LOSS")
    assert {ends(row) for row in packets(out, *ENDS)} == {endpoint(c) for c in named}
    weir("export", capture, "-f", "pcapng", "-o", out, "--from", "60", "--to", "61.5")
    times = [float(row["frame.time_epoch"]) for row in packets(capture, "frame.time_epoch")]
    wanted = [t for t in times if 60 <= t - times[0] < 61.5]
    assert [float(row["frame.time_epoch"]) for row in packets(out, "frame.time_epoch")] == wanted
    assert 0 < len(wanted) < len(times)
    assert (
        "no finding matches"
        in weir("export", capture, "-f", "pcapng", "-o", out, "--finding", "kind = NO_SUCH", status=1).stderr
    )
    # What was there before stays, and nothing else is left.
    assert [path.name for path in tmp_path.iterdir()] == ["finding.pcapng"]
    assert [float(row["frame.time_epoch"]) for row in packets(out, "frame.time_epoch")] == wanted


def test_several_captures_are_sections_of_one_file(capture, tmp_path):
    other = ROOT / "docs" / "demo" / "demo.pcap"
    weir("export", capture, other, "-f", "pcapng", "-o", tmp_path / "both.pcapng")
    number = [len(packets(path, "frame.number")) for path in (capture, other, tmp_path / "both.pcapng")]
    assert number[0] + number[1] == number[2]


def blocks(path):
    """(type, body) of the blocks of a pcapng file."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert length % 4 == 0 and struct.unpack_from("<I", data, at + length - 4) == (length,)
        yield kind, data[at + 8 : at + length - 4]
        at += length


def options(data):
    """(code, value) of the options of a block; the draft asks writers for the one that ends them."""
    at = 0
    while at < len(data):
        code, length = struct.unpack_from("<HH", data, at)
        yield code, data[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
        if code == 0:
            assert (length, at) == (0, len(data))
            return
    assert data == b"", "options without an end"


def test_a_copy_tells_what_the_capture_lost_and_ends_its_options(capture, tmp_path):
    whole, lossy = tmp_path / "whole.pcapng", tmp_path / "lossy.pcapng"
    weir("export", capture, "-f", "pcapng", "-o", whole)
    # Interface 0 lost 53 frames, and 7 more in the system, by the second of two reports.
    reports = b"".join(
        struct.pack("<IIIIIHHQHHQHHI", 5, 52, 0, 0, 0, 5, 8, driver, 7, 8, system, 0, 0, 52)
        for driver, system in [(20, 0), (53, 7)]
    )
    lossy.write_bytes(whole.read_bytes() + reports)
    for selection in ([], ["--filter", "server.port = 443"]):
        out = tmp_path / "out.pcapng"
        weir("export", lossy, "-f", "pcapng", "-o", out, *selection)
        told = []
        commented = 0
        for kind, body in blocks(out):
            match kind:
                case 0x0A0D0D0A:
                    assert dict(options(body[16:]))[4].startswith(b"weir ")
                case 1:
                    assert dict(options(body[8:])) == {9: b"\x09", 0: b""}
                case 6:
                    captured = struct.unpack_from("<I", body, 12)[0]
                    commented += len(list(options(body[20 + (captured + 3) // 4 * 4 :]))) > 0
                case 5:
                    interface, high, low = struct.unpack_from("<III", body)
                    told.append((interface, high << 32 | low, dict(options(body[12:]))))
        assert commented > 0
        last = max(float(row["frame.time_epoch"]) for row in packets(capture, "frame.time_epoch"))
        [(interface, time, values)] = told
        assert (interface, values) == (0, {5: struct.pack("<Q", 60), 0: b""})
        assert abs(time / 1e9 - last) < 1e-5
        for path in (lossy, out):
            assert json.loads(weir("analyze", path, "-f", "json").stdout)["summary"]["captureLoss"] == "60"


def ipv4(source, destination, protocol, payload):
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 7, 0, 64, protocol, 0, source, destination)
    return header + payload


def test_icmp_errors_are_of_the_connection_that_they_quote(tmp_path):
    client, server, router = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]), bytes([10, 0, 0, 254])
    frames = []
    for port in (40_000, 40_001):
        syn = ipv4(client, server, 6, struct.pack(">HHIIBBHHH", port, 80, 1000, 0, 0x50, 2, 8192, 0, 0))
        # No route to the host (RFC 792), as a router says.
        frames += [syn, ipv4(router, client, 1, struct.pack(">BBHI", 3, 1, 0, 0) + syn[:28])]
    # A question and an answer over UDP are no connection.
    for source, destination, ports in [(client, server, (5000, 53)), (server, client, (53, 5000))]:
        frames.append(ipv4(source, destination, 17, struct.pack(">HHHH4s", *ports, 12, 0, b"name")))
    path, out = tmp_path / "unreachable.pcap", tmp_path / "out.pcapng"
    path.write_bytes(
        struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
        + b"".join(
            struct.pack("<IIII", 1000 + at, 0, len(frame), len(frame)) + frame for at, frame in enumerate(frames)
        )
    )
    answer = json.loads(weir("analyze", path, "-f", "json").stdout)
    [first, second] = [int(c["id"]) for c in answer["connections"]]

    def exported(*selection):
        weir("export", path, "-f", "pcapng", "-o", out, *selection)
        for kind, body in blocks(out):
            if kind == 6:
                length = struct.unpack_from("<I", body, 12)[0]
                said = [value.decode() for code, value in options(body[20 + (length + 3) // 4 * 4 :]) if code == 1]
                yield body[20 : 20 + length], said

    about = [
        [f"weir: connection {first} begins"],
        [f"weir: ICMP error about connection {first}"],
        [f"weir: connection {second} begins"],
        [f"weir: ICMP error about connection {second}"],
        [],
        [],
    ]
    assert list(exported()) == list(zip(frames, about, strict=True))
    assert list(exported("--filter", "client.port = 40001")) == list(zip(frames[2:4], about[2:4], strict=True))
    explained = json.loads(weir("analyze", out, "-f", "json").stdout)["connections"][0]["setup"]["explanation"]
    assert explained == answer["connections"][1]["setup"]["explanation"] and "ICMP error" in explained


def syn(port, tags=b"", flags=2, back=False):
    """A segment of the setup of the connection of a client's port, in Ethernet with these tags."""
    ends = [bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])]
    ports = [port, 80]
    if back:
        ends.reverse()
        ports.reverse()
    sequence = 1000 if flags & 2 else 1001
    segment = struct.pack(">HHIIBBHHH", *ports, sequence, 1001, 0x50, flags, 8192, 0, 0)
    return bytes(12) + tags + b"\x08\x00" + ipv4(*ends, 6, segment)


def ethernet(path, frames):
    """A capture of (seconds, frame)."""
    rows = [struct.pack("<IIII", second, 0, len(frame), len(frame)) + frame for second, frame in frames]
    path.write_bytes(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(rows))
    return path


def test_the_copy_is_of_the_connections_that_were_analysed(tmp_path):
    out = tmp_path / "out.pcapng"
    # Tags that differ by direction are no part of a connection: the analysis sees that by itself.
    there, back = b"\x81\x00\x00\x0a", b"\x81\x00\x00\x14"
    ports = range(40_000, 40_010)
    tagged = [
        frame
        for port in ports
        for frame in (syn(port, there), syn(port, back, flags=0x12, back=True), syn(port, there, flags=0x10))
    ]
    path = ethernet(tmp_path / "tagged.pcap", list(enumerate(tagged, 1000)))
    weir("export", path, "-f", "pcapng", "-o", out, "--filter", "client.port = 40004")
    copied = [body[20 : 20 + struct.unpack_from("<I", body, 12)[0]] for kind, body in blocks(out) if kind == 6]
    assert copied == tagged[12:15]
    # A frame whose time cannot be right closes no connection: the next ones keep their ids.
    frames = [(1000, syn(40_000)), (90_000_000, syn(40_001)), (1001, syn(40_000, flags=0x12, back=True))]
    frames += [(1002, syn(40_000, flags=0x10)), (1003, syn(40_002)), (1004, syn(40_003))]
    path = ethernet(tmp_path / "astray.pcap", frames)
    for port, selected in [(40_000, [0, 2, 3]), (40_001, [1]), (40_002, [4]), (40_003, [5])]:
        weir("export", path, "-f", "pcapng", "-o", out, "--filter", f"client.port = {port}")
        copied = [body[20 : 20 + struct.unpack_from("<I", body, 12)[0]] for kind, body in blocks(out) if kind == 6]
        assert copied == [frames[at][1] for at in selected], port


def test_a_section_says_what_was_selected_of_which_capture(tmp_path):
    frames = [(1_000_000_000 + at, syn(40_000 + at)) for at in range(10)]
    path, out = ethernet(tmp_path / "ten.pcap", frames), tmp_path / "out.pcapng"
    for selection, what in [
        ([], "all packets"),
        (["--to", "4.5"], "before 2001-09-09T01:46:44.500000000Z"),
        (
            ["--filter", "client.port < 40005", "--from", "2", "--to", "8"],
            "connections client.port < 40005, from 2001-09-09T01:46:42.000000000Z, before 2001-09-09T01:46:48.000000000Z",
        ),
    ]:
        weir("export", path, "-f", "pcapng", "-o", out, *selection)
        [comment] = [dict(options(body[16:]))[1] for kind, body in blocks(out) if kind == 0x0A0D0D0A]
        assert comment.decode() == f"{what}, exported from {path}"


def test_fragments_go_with_the_packet_that_they_are_of(tmp_path):
    out = tmp_path / "out.pcapng"
    frames = []
    for at, port in enumerate((40_000, 40_001)):
        whole = syn(port, flags=0x18)[14:] + bytes(1200)
        for offset in (1184, 592, 0):
            # Each in three pieces, the last one first (RFC 791 3.2).
            piece = bytearray(whole[:20] + whole[20 + offset : 20 + offset + 592])
            struct.pack_into(">HHH", piece, 2, len(piece), 100 + at, offset // 8 | (0x2000 if offset < 1184 else 0))
            frames.append((1000 + len(frames), bytes(12) + b"\x08\x00" + piece))
    # One of which a piece is missing.
    lost = bytearray(frames[0][1])
    struct.pack_into(">H", lost, 18, 99)
    frames.append((1010, bytes(lost)))
    path = ethernet(tmp_path / "pieces.pcap", frames)
    run = weir("export", path, "-f", "pcapng", "-o", out, "--filter", "client.port = 40001")
    copied = [body[20 : 20 + struct.unpack_from("<I", body, 12)[0]] for kind, body in blocks(out) if kind == 6]
    assert copied == [frame for _, frame in frames[3:6]]
    assert "3 fragments of other datagrams" in run.stderr
    [connection] = json.loads(weir("analyze", out, "-f", "json").stdout)["connections"]
    assert connection["clientToServer"]["payloadBytes"] == "1200"


def test_a_copy_at_the_same_time_is_told_and_its_original_is_not(tmp_path):
    # A mirror port gives each packet twice, at once; the second SYN is sent again.
    times = [1000, 1001, 1001, 1001]
    flags = [(2, False), (2, False), (0x12, True), (0x10, False)]
    frames = [
        (time, syn(40_000, flags=bits, back=back))
        for time, (bits, back) in zip(times, flags, strict=True)
        for _ in range(2)
    ]
    path, out = ethernet(tmp_path / "twice.pcap", frames), tmp_path / "out.pcapng"
    weir("export", path, "-f", "pcapng", "-o", out)
    said = []
    for kind, body in blocks(out):
        if kind == 6:
            length = struct.unpack_from("<I", body, 12)[0]
            comments = [value.decode() for code, value in options(body[20 + length + -length % 4 :]) if code == 1]
            said.append([re.match(r"weir: (copy|retransmission)", comment) for comment in comments])
    told = [{match[1] for match in matches if match} for matches in said]
    assert told == [set(), {"copy"}, {"retransmission"}, {"copy"}, set(), {"copy"}, set(), set()]
    answer = json.loads(weir("analyze", path, "--segments", "-f", "json").stdout)
    assert collections.Counter(s["class"] for s in answer["segments"]) == {"COPY": 3, "RETRANSMISSION": 1}


def test_of_a_time_a_connection_goes_on(capture, tmp_path):
    out = tmp_path / "out.pcapng"
    weir("export", capture, "-f", "pcapng", "-o", out, "--from", "60", "--to", "61.5")
    rows = packets(out, "frame.comment", "tcp.flags")
    for words, has_syn in [("begins", True), ("goes on", False)]:
        flags = [int(row["tcp.flags"], 16) for row in rows if words in row["frame.comment"]]
        assert flags and {bool(bits & 2) for bits in flags} == {has_syn}, words


def test_a_captures_name_may_begin_as_an_address_does(capture, tmp_path):
    path = tmp_path / "httpd.pcap"
    path.write_bytes(Path(capture).read_bytes())
    out = tmp_path / "out.pcapng"
    run = subprocess.run(
        [WEIR, "export", "httpd.pcap", "-f", "pcapng", "-o", out],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.returncode == 0 and out.stat().st_size > 0, run.stderr


def test_what_cannot_be_exported_is_told(capture, tmp_path):
    for arguments, reason in [
        (["-f", "pcapng"], "-o FILE"),
        (["-f", "pcapng", "-o", capture], "the capture itself"),
        (["-f", "pcapng", "-o", tmp_path / "x", "--filter", "no_such = 1"], "no_such"),
        (["-f", "ipfix", "-o", tmp_path / "x", "--collector", "udp://127.0.0.1:1"], "not both"),
        (["-f", "ipfix", "--collector", "tcp://127.0.0.1:1"], "does it listen"),
        (["-f", "ipfix", "-o", tmp_path / "x", "--finding", "kind = NO_SUCH"], "no finding matches"),
        (["-f", "csv"], "-o DIR"),
        (["-f", "csv", "--table", "blocks", "--collector", "udp://127.0.0.1:1"], "--collector is for"),
        (["-f", "ipfix", "--table", "blocks"], "--table are for"),
        (["-f", "parquet", "--table", "blocks", "-o", capture], "the capture itself"),
        ([capture, "-f", "csv", "--table", "blocks"], "both tap megalodon-content"),
    ]:
        assert reason in weir("export", capture, *arguments, status=1).stderr
    assert list(tmp_path.iterdir()) == []
    run = weir("export", "http://127.0.0.1:1", "-f", "pcapng", "-o", tmp_path / "x", status=1)
    assert "a daemon keeps none" in run.stderr
    for options, reason in [
        (["--filter", "server.port = 443"], "weir query --store"),
        (["--from", "60"], "as times"),
        (["--tap", "other"], "has no tap other"),
    ]:
        weir("store", "add", ROOT / "docs" / "demo" / "demo.pcap", "--store", tmp_path / "store")
        command = ["export", "--store", tmp_path / "store", "-f", "csv", "--table", "blocks", *options]
        assert reason in weir(*command, status=1).stderr


def test_of_a_cut_capture_what_is_there_is_exported_as_it_is_analysed(capture, tmp_path):
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(capture.read_bytes()[: capture.stat().st_size // 2 + 7])
    answer = weir("analyze", cut, "-f", "json", status=2)
    analysed = json.loads(answer.stdout)
    frames = len(packets(capture, "frame.number"))
    for form, tables in [("pcapng", []), ("ipfix", []), ("csv", ["--table", "connections"])]:
        run = weir("export", cut, "-f", form, *tables, "-o", tmp_path / form, status=2)
        assert answer.stderr.strip() in run.stderr and run.stderr.count("cut.pcap") <= 2
    exported = packets(tmp_path / "pcapng", "frame.number")
    assert frames / 3 < len(exported) < frames * 2 / 3
    ids = packets(tmp_path / "ipfix", "cflow.flow_id")
    assert sum(len(row["cflow.flow_id"].split(";")) for row in ids) == len(analysed["connections"])
    assert len(table(tmp_path / "csv")) == len(analysed["connections"])


def table(path):
    """Rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_tables_hold_what_the_analysis_says(capture, answer, tmp_path):
    weir("export", capture, "-f", "csv", "-o", tmp_path / "csv")
    weir("export", capture, "-f", "parquet", "-o", tmp_path / "parquet")
    documented = re.findall(r"^## (\w+)$", (ROOT / "docs" / "src" / "tables.md").read_text(), re.M)
    for kind in ("csv", "parquet"):
        assert {path.name for path in (tmp_path / kind).iterdir()} == {f"{name}.{kind}" for name in documented}
    rows = {name: table(tmp_path / "csv" / f"{name}.csv") for name in documented}
    for name in ("connections", "transactions", "findings"):
        assert len(rows[name]) == len(answer[name]) > 0
    assert len(rows["packets"]) == int(answer["summary"]["packets"])
    assert all(len(rows[name]) > 0 for name in documented), {name: len(rows[name]) for name in documented}
    told = {c["id"]: c for c in answer["connections"]}
    for row in rows["connections"]:
        said = told.pop(row["id"])
        assert row["tap"] == "megalodon-content"
        assert (row["client_address"], row["server_port"]) == (said["client"]["address"], str(said["server"]["port"]))
        # The same moment; the table leaves out zeros at the end of the fraction.
        assert row["first_packet_time"].endswith("Z")
        assert nanoseconds(row["first_packet_time"]) == nanoseconds(said["firstPacketTime"])
    assert not told
    by_kind = collections.Counter(finding["kind"] for finding in answer["findings"])
    assert collections.Counter(row["kind"] for row in rows["findings"]) == by_kind
    for row in rows["findings"]:
        assert json.loads(row["evidence"]) and isinstance(json.loads(row["numbers"]), dict)
    for name in documented:
        read = parquet.read_table(tmp_path / "parquet" / f"{name}.parquet")
        assert read.num_rows == len(rows[name]), name
        assert read.column_names == list(rows[name][0]), name
    read = parquet.read_table(tmp_path / "parquet" / "connections.parquet")
    assert str(read.schema.field("first_packet_time").type) == "timestamp[ns, tz=UTC]"
    assert [str(id) for id in read["id"].to_pylist()] == [row["id"] for row in rows["connections"]]


def nanoseconds(time):
    """Of the second, and the second, of a time as the output prints it."""
    second, _, fraction = time.removesuffix("Z").partition(".")
    return second, fraction.ljust(9, "0")


def test_tables_of_one_export_stand_beside_each_other_or_not_at_all(capture, tmp_path):
    weir("export", capture, "-f", "parquet", "-o", tmp_path / "whole")
    files = sorted((tmp_path / "whole").iterdir())
    longest = max(path.stat().st_size for path in files)
    old = tmp_path / "old"
    old.mkdir()
    for path in files:
        (old / path.name).write_text("of the day before")
    # As on a disk that is full when the longest is written: all others would fit.
    run = subprocess.run(
        [WEIR, "export", capture, "-f", "parquet", "-o", old],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        restore_signals=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (longest - 1, longest - 1)),
    )
    assert run.returncode == 1 and "cannot write" in run.stderr, run.stderr
    assert {path.name: path.read_bytes() for path in old.iterdir()} == {
        path.name: b"of the day before" for path in files
    }


def test_tables_of_a_selection_are_of_its_connections_and_time(capture, answer, tmp_path):
    lossy = {c["id"] for c in answer["connections"] if int(c["serverToClient"].get("lostUpstream", 0)) > 0}
    lossy_only = ["--filter", "server_to_client.lost_upstream > 0"]
    weir("export", capture, "-f", "csv", "-o", tmp_path / "lossy", *lossy_only)
    assert {row["id"] for row in table(tmp_path / "lossy" / "connections.csv")} == lossy
    for name in ("transactions", "segments", "packets"):
        assert {row["connection_id"] for row in table(tmp_path / "lossy" / f"{name}.csv")} == lossy, name
    assert table(tmp_path / "lossy" / "ports.csv") == []
    for row in table(tmp_path / "lossy" / "findings.csv"):
        assert lossy & set(map(str, json.loads(row["connection_ids"])))
    all_packets = packets(capture, "frame.time_epoch")
    start = float(all_packets[0]["frame.time_epoch"])
    inside = sum(60 <= float(row["frame.time_epoch"]) - start < 61.5 for row in all_packets)
    part = ["--from", "60", "--to", "61.5"]
    out = weir("export", capture, "-f", "csv", "--table", "packets", *part).stdout
    assert len(out.splitlines()) - 1 == inside > 0


def test_a_store_gives_the_tables_of_its_captures(capture, tmp_path):
    demo = ROOT / "docs" / "demo" / "demo.pcap"
    store = tmp_path / "store"
    weir("store", "add", capture, demo, "--store", store)
    for name in ("connections", "transactions", "findings"):
        for path, tap in [(capture, "megalodon-content"), (demo, "demo")]:
            direct, stored = tmp_path / "direct.csv", tmp_path / "stored.csv"
            weir("export", path, "-f", "csv", "--table", name, "-o", direct)
            weir("export", "--store", store, "--tap", tap, "-f", "csv", "--table", name, "-o", stored)
            key = lambda row: sorted(row.items())  # noqa: E731
            assert sorted(table(direct), key=key) == sorted(table(stored), key=key)
    weir("export", "--store", store, "-f", "parquet", "-o", tmp_path / "all")
    whole = parquet.read_table(tmp_path / "all" / "transactions.parquet")
    assert set(whole["tap"].to_pylist()) == {"demo", "megalodon-content"}


def test_rows_of_a_store_come_by_time_over_all_taps(tmp_path):
    # Two taps of one path: their rows lie between each other's.
    folder = ROOT / "docs" / "demo"
    captures = [folder / "demo-client.pcap", folder / "demo-server.pcap"]
    store = tmp_path / "store"
    weir("store", "add", *captures, "--store", store)
    weir("export", "--store", store, "-f", "parquet", "-o", tmp_path / "all")
    for name, column in [("transactions", "request_time"), ("connections", "first_packet_time"), ("events", "time")]:
        rows = parquet.read_table(tmp_path / "all" / f"{name}.parquet")
        times, taps = rows[column].cast("int64").to_pylist(), rows["tap"].to_pylist()
        assert times == sorted(times)
        turns = sum(one != other for one, other in itertools.pairwise(taps))
        assert turns > 2, f"{name}: one tap behind the other"
        for capture in captures:
            direct = json.loads(weir("analyze", capture, "-f", "json").stdout).get(name)
            assert direct is None or taps.count(capture.stem) == len(direct)


def test_ipfix_is_read_as_it_was_meant(capture, answer, tmp_path):
    weir("export", capture, "-f", "ipfix", "-o", tmp_path / "all.ipfix")
    fields = ("cflow.srcaddr", "cflow.dstaddr", "cflow.srcport", "cflow.dstport", "cflow.packets")
    fields += ("cflow.biflow_direction", "cflow.flow_end_reason", "cflow.flow_id")
    read = {field: [] for field in fields}
    for row in packets(tmp_path / "all.ipfix", *fields):
        for field, values in row.items():
            read[field] += values.split(";")
    by_id = {int(c["id"]): c for c in answer["connections"]}
    number = [int(value, 0) for value in read["cflow.flow_id"]]
    assert len(number) == len(set(number)) == len(by_id) and set(number) == set(by_id)
    both = [c[side]["packets"] for c in map(by_id.get, number) for side in ("clientToServer", "serverToClient")]
    # The reverse element comes behind its own in each record.
    assert read["cflow.packets"] == both
    for at, id in enumerate(number):
        client, server = by_id[id]["client"], by_id[id]["server"]
        assert (read["cflow.srcaddr"][at], int(read["cflow.srcport"][at])) == (client["address"], client["port"])
        assert (read["cflow.dstaddr"][at], int(read["cflow.dstport"][at])) == (server["address"], server["port"])
    assert set(read["cflow.biflow_direction"]) == {"1"}
    ignored = [c for c in by_id.values() if c["close"]["kind"] == "IGNORED"]
    assert read["cflow.flow_end_reason"].count("1") == len(ignored) > 0


def ipfix(data):
    """(observation domain, sequence number, ids of flows) of the messages of a stream, decoded as RFC 7011 has them."""
    templates = {}
    at = 0
    while at < len(data):
        version, length, _, sequence, domain = struct.unpack_from(">HHIII", data, at)
        assert version == 10
        sets, end, ids = at + 16, at + length, []
        while sets < end:
            kind, size = struct.unpack_from(">HH", data, sets)
            body, sets = data[sets + 4 : sets + size], sets + size
            if kind == 2:
                while body:
                    (template, fields), body = struct.unpack_from(">HH", body), body[4:]
                    elements = []
                    for _ in range(fields):
                        element, width = struct.unpack_from(">HH", body)
                        body = body[8 if element >> 15 else 4 :]
                        elements.append((element, width))
                    templates[domain, template] = elements
                continue
            while body:
                for element, width in templates[domain, kind]:
                    value, body = body[:width], body[width:]
                    if element == 148:
                        ids.append(int.from_bytes(value))
        assert sets == end
        yield domain, sequence, ids
        at = end


def test_ids_are_unique_in_the_observation_domain_of_their_capture(capture, tmp_path):
    captures = [capture, ROOT / "docs" / "demo" / "demo.pcap"]
    weir("export", *captures, "-f", "ipfix", "-o", tmp_path / "both.ipfix")
    told = collections.defaultdict(list)
    for domain, sequence, ids in ipfix((tmp_path / "both.ipfix").read_bytes()):
        # The sequence numbers of a domain count its records.
        assert sequence == len(told[domain])
        told[domain] += ids
    assert list(told) == [1, 2]
    for domain, path in zip(told, captures, strict=True):
        analysed = json.loads(weir("analyze", path, "-f", "json").stdout)["connections"]
        assert sorted(told[domain]) == sorted(int(c["id"]) for c in analysed)
        assert len(set(told[domain])) == len(analysed)


def test_a_collector_that_is_not_there_or_does_not_read_is_told(capture):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        gone = probe.getsockname()[1]
    # A single message, behind which nothing else is sent.
    few = ["-f", "ipfix", "--filter", "client.port = 1"]
    run = weir("export", capture, *few, "--collector", f"udp://127.0.0.1:{gone}", status=1)
    assert "Connection refused" in run.stderr
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)

        def close_unread():
            stream, _ = server.accept()
            stream.recv(1, socket.MSG_PEEK)
            stream.close()

        thread = threading.Thread(target=close_unread)
        thread.start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        assert "reset by peer" in weir("export", capture, *few, "--collector", address, status=1).stderr
        thread.join(timeout=PATIENCE)


def test_a_collector_takes_all_over_udp(capture, answer, tmp_path):
    if not shutil.which("nfcapd"):
        pytest.skip("nfcapd is not here: apt-get install nfdump")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (tmp_path / "log").open("w+")
    command = ["nfcapd", "-b", "127.0.0.1", "-p", port, "-l", tmp_path, "-t", 3600]
    collector = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + PATIENCE
        while "Startup" not in (tmp_path / "log").read_text():
            assert time.monotonic() < deadline and collector.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.1)
        weir("export", capture, "-f", "ipfix", "--collector", f"udp://127.0.0.1:{port}")
        time.sleep(1)
    finally:
        collector.send_signal(signal.SIGTERM)
        collector.wait(timeout=PATIENCE)
    said = (tmp_path / "log").read_text()
    packets = sum(
        int(c[side]["packets"]) for c in answer["connections"] for side in ("clientToServer", "serverToClient")
    )
    assert f"Flows: {len(answer['connections'])}, Packets: {packets}," in said, said
    assert "Sequence Errors: 0, Bad Packets: 0" in said, said


def test_tcp_carries_what_the_file_has(capture, tmp_path):
    weir("export", capture, "-f", "ipfix", "-o", tmp_path / "file.ipfix", "--filter", "server.port = 443")
    received = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)

        def take():
            stream, _ = server.accept()
            while piece := stream.recv(65536):
                received.extend(piece)

        thread = threading.Thread(target=take)
        thread.start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        weir("export", capture, "-f", "ipfix", "--collector", address, "--filter", "server.port = 443")
        thread.join(timeout=PATIENCE)

    def without_export_times(messages):
        out = bytearray(messages)
        at = 0
        while at < len(out):
            out[at + 4 : at + 8] = bytes(4)
            at += int.from_bytes(out[at + 2 : at + 4])
        return out

    file = (tmp_path / "file.ipfix").read_bytes()
    assert len(file) > 500 and without_export_times(received) == without_export_times(file)
