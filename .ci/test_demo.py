"""`make run` on the demo capture, without a terminal: the answer comes over gRPC and agrees with the truth."""

import json
import os
import socket
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
TRUTH = ROOT / "docs" / "demo" / "demo-app.jsonl"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_run_prints_the_answer_and_ends():
    connections = [row for row in map(json.loads, TRUTH.open()) if row["type"] == "connection"]
    result = subprocess.run(
        [ROOT / ".ci" / "demo.sh", WEIR],
        env={**os.environ, "WEIR_PORT": str(free_port())},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(connections)} connections" in result.stdout
    assert "1 REFUSED" in result.stdout
    assert "weir query" in result.stdout


def test_a_capture_that_is_not_there_is_named():
    result = subprocess.run(
        [ROOT / ".ci" / "demo.sh", WEIR, "/nowhere.pcap"], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 1
    assert "/nowhere.pcap" in result.stderr
