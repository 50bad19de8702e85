"""Who may ask a daemon: TLS and a token, as its clients on the command line see them."""

import json
import os
import shutil
import subprocess

import pytest
from test_serve import DEMO, PATIENCE, WEIR, Daemon

TOKEN = "correct-horse-battery-staple"


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    """Certificate, key and token of a daemon on this machine."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here: apt-get install openssl")
    folder = tmp_path_factory.mktemp("secrets")
    certificate, key, token = folder / "server.pem", folder / "server.key", folder / "token"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=weir", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    # An end of its own, no authority: those are refused as servers.
    command += ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    token.write_text(TOKEN + "\n")
    return certificate, key, token


def query(daemon, what="summary", scheme="https", **environment):
    command = [WEIR, "query", what, "-f", "json", "--server", f"{scheme}://127.0.0.1:{daemon.grpc}"]
    kept = {name: value for name, value in os.environ.items() if name not in ("WEIR_CA", "WEIR_TOKEN_FILE")}
    env = {**kept, **{name: str(value) for name, value in environment.items()}}
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=env)


def test_only_clients_with_root_and_token_are_answered(tmp_path, secrets):
    certificate, key, token = secrets
    access = ["--tls-cert", certificate, "--tls-key", key, "--token-file", token]
    with Daemon(tmp_path, "--port", f"pcap:{DEMO}", *access) as daemon:
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
            ({"WEIR_CA": certificate, "WEIR_TOKEN_FILE": tmp_path / "none"}, "none: No such file"),
            ({"WEIR_CA": tmp_path / "none", "WEIR_TOKEN_FILE": token}, "none: No such file"),
        ]:
            run = query(daemon, **environment)
            assert run.returncode == 1 and text in run.stderr and not run.stdout, run.stderr
        assert TOKEN not in daemon.said
        run = query(daemon, scheme="http", WEIR_TOKEN_FILE=token)
        assert run.returncode == 1, run.stdout


def test_what_is_no_secret_is_told(tmp_path, secrets):
    certificate, key, _ = secrets
    short = tmp_path / "short"
    short.write_text("guess")
    for options, text in [
        (["--tls-cert", certificate], "--tls-key"),
        (["--tls-cert", certificate, "--tls-key", certificate], "certificate or key cannot be used"),
        (["--tls-cert", key, "--tls-key", key], "certificate or key cannot be used"),
        (["--tls-cert", tmp_path / "none", "--tls-key", key], "none: No such file"),
        (["--token-file", short], f"{short}: a token has 16"),
    ]:
        with Daemon(tmp_path, "--port", f"pcap:{DEMO}", *options) as daemon:
            assert daemon.process.wait(timeout=PATIENCE) != 0
            assert text in daemon.said


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
