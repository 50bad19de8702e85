"""The prompt: where answers go, in which format, and what is left when one ends before its time."""

import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "host" / "target")) / "debug"
WEIR_SQL = os.environ.get("WEIR_SQL", str(TARGET / "weir-sql"))
# Writes a store of rows made up.
ROWS = str(TARGET / "examples" / "rows")
ENDLESS = "SELECT value FROM generate_series(1, 1000000000000)"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with 50 connections."""
    folder = tmp_path_factory.mktemp("store")
    subprocess.run([ROWS, folder, "50"], check=True, stdout=subprocess.DEVNULL)
    return folder


def command(store, sql, *options):
    return [WEIR_SQL, "query", "--store", str(store), sql, *map(str, options)]


def ask(store, sql, *options, **settings):
    """The ended program."""
    return subprocess.run(command(store, sql, *options), capture_output=True, timeout=60, check=False, **settings)


def test_a_file_is_written_as_its_name_says(store, tmp_path):
    sql = "SELECT id FROM connections WHERE id < 2 ORDER BY id"
    for name, begins in [
        ("a.csv", b"id\n0\n1\n"),
        ("a.json", b'{"id":0}\n'),
        ("a.parquet", b"PAR1"),
        ("a.txt", b"+--"),
    ]:
        assert ask(store, sql, "-o", tmp_path / name).returncode == 0
        assert (tmp_path / name).read_bytes().startswith(begins), name
    assert ask(store, sql, "-o", tmp_path / "a.csv", "-f", "json").returncode == 0
    assert (tmp_path / "a.csv").read_bytes().startswith(b'{"id":0}'), "what is asked for counts"
    assert ask(store, sql, "-o", "-", "-f", "csv", cwd=tmp_path).stdout == b"id\n0\n1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.json", "a.parquet", "a.txt"]


def test_an_answer_that_ends_in_an_error_leaves_what_was_there(store, tmp_path):
    there = tmp_path / "rows.csv"
    there.write_text("of last week\n")
    # The division fails after the first batches.
    sql = "SELECT 1 / (value - 500000) FROM generate_series(1, 1000000)"
    ended = ask(store, sql, "-o", there)
    assert ended.returncode == 1 and b"Divide by zero" in ended.stderr, ended.stderr
    assert there.read_text() == "of last week\n" and list(tmp_path.iterdir()) == [there]


def test_what_cannot_be_written_is_named(store, tmp_path):
    missing = tmp_path / "none" / "rows.csv"
    for path in ["/dev/full", missing]:
        ended = ask(store, "SELECT 1", "-o", path)
        assert ended.returncode == 1
        assert ended.stderr.startswith(f"weir-sql: cannot write {path}: ".encode()), ended.stderr


def test_a_query_that_cannot_be_read_is_no_answer_that_cannot_be_written(store):
    ended = ask(store, "-", input=b"SELECT '\xff'")
    assert ended.returncode == 1 and b"cannot read the query from standard input" in ended.stderr, ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_answer_that_is_interrupted_leaves_nothing(store, tmp_path, number):
    # Also where the tests run under nohup.
    awake = ["env", "--default-signal=HUP", *command(store, ENDLESS, "-o", tmp_path / "rows.csv")]
    with subprocess.Popen(awake, stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 30
        while not any(path.stat().st_size for path in tmp_path.iterdir()):
            assert time.monotonic() < end and process.poll() is None, "it writes nothing"
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(timeout=20) == 128 + number, process.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_go_with_a_query_that_is_interrupted(store, tmp_path):
    # A sort of more rows than it may hold.
    sql = "SELECT repeat('x', 200) || value FROM generate_series(1, 1000000000) ORDER BY -value"
    spilled = command(store, sql, "--memory", 64, "--spill", tmp_path)
    with subprocess.Popen(spilled, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 60
        while not any(path.is_file() for path in tmp_path.rglob("*")):
            assert time.monotonic() < end and process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_gets_no_parquet(store):
    terminal, inner = pty.openpty()
    try:
        ended = subprocess.run(
            command(store, "SELECT 1", "-f", "parquet"), stdout=inner, stderr=subprocess.PIPE, timeout=60, check=False
        )
    finally:
        os.close(inner)
        os.close(terminal)
    assert ended.returncode == 1 and b"-o FILE, or a pipe" in ended.stderr, ended.stderr


def test_a_reader_that_has_seen_enough_is_no_failure(store):
    for form in ["csv", "json", "parquet"]:
        with subprocess.Popen(
            command(store, ENDLESS, "-f", form), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            process.stdout.read(1)
            process.stdout.close()
            assert process.wait(timeout=60) == 0 and not process.stderr.read(), form
