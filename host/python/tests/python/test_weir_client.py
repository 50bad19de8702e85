"""The Python package as a user gets it: built by pip, checked by mypy, and its notebook run from top to bottom."""

import os
import shutil
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


# The beginning of programs that replay a file with a daemon of their own, here at `address`.
REPLAY = """
import socket, time
import grpc, weir

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{probe.getsockname()[1]}"

def finish(daemon, service):
    while True:
        try:
            if daemon.capture().finished:
                break
        except weir.WeirError as error:
            assert error.code is grpc.StatusCode.UNAVAILABLE and service.poll() is None
        time.sleep(0.1)
"""

ASK = """
import json, subprocess, sys, tempfile, warnings
from google.protobuf import json_format
from weir.v1.analysis_pb2 import Analysis

def printed(*arguments, code=0):
    run = subprocess.run([sys.argv[1], *arguments, "--format", "json"], capture_output=True, text=True, timeout=120)
    assert run.returncode == code, run.stderr
    values = []

    def without_values(item):
        # Those of findings are plain in JSON.
        if "title" in item:
            values.append(item.pop("values", {}))
        return item

    answer = json.loads(run.stdout, object_hook=without_values)
    return json_format.ParseDict(answer, Analysis()), values

def plain(value):
    kind = value.WhichOneof("value")
    return list(value.numbers.values) if kind == "numbers" else getattr(value, kind)

def received(answer, *findings):
    values = [{name: plain(value) for name, value in finding.values.items()} for finding in findings]
    for finding in findings:
        finding.ClearField("values")
    return answer, values

folder = tempfile.TemporaryDirectory()
command = [sys.argv[1], "serve", "--port", f"pcap:{sys.argv[2]}", "--listen", address, "--data", folder.name, "--digests"]
service = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    with weir.connect(address) as daemon:
        finish(daemon, service)
        connections = list(daemon.connections())
        assert len(connections) == daemon.status().connections == daemon.summary().connections > 10
        connection, transactions = daemon.connection(connections[3].id)
        assert connection == connections[3]
        assert transactions == list(daemon.transactions(f"connection_id = {connection.id}")) != []
        # Ids of the file's are others.
        file = next(one for one in printed("analyze", sys.argv[2])[0].connections if one.client == connection.client)
        rows, of_file = list(daemon.packets(connection.id)), printed("packets", sys.argv[2], "--connection", str(file.id))[0]
        assert rows == list(printed("packets", "http://" + address, "--connection", str(connection.id))[0].packets)
        for row in [*rows, *of_file.packets]:
            # The daemon's port has microseconds, and of frames what was captured.
            row.ClearField("time")
            row.ClearField("wire_bytes")
            row.ClearField("delta_seconds")
        assert rows == list(of_file.packets) and any(row.block_bytes for row in rows)
        try:
            next(daemon.packets(1))
            raise AssertionError("no error")
        except weir.WeirError as error:
            assert error.code is grpc.StatusCode.NOT_FOUND
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
        _, demo, client, server = sys.argv[1:]
        slices = daemon.timeline()
        expected = printed("analyze", demo, "--timeline", "1")[0].summary.timeline
        assert len(slices) == len(expected) > 3
        for slice, other in zip(slices, expected):
            # The daemon's port has microseconds.
            close = lambda one, other: abs(one - other) < 1e-4
            assert close(slice.seconds, other.seconds)
            assert close(slice.concurrent_connections, other.concurrent_connections)
            assert close(slice.transactions_in_progress, other.transactions_in_progress)
            assert close(slice.response.p95_seconds, other.response.p95_seconds)
            for name in "connections_opened requests responses client_bytes server_lost repeated_syns".split():
                assert getattr(slice, name) == getattr(other, name), name
        second = slices[2].start.ToDatetime()
        assert daemon.timeline(start=second) == slices[2:] and daemon.timeline(end=second) == slices[:2]

        warnings.simplefilter("error", UserWarning)
        whole = daemon.analyze(demo, bandwidth=1e7, latency=0.05, timeline=2, segments=True)
        assert received(whole, *whole.findings) == printed("analyze", demo, "--bandwidth", "10M", "--latency", "50ms", "--timeline", "2", "--segments")
        both = daemon.analyze(client, server)
        assert received(both, *both.findings) == printed("analyze", client, server)
        assert [tap.file for tap in both.taps] == [client, server] and len(both.pie) > 1
        differ = daemon.compare(client, server)
        expected, values = printed("compare", client, server)
        assert received(differ, *differ.only_first, *differ.only_second) == (expected.comparison, values)
        cut = folder.name + "/cut.pcap"
        with open(demo, "rb") as of, open(cut, "wb") as to:
            to.write(of.read()[:-5])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            part = daemon.analyze(cut)
        assert received(part, *part.findings) == printed("analyze", cut, code=2)
        assert len(caught) == 1 and str(caught[0].message).startswith(cut + ": ")
        for wrong, reason in [(cut + ".missing", FileNotFoundError), (folder.name, IsADirectoryError)]:
            try:
                daemon.analyze(cut, wrong)
                raise AssertionError("no error")
            except reason:
                pass
        odd = folder.name + "/\\udcff.pcap"
        with open(demo, "rb") as of, open(odd, "wb") as to:
            to.write(of.read())
        assert len(daemon.analyze(odd).connections) == len(daemon.compare(odd, odd).only_first) + len(connections)
        with open(cut, "wb") as to:
            to.write(b"no capture at all")
        for ask, text in [(lambda: daemon.compare(client, cut), cut + ": "), (daemon.analyze, "piece: 0 captures")]:
            try:
                ask()
                raise AssertionError("no error")
            except weir.WeirError as error:
                assert error.code is grpc.StatusCode.INVALID_ARGUMENT and str(error).startswith(text), error

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
    demo = ROOT / "docs" / "demo"
    captures = [demo / "demo.pcap", demo / "demo-client.pcap", demo / "demo-server.pcap"]
    run = python(installed, "-c", REPLAY + ASK, WEIR, *captures)
    assert run.stdout == "all asked\n", run.stdout + run.stderr


def test_a_daemon_with_a_token_and_a_certificate_is_asked_with_both(installed, tmp_path):
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here: apt-get install openssl")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=weir", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    command += ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "key", "-out", "certificate"]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE, cwd=tmp_path)
    (tmp_path / "token").write_text("correct-horse-battery-staple")
    code = """
import subprocess, sys

command = [sys.argv[1], "serve", "--port", f"pcap:{sys.argv[2]}", "--listen", address, "--data", "data"]
command += ["--tls-cert", "certificate", "--tls-key", "key", "--token-file", "token"]
service = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    with weir.connect(address, ca="certificate", token="correct-horse-battery-staple") as daemon:
        finish(daemon, service)
        assert len(list(daemon.connections())) > 10
        assert any(message.HasField("batch") for message in daemon.records())
        assert len(daemon.analyze(sys.argv[2]).connections) > 10
    for options, code in [
        ({"ca": "certificate"}, grpc.StatusCode.UNAUTHENTICATED),
        ({"ca": "certificate", "token": "correct-horse"}, grpc.StatusCode.UNAUTHENTICATED),
        ({"tls": True, "token": "correct-horse-battery-staple"}, grpc.StatusCode.UNAVAILABLE),
    ]:
        with weir.connect(address, **options) as daemon:
            for ask in (daemon.status, lambda: list(daemon.records())):
                try:
                    ask()
                    raise AssertionError("no error")
                except weir.WeirError as error:
                    assert error.code is code, error
    print("all asked")
finally:
    service.terminate()
    service.wait(timeout=60)
"""
    run = subprocess.run(
        [sys.executable, "-c", REPLAY + code, os.path.abspath(WEIR), ROOT / "docs" / "demo" / "demo.pcap"],
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=tmp_path,
    )
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


def test_an_error_of_a_process_of_a_pool_is_told(installed):
    code = """
import concurrent.futures, grpc, weir

def ask():
    raise weir.WeirError("no such connection", grpc.StatusCode.NOT_FOUND)

if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        try:
            pool.submit(ask).result()
        except weir.WeirError as error:
            print(error, error.code.name)
"""
    run = python(installed, "-c", code)
    assert run.stdout == "no such connection NOT_FOUND\n", run.stderr


def test_sql_says_what_it_needs(installed):
    code = "import sys; sys.modules['adbc_driver_flightsql'] = None\nimport weir; weir.query('SELECT 1')"
    assert "pip install 'weir-client[sql]'" in python(installed, "-c", code).stderr
