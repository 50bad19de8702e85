"""weir serve when something around it fails: standard error, clients, the disk, interfaces."""

import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import ssl
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


def ask(url, root, headers):
    context = ssl.create_default_context(cafile=root) if root else None
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10, context=context)


class Daemon:
    """weir serve, ended in any case; `said` is what it wrote to standard error. `root` and `token`: how its metrics are asked for."""

    def __init__(self, folder, *arguments, stderr=None, prefix=(), root=None, token=None):
        self.log = folder / "log"
        self.root, self.token = root, token
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
        url = f"http{'s' if self.root else ''}://127.0.0.1:{self.metrics}/metrics"
        if not self.prefix:
            with ask(url, self.root, {"Authorization": f"Bearer {self.token}"} if self.token else {}) as answer:
                return answer.read().decode()
        command = [*self.prefix, "curl", "-sS", "-m", "10", url]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout

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


def test_a_reader_of_its_lines_that_hangs_holds_nothing_up(tmp_path):
    """As a terminal that is stopped, or a program behind a pipe."""
    read, write = os.pipe()
    os.write(write, bytes(fcntl.fcntl(write, fcntl.F_GETPIPE_SZ)))
    with os.fdopen(write, "w") as full, Daemon(tmp_path, "--port", f"pcap:{DEMO}", stderr=full) as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
        assert daemon.sample("weir_findings_open") > 0
        # A signal that ends it at once does so, too.
        with socket.create_connection(("127.0.0.1", daemon.grpc)):
            daemon.process.terminate()
            time.sleep(1)
            daemon.process.terminate()
            assert daemon.process.wait(timeout=PATIENCE) == 1
    os.close(read)


def test_a_silent_connection_does_not_hold_up_the_end(tmp_path):
    with Daemon(tmp_path, "--port", f"pcap:{DEMO}") as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
        with socket.create_connection(("127.0.0.1", daemon.grpc)):
            assert daemon.end() < 20


def test_a_replay_of_what_is_no_ethernet_is_refused(tmp_path):
    cooked = bytearray(DEMO.read_bytes())
    cooked[20:24] = (113).to_bytes(4, "little")
    path = tmp_path / "cooked.pcap"
    path.write_bytes(cooked)
    run = subprocess.run([WEIR, "capture", "--port", f"pcap:{path}"], capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 1 and "cooked.pcap: frame 1 has link type 113" in run.stderr


def test_of_a_capture_that_is_cut_short_there_is_what_is_before(tmp_path):
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(DEMO.read_bytes()[:-10])
    why = "frames before it were used"
    analyzed, captured = (
        subprocess.run([WEIR, *command, "-f", "json"], capture_output=True, text=True, timeout=PATIENCE)
        for command in (["analyze", cut], ["capture", "--port", f"pcap:{cut}"])
    )
    for run in (analyzed, captured):
        assert run.returncode == 2 and run.stderr.count(why) == 1, run.stderr
    one, other = (json.loads(run.stdout)["summary"] for run in (analyzed, captured))
    assert one["packets"] == other["packets"] == "685"
    with Daemon(tmp_path, "--port", f"pcap:{cut}") as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
        query = [WEIR, "query", "events", "--server", f"http://127.0.0.1:{daemon.grpc}"]
        told = subprocess.run(query, capture_output=True, text=True, timeout=PATIENCE).stdout
        assert re.search(rf"WARNING +port CAPTURE_DAMAGED: .*{why}", told), told
        assert daemon.said.count(why) == 1
        daemon.process.terminate()
        assert daemon.process.wait(timeout=PATIENCE) == 2
    # Of one without a frame there is nothing to measure.
    cut.write_bytes(DEMO.read_bytes()[:30])
    run = subprocess.run([WEIR, "capture", "--port", f"pcap:{cut}"], capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 1 and "cut.pcap" in run.stderr


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


def test_a_signal_that_comes_twice_at_once_is_one(tmp_path):
    with Daemon(tmp_path, "--port", f"pcap:{DEMO}") as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
        with socket.create_connection(("127.0.0.1", daemon.grpc)):
            daemon.process.terminate()
            time.sleep(0.05)
            daemon.process.terminate()
            assert daemon.process.wait(timeout=PATIENCE) == 0
        assert "second signal" not in daemon.said


@pytest.fixture
def hangup():
    """Programs are started as a terminal does it, even if the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangup")
def test_a_terminal_that_goes_ends_it_cleanly_unless_it_is_to_stay(tmp_path):
    for prefix in ([], ["nohup"]):
        with Daemon(tmp_path, "--port", f"pcap:{DEMO}", prefix=prefix) as daemon:
            daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
            daemon.process.send_signal(signal.SIGHUP)
            if prefix:
                time.sleep(0.5)
                assert daemon.process.poll() is None
                daemon.end()
            else:
                assert daemon.process.wait(timeout=PATIENCE) == 0, daemon.said


def ip(command):
    return subprocess.run(["ip", *command.split()], capture_output=True, timeout=PATIENCE).returncode == 0


@pytest.fixture
def space():
    """Network namespaces of two hosts and what stands between them; names as in the test of the inline loop."""
    tag = f"hunt5{os.getpid() % 100_000}"
    try:
        # In a plain chroot they are made and cannot be entered.
        if not all(ip(f"netns add {tag}{side}") and ip(f"netns exec {tag}{side} true") for side in "cms"):
            pytest.skip("network namespaces cannot be made and used here")
        assert ip(f"-n {tag}m link set lo up")
        for side, address in (("c", "10.99.0.1/24"), ("s", "10.99.0.2/24")):
            for name in (side, "m"):
                quiet = ["ip", "netns", "exec", f"{tag}{name}", "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"]
                subprocess.run(quiet, check=True, timeout=PATIENCE)
            assert ip(f"-n {tag}m link add m{side} type veth peer name e0 netns {tag}{side}")
            assert ip(f"-n {tag}{side} addr add {address} dev e0")
            # Without it frames on a veth carry no checksums and come in pieces of 64 KiB.
            plain = ["ip", "netns", "exec", f"{tag}{side}", "ethtool", "-K", "e0", "tx", "off"]
            subprocess.run(plain, capture_output=True, timeout=PATIENCE)
            assert ip(f"-n {tag}{side} link set e0 up") and ip(f"-n {tag}m link set m{side} up")
        yield tag
    finally:
        for side in "cms":
            ip(f"netns del {tag}{side}")


def within(space, side):
    return ["ip", "netns", "exec", f"{space}{side}"]


def test_an_interface_that_goes_down_is_told_and_one_that_vanishes_ends_it(tmp_path, space):
    with Daemon(tmp_path, "--port", "eth:mc", "--port", "eth:ms", prefix=within(space, "m")) as daemon:
        up = "weir_capture_port_up"
        daemon.until(lambda: daemon.sample(up) == 2)
        # The carrier goes with the other end.
        assert ip(f"-n {space}c link set e0 down")
        daemon.until(lambda: daemon.sample(up) == 1)
        assert f'{up}{{port="0",device="eth:mc"}} 0' in daemon.page()
        assert ip(f"-n {space}c link set e0 up")
        daemon.until(lambda: daemon.sample(up) == 2)
        daemon.until(lambda: "eth:mc: the link is up again" in daemon.said)
        assert "eth:mc: the link is down" in daemon.said
        events = [*within(space, "m"), WEIR, "query", "events", "--server", f"http://127.0.0.1:{daemon.grpc}"]
        told = subprocess.run(events, capture_output=True, text=True, timeout=PATIENCE).stdout
        assert "WARNING port LINK_DOWN" in told and "INFO    port LINK_UP" in told, told
        # Under the same name it is another one.
        assert ip(f"-n {space}m link del mc")
        assert ip(f"-n {space}m link add mc type veth peer name other")
        assert daemon.process.wait(timeout=PATIENCE) == 1
        assert "eth:mc: the interface is gone" in daemon.said
        assert "panicked" not in daemon.said


LONG = """
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(3):
    sender.sendto(bytes(3000), ("10.99.0.2", 5001))
"""


def test_frames_that_no_inline_port_can_forward_are_told_of(tmp_path, space):
    """What receive offload joins, or a larger MTU lets in, is longer than the other side takes."""
    gro = [*within(space, "m"), "ethtool", "-K", "mc", "gro", "on"]
    if subprocess.run(gro, capture_output=True, timeout=PATIENCE).returncode != 0:
        pytest.skip("no ethtool, or no such offload")
    assert ip(f"-n {space}m link set mc mtu 4000") and ip(f"-n {space}c link set e0 mtu 4000")
    with Daemon(tmp_path, "--inline", "eth:mc", "eth:ms", prefix=within(space, "m")) as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_port_up") == 2)
        assert daemon.said.count("turn it off: ethtool -K mc gro off\n") == 1, daemon.said
        assert "ethtool -K ms" not in daemon.said
        subprocess.run([*within(space, "c"), "python3", "-c", LONG], check=True, timeout=PATIENCE)
        daemon.until(lambda: "eth:mc: a frame was not forwarded, as it is longer" in daemon.said)
        daemon.until(lambda: daemon.sample("weir_inline_dropped_packets_total") == 3)
        assert daemon.said.count("was not forwarded") == 1
        events = [*within(space, "m"), WEIR, "query", "events", "--server", f"http://127.0.0.1:{daemon.grpc}"]
        told = subprocess.run(events, capture_output=True, text=True, timeout=PATIENCE).stdout
        assert "WARNING port RECEIVE_OFFLOAD" in told and "WARNING port FRAME_TOO_LONG" in told, told


TRAFFIC = """
import socket, sys, time
sent, end = 0, time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    with socket.create_connection(("10.99.0.2", 5001), timeout=10) as connection:
        connection.sendall(b"x" * 1000)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b"got 1000"
    sent += 1
    time.sleep(0.005)
print(sent)
"""
ANSWERS = """
import socket
listener = socket.create_server(("10.99.0.2", 5001), backlog=100)
print("ready", flush=True)
while True:
    with listener.accept()[0] as connection:
        size = 0
        while data := connection.recv(65536):
            size += len(data)
        connection.sendall(b"got %d" % size)
"""


JUMBO = """
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(10):
    sender.sendto(bytes(8000), ("10.99.0.2", 5001))
"""
FLOOD = """
import socket
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("e0", 0))
for _ in range(40_000):
    sender.send(bytes(12) + b"\\x88\\xb5" + bytes(46))
"""


def flood(daemon, space):
    """40,000 frames while the daemon stands still: its ring is too small for them."""
    daemon.process.send_signal(signal.SIGSTOP)
    subprocess.run([*within(space, "c"), "python3", "-c", FLOOD], check=True, timeout=PATIENCE)
    daemon.process.send_signal(signal.SIGCONT)


def test_frames_that_the_kernel_cut_or_lost_count_while_it_runs(tmp_path, space):
    with Daemon(tmp_path, "--port", "eth:mc", prefix=within(space, "m")) as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_port_up") == 1)
        # Longer than the ring was made for, as what an interface has joined is.
        assert ip(f"-n {space}m link set mc mtu 9000") and ip(f"-n {space}c link set e0 mtu 9000")
        assert ip(f"-n {space}c neigh add 10.99.0.2 lladdr 02:00:00:00:00:02 dev e0")
        subprocess.run([*within(space, "c"), "python3", "-c", JUMBO], check=True, timeout=PATIENCE)
        daemon.until(lambda: daemon.sample("weir_capture_packets_total") == 10)
        assert daemon.sample("weir_capture_bytes_total") == 10 * (14 + 20 + 8 + 8000)
        flood(daemon, space)

        def all_told():
            here, lost = (daemon.sample(f"weir_capture_{of}packets_total") for of in ("", "dropped_"))
            return here is not None and here + lost == 40_010

        daemon.until(all_told)
        assert daemon.sample("weir_capture_dropped_packets_total") > 1000


def test_what_the_full_ring_of_an_inline_port_dropped_was_not_forwarded(tmp_path, space):
    with Daemon(tmp_path, "--inline", "eth:mc", "eth:ms", prefix=within(space, "m")) as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_port_up") == 2)
        flood(daemon, space)

        def all_told():
            forwarded, lost = (daemon.sample(f"weir_inline_{of}_packets_total") for of in ("forwarded", "dropped"))
            return forwarded is not None and forwarded + lost == 40_000

        daemon.until(all_told)
        dropped = daemon.sample("weir_inline_dropped_packets_total")
        assert dropped == daemon.sample("weir_capture_dropped_packets_total") > 1000
        # And so says the finding.
        asked = [*within(space, "m"), WEIR, "query", "findings", "--server", f"http://127.0.0.1:{daemon.grpc}"]

        def told():
            return subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE).stdout

        daemon.until(lambda: "they are lost to the network" in told())
        assert f"dropped {dropped:,.0f} frames, which were not forwarded" in told()
        assert "not counted as loss" not in told()


def test_a_lower_mtu_is_followed_and_what_it_costs_is_counted(tmp_path, space):
    with Daemon(tmp_path, "--inline", "eth:mc", "eth:ms", prefix=within(space, "m")) as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_port_up") == 2)
        assert ip(f"-n {space}m link set ms mtu 1300")
        assert ip(f"-n {space}c neigh add 10.99.0.2 lladdr 02:00:00:00:00:02 dev e0")
        send = JUMBO.replace("8000", "1400")
        subprocess.run([*within(space, "c"), "python3", "-c", send], check=True, timeout=PATIENCE)
        daemon.until(lambda: daemon.sample("weir_inline_dropped_packets_total") == 10)
        daemon.until(lambda: "eth:mc: a frame was not forwarded, as it is longer" in daemon.said)


HANGS = """
import socket, sys
listener = socket.create_server(("10.99.0.2", 5001))
print("ready", flush=True)
connections = [listener.accept()[0] for _ in range(3)]
for request in range(9):
    for connection in connections:
        connection.recv(100)
        if request < 8:
            connection.sendall(bytes(500))
sys.stdin.readline()
for connection in connections:
    connection.sendall(bytes(500))
sys.stdin.readline()
"""
ASKS = """
import socket
connections = [socket.create_connection(("10.99.0.2", 5001)) for _ in range(3)]
for request in range(9):
    for connection in connections:
        connection.sendall(bytes(100))
    for connection in connections:
        connection.recv(1000)
connections[0].recv(1000)
"""


def test_a_server_that_hangs_is_told_while_it_hangs_and_nothing_passes(tmp_path, space):
    with Daemon(tmp_path, "--inline", "eth:mc", "eth:ms", prefix=within(space, "m")) as daemon:
        daemon.until(lambda: daemon.sample("weir_capture_port_up") == 2)
        python = ["python3", "-c"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        server = subprocess.Popen([*within(space, "s"), *python, HANGS], **pipes)
        client = None
        try:
            assert server.stdout.readline() == "ready\n"
            client = subprocess.Popen([*within(space, "c"), *python, ASKS])
            daemon.until(lambda: daemon.sample("weir_requests_waiting") == 3)
            assert "UNANSWERED_REQUESTS" not in daemon.page()
            asked = [*within(space, "m"), WEIR, "query", "--server", f"http://127.0.0.1:{daemon.grpc}"]
            asked += ["--filter", "waiting_since:* AND turns = 8", "--format", "json"]

            def waiting():
                found = subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE)
                return json.loads(found.stdout)["connections"]

            assert len(waiting()) == 3
            daemon.until(lambda: "10.99.0.2:5001 does not answer 3 requests that it should have by now" in daemon.said)
            server.stdin.write("\n")
            server.stdin.flush()
            daemon.until(lambda: daemon.sample("weir_requests_waiting") == 0)
            daemon.until(lambda: not waiting())
        finally:
            for process in filter(None, (server, client)):
                process.kill()
                process.communicate(timeout=PATIENCE)


@pytest.fixture
def small_disk(tmp_path):
    """A function that makes a file system of so many KiB, and one that fills it."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def make(kib):
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", folder]
        if subprocess.run(mount, capture_output=True, timeout=PATIENCE).returncode != 0:
            pytest.skip("no right to mount a small file system")
        return folder

    yield make
    subprocess.run(["umount", folder], capture_output=True, timeout=PATIENCE)


def fill(disk):
    """Somebody else takes what is left."""
    with (disk / "other").open("wb", buffering=0) as other, contextlib.suppress(OSError):
        # How much that is may change meanwhile.
        while True:
            other.write(bytes(4096))


def test_an_inline_path_begins_when_nothing_can_be_kept_of_it(tmp_path, space, small_disk):
    disk = small_disk(64)
    fill(disk)
    server = [*within(space, "s"), "python3", "-c", ANSWERS]
    server = subprocess.Popen(server, stdout=subprocess.PIPE, text=True)
    kept = ["--data", disk / "log", "--store", disk / "store", "--page", "192.0.2.1:80"]
    try:
        assert server.stdout.readline() == "ready\n"
        with Daemon(tmp_path, "--inline", "eth:mc", "eth:ms", *kept, prefix=within(space, "m")) as daemon:
            daemon.until(lambda: daemon.sample("weir_capture_port_up") == 2)
            client = [*within(space, "c"), "python3", "-c", TRAFFIC, "1"]
            run = subprocess.run(client, capture_output=True, text=True, timeout=PATIENCE)
            assert run.returncode == 0 and int(run.stdout) > 0, run.stderr + daemon.said
            daemon.until(lambda: daemon.sample("weir_log_lost_records_total") > 0)
            assert daemon.sample("weir_log_failing") == daemon.sample("weir_store_failing") == 1
            assert (
                daemon.said.count("frames are forwarded, all records are lost until the daemon is started again") == 1
            )
            assert daemon.said.count("what is found is not stored until that is mended") == 1
            assert daemon.said.count("cannot listen on 192.0.2.1:80") == 1
            events = [*within(space, "m"), WEIR, "query", "events", "--server", f"http://127.0.0.1:{daemon.grpc}"]
            told = subprocess.run(events, capture_output=True, text=True, timeout=PATIENCE).stdout
            assert "ERROR   log LOG_FAILS" in told and "ERROR   daemon LISTEN_FAILS" in told, told
            (disk / "other").unlink()
            daemon.end()
        with Daemon(tmp_path, "--inline", "eth:mc", "eth:ms", *kept[:4], prefix=within(space, "m")) as daemon:
            daemon.until(lambda: daemon.sample("weir_capture_port_up") == 2)
            assert daemon.sample("weir_log_failing") == 0
            # A second one on the link would forward every frame once more.
            second = tmp_path / "second"
            second.mkdir()
            with Daemon(second, "--inline", "eth:mc", "eth:ms", *kept[:2], prefix=within(space, "m")) as other:
                assert other.process.wait(timeout=PATIENCE) == 1
                assert "is in use by another process" in other.said
            daemon.end()
    finally:
        server.kill()
        server.wait(timeout=PATIENCE)


def test_a_log_without_room_gives_up_its_oldest_records(tmp_path, small_disk):
    disk = small_disk(2048)
    arguments = ["--port", f"pcap:{DEMO}", "--digests", "--log-mib", "1", "--data", disk / "log"]
    for full in (False, True):
        with Daemon(tmp_path, *arguments) as daemon:
            daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
            assert (daemon.sample("weir_log_first_position") > 0) == full
            assert ("oldest records were given up" in daemon.said) == full
            assert daemon.sample("weir_log_lost_records_total") == 0
            daemon.end()
        if not full:
            fill(disk)


def test_an_inline_path_goes_on_when_its_log_cannot_be_written(tmp_path, space, small_disk):
    disk = small_disk(2048)
    server = [*within(space, "s"), "python3", "-c", ANSWERS]
    server = subprocess.Popen(server, stdout=subprocess.PIPE, text=True)
    arguments = ["--inline", "eth:mc", "eth:ms", "--digests", "--data", disk / "log", "--log-mib", "1"]

    def traffic(seconds):
        client = [*within(space, "c"), "python3", "-c", TRAFFIC, str(seconds)]
        run = subprocess.run(client, capture_output=True, text=True, timeout=PATIENCE)
        assert run.returncode == 0, run.stderr + daemon.said
        return int(run.stdout)

    try:
        assert server.stdout.readline() == "ready\n"
        with Daemon(tmp_path, *arguments, prefix=within(space, "m")) as daemon:
            daemon.until(lambda: daemon.sample("weir_capture_port_up") == 2)
            assert traffic(0.5) > 0
            fill(disk)
            deadline = time.monotonic() + PATIENCE
            while daemon.sample("weir_log_failing") != 1:
                assert traffic(0.5) > 0 and time.monotonic() < deadline, daemon.said
            assert traffic(0.5) > 0
            daemon.until(lambda: daemon.sample("weir_log_lost_records_total") > 0)
            assert "No space left on device (os error 28); frames are forwarded" in daemon.said
            (disk / "other").unlink()
            while "the record log is written again" not in daemon.said:
                assert traffic(0.5) > 0 and time.monotonic() < deadline, daemon.said
            assert daemon.sample("weir_log_failing") == 0
            assert daemon.said.count("record log") == 2
            missing = re.compile(r'^weir_analysis_gaps_total{reason="missing"} (\d+)$', re.M)
            lost = daemon.sample("weir_log_lost_records_total")
            daemon.until(lambda: int(missing.search(daemon.page())[1]) == lost)
            daemon.end()
    finally:
        server.kill()
        server.wait(timeout=PATIENCE)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["serve", "--port", "lo"], "`lo` is a kernel interface; write eth:lo"),
        (["serve", "--port", "demo.pcap"], "`demo.pcap` is a file; write pcap:demo.pcap"),
        (["serve", "--port", "veth:a"], "`veth:a` is no device; write pcap:FILE, eth:INTERFACE"),
        (["serve", "--port", "eth:lo", "--port", "eth:lo"], "eth:lo is given twice"),
        (["serve", "--inline", "eth:lo", "eth:lo"], "eth:lo is given twice"),
        (["serve", "--port", "eth:lo", "--log-mib", "0"], "0 is not in 1..="),
        (["serve", "--port", "eth:lo", "--log-mib", str(1 << 44)], "is not in 1..="),
        (["serve", "--port", "eth:lo", "--store", "s", "--tap", "a/b"], "cannot name a tap"),
        (["serve", "--port", "eth:lo", "--store", "s", "--keep-days", "0"], "0 is not in 1.."),
        (["store", "compact", "--store", "s", "--keep-mib", "0"], "0 is not in 1.."),
        (
            ["query", "status", "--filter", "turns > 1"],
            "--filter is for connections, transactions, segments and findings",
        ),
        (["query", "--server", "https://127.0.0.1:1"], "is the daemon running?"),
        (["query", "--server", "127.0.0.1:1"], "an address looks like http://127.0.0.1:50051"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(tmp_path, arguments, says):
    data = ["--data", tmp_path] if arguments[0] == "serve" else []
    run = subprocess.run([WEIR, *arguments, *data], capture_output=True, text=True, timeout=PATIENCE, cwd=DEMO.parent)
    assert run.returncode in (1, 2) and says in run.stderr, run.stderr


def test_an_address_that_is_not_here_is_no_other_daemon(tmp_path):
    command = [WEIR, "serve", "--port", f"pcap:{DEMO}", "--data", tmp_path, "--listen", "192.0.2.1:1"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 1 and "cannot listen on 192.0.2.1:1" in run.stderr
    assert "another one" not in run.stderr and "--listen sets another address" in run.stderr


def test_a_port_that_the_system_chooses_is_told(tmp_path):
    command = [WEIR, "serve", "--port", f"pcap:{DEMO}", "--data", tmp_path, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
        line = next(line for line in daemon.stderr if "gRPC on" in line)
        address = re.search(r"gRPC on (127\.0\.0\.1:[1-9]\d*),", line)[1]
        ask = [WEIR, "query", "events", "--server", f"http://{address}"]
        run = subprocess.run(ask, capture_output=True, text=True, timeout=PATIENCE)
        assert (run.returncode, run.stdout) == (0, "no events\n"), run.stderr
        daemon.terminate()
        assert daemon.wait(timeout=PATIENCE) == 0


def test_a_start_that_fails_takes_no_number_of_a_start(tmp_path):
    """What starts it again until its port is there would use all of them up."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        other = ["--port", f"pcap:{DEMO}", "--listen", f"127.0.0.1:{taken.getsockname()[1]}"]
        for arguments, why in ((["--port", "eth:none"], "no such network interface"), (other, "cannot listen on")):
            command = [WEIR, "serve", *arguments, "--data", tmp_path / "data", "--store", tmp_path / "store"]
            run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
            assert run.returncode == 1 and why in run.stderr, run.stderr
    for start in (1, 2):
        with Daemon(tmp_path, "--port", f"pcap:{DEMO}", "--store", tmp_path / "store") as daemon:
            daemon.until(lambda: daemon.sample("weir_capture_finished") == 1)
            assert daemon.sample("weir_boot_epoch") == start
            daemon.end()
