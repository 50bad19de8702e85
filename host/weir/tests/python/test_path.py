"""What the user says of the path: `--bandwidth` and `--latency` of the commands that take them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))


def weir(*args):
    return subprocess.run([WEIR, *map(str, args)], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Downloads over 42 ms, there and back."""
    folder = tmp_path_factory.mktemp("path")
    assert weir("scenario", "receiver-limited", "--scale", "0.02", "-o", folder).returncode == 0
    return folder / "receiver-limited-tap.pcap"


@pytest.mark.parametrize("latency", ["10ms", "0.01", "10000us"])
def test_ceilings_are_those_of_the_path_that_was_given(path, latency):
    run = weir("analyze", path, "-f", "json", "--bandwidth", "10M", "--latency", latency)
    answer = json.loads(run.stdout)
    rows = {row["name"]: row["total"] for row in answer["summary"]["statistics"] if "total" in row}
    assert (rows["Latency"], rows["Bandwidth"]) == (10, 10_000)
    down = [c["serverToClient"]["ceilings"] for c in answer["connections"]]
    assert {(c["roundTripSeconds"], c["idealWindowBytes"]) for c in down} == {(0.02, 25_000)}


def test_a_shorter_round_trip_that_was_seen_stands(path):
    runs = [weir("analyze", path, "-f", "json", *more) for more in ([], ["--latency", "30ms"])]
    without, given = [json.loads(run.stdout)["connections"] for run in runs]
    assert without == given


def test_a_report_has_what_was_given(path, tmp_path):
    run = weir("report", path, "-o", tmp_path / "a.md", "--latency", "10ms")
    assert run.returncode == 0, run.stderr
    assert "over the given round trip, 20.0 ms" in (tmp_path / "a.md").read_text()


@pytest.mark.parametrize("latency", ["0", "-0.04", "61", "40min", "nan"])
def test_a_latency_that_no_path_has_is_refused(path, latency):
    run = weir("analyze", path, f"--latency={latency}")
    assert run.returncode == 2
    assert "seconds above 0, at most 60" in run.stderr
