"""weir query: what it tells of what it does not show, and of what it cannot do."""

import json
import re
import struct
import subprocess

import pytest
from test_options import frames
from test_serve import DEMO, PATIENCE, WEIR, Daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A daemon that has replayed the demo capture: 13 connections."""
    with Daemon(tmp_path_factory.mktemp("daemon"), "--port", f"pcap:{DEMO}") as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
        yield daemon


def query(daemon, *arguments, port=None):
    command = [WEIR, "query", *map(str, arguments), "--server", f"http://127.0.0.1:{port or daemon.grpc}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.parametrize(
    ("what", "title"),
    [
        ("connections", "Connections"),
        ("transactions", "Transactions"),
        ("segments", "Segments that came twice, late or never"),
        ("findings", "Findings"),
    ],
)
def test_what_is_more_than_the_limit_is_told(daemon, what, title):
    whole = query(daemon, what, "-f", "json")
    assert (whole.returncode, whole.stderr) == (0, "")
    all_of_them = len(json.loads(whole.stdout)[what])
    told = query(daemon, what, "--limit", "3").stdout
    assert f"{title} 3 of {all_of_them}; --limit shows more" in told
    cut = query(daemon, what, "--limit", "3", "-f", "json")
    assert len(json.loads(cut.stdout)[what]) == 3
    assert cut.stderr == f"weir: 3 of {all_of_them}; --limit fetches more\n"
    told = query(daemon, what, "--limit", all_of_them).stdout
    assert re.search(rf"^{title} {all_of_them} *$", told, re.M)


def test_older_slices_and_later_records_are_told_of(daemon):
    slices = len(json.loads(query(daemon, "timeline", "-f", "json").stdout)["slices"])
    assert slices > 1
    assert query(daemon, "timeline", "--limit", "1").stderr == (
        f"weir: the newest 1 of {slices} slices; --limit fetches more\n"
    )
    # The newest ones are as long after the first as in the whole.
    first, *whole = query(daemon, "timeline").stdout.splitlines()
    assert re.fullmatch(r"times are seconds since 2026-11-21T05:45:3\d\.\d+Z", first)
    (newest,) = re.findall(r"^ +([1-9]\d*\.\d{3}) ", query(daemon, "timeline", "--limit", "1").stdout, re.M)
    assert any(line.split()[:1] == [newest] for line in whole)
    records = query(daemon, "records", "--limit", "5")
    assert (len(records.stdout.splitlines()), records.stderr) == (
        5,
        "weir: the oldest 5 records; --limit fetches more\n",
    )
    whole = query(daemon, "records", "--limit", "100000")
    number = len(whole.stdout.splitlines())
    assert whole.stderr == ""
    assert query(daemon, "records", "--limit", number).stderr == ""


def test_a_limit_of_nothing_is_refused(daemon):
    run = query(daemon, "--limit", "0")
    assert (run.returncode, run.stdout) == (2, "")
    assert "--limit" in run.stderr


def test_records_have_no_json(daemon):
    run = query(daemon, "records", "-f", "json")
    assert (run.returncode, run.stdout) == (1, "")
    assert "records have no JSON" in run.stderr


def test_a_wrong_filter_is_told_once(daemon):
    run = query(daemon, "--filter", "turns = x")
    assert run.returncode == 1
    assert "filter: position 9: " in run.stderr


def test_what_speaks_no_grpc_is_told(daemon):
    run = query(daemon, port=daemon.metrics)
    assert run.returncode == 1
    assert "no gRPC of Weir answers at this address" in run.stderr


def test_what_the_log_has_not_any_more_is_missing_and_not_left_out(tmp_path):
    """The oldest records made room: who reads the rest is told so, and takes it for a capture that is cut."""
    header, records = frames()
    later = (struct.pack("<I", seconds + 3600 * n) + rest for n in range(20) for seconds, rest in records)
    often = tmp_path / "often.pcap"
    often.write_bytes(header + b"".join(later))
    with Daemon(tmp_path, "--port", f"pcap:{often}", "--digests", "--log-mib", "1") as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
        gone = int(daemon.sample("weir_log_first_position"))
        assert gone > 0
        url = f"http://127.0.0.1:{daemon.grpc}"
        said = f"weir: {url}: {gone:,} records are not in the log any more"
        run = subprocess.run([WEIR, "analyze", url, "-f", "json"], capture_output=True, text=True, timeout=PATIENCE)
        assert run.returncode == 2 and run.stderr.count(said) == 1, run.stderr
        (loss,) = [finding for finding in json.loads(run.stdout)["findings"] if finding["kind"] == "CAPTURE_LOSS"]
        assert loss["values"]["recordsMissing"] == gone
        for command in (
            ["report", url, "-o", tmp_path / "report.html"],
            ["export", url, "-f", "csv", "--table", "connections", "-o", tmp_path / "connections.csv"],
            ["export", url, "-f", "ipfix", "-o", tmp_path / "connections.ipfix"],
        ):
            run = subprocess.run([WEIR, *command], capture_output=True, text=True, timeout=PATIENCE)
            assert run.returncode == 2 and said in run.stderr, run.stderr
        assert said in query(daemon, "records", "--limit", "1").stderr


@pytest.mark.parametrize(
    ("what", "order", "path"),
    [
        ("connections", "durationSeconds desc", ["durationSeconds"]),
        ("transactions", "request_bytes desc, index", ["requestBytes"]),
        ("segments", "length desc", ["length"]),
    ],
)
def test_the_first_in_an_order_are_fetched(daemon, what, order, path):
    (field,) = path
    whole = json.loads(query(daemon, what, "-f", "json").stdout)[what]
    first = query(daemon, what, "--order-by", order, "--limit", "5", "-f", "json")
    told = [float(row.get(field, 0)) for row in json.loads(first.stdout)[what]]
    assert told == sorted((float(row.get(field, 0)) for row in whole), reverse=True)[:5]


def test_an_order_of_nothing_is_refused(daemon):
    wrong = query(daemon, "--order-by", "duration")
    assert wrong.returncode == 1
    assert 'order_by: position 1: found "duration", expected a field: id, client' in wrong.stderr
    assert "--order-by is for connections" in query(daemon, "summary", "--order-by", "id").stderr
    assert "--order-by is for lists" in query(daemon, "findings", "--watch", "--order-by", "title").stderr


def connections_of(text):
    """Clients in the table of connections, and the note beside its title."""
    ((note, table),) = re.findall(r"^Connections (.*)\n.*\n((?: .*\n)+)", text, re.M)
    return note, re.findall(r"^ \S+ +(\S+) ", table, re.M)


def test_the_table_of_connections_has_the_order_that_is_asked_for():
    def analyze(*arguments):
        command = [WEIR, "analyze", str(DEMO), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    whole = json.loads(analyze("-f", "json").stdout)["connections"]
    whole.sort(key=lambda row: -int(row["serverToClient"].get("payloadBytes", 0)))
    clients = [f"{row['client']['address']}:{row['client']['port']}" for row in whole]
    order = ("--order-by", "server_to_client.payload_bytes desc")
    assert connections_of(analyze(*order).stdout) == ("13", clients)
    note, first = connections_of(analyze(*order, "--rows", "4").stdout)
    assert (note, first) == ("4 of 13, the first in this order; --rows shows more", clients[:4])
    assert '--order-by: position 1: found "x"' in analyze("--order-by", "x").stderr
    assert "--order-by is for text" in analyze("--order-by", "id", "-f", "json").stderr
    assert "--order-by is for one capture" in analyze("--order-by", "id", "-f", "html").stderr
