"""A daemon that replays the demo capture: its metrics through Prometheus' own parser and tools, its webhook."""

import http.server
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import pytest

parser = pytest.importorskip("prometheus_client.openmetrics.parser")

ROOT = Path(__file__).resolve().parents[4]
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
DEMO = ROOT / "docs" / "demo"
PATIENCE = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes posts, but for the first one."""

    posts = []

    def do_POST(self):  # noqa: N802 (the name is the library's)
        body = self.rfile.read(int(self.headers["content-length"]))
        self.posts.append((self.headers["content-type"], json.loads(body)))
        self.send_response(503 if len(self.posts) == 1 else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """Ports of metrics and gRPC of a daemon that has replayed the demo capture."""
    folder = tmp_path_factory.mktemp("serve")
    receiver = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    metrics, grpc = free_port(), free_port()
    command = [WEIR, "serve", "--port", f"pcap:{DEMO / 'demo.pcap'}", "--data", folder / "data"]
    command += ["--listen", f"127.0.0.1:{grpc}", "--metrics", f"127.0.0.1:{metrics}"]
    command += ["--webhook", f"http://127.0.0.1:{receiver.server_port}/hook", "--store", folder / "store"]
    log = (folder / "log").open("w+")
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
            try:
                if sample(page(metrics), "weir_capture_finished") == 1:
                    break
            except OSError:
                pass
            time.sleep(0.1)
        yield metrics, grpc
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)
        receiver.shutdown()
    assert process.returncode == 0, (folder / "log").read_text()


def page(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert answer.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        return answer.read().decode()


def samples(text):
    """{name: [(labels, value)]} of every sample, by the parser that Prometheus publishes."""
    found = {}
    for family in parser.text_string_to_metric_families(text):
        assert family.documentation, family.name
        for each in family.samples:
            found.setdefault(each.name, []).append((each.labels, each.value))
    return found


def sample(text, name, **labels):
    return sum(value for have, value in samples(text)[name] if labels.items() <= have.items())


def ask(port, what):
    command = [WEIR, "query", what, "--server", f"http://127.0.0.1:{port}", "--limit", "100000", "-f", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE).stdout)


def test_counters_are_those_of_the_answers(daemon):
    metrics, grpc = daemon
    text = page(metrics)
    assert text.endswith("# EOF\n")
    connections = ask(grpc, "connections")["connections"]
    assert sample(text, "weir_connections_total") == len(connections) > 10
    refused = [c for c in connections if c["setup"]["outcome"] == "REFUSED"]
    assert sample(text, "weir_connections_total", outcome="REFUSED") == len(refused) == 1
    transactions = ask(grpc, "transactions")["transactions"]
    assert sample(text, "weir_transactions_total") == len(transactions)
    timed = [t for t in transactions if t["kind"] == "SETUP" and t.get("endSeconds") is not None]
    assert sample(text, "weir_setup_duration_seconds_count") == len(timed) > 10
    within = [t for t in timed if t["endSeconds"] <= 0.1]
    assert sample(text, "weir_setup_duration_seconds_bucket", le="0.1") == len(within)
    segments = ask(grpc, "segments")["segments"]
    again = [s for s in segments if s["class"] == "RETRANSMISSION"]
    assert sample(text, "weir_segments_total", **{"class": "RETRANSMISSION"}) == len(again) > 0
    answer = ask(grpc, "status")
    [port] = answer["capture"]["ports"]
    assert sample(text, "weir_capture_packets_total", device=port["name"]) == int(port["frames"]) > 500
    assert sample(text, "weir_capture_bytes_total") == int(port["bytes"])
    assert sample(text, "weir_log_records_total") == int(answer["appliance"]["records"])
    assert sample(text, "weir_analysis_records_total") == int(answer["appliance"]["records"])
    assert sample(text, "weir_analysis_gaps_total") == 0
    summary = ask(grpc, "summary")["summary"]["retransmissionRate"]
    assert sample(text, "weir_retransmitted_packets_total") == int(summary["retransmittedPackets"])
    findings = ask(grpc, "findings")["findings"]
    assert sample(text, "weir_findings_open") == len(findings) > 0


def test_the_store_is_counted_as_it_is_on_disk(daemon, tmp_path_factory):
    metrics, grpc = daemon
    there = {"connections": len(ask(grpc, "connections")["connections"])}
    there["transactions"] = len(ask(grpc, "transactions")["transactions"])
    deadline = time.monotonic() + PATIENCE
    while True:
        text = page(metrics)
        known = "weir_store_rows_total" in samples(text)  # from the first commit on
        stored = {table: sample(text, "weir_store_rows_total", table=table) for table in there if known}
        if stored == there or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    assert stored == there
    shown = tmp_path_factory.getbasetemp().glob("serve0/store/*/tap=*/hour=*/*.parquet")
    files = [path.stat().st_size for path in shown]
    text = page(metrics)
    assert sample(text, "weir_store_files") == len(files) > 0
    assert sample(text, "weir_store_bytes") == sum(files)
    assert sample(text, "weir_store_commit_duration_seconds_count") > 0
    assert sample(text, "weir_store_full") == sample(text, "weir_store_failing") == 0


def test_other_paths_are_not_there(daemon):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{daemon[0]}/other", timeout=10)


def test_the_webhook_gets_every_finding_though_its_receiver_failed_once(daemon):
    metrics, grpc = daemon
    findings = ask(grpc, "findings")["findings"]
    deadline = time.monotonic() + PATIENCE
    while len(Receiver.posts) <= len(findings) and time.monotonic() < deadline:
        time.sleep(0.1)
    kinds = [content for content, _ in Receiver.posts]
    assert set(kinds) == {"application/json"}
    first, second = Receiver.posts[0][1], Receiver.posts[1][1]
    assert first == second, "what failed comes again, in its place"
    opened = {change["id"]: change["finding"] for _, change in Receiver.posts if change["kind"] == "KIND_OPENED"}
    assert {f["kind"] for f in findings} <= {f["kind"] for f in opened.values()}
    text = page(metrics)
    assert sample(text, "weir_webhook_delivered_total") == len(Receiver.posts) - 1
    assert sample(text, "weir_webhook_retries_total") == 1
    assert sample(text, "weir_webhook_given_up_total") == 0


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A company's own root, and a receiver's certificate by it: root, certificate, key."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here: apt-get install openssl")
    folder = tmp_path_factory.mktemp("certificate")

    def make(name, *options):
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-subj", f"/CN={name}", "-days", "2", *options]
        command += ["-out", folder / f"{name}.pem", "-keyout", folder / f"{name}.key"]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
        return folder / f"{name}.pem", folder / f"{name}.key"

    root, key = make("root")
    leaf = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    return root, *make("receiver", "-CA", root, "-CAkey", key, *leaf)


def posts_over_tls(certificate, folder, *options):
    """What a receiver with this certificate gets of a daemon's findings, and what the daemon said."""
    posts = []

    class Taker(Receiver):
        def do_POST(self):  # noqa: N802 (the name is the library's)
            posts.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taker)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate[1:])
    receiver.socket = context.wrap_socket(receiver.socket, server_side=True)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    command = [WEIR, "serve", "--port", f"pcap:{DEMO / 'demo.pcap'}", "--data", folder / "data"]
    command += ["--listen", f"127.0.0.1:{free_port()}", *options]
    command += ["--webhook", f"https://127.0.0.1:{receiver.server_port}/secret"]
    log = (folder / "log").open("w+")
    process = subprocess.Popen(command, stdout=log, stderr=log)
    deadline = time.monotonic() + PATIENCE
    said = ""
    while not posts and "trying again" not in said:
        assert process.poll() is None and time.monotonic() < deadline, said
        time.sleep(0.1)
        said = (folder / "log").read_text()
    process.terminate()
    assert process.wait(timeout=PATIENCE) == 0
    receiver.shutdown()
    return posts, (folder / "log").read_text()


def test_a_receiver_with_a_certificate_of_its_own_is_trusted_when_it_is_named(certificate, tmp_path):
    posts, said = posts_over_tls(certificate, tmp_path, "--webhook-ca", certificate[0])
    assert posts and all(post["kind"].startswith("KIND_") for post in posts)
    assert "trying again" not in said and "secret" not in said


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate, tmp_path):
    posts, said = posts_over_tls(certificate, tmp_path)
    assert not posts and "certificate" in said.lower() and "secret" not in said, said


def promtool_path():
    path = shutil.which("promtool")
    if not path:
        pytest.skip("promtool is not here: apt-get install prometheus")
    return path


def test_alerts_are_raised_when_they_should_and_only_then():
    rules = ROOT / "host" / "ops" / "tests" / "rules.test.yml"
    run = subprocess.run([promtool_path(), "test", "rules", rules], capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stdout + run.stderr


def test_promtool_takes_the_rules_and_the_page(daemon):
    promtool = promtool_path()
    rules = ROOT / "docs" / "prometheus" / "weir.rules.yml"
    subprocess.run([promtool, "check", "rules", rules], check=True, timeout=PATIENCE)
    run = subprocess.run(
        [promtool, "check", "metrics"],
        input=plain(page(daemon[0])),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def plain(text):
    """The page in the older text format, which names counters with their suffix."""
    out = []
    counters = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE") and line.endswith("counter")}
    for line in text.splitlines():
        words = line.split(" ", 3)
        if words[0] == "#":
            if words[1] in ("UNIT", "EOF"):
                continue
            if words[2] in counters:
                words[2] += "_total"
        out.append(" ".join(words))
    return "\n".join(out) + "\n"


def test_a_busy_address_is_told(daemon, tmp_path):
    command = [WEIR, "serve", "--port", f"pcap:{DEMO / 'demo.pcap'}", "--data", tmp_path]
    command += ["--listen", f"127.0.0.1:{free_port()}", "--metrics", f"127.0.0.1:{daemon[0]}"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 1
    assert "--metrics sets another address" in run.stderr
