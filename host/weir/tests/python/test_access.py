"""Who may ask a daemon: TLS and a token, as its clients on the command line see them."""

import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import urllib.error

import pytest
from test_serve import DEMO, PATIENCE, WEIR, Daemon, ask, free_port

TOKEN = "correct-horse-battery-staple"


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    """Certificate, key and token of a daemon on this machine."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here: apt-get install openssl")
    folder = tmp_path_factory.mktemp("secrets")
    certificate, key, token = folder / "server.pem", folder / "server.key", folder / "token"
    make_certificate(certificate, key)
    token.write_text(TOKEN + "\n")
    return certificate, key, token


def make_certificate(certificate, key):
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=weir", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    # An end of its own, no authority: those are refused as servers.
    command += ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)


def query(daemon, what="summary", scheme="https", **environment):
    command = [WEIR, "query", what, "-f", "json", "--server", f"{scheme}://127.0.0.1:{daemon.grpc}"]
    kept = {name: value for name, value in os.environ.items() if name not in ("WEIR_CA", "WEIR_TOKEN_FILE")}
    env = {**kept, **{name: str(value) for name, value in environment.items()}}
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=env)


def test_only_clients_with_root_and_token_are_answered(tmp_path, secrets):
    certificate, key, token = secrets
    access = ["--tls-cert", certificate, "--tls-key", key, "--token-file", token]
    with Daemon(tmp_path, "--port", f"pcap:{DEMO}", *access, root=certificate, token=TOKEN) as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
        run = query(daemon, WEIR_CA=certificate, WEIR_TOKEN_FILE=token)
        assert run.returncode == 0, run.stderr
        assert int(json.loads(run.stdout)["summary"]["connections"]) > 10

        # The records come the same way.
        url = f"https://127.0.0.1:{daemon.grpc}"
        env = {**os.environ, "WEIR_CA": str(certificate), "WEIR_TOKEN_FILE": str(token)}
        command = [WEIR, "analyze", url, "-f", "json"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=env)
        assert run.returncode == 0 and len(json.loads(run.stdout)["connections"]) > 10, run.stderr

        wrong = tmp_path / "wrong"
        wrong.write_text("correct-horse-battery-stapler")
        for environment, text in [
            ({"WEIR_CA": certificate}, "Unauthenticated"),
            ({"WEIR_CA": certificate, "WEIR_TOKEN_FILE": wrong}, "Unauthenticated"),
            ({"WEIR_TOKEN_FILE": token}, "certificate"),
            (
                {"WEIR_CA": certificate, "WEIR_TOKEN_FILE": tmp_path / "none"},
                f"WEIR_TOKEN_FILE {tmp_path}/none: No such",
            ),
            ({"WEIR_CA": tmp_path / "none", "WEIR_TOKEN_FILE": token}, f"WEIR_CA {tmp_path}/none: No such file"),
        ]:
            run = query(daemon, **environment)
            assert run.returncode == 1 and text in run.stderr and not run.stdout, run.stderr
        assert TOKEN not in daemon.said
        run = query(daemon, scheme="http", WEIR_TOKEN_FILE=token)
        assert run.returncode == 1 and "https://" in run.stderr, (run.stdout, run.stderr)


def refused(url, root, headers):
    with pytest.raises(urllib.error.HTTPError) as error:
        ask(url, root, headers)
    return error.value


def test_page_and_metrics_are_for_the_same_clients(tmp_path, secrets):
    certificate, key, token = secrets
    page = free_port()
    options = ["--tls-cert", certificate, "--tls-key", key, "--token-file", token, "--page", f"127.0.0.1:{page}"]
    with Daemon(tmp_path, "--port", f"pcap:{DEMO}", *options, root=certificate, token=TOKEN) as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
        assert f"page on https://127.0.0.1:{page}" in daemon.said
        right = [
            {"Authorization": f"Bearer {TOKEN}"},
            # As a browser does whose user typed it in.
            {"Authorization": "Basic " + base64.b64encode(f"anybody:{TOKEN}".encode()).decode()},
        ]
        wrong = [
            {},
            {"Authorization": f"Bearer {TOKEN}r"},
            {"Authorization": "Basic " + base64.b64encode(TOKEN.encode()).decode()},
        ]
        captures, metrics = f"https://127.0.0.1:{page}/api/v1/captures", f"https://127.0.0.1:{daemon.metrics}/metrics"
        for headers in right:
            with ask(captures, certificate, headers) as answer:
                assert len(json.load(answer)["captures"]) == 1
            with ask(metrics, certificate, headers) as answer:
                assert b"weir_capture_finished" in answer.read()
        for url in (captures, metrics, f"https://127.0.0.1:{page}/"):
            for headers in wrong:
                answer = refused(url, certificate, headers)
                assert answer.code == 401 and answer.headers["WWW-Authenticate"].startswith("Basic "), url
                assert b"the token of this daemon" in answer.read()
        # HTTP/2, as browsers speak it over TLS.
        command = [
            "curl",
            "-sS",
            "-m",
            "10",
            "--http2",
            "--cacert",
            certificate,
            "-u",
            f":{TOKEN}",
            "-w",
            "%{http_version}",
            captures,
        ]
        said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
        assert said.startswith('{"captures"') and said.endswith("}2"), said
        # Nobody is answered without TLS.
        with socket.create_connection(("127.0.0.1", page)) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert b"HTTP/1.1" not in plain.recv(1024)
        context = ssl.create_default_context(cafile=certificate)
        for protocol in ("h2", "http/1.1"):
            context.set_alpn_protocols([protocol])
            with (
                socket.create_connection(("127.0.0.1", page)) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
            ):
                assert secure.selected_alpn_protocol() == protocol


def test_a_page_of_files_has_the_same_keeper(tmp_path, secrets):
    certificate, key, token = secrets
    port = free_port()
    options = ["--listen", f"127.0.0.1:{port}", "--tls-cert", certificate, "--tls-key", key, "--token-file", token]
    view = subprocess.Popen([WEIR, "view", DEMO, *options], stdout=subprocess.PIPE, text=True)
    try:
        assert view.stdout.readline() == f"https://127.0.0.1:{port}\n"
        url = f"https://127.0.0.1:{port}/api/v1/captures"
        assert refused(url, certificate, {}).code == 401
        with ask(url, certificate, {"Authorization": f"Bearer {TOKEN}"}) as answer:
            assert json.load(answer)["captures"]
    finally:
        view.terminate()
        view.wait(timeout=PATIENCE)
        view.stdout.close()


def test_what_is_no_secret_is_told(tmp_path, secrets):
    certificate, key, _ = secrets
    short = tmp_path / "short"
    short.write_text("guess")
    other, locked = tmp_path / "other.key", tmp_path / "locked.key"
    for command in (
        ["genpkey", "-algorithm", "ed25519", "-out", other],
        ["pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", locked],
    ):
        subprocess.run(["openssl", *command], check=True, capture_output=True, timeout=PATIENCE)
    for options, text in [
        (["--tls-cert", certificate], "--tls-key"),
        (
            ["--tls-cert", certificate, "--tls-key", certificate],
            f"--tls-key {certificate}: there is no private key in it: in PEM, it stands between BEGIN PRIVATE KEY",
        ),
        (["--tls-cert", key, "--tls-key", key], f"--tls-cert {key}: there is no certificate in it"),
        (["--tls-cert", DEMO, "--tls-key", key], f"--tls-cert {DEMO}: there is no certificate in it"),
        (
            ["--tls-cert", certificate, "--tls-key", other],
            f"--tls-cert {certificate} and --tls-key {other}: the key is not that of the certificate",
        ),
        (["--tls-cert", certificate, "--tls-key", locked], f"--tls-key {locked}: the key has a password"),
        (["--tls-cert", tmp_path / "none", "--tls-key", key], f"--tls-cert {tmp_path}/none: No such file"),
        (["--tls-cert", certificate, "--tls-key", tmp_path / "none"], f"--tls-key {tmp_path}/none: No such file"),
        (["--token-file", short], f"--token-file {short}: a token has 16"),
    ]:
        with Daemon(tmp_path, "--port", f"pcap:{DEMO}", *options) as daemon:
            assert daemon.process.wait(timeout=PATIENCE) != 0
            assert text in daemon.said


def test_files_that_change_are_read_again(tmp_path, secrets):
    certificate, key, token = (tmp_path / secret.name for secret in secrets)
    for secret in secrets:
        shutil.copy(secret, tmp_path)
    files = ["--tls-cert", certificate, "--tls-key", key, "--token-file", token]
    with Daemon(tmp_path, "--port", f"pcap:{DEMO}", *files, root=certificate, token=TOKEN) as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
        # Half written, and none: what was there stays.
        certificate.write_bytes(secrets[0].read_bytes()[:200])
        token.write_text("short")
        daemon.until(lambda: daemon.said.count("what was used before is used on") == 2)
        assert f"--tls-cert {certificate}: " in daemon.said and f"{token}: a token has" in daemon.said
        run = query(daemon, WEIR_CA=secrets[0], WEIR_TOKEN_FILE=secrets[2])
        assert run.returncode == 0, run.stderr
        # A new certificate with its key, and a new token.
        make_certificate(certificate, key)
        token.write_text("another-token-that-is-long\n")
        daemon.until(lambda: daemon.said.count("for new connections") == 1 and "the token of" in daemon.said)
        assert query(daemon, WEIR_CA=certificate, WEIR_TOKEN_FILE=token).returncode == 0
        run = query(daemon, WEIR_CA=secrets[0], WEIR_TOKEN_FILE=token)
        assert run.returncode == 1 and "certificate" in run.stderr
        run = query(daemon, WEIR_CA=certificate, WEIR_TOKEN_FILE=secrets[2])
        assert run.returncode == 1 and "Unauthenticated" in run.stderr
        # The page and the metrics, too.
        daemon.token = "another-token-that-is-long"
        assert daemon.sample("weir_capture_finished") == 1
        events = query(daemon, "events", WEIR_CA=certificate, WEIR_TOKEN_FILE=token).stdout
        assert "ACCESS_FAILS" in events and "ACCESS_RENEWED" in events
        assert "another-token" not in daemon.said


def test_an_address_that_others_reach_is_told(tmp_path, secrets):
    token = secrets[2]
    for options, text in [([], "whoever reaches"), (["--token-file", token], "in the clear")]:
        # The last --listen counts, so that of this test stands alone.
        command = [
            WEIR,
            "serve",
            "--port",
            f"pcap:{DEMO}",
            "--data",
            tmp_path / "data",
            "--listen",
            "0.0.0.0:0",
            *options,
        ]
        daemon = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            lines = iter(daemon.stderr.readline, "")
            assert any(text in line for line in lines)
        finally:
            daemon.terminate()
            daemon.wait(timeout=PATIENCE)
            daemon.stderr.close()
