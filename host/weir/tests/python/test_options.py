"""Options and what is said of them: ranges, numbers, what is missing, figures of selections."""

import json
import os
import pty
import re
import struct
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
DEMO = ROOT / "docs" / "demo" / "demo.pcap"
PATIENCE = 60
DAY = 86_400


def weir(*arguments, status=0):
    run = subprocess.run([WEIR, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == status, (arguments, run.stdout, run.stderr)
    return run


def refused(*arguments, status=1):
    run = weir(*arguments, status=status)
    assert run.stdout == ""
    return run.stderr


def frames():
    """Header of the demo capture, and (seconds, rest of the record) of each frame."""
    data = DEMO.read_bytes()
    records, at = [], 24
    while at < len(data):
        seconds, _, captured, _ = struct.unpack_from("<4I", data, at)
        records.append((seconds, data[at + 4 : at + 16 + captured]))
        at += 16 + captured
    return data[:24], records


@pytest.fixture
def empty(tmp_path):
    path = tmp_path / "empty.pcap"
    path.write_bytes(frames()[0])
    return path


def test_a_range_ends_after_it_begins(tmp_path):
    for a, b in [("3", "2"), ("2", "2"), ("2026-11-21T05:45:33Z", "2026-11-21T05:45:32Z")]:
        said = refused("analyze", DEMO, "--from", a, "--to", b)
        assert "--from is not before --to" in said
        out = tmp_path / "out"
        for form in [("csv", "--table", "connections"), ("pcapng",), ("ipfix",)]:
            assert "--from is not before --to" in refused(
                "export", DEMO, "-o", out, "--from", a, "--to", b, "-f", *form
            )
            assert not out.exists()
    weir("analyze", DEMO, "--from", "2", "--to", "3")
    mixed = refused("analyze", DEMO, "--from", "2", "--to", "2026-11-21T05:45:33Z")
    assert "--from and --to are of two kinds" in mixed


def test_a_time_has_its_date():
    assert "with its date, such as 2026-01-31T12:00:00.5Z" in refused("analyze", DEMO, "--from", "05:45:33", status=2)
    told = weir("analyze", DEMO, "--from", "2026-11-21T05:45:33Z").stdout
    assert "Marked: 05:45:33.000000 to" in told


@pytest.mark.parametrize("gap", ["nan", "0", "-3", "inf"])
def test_a_gap_between_operations_is_a_length_of_time(gap):
    assert "seconds from 0.000001 to 1000000" in refused("analyze", DEMO, f"--operations={gap}", status=2)


def test_a_tap_is_one_of_a_store():
    assert "--tap is for --store" in refused("export", DEMO, "-f", "csv", "--table", "connections", "--tap", "x")


def test_connections_of_a_copy_are_those_with_a_frame_in_it(tmp_path):
    copy = tmp_path / "copy.pcapng"
    for options in [[], ["--from", "1", "--to", "3"], ["--from", "100"], ["--filter", "client.port = 54417"]]:
        said = weir("export", DEMO, "-f", "pcapng", "-o", copy, *options).stderr
        told = re.search(r"(\S+) of 686 frames, of (\S+) connections?,", said)
        summary = json.loads(weir("analyze", copy, "-f", "json").stdout)["summary"]
        assert told.groups() == (summary.get("packets", "0"), summary.get("connections", "0")), options
    assert ", of 1 connection, " in said


def test_nothing_is_compared_with_nothing(empty, tmp_path):
    assert "no packet of a flow is in it from 100 to 200 s" in refused("compare", DEMO, "--ranges", "0-5", "100-200")
    for pair in [(empty, DEMO), (DEMO, empty), (empty, empty)]:
        assert f"{empty}: no packet of a flow is in it" in refused("compare", *pair)
    assert f"{empty}: no packet of a flow is in it" in refused("report", DEMO, "--baseline", empty)


def test_captures_with_nothing_in_common_are_not_alike(tmp_path):
    refused_one = tmp_path / "refused.pcapng"
    weir("export", DEMO, "-f", "pcapng", "-o", refused_one, "--filter", "server.port = 9001")
    others = tmp_path / "others.pcapng"
    weir("export", DEMO, "-f", "pcapng", "-o", others, "--filter", "server.port = 9000")
    for form in ["text", "html"]:
        told = weir("compare", refused_one, others, "-f", form).stdout
        assert "Nothing was compared" in told
        assert "No significant difference" not in told
    assert "No significant difference" in weir("compare", others, others).stdout
    told = json.loads(weir("compare", refused_one, others, "-f", "json").stdout)["comparison"]
    assert (told.get("differences", []), told.get("tests", 0)) == ([], 0)


def test_times_of_several_days_have_their_dates(tmp_path):
    header, records = frames()
    twice = tmp_path / "twice.pcap"
    later = [(seconds + DAY, rest) for seconds, rest in records]
    twice.write_bytes(header + b"".join(struct.pack("<I", seconds) + rest for seconds, rest in [*records, *later]))
    told = weir("analyze", twice, "--rows", "40", "--segments").stdout
    for day in ["2026-11-21", "2026-11-22"]:
        assert len(re.findall(rf"^ {day} 05:45:31\.433788 +10\.77\.0\.1:54417 ", told, re.M)) == 1
    assert not re.search(r"^ 05:45:", told, re.M)
    told = weir("analyze", DEMO).stdout
    assert re.search(r"^ 05:45:31\.433788 +10\.77\.0\.1:54417 ", told, re.M)


def test_one_is_not_several(empty, tmp_path):
    one = tmp_path / "one.pcapng"
    said = weir("export", DEMO, "-f", "ipfix", "-o", one, "--filter", "client.port = 54417").stderr
    assert "weir: 1 connection in 1 message\n" in said
    told = weir("analyze", empty).stdout
    assert "0 connections\n" in told
    assert "setup" not in told and "closed by" not in told
    # Two frames are cut out of the middle of a response.
    weir("export", DEMO, "-f", "pcapng", "-o", one, "--filter", "client.port = 54417")
    assert re.search(r"^  1 connection: setup 1 OK$", weir("analyze", one).stdout, re.M)


def test_a_wrong_filter_names_its_option():
    for option in ["--filter", "--finding"]:
        said = refused("export", DEMO, "-f", "csv", "--table", "connections", option, "kind = ")
        assert re.search(rf"{option}: position \d+: ", said), said


@pytest.mark.parametrize("option", [["--operations", "2"], ["--from", "1"], ["--to", "2"], ["--timeline", "1"]])
@pytest.mark.parametrize("captures", [[DEMO, DEMO], [DEMO, "-f", "html"]])
def test_what_is_for_one_capture_is_not_ignored(captures, option):
    assert f"{option[0]} is for one capture" in refused("analyze", *captures, *option)


def test_what_needs_a_capture_twice_refuses_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    selection = ["--filter", "turns > 1"]
    table = ["-f", "csv", "--table", "connections", "-o", tmp_path / "out", *selection]
    for once in (pipe, "-"):
        for command in (
            ["packets", once],
            ["compare", once, "--ranges", "0-1", "1-2"],
            ["export", once, *table],
            ["export", once, "-f", "ipfix", "-o", tmp_path / "out", "--finding", "kind = SYN_LOSS"],
            ["export", once, "-f", "pcapng", "-o", tmp_path / "out"],
        ):
            assert refused(*command).startswith(f"weir: {once}: "), command
    assert "not a regular file" in refused("capture", "--port", f"pcap:{pipe}")
    # What does not, reads it: a shell gives it one for <(zcat ...).
    with subprocess.Popen(["cp", DEMO, pipe]) as copy:
        assert "13 connections" in weir("analyze", pipe).stdout
        assert copy.wait(timeout=PATIENCE) == 0


@pytest.mark.parametrize(
    "command",
    [
        ("export", "-f", "ipfix"),
        ("export", "-f", "parquet", "--table", "connections"),
        ("records", "-f", "binary"),
    ],
)
def test_a_terminal_gets_no_bytes_that_are_not_text(command):
    reader, terminal = pty.openpty()
    try:
        run = subprocess.run(
            [WEIR, *command, DEMO], stdout=terminal, stderr=subprocess.PIPE, text=True, timeout=PATIENCE
        )
        assert run.returncode == 1 and "standard output is a terminal" in run.stderr, run.stderr
        os.set_blocking(reader, False)
        with pytest.raises(BlockingIOError):
            os.read(reader, 1)
    finally:
        os.close(reader)
        os.close(terminal)


def test_a_name_that_is_no_text_is_told():
    run = subprocess.run([WEIR, "analyze", b"odd\xff.pcap"], capture_output=True, timeout=PATIENCE)
    assert run.returncode == 2 and b"odd\xef\xbf\xbd.pcap: its name is not UTF-8" in run.stderr


def test_the_ends_of_a_flow_can_be_read():
    first = weir("records", DEMO).stdout.splitlines()[0]
    assert " OPEN     c>s SYN 10.77.0.1:54417 > 10.77.0.2:9000 Open {" in first


def test_what_cannot_be_asked_says_what_can(tmp_path):
    (tmp_path / "a file").touch()
    for words, said in {
        ("query", "--store", "s"): 'weir query --store DIR "SELECT',
        ("query", "--store=s", "SELEC 1"): 'weir query --store DIR "SELECT',
        ("records", "http://127.0.0.1:1"): "weir query records --server http://127.0.0.1:1",
        ("view", tmp_path): "not a capture file",
        ("view", "http://127.0.0.1:1"): "weir serve --page",
        ("analyze", *"1234567"): "mergecap",
        ("export", "-", "-f", "pcapng", "-o", tmp_path / "o"): "save it to a file",
        ("export", DEMO, "-f", "csv", "-o", tmp_path / "a file"): "several tables go into a folder",
        ("report", DEMO, "-o", tmp_path / "r.pdf"): "ends in .html",
        ("analyze", "127.0.0.1:50051"): "http://127.0.0.1:50051",
        ("store", "list", "--store", tmp_path / "none"): f"no folder {tmp_path}/none; weir store add",
        ("capture", "--card", f"pcap:{DEMO}", "--control", tmp_path / "none"): f"cannot be reached: {tmp_path}/none: ",
    }.items():
        assert said in refused(*words), words
    for words, said in {
        (DEMO,): f"weir analyze {DEMO}",
        ("serve", "--port", "null", "--listen", "50051"): "127.0.0.1:50051",
        ("records", DEMO, "--statistics", "--services", "80,99999"): '"99999" is no whole number from 0 to 65535',
    }.items():
        assert said in refused(*words, status=2), words
    outside = weir("export", DEMO, "-f", "pcapng", "-o", tmp_path / "outside", "--from", "60")
    assert "none of these frames is of that time" in outside.stderr
    nobody = weir("export", DEMO, "-f", "pcapng", "-o", tmp_path / "nobody", "--filter", "server.port = 1")
    assert "no connection is selected" in nobody.stderr
