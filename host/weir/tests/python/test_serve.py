"""weir serve when something around it fails: standard error, clients, the disk, interfaces."""

import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
DEMO = ROOT / "docs" / "demo" / "demo.pcap"
PATIENCE = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Daemon:
    """weir serve, ended in any case; `said` is what it wrote to standard error."""

    def __init__(self, folder, *arguments, stderr=None, prefix=()):
        self.log = folder / "log"
        self.metrics, self.grpc = free_port(), free_port()
        self.prefix = [*prefix]
        command = [*self.prefix, WEIR, "serve", *map(str, arguments), "--listen", f"127.0.0.1:{self.grpc}"]
        if "--data" not in arguments:
            command += ["--data", folder / "data"]
        command += ["--metrics", f"127.0.0.1:{self.metrics}"]
        self.process = subprocess.Popen(command, stderr=stderr or self.log.open("w"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=PATIENCE)

    @property
    def said(self):
        return self.log.read_text() if self.log.exists() else ""

    def page(self):
        """The metrics; asked from where the daemon is."""
        url = f"http://127.0.0.1:{self.metrics}/metrics"
        if not self.prefix:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read().decode()
        ask = [*self.prefix, "curl", "-sS", "-m", "10", url]
        return subprocess.run(ask, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout

    def sample(self, name):
        """The sum of a metric's samples; None while there is no answer."""
        try:
            found = re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", self.page(), re.M)
        except (OSError, subprocess.CalledProcessError):
            return None
        return sum(map(float, found)) if found else None

    def until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None and time.monotonic() < deadline, self.said
            time.sleep(0.1)

    def end(self):
        """Ask it to end; the seconds that it takes."""
        began = time.monotonic()
        self.process.terminate()
        assert self.process.wait(timeout=PATIENCE) == 0, self.said
        return time.monotonic() - began


def test_lines_that_cannot_be_written_are_given_up(tmp_path):
    with Path("/dev/full").open("w") as full, Daemon(tmp_path, "--port", f"pcap:{DEMO}", stderr=full) as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
        assert daemon.sample("weir_findings_open") > 0
        assert daemon.sample("weir_analysis_records_total") == daemon.sample("weir_log_records_total") > 0
        daemon.end()
        assert subprocess.run([WEIR, "analyze", "nothing.pcap"], stderr=full, timeout=PATIENCE).returncode == 1


def test_a_silent_connection_does_not_hold_up_the_end(tmp_path):
    with Daemon(tmp_path, "--port", f"pcap:{DEMO}") as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
        with socket.create_connection(("127.0.0.1", daemon.grpc)):
            assert daemon.end() < 20


def test_a_second_signal_ends_it_at_once(tmp_path):
    with Daemon(tmp_path, "--port", f"pcap:{DEMO}") as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
        with socket.create_connection(("127.0.0.1", daemon.grpc)):
            daemon.process.terminate()
            time.sleep(1)
            assert daemon.process.poll() is None
            daemon.process.send_signal(signal.SIGINT)
            assert daemon.process.wait(timeout=2) == 1
        assert "second signal" in daemon.said
