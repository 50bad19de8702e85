"""weir store and weir serve --store from outside: captures, kills, a full disk, a daemon."""

import collections
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import time
import urllib.request
from pathlib import Path

import pyarrow.parquet
import pytest
from test_options import frames
from test_serve import free_port

ROOT = Path(__file__).resolve().parents[4]
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
DEMO = ROOT / "docs" / "demo" / "demo.pcap"
PATIENCE = 60
KILLS = int(os.environ.get("WEIR_KILLS", "8"))
SEED = int(os.environ.get("WEIR_SEED", str(random.randrange(10**6))))


def store(*arguments):
    return subprocess.run([WEIR, "store", *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)


def rows(folder):
    """{(table, tap): rows} of weir store list."""
    run = store("list", "--store", folder)
    assert run.returncode == 0, run.stderr
    lines = re.findall(r"^ (\w+) +(\S+) +[\d,]+ +([\d,]+) ", run.stdout, re.M)
    return {(table, tap): int(count.replace(",", "")) for table, tap, count in lines}


def intact(folder):
    run = store("check", "--store", folder)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_capture_is_stored_once_and_its_packets_when_they_are_wanted(tmp_path):
    folder = tmp_path / "store"
    analysis = subprocess.run([WEIR, "analyze", DEMO, "-f", "json"], capture_output=True, timeout=PATIENCE, check=True)
    truth = json.loads(analysis.stdout)
    for _ in range(2):
        run = store("add", DEMO, "--store", folder)
        assert run.returncode == 0, run.stderr
        there = rows(folder)
        assert there["connections", "demo"] == len(truth["connections"])
        assert there["transactions", "demo"] == len(truth["transactions"])
        assert there["findings", "demo"] == len(truth["findings"])
        assert ("packets", "demo") not in there
    assert "stored already" in run.stderr
    for _ in range(2):
        assert store("add", DEMO, "--store", folder, "--digests").returncode == 0
        assert rows(folder) == {**there, ("packets", "demo"): int(truth["summary"]["packets"])}
    intact(folder)
    assert store("compact", "--store", folder).returncode == 0
    assert rows(folder)["packets", "demo"] == int(truth["summary"]["packets"])


def test_a_file_that_has_grown_is_told(tmp_path):
    growing = tmp_path / "growing.pcap"
    told = []
    for size in (30_000, None, None):
        growing.write_bytes(DEMO.read_bytes()[:size])
        run = store("add", growing, "--store", tmp_path / "store")
        told.append("a file of this name with other content" in run.stderr)
    assert told == [False, True, False]
    assert "stored already" in run.stderr


def test_what_was_removed_is_not_stored_already(tmp_path):
    folder = tmp_path / "store"
    # All of it, a moment after it was stored: it is a week old, or more.
    run = store("add", DEMO, "--store", folder, "--keep-days", "1")
    assert run.returncode == 0 and "were removed: retention" in run.stderr and not rows(folder)
    run = store("add", DEMO, "--store", folder)
    assert run.returncode == 0 and "rows stored" in run.stderr and "already" not in run.stderr
    there = rows(folder)
    assert there["connections", "demo"] == 13
    assert "stored already" not in store("add", DEMO, "--store", folder, "--digests").stderr
    # Some of the rows of its tap.
    header, records = frames()
    today = int(time.time()) - records[0][0] - 3600
    (tmp_path / "demo.pcap").write_bytes(
        header + b"".join(struct.pack("<I", seconds + today) + rest for seconds, rest in records)
    )
    assert store("add", tmp_path / "demo.pcap", "--store", folder).returncode == 0
    assert store("compact", "--store", folder, "--keep-days", "1").returncode == 0
    assert rows(folder)["connections", "demo"] == 13
    run = store("add", DEMO, "--store", folder)
    assert run.returncode == 0 and re.search(
        r"were stored, and are not stored again; of those of tap demo, [\d,]+ were removed", run.stderr
    )
    intact(folder)


def test_errors_say_what_and_where(tmp_path):
    run = store("list", "--store", tmp_path)
    assert run.returncode == 1 and "has no manifest, so it is no store" in run.stderr
    run = store("compact", "--store", tmp_path)
    assert run.returncode == 1 and "has no manifest, so it is no store" in run.stderr
    assert not list(tmp_path.iterdir())
    run = store("add", tmp_path / "missing.pcap", "--store", tmp_path / "s")
    assert run.returncode == 1 and "missing.pcap: No such file" in run.stderr
    run = store("add", DEMO, "--store", tmp_path / "s", "--tap", "../up")
    assert run.returncode == 2 and "cannot name a tap" in run.stderr
    # Before the store is made.
    run = store("add", DEMO, "--store", tmp_path / "new", "--tap", "a/b")
    assert run.returncode == 2 and not (tmp_path / "new").exists()
    # What can be read once cannot be told from others.
    os.mkfifo(tmp_path / "fifo")
    for once in (tmp_path / "fifo", "-"):
        run = store("add", once, "--store", tmp_path / "new", "--tap", "a")
        assert run.returncode == 1 and "is not a regular file" in run.stderr and not (tmp_path / "new").exists()
    # So is what is no capture.
    (tmp_path / "empty.pcap").touch()
    for wrong in (tmp_path / "empty.pcap", tmp_path, tmp_path / "missing.pcap"):
        run = store("add", wrong, "--store", tmp_path / "new", "--tap", "a")
        assert run.returncode == 1 and run.stderr and not (tmp_path / "new").exists()


def test_killed_again_and_again_it_ends_as_if_it_had_not_been(tmp_path):
    print(f"WEIR_KILLS={KILLS} WEIR_SEED={SEED}")
    chance = random.Random(SEED)
    captures = [ROOT / "docs" / "demo" / name for name in ("demo.pcap", "demo-client.pcap", "demo-server.pcap")]
    whole = tmp_path / "whole"
    began = time.monotonic()
    assert store("add", *captures, "--store", whole, "--digests").returncode == 0
    longest = time.monotonic() - began
    folder = tmp_path / "killed"
    for _ in range(KILLS):
        process = subprocess.Popen([WEIR, "store", "add", *captures, "--store", folder, "--digests"], stderr=-3)
        time.sleep(chance.uniform(0, longest))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (folder / "manifest" / "checkpoint.json").exists():
            intact(folder)
    run = store("add", *captures, "--store", folder, "--digests")
    assert run.returncode == 0, run.stderr
    assert rows(folder) == rows(whole)
    intact(folder)


@pytest.fixture
def small_disk(tmp_path, request):
    folder = tmp_path / "disk"
    folder.mkdir()
    size = f"size={getattr(request, 'param', 1100)}k"
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], capture_output=True)
    if mount.returncode != 0:
        pytest.skip("no right to mount a small file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


class Daemon:
    """weir serve that replays the demo capture."""

    def __init__(self, tmp_path, *arguments):
        self.log = tmp_path / "log"
        command = [WEIR, "serve", "--port", f"pcap:{DEMO}", "--data", tmp_path / "data", *map(str, arguments)]
        command += ["--listen", f"127.0.0.1:{free_port()}"]
        self.process = subprocess.Popen(command, stderr=self.log.open("w"))

    def until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def end(self):
        self.process.terminate()
        assert self.process.wait(timeout=PATIENCE) == 0, self.log.read_text()


def test_a_daemon_stores_what_it_finds(tmp_path):
    folder = tmp_path / "store"
    daemon = Daemon(tmp_path, "--store", folder, "--tap", "lab", "--digests")
    try:
        ready = folder / "manifest" / "checkpoint.json"
        daemon.until(lambda: ready.exists() and ("packets", "lab") in rows(folder))
        daemon.until(lambda: rows(folder).get(("packets", "lab"), 0) == 686)
        intact(folder)
    finally:
        daemon.end()
    there = rows(folder)
    assert there["blocks", "lab"] > 0 and there["intervals", "lab"] > 0 and there["ports", "lab"] > 0
    intact(folder)


def test_a_daemon_with_a_new_log_has_new_ids(tmp_path):
    folder = tmp_path / "store"
    for starts in (1, 2, 3):
        daemon = Daemon(tmp_path, "--store", folder, "--tap", "lab")
        try:
            daemon.until(lambda log=daemon.log: "gRPC on" in log.read_text())
            time.sleep(2)
        finally:
            daemon.end()
        ids = pyarrow.parquet.read_table(folder / "connections", columns=["id"])["id"].to_pylist()
        assert len(set(ids)) == len(ids) == starts * 13
        assert {number >> 48 for number in ids} == set(range(1, starts + 1))
        # Nor is a finding of one start taken for one of another.
        found = pyarrow.parquet.read_table(folder / "findings", columns=["id"])["id"].to_pylist()
        assert len(set(found)) == len(found) == starts * 5
        shutil.rmtree(tmp_path / "data")
    # Captures of the tap have others.
    assert store("add", DEMO, "--store", folder, "--tap", "lab").returncode == 0
    ids = pyarrow.parquet.read_table(folder / "connections", columns=["id"])["id"].to_pylist()
    assert len(set(ids)) == len(ids) == 4 * 13
    intact(folder)


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return answer.read().decode()


def by_table(page, metric, reason=None):
    """{table: value} of a metric."""
    reason = f'reason="{reason}",' if reason else ""
    found = re.findall(rf'^{metric}{{{reason}table="(\w+)"}} (\d+)$', page, re.M)
    return collections.Counter({table: int(value) for table, value in found})


def tables(folder):
    """{table: rows} of weir store list."""
    sums = collections.Counter()
    for (table, _), number in rows(folder).items():
        sums[table] += number
    return sums


def removed(folder):
    """{table: rows} that the store says it removed, ever."""
    line = re.compile(r"^(\w+): ([\d,]+) rows removed by retention or for want of room$", re.M)
    found = line.findall(store("list", "--store", folder).stdout)
    return collections.Counter({table: int(value.replace(",", "")) for table, value in found})


@pytest.mark.parametrize("small_disk", [4000], indirect=True)
def test_rows_that_make_room_on_a_full_disk_are_counted(tmp_path, small_disk):
    folder = small_disk / "store"
    for tap in "abcd":
        assert store("add", DEMO, "--store", folder, "--tap", tap, "--digests").returncode == 0
    # Somebody else takes what is left.
    free = os.statvfs(small_disk)
    (small_disk / "other").write_bytes(bytes((free.f_bavail - 4) * free.f_bsize))
    # The second daemon counts from its own start, the store goes on counting.
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        old, before = tables(folder), removed(folder)
        metrics = free_port()
        options = ["--when-full", "oldest", "--digests", "--metrics", f"127.0.0.1:{metrics}"]
        daemon = Daemon(tmp_path / name, "--store", folder, *options)
        pages = [""]

        def is_quiet(pages=pages, metrics=metrics):
            """Nothing was stored for two seconds, after all packets were."""
            time.sleep(2)
            pages.append(scrape(metrics))
            new, last = (by_table(page, "weir_store_rows_total") for page in pages[-2:])
            return new == last and last["packets"] == 686

        try:
            daemon.until(is_quiet)
            there = tables(folder)
            gone = removed(folder)
        finally:
            daemon.end()
        assert "were removed: the disk is full" in daemon.log.read_text()
        stored = by_table(pages[-1], "weir_store_rows_total")
        counted, planned = (
            by_table(pages[-1], "weir_store_expired_rows_total", reason) for reason in ("full", "retention")
        )
        assert counted.total() > 0 and planned.total() == 0, pages[-1]
        assert gone == before + counted
        for table in old | stored:
            assert there[table] == old[table] + stored[table] - counted[table], table
    intact(folder)


def test_a_daemon_outlives_a_full_disk(tmp_path, small_disk):
    metrics = free_port()
    options = ["--when-full", "stop", "--digests", "--metrics", f"127.0.0.1:{metrics}"]
    daemon = Daemon(tmp_path, "--store", small_disk, *options)
    try:
        daemon.until(lambda: "is not stored until that is mended" in daemon.log.read_text())
        assert "No space left on device" in daemon.log.read_text()
        assert daemon.process.poll() is None
        page = scrape(metrics)
        assert "\nweir_store_full 1.0\n" in page and "\nweir_store_failing 1.0\n" in page
        assert re.search(r'^weir_store_lost_rows_total\{reason="full",table="packets"\} [1-9]', page, re.M), page
    finally:
        daemon.end()
    intact(small_disk)
