"""Where commands write: never over a capture, whole files or none, pipes and devices as they are."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
DEMO = ROOT / "docs" / "demo" / "demo.pcap"
PATIENCE = 60
COMMANDS = {
    "records": ["records"],
    "binary": ["records", "-f", "binary"],
    "analyze": ["analyze"],
    "json": ["analyze", "-f", "json"],
    "html": ["analyze", "-f", "html"],
    "report": ["report"],
    "markdown": ["report", "-f", "markdown"],
    "compare": ["compare", "--ranges", "0-0.2", "0.2-0.4"],
    "compare-json": ["compare", "-f", "json", "--ranges", "0-0.2", "0.2-0.4"],
    "compare-html": ["compare", "-f", "html", "--ranges", "0-0.2", "0.2-0.4"],
    "packets": ["packets"],
    "pcapng": ["export", "-f", "pcapng"],
    "ipfix": ["export", "-f", "ipfix"],
    "csv": ["export", "-f", "csv", "--table", "connections"],
}


def weir(*arguments, **options):
    return subprocess.run([WEIR, *map(str, arguments)], capture_output=True, timeout=PATIENCE, **options)


def command(name, capture, *more):
    """The arguments of a command on a capture; --ranges takes all that follows."""
    first, *rest = COMMANDS[name]
    return [first, capture, *rest, *more]


@pytest.fixture
def capture(tmp_path):
    """A capture of one connection, which every command reads."""
    path = tmp_path / "one.pcap"
    run = weir("export", DEMO, "-f", "pcapng", "-o", path, "--filter", "client.port = 54417")
    assert run.returncode == 0, run.stderr
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_writes_over_its_capture(name, capture):
    before = capture.read_bytes()
    link = capture.with_name("link.pcap")
    link.symlink_to(capture)
    for output in [capture, link]:
        run = weir(*command(name, capture, "-o", output))
        assert run.returncode == 1
        assert b"is the capture itself" in run.stderr
        assert capture.read_bytes() == before


def test_neither_a_further_capture_nor_standard_input_is_written_over(capture):
    other = capture.with_name("other.pcap")
    shutil.copy(capture, other)
    before = other.read_bytes()
    for arguments in [
        ["analyze", capture, other],
        ["report", capture, "--baseline", other],
        ["compare", capture, other],
        ["analyze", "-"],
    ]:
        with other.open("rb") as stdin:
            run = weir(*arguments, "-o", other, stdin=stdin)
        assert run.returncode == 1, arguments
        assert b"is the capture itself" in run.stderr
        assert other.read_bytes() == before


@pytest.mark.parametrize("name", COMMANDS)
def test_a_capture_that_cannot_be_read_leaves_the_good_file(name, tmp_path):
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"no capture at all, whatever its name says")
    good = tmp_path / "good"
    good.write_text("good")
    run = weir(*command(name, bad, "-o", good))
    assert run.returncode == 1, run.stderr
    assert good.read_text() == "good"
    assert sorted(os.listdir(tmp_path)) == ["bad.pcap", "good"]


# What ipfix writes is smaller than the disk.
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "ipfix"])
def test_a_full_disk_leaves_the_good_file(name, capture):
    good = capture.with_name("good.md")
    good.write_text("good")
    # As if the disk were full behind the first kilobyte.
    limited = ["bash", "-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "bash"]
    run = subprocess.run(
        [*limited, WEIR, *map(str, command(name, capture, "-o", good))], capture_output=True, timeout=PATIENCE
    )
    assert run.returncode == 1
    assert b"cannot write" in run.stderr
    assert good.read_text() == "good"
    assert not list(capture.parent.glob("**/.*.part"))


@pytest.mark.parametrize("name", COMMANDS)
def test_devices_pipes_and_standard_output_are_written_as_they_are(name, capture):
    assert weir(*command(name, capture, "-o", "/dev/null")).returncode == 0
    full = weir(*command(name, capture, "-o", "/dev/full"))
    assert full.returncode == 1
    assert b"/dev/full" in full.stderr
    out = capture.with_name("out")
    assert weir(*command(name, capture, "-o", out)).returncode == 0
    fifo = capture.with_name("fifo")
    os.mkfifo(fifo)
    reader = subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE)
    assert weir(*command(name, capture, "-o", fifo)).returncode == 0
    through, _ = reader.communicate(timeout=PATIENCE)
    assert len(through) > 0
    assert fifo.is_fifo()
    standard = weir(*command(name, capture, "-o", "-"), cwd=capture.parent)
    assert standard.returncode == 0
    assert len(standard.stdout) > 0
    assert not capture.with_name("-").exists()
    if name not in ("markdown", "ipfix"):
        assert out.read_bytes() == through == standard.stdout


def test_who_may_read_a_file_stays_so(capture):
    out = capture.with_name("out")
    out.touch(0o600)
    assert weir("analyze", capture, "-o", out).returncode == 0
    assert out.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["records", "json", "csv"])
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_behind(name, which, tmp_path):
    fifo = tmp_path / "capture"
    os.mkfifo(fifo)
    out = tmp_path / "out"
    out.write_text("good")
    # Also where the tests run under nohup.
    awake = ["env", "--default-signal=HUP", WEIR, *map(str, command(name, fifo, "-o", out))]
    weir = subprocess.Popen(awake, stderr=subprocess.DEVNULL)
    with fifo.open("wb") as capture:
        capture.write(DEMO.read_bytes()[:20_000])
        capture.flush()
        deadline = time.monotonic() + PATIENCE
        while not list(tmp_path.glob(".out.*.part")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        weir.send_signal(which)
        assert weir.wait(PATIENCE) == 128 + which
    assert out.read_text() == "good"
    assert sorted(os.listdir(tmp_path)) == ["capture", "out"]


def test_a_reader_that_has_seen_enough_is_no_failure():
    for arguments in [
        ["export", DEMO, "-f", "csv", "--table", "packets"],
        ["records", DEMO],
        ["analyze", DEMO, "-f", "json"],
    ]:
        run = subprocess.Popen([WEIR, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        # All of it is more than a pipe holds.
        assert run.stdout.read(1)
        run.stdout.close()
        said = run.stderr.read()
        assert (run.wait(PATIENCE), said) == (0, b"")


@pytest.mark.parametrize(
    ("name", "ending", "begin"),
    [
        ("analyze", "json", b'{"'),
        ("analyze", "HTML", b"<!DOCTYPE html>"),
        ("analyze", "txt", b"/"),
        ("packets", "json", b'{"'),
        ("compare", "html", b"<!DOCTYPE html>"),
        ("report", "md", b"# "),
        ("report", "html", b"<!DOCTYPE html>"),
        ("json", "html", b'{"'),
    ],
)
def test_the_format_is_as_the_output_ends_unless_another_is_asked_for(name, ending, begin, capture):
    out = capture.parent / f"out.{ending}"
    run = weir(*command(name, capture, "-o", out))
    assert run.returncode == 0, run.stderr
    assert out.read_bytes().startswith(begin), out.read_bytes()[:40]
