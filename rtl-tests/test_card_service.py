"""The card as a system: weir serve keeps the simulated card with its real firmware, under traffic, while it is disturbed.

A second host on the card's socket injects the faults and watches; whatever happens, each frame leaves as it came. Times
are scaled: the card takes a host for lost after 1.5 ms of its own, which are some 5 seconds here. Needs root (a veth
pair carries the record frames), bin/weir-nic-sim and the firmware; `make nic-sim-test` builds them.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time
import zlib

import pytest
import weir_protocol as card
import weir_records as records
from test_nic_sim import (
    CAPTURE,
    DONE,
    READ,
    REFUSED,
    ROOT,
    WEIR,
    WRITE,
    Host,
    blocks,
    crossed,
    free_port,
    packets,
    split,
    without_cut,
)
from weir_registers import REGISTERS

IMAGE = ROOT / "build" / "firmware" / "firmware.wfw"
ELF = IMAGE.with_suffix(".elf")
KHZ = 300_000
HOST_TIMEOUT_US, BEAT_US, HEALTHY_PERIODS = 1500, 50, 3
LOOP_US = 970  # the firmware's longest turn
HEARTBEAT_CLOCKS = 300_000  # of the simulated card
SETTINGS = {"HOST_TIMEOUT_US": HOST_TIMEOUT_US, "BEAT_US": BEAT_US, "HEALTHY_PERIODS": HEALTHY_PERIODS}
WATCHDOG_CLOCKS = 3 * KHZ  # 3 ms: more than a boot, during which the boot ROM hardly kicks
PPS_US = 100
FRAMES_PER_FLOW = 8
LOG_HEADER = 64  # of a segment of the record log
RESET_CPU = 1

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a veth pair carries the record frames"),
    pytest.mark.skipif(
        not shutil.which("riscv64-unknown-elf-gcc"), reason="needs a RISC-V compiler: the card's firmware"
    ),
]


class Registers(Host):
    """The card's registers by name."""

    def read(self, name):
        status, value = self.exchange(READ, REGISTERS[name])
        assert status == DONE
        return value

    def write(self, name, value):
        assert self.exchange(WRITE, REGISTERS[name], value)[0] == DONE

    def measured(self):
        return self.read("inline.port[0].mode") & 1

    def load(self, place, words):
        self.write("system.load_address", place - card.RAM_BASE)
        for word in words:
            self.write("system.load_write", word)

    def until(self, what, seconds=120):
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline
            time.sleep(0.05)


def traffic(path, frames):
    """Small UDP packets, each with its number; new flows all the time."""
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1))
        for i in range(frames):
            head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 46, i & 0xFFFF, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
            port = 1024 + i // FRAMES_PER_FLOW % 60000
            frame = b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\0" + head + struct.pack(">4HQ10x", port, 53, 26, 0, i)
            out.write(struct.pack("<IIII", 1_700_000_000 + i // 1000, i % 1000 * 10**6, len(frame), len(frame)) + frame)
    return path


@contextlib.contextmanager
def pair(name):
    """A link for record frames: the card's end and the host's."""
    ends = f"{name}c{os.getpid()}", f"{name}h{os.getpid()}"
    subprocess.run(
        ["ip", "link", "add", ends[0], "mtu", "9000", "type", "veth", "peer", ends[1], "mtu", "9000"], check=True
    )
    try:
        for end in ends:
            subprocess.run(["ip", "link", "set", end, "up"], check=True)
        yield ends
    finally:
        subprocess.run(["ip", "link", "del", ends[0]], check=True)


@contextlib.contextmanager
def running(command, log):
    with log.open("w") as out, subprocess.Popen(list(map(str, command)), stdout=out, stderr=out) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()


def ended(process, seconds=60):
    process.terminate()
    return process.wait(timeout=seconds)


class Service:
    """weir serve with its card, and what it says over gRPC."""

    def __init__(self, folder, socket, link, more=()):
        self.log = folder / "serve.log"
        self.data = folder / "data"
        self.url = f"127.0.0.1:{free_port()}"
        self.command = [WEIR, "serve", "--card", f"eth:{link}", "--control", socket, "--firmware", IMAGE, *more]
        self.command += [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
        self.command += ["--data", self.data, "--listen", self.url]
        self.seen = 0

    def is_up(self):
        deadline = time.monotonic() + 60
        while "gRPC on" not in self.log.read_text():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def is_quiet(self):
        """No record came for two seconds."""
        last = None
        while last != (last := self.ask("status")["appliance"]["records"]):
            time.sleep(2)

    def ask(self, what):
        command = [WEIR, "query", what, "--server", f"http://{self.url}", "--limit", "1000", "-f", "json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)

    def card(self):
        return self.ask("status")["appliance"]["card"]

    def expect(self, *names, seconds=300):
        """These events come, in this order, perhaps with others between; all that came until the last of them."""
        deadline = time.monotonic() + seconds
        start = self.seen
        for name in names:
            while True:
                found = self.ask("events").get("events", [])
                at = [e for e in found if int(e["number"]) > self.seen and e["name"] == name]
                if at:
                    self.seen = int(at[0]["number"])
                    break
                said = [e["name"] for e in found if int(e["number"]) > start]
                assert time.monotonic() < deadline, f"no {name} among {said}: {self.log.read_text()}"
                time.sleep(0.3)
        return [e for e in self.ask("events")["events"] if start < int(e["number"]) <= self.seen]


def text_of(events, name):
    return next(e["text"] for e in events if e["name"] == name)


def no_frame_suffered(seen, passed):
    came, went = list(blocks(seen)), list(blocks(passed))
    assert len(came) > 1000
    assert went == crossed(came)


def address_of(symbol):
    listing = subprocess.run(["riscv64-unknown-elf-nm", ELF], check=True, capture_output=True, text=True).stdout
    return next(int(line.split()[0], 16) for line in listing.splitlines() if line.split()[-1] == symbol)


def time_to_bypass(regs, process):
    """Stop the service as a whole; clocks from its last heartbeat to bypass, at most and at least."""
    count = regs.read("host.heartbeat")
    before = regs.read("timer.now_low")
    process.send_signal(signal.SIGSTOP)
    while True:
        at = regs.read("timer.now_low")
        now = regs.read("host.heartbeat")
        if now == count:
            break
        count, before = now, at
    earliest = regs.read("timer.now_low")
    while regs.measured():
        earliest = regs.read("timer.now_low")
    return (regs.read("timer.now_low") - before) & 0xFFFFFFFF, (earliest - at) & 0xFFFFFFFF


@contextlib.contextmanager
def under_traffic(folder, link):
    """The simulated card between two ports: its socket, its registers, the host's end of its link."""
    socket, seen, passed = (folder / name for name in ("socket", "seen.pcapng", "passed.pcapng"))
    wire = traffic(folder / "wire.pcap", 60_000)
    with pair(link) as (near, far):
        sim = [WEIR, "nic-sim", "--wire0", wire, "--records", f"eth:{near}", "--socket", socket, "--hold"]
        sim += ["--pace", 1000, "--pps", PPS_US * KHZ // 1000, "--seen", seen, "--passed", passed]
        with running(sim, folder / "sim.log") as simulation:
            yield socket, Registers(socket), far
            assert ended(simulation) == 0, (folder / "sim.log").read_text()
    no_frame_suffered(seen, passed)


@contextlib.contextmanager
def serving(folder, socket, regs, link):
    """A service that starts the card, and in the end stops it: the link is in bypass."""
    service = Service(folder, socket, link)
    with running(service.command, service.log) as process:
        service.is_up()
        boot(regs, service)
        yield service, process
        assert ended(process) == 0
    assert "card: STOPPED" in service.log.read_text()
    regs.until(lambda: not regs.measured())


def test_a_card_under_traffic_survives_a_hung_firmware_a_lost_host_and_faults(tmp_path):
    with under_traffic(tmp_path, "wsf") as (socket, regs, far):
        with serving(tmp_path, socket, regs, far) as (service, process):
            a_hung_firmware(regs, service)
            a_lost_host(regs, service, process)
            faults_of_the_hardware(regs, service)
            status = service.card()
            assert status["starts"] == "2" and int(status["faults"]["HARDWARE"]) >= 3, status
        assert "card: FAULT_WATCHDOG" in service.log.read_text()


def test_a_card_under_traffic_survives_a_bad_image_and_a_killed_cpu(tmp_path):
    with under_traffic(tmp_path, "wsk") as (socket, regs, far):
        with serving(tmp_path, socket, regs, far) as (service, _):
            a_bad_image(regs, service)
            a_killed_cpu(regs, service)
            assert service.card()["starts"] == "3"
        attach_again_without_a_boot(regs, socket, far, tmp_path)


def boot(regs, service):
    """From power-on: load, self-test, configuration, start; then the link is measured."""
    # The firmware's watchdog waits 100 ms, which are minutes here. What is locked before, it does not change.
    regs.until(lambda: not regs.read("system.status") & RESET_CPU)
    regs.write("watchdog.timeout", WATCHDOG_CLOCKS)
    regs.write("watchdog.control", 3)
    order = ["ATTACHED", "FIRMWARE_LOADING", "FIRMWARE", "STATE_IDLE", "STARTED", "STATE_RUNNING", "MEASURED"]
    service.expect(*order, "CONFIRMED")
    assert regs.read("watchdog.timeout") == WATCHDOG_CLOCKS
    assert regs.measured()
    status = service.card()
    assert status["state"] == "RUNNING" and status["ports"][0]["measured"]
    assert not status["faults"] and not status["unhealthy"]
    regs.until(lambda: service.card()["confirmed"])
    # Traffic becomes records.
    regs.until(lambda: service.ask("status")["appliance"]["flowsInTable"] not in ("0", "1"))


def a_hung_firmware(regs, service):
    """Its code ends in a loop when it logs a fault: the watchdog resets it, the service starts it again."""
    loop = 0x0000006F  # j .
    regs.load(address_of("fault_log_append"), [loop])
    assert regs.exchange(READ, 0x00F0)[0] == REFUSED
    found = service.expect("LOST", "FIRMWARE", "STARTED", "MEASURED")
    assert "its watchdog" in text_of(found, "LOST")
    assert "task 1" in text_of(found, "FAULT_WATCHDOG")
    assert regs.measured()


def a_lost_host(regs, service, process):
    """The service hangs as a whole: bypass within the stated time; it goes on: measured again."""
    takeovers = regs.read("inline.port[0].takeovers")
    most, least = time_to_bypass(regs, process)
    bound = (HOST_TIMEOUT_US + BEAT_US + LOOP_US) * KHZ // 1000 + HEARTBEAT_CLOCKS
    print(f"bypass {least} to {most} clocks after the last heartbeat; {bound} are stated")
    assert HOST_TIMEOUT_US * KHZ // 1000 <= most <= bound
    assert regs.read("inline.port[0].takeovers") == takeovers + 1
    process.send_signal(signal.SIGCONT)
    found = service.expect("BYPASS", "FAULT_HOST_LOST", "MEASURED")
    assert "HOST_LOST" in text_of(found, "BYPASS")
    assert regs.measured()


def faults_of_the_hardware(regs, service):
    # A flip in the key table, in the next flow that is entered.
    regs.write("fault.inject", 1)
    found = service.expect("FAULT_HARDWARE", "BYPASS", "MEASURED")
    assert "parity in the key table" in text_of(found, "FAULT_HARDWARE")
    assert regs.read("fault.table_parity_count") >= 1
    # A flip in the CPU's memory, in the slot that is empty.
    regs.write("fault.inject", 2)
    regs.load(card.SLOT_B_BASE + 0x4000, [0x12345678])
    regs.write("system.load_address", card.SLOT_B_BASE + 0x4000 - card.RAM_BASE)
    regs.read("system.load_read")
    found = service.expect("FAULT_HARDWARE", "BYPASS", "MEASURED")
    assert "parity in the CPU's memory" in text_of(found, "FAULT_HARDWARE")
    assert regs.read("fault.ram_parity_count") == 1
    regs.load(card.SLOT_B_BASE + 0x4000, [0])
    # Record frames do not leave.
    regs.write("fault.stuck_clocks", 20_000)
    regs.write("fault.hold", 1)
    found = service.expect("FAULT_HARDWARE", "BYPASS", "FAULT_MEASURE_UNHEALTHY")
    assert "record frames do not leave" in text_of(found, "FAULT_HARDWARE")
    assert "RECORDS_STUCK" in text_of(found, "FAULT_MEASURE_UNHEALTHY")
    # The inline path waits for the heartbeat a little longer.
    regs.until(lambda: not regs.measured())
    regs.write("fault.hold", 0)
    service.expect("MEASURED")
    # Words that are no message.
    for word in (0, 0xDEADBEEF, 0x00570101):
        regs.write("mailbox.to_card.push", word)
    service.expect("MAILBOX_GARBAGE")
    assert service.card()["garbageToCard"] >= 3
    assert regs.measured()


def a_bad_image(regs, service):
    """The slot's image is for other registers, the other slot is empty: refused at the boot, told, loaded anew."""
    regs.load(card.SLOT_A_BASE, struct.unpack("<8I", other_abi(IMAGE.read_bytes())[:32]))
    regs.write("system.request", 1)
    found = service.expect("LOST", "FIRMWARE_REFUSED", "FIRMWARE_LOADING", "FIRMWARE", "STARTED", "MEASURED")
    assert "A ABI" in text_of(found, "FIRMWARE_REFUSED")
    assert regs.measured()


def a_killed_cpu(regs, service):
    """The CPU is held in reset under traffic: bypass, and its firmware is loaded again."""
    regs.write("system.control", RESET_CPU)
    found = service.expect("LOST", "FIRMWARE_LOADING", "FIRMWARE", "STARTED", "MEASURED")
    assert "held in reset" in text_of(found, "LOST")
    assert regs.measured()


def attach_again_without_a_boot(regs, socket, link, folder):
    """weir capture takes the card over as the service left it, and has its clock follow the edges of a PPS input."""
    boots = regs.read("system.boot")
    command = [WEIR, "capture", "--card", f"eth:{link}", "--control", socket, "-f", "json"]
    clock = {"SERVO_SOURCE": int(card.ServoSource.PPS), "SERVO_PERIOD_US": PPS_US}
    command += [word for key, value in (SETTINGS | clock).items() for word in ("--set", f"{key}={value}")]
    log = folder / "capture.log"
    with running(command, log) as process:
        regs.until(lambda: "card: MEASURED" in log.read_text() and "the clock is LOCKED" in log.read_text())
        assert ended(process) == 0
    said = log.read_text()
    assert "card: STOPPED" in said and "FIRMWARE_LOADING" not in said
    assert regs.read("system.boot") == boots
    records = re.search(r"^card: ([\d,]+) records in", said, re.M)
    assert records and records[1] != "0", said


def test_records_of_a_card_that_firmware_started_are_those_of_the_software(tmp_path):
    socket = tmp_path / "socket"
    with pair("wsr") as (near, far):
        sim = [WEIR, "nic-sim", "--wire0", CAPTURE, "--records", f"eth:{near}", "--socket", socket, "--hold"]
        with running(sim, tmp_path / "sim.log"):
            service = Service(tmp_path, socket, far)
            with running(service.command, service.log) as process:
                service.is_up()
                service.expect("MEASURED")
                regs = Registers(socket)
                frames = sum(1 for _ in packets(CAPTURE))
                regs.until(lambda: regs.read("inline.port[0].frames_out") == frames)
                service.is_quiet()
                assert ended(process) == 0
    log = b"".join(path.read_bytes()[LOG_HEADER:] for path in sorted(service.data.glob("*.weirlog")))
    hardware = [comparable(r, epoch=1) for r in split(log)]
    command = [WEIR, "records", "--profile", "nic", "-f", "binary", CAPTURE]
    software = [comparable(r, epoch=0) for r in split(subprocess.run(command, check=True, capture_output=True).stdout)]
    # The end of the file closes flows in software.
    end = software[-1]["time"]
    before = [r for r in software if r["time"] < end]
    assert len(before) > 500
    assert [r for r in hardware if r["time"] < end] == before


def test_a_service_that_sets_nothing_has_the_defaults(tmp_path):
    """One that leaves the link in bypass, then one on the same firmware that does not say so."""
    socket = tmp_path / "socket"
    wire = traffic(tmp_path / "wire.pcap", 60_000)
    with pair("wrv") as (near, far):
        sim = [WEIR, "nic-sim", "--wire0", wire, "--records", f"eth:{near}", "--socket", socket]
        sim += ["--hold", "--pace", 1000]
        with running(sim, tmp_path / "sim.log"):
            regs = Registers(socket)
            for name, settings, wanted in (
                ("off", SETTINGS | {"INLINE_ENABLE": 0}, "card: STATE_RUNNING"),
                ("on", SETTINGS, "card: MEASURED"),
            ):
                command = [WEIR, "capture", "--card", f"eth:{far}", "--control", socket, "--firmware", IMAGE]
                command += ["-f", "json"]
                command += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
                log = tmp_path / f"{name}.log"
                with running(command, log) as process:
                    regs.until(lambda wanted=wanted, log=log: wanted in log.read_text())
                    assert ended(process) == 0, log.read_text()
            assert "FIRMWARE_LOADING" not in log.read_text()


def comparable(record, epoch):
    fields = records.parse(without_cut(record))
    assert fields["flow"] == 0 or fields["flow"] >> 48 == epoch
    fields["flow"] &= (1 << 48) - 1
    return fields


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda image: image[:-1] + bytes([image[-1] ^ 1]), "its body is damaged"),
        (lambda image: image[:4] + b"\xff" + image[5:], "its header is damaged"),
        (lambda image: image + bytes(card.IMAGE_MAX_BYTES), "bytes, not 32 to 32768"),
        (lambda image: other_abi(image), "made for registers of version 2.0"),
        (lambda image: None, "card: the card cannot be reached"),
    ],
    ids=["body", "header", "length", "abi", "no card"],
)
def test_a_service_that_cannot_have_its_card_says_why(damage, says, tmp_path):
    image, damaged = tmp_path / "image.wfw", damage(IMAGE.read_bytes())
    image.write_bytes(damaged or IMAGE.read_bytes())
    command = [WEIR, "capture", "--card", "net_null0", "--control", tmp_path / "none", "--firmware", image]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
    assert result.returncode != 0 and says in result.stderr, result.stderr


def other_abi(image):
    header = list(struct.unpack("<8I", image[:32]))
    header[5] = card.ABI_MAJOR + 1 << 16
    header[7] = zlib.crc32(struct.pack("<7I", *header[:7]))
    return struct.pack("<8I", *header) + image[32:]
