"""The Python package as a user gets it: built by pip, checked by mypy, and its notebook run from top to bottom."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1]
ROOT = PACKAGE.parents[1]
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
PATIENCE = 300


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package. In a process of its own: other tests make their own modules of the same messages."""
    folder = tmp_path_factory.mktemp("installed")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--disable-pip-version-check",
    ]
    run = subprocess.run([*command, "--target", folder, PACKAGE], capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    return folder


def python(installed, *arguments, **environment):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(installed), "WEIR_BIN": WEIR, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_the_notebook_runs_and_what_it_asserts_holds(installed):
    run = python(installed, HERE / "notebook.py", PACKAGE / "megalodon.ipynb")
    assert run.returncode == 0, run.stdout + run.stderr
    print(run.stdout)


def test_types_are_strict(installed):
    pytest.importorskip("mypy")
    run = python(installed, "-m", "mypy", "--config-file", PACKAGE / "pyproject.toml")
    assert run.returncode == 0, run.stdout + run.stderr


ASK = """
import socket, subprocess, sys, tempfile, time
import grpc, weir

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{probe.getsockname()[1]}"
folder = tempfile.TemporaryDirectory()
command = [sys.argv[1], "serve", "--port", f"pcap:{sys.argv[2]}", "--listen", address, "--data", folder.name]
service = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    with weir.connect(address) as daemon:
        while True:
            try:
                if daemon.capture().finished:
                    break
            except weir.WeirError as error:
                assert error.code is grpc.StatusCode.UNAVAILABLE and service.poll() is None
            time.sleep(0.1)
        connections = list(daemon.connections())
        assert len(connections) == daemon.status().connections == daemon.summary().connections > 10
        connection, transactions = daemon.connection(connections[3].id)
        assert connection == connections[3]
        assert transactions == list(daemon.transactions(f"connection_id = {connection.id}")) != []
        batches = [message.batch for message in daemon.records() if message.HasField("batch")]
        assert sum(len(batch.records) for batch in batches) == 64 * daemon.status().records > 0
        open_now = []
        for message in daemon.watch_findings():
            if message.HasField("sync"):
                break
            open_now.append(message.change.finding.kind)
        assert sorted(open_now) == sorted(finding.kind for finding in daemon.findings()) != []
        seen = 0
        for message in daemon.watch_connections("setup.outcome = REFUSED"):
            if message.HasField("sync"):
                break
            seen += 1
        assert seen == 1
        assert list(daemon.events()) == []
        try:
            next(daemon.segments("no_such_field = 1"))
            raise AssertionError("no error")
        except weir.WeirError as error:
            assert error.code is grpc.StatusCode.INVALID_ARGUMENT and "no_such_field" in str(error)
    print("all asked")
finally:
    service.terminate()
    service.wait(timeout=60)
"""


def test_every_call_is_answered(installed):
    run = python(installed, "-c", ASK, WEIR, ROOT / "docs" / "demo" / "demo.pcap")
    assert run.stdout == "all asked\n", run.stdout + run.stderr


def test_a_daemon_that_is_not_there_is_told(installed):
    code = """
import grpc, weir
with weir.connect("127.0.0.1:1", timeout=5) as daemon:
    try:
        daemon.status()
    except weir.WeirError as error:
        print(error.code.name)
"""
    assert python(installed, "-c", code).stdout == "UNAVAILABLE\n"


def test_sql_says_what_it_needs(installed):
    code = "import sys; sys.modules['adbc_driver_flightsql'] = None\nimport weir; weir.query('SELECT 1')"
    assert "pip install 'weir-client[sql]'" in python(installed, "-c", code).stderr
