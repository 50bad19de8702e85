"""gRPC clients made only from proto/: a subscriber that dies and resumes, lists, and the book's examples."""

import os
import random
import re
import shlex
import struct
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parents[4]
PROTO = ROOT / "proto"
RECORD_BYTES = 64
# In the log of the server at the end.
RECORDS = 100_000


@pytest.fixture(scope="session", autouse=True)
def client_code(tmp_path_factory):
    """Generate the Python modules of proto/weir/v1 and make them importable."""
    out = tmp_path_factory.mktemp("generated")
    files = sorted(str(path) for path in (PROTO / "weir" / "v1").glob("*.proto"))
    well_known = Path(protoc.__file__).parent / "_proto"
    arguments = [f"-I{PROTO}", f"-I{well_known}", f"--python_out={out}", f"--grpc_python_out={out}"]
    assert protoc.main(["protoc", *arguments, *files]) == 0
    sys.path.insert(0, str(out))


@pytest.fixture
def address():
    """Address of a server whose log grows to RECORDS records while clients read.

    WEIR_SERVER_CMD names another command that prints "listening on ADDRESS"; it gets the number of
    records as its last argument and ends when its input does.
    """
    default = "cargo run --quiet -p weir-api --example serve_log --"
    command = shlex.split(os.environ.get("WEIR_SERVER_CMD", default)) + [str(RECORDS)]
    server = subprocess.Popen(command, cwd=ROOT / "host", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    assert line.startswith("listening on "), f"{command}: {line!r}"
    yield line.split()[-1]
    server.stdin.close()
    server.wait(timeout=20)


@pytest.fixture
def connect(address):
    """Open a new connection; all are closed at the end."""
    channels = []

    def open_channel():
        # A pool of its own: otherwise channels to one address share a connection.
        options = [("grpc.use_local_subchannel_pool", 1)]
        channels.append(grpc.insecure_channel(address, options=options))
        return channels[-1]

    yield open_channel
    for channel in channels:
        channel.close()


def sequences(batch):
    """Sequence numbers of the records of a batch (bytes 4 to 8 of each)."""
    assert len(batch.records) % RECORD_BYTES == 0
    return [struct.unpack_from("<I", batch.records, at + 4)[0] for at in range(0, len(batch.records), RECORD_BYTES)]


@pytest.mark.parametrize("seed", range(3))
def test_kill_midway_and_resume(connect, seed):
    from weir.v1 import record_service_pb2, record_service_pb2_grpc

    chance = random.Random(seed)
    token, got, kills = "", [], 0
    while len(got) < RECORDS:
        channel = connect()
        stub = record_service_pb2_grpc.RecordServiceStub(channel)
        request = record_service_pb2.SubscribeRequest(resume_token=token, max_batch_records=1000)
        messages = chance.randrange(1, 60)
        for message in stub.Subscribe(request):
            token = message.resume_token
            assert not message.HasField("gap")
            if message.HasField("batch"):
                assert message.batch.first_position == len(got)
                got += sequences(message.batch)
            messages -= 1
            if messages == 0 or len(got) == RECORDS:
                break
        # The connection goes down in the middle of the stream.
        channel.close()
        kills += 1
    print(f"seed {seed}: {kills} connections")
    assert kills > 1
    assert got == list(range(RECORDS))


def test_a_wrong_token_is_refused(connect):
    from weir.v1 import record_service_pb2, record_service_pb2_grpc

    stub = record_service_pb2_grpc.RecordServiceStub(connect())
    with pytest.raises(grpc.RpcError) as error:
        next(stub.Subscribe(record_service_pb2.SubscribeRequest(resume_token="stale")))
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "resume_token" in error.value.details()


def test_lists_answer(connect):
    from weir.v1 import flow_service_pb2, flow_service_pb2_grpc

    stub = flow_service_pb2_grpc.FlowServiceStub(connect())
    answer = stub.ListConnections(flow_service_pb2.ListConnectionsRequest(filter="turns > 1"))
    assert answer.total_size == 0
    with pytest.raises(grpc.RpcError) as error:
        stub.ListConnections(flow_service_pb2.ListConnectionsRequest(filter="turns > "))
    assert "position 9" in error.value.details()


def test_the_examples_of_the_book_run(address, capsys):
    book = (ROOT / "docs" / "src" / "grpc.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```", book, re.DOTALL | re.MULTILINE)
    assert len(examples) == 2
    for example in examples:
        exec(compile(example.replace("127.0.0.1:50051", address), "docs/src/grpc.md", "exec"), {})
    assert re.search(r"^\d+ records$", capsys.readouterr().out, re.MULTILINE)
