"""hw/registers/bar.py: registers by name in a file, and the mailbox against a firmware of a few words."""

import importlib.util
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import weir_protocol as card
from weir_registers import REGISTERS

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / "hw" / "registers" / "bar.py"
SPEC = importlib.util.spec_from_file_location("bar", TOOL)
bar = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bar)

READY, VALID = 1 << 8, 1 << 9


class Firmware:
    """Registers that hold what is written, a mailbox, and replies."""

    def __init__(self, replies):
        self.values, self.memory = {}, {}
        self.replies = replies
        self.asked, self.to_card, self.to_host = [], [], []

    def read(self, address):
        if address == REGISTERS["mailbox.to_card.status"]:
            return READY
        if address == REGISTERS["mailbox.to_host.status"]:
            return VALID if self.to_host else 0
        if address == REGISTERS["mailbox.to_host.pop"]:
            return self.to_host.pop(0)
        return self.values.get(address, 0)

    def write(self, address, value):
        if address == REGISTERS["mailbox.to_card.push"]:
            self.to_card.append(value)
            if len(self.to_card) == (self.to_card[0] & 0xFF) + 3:
                opcode, sequence, _, words = self.message()
                self.asked.append((opcode, words))
                self.to_host += [0xBAD, *card.build(card.Opcode.STATE_CHANGE, [3, 2, 0])]
                self.to_host += card.build(opcode, [9], sequence - 1)
                self.to_host += card.build(opcode, self.replies.get(opcode, [7]), sequence, self.status(opcode))
        elif address == REGISTERS["system.load_write"]:
            place = self.values[REGISTERS["system.load_address"]]
            self.memory[place] = value
            self.values[REGISTERS["system.load_address"]] = place + 4
        else:
            self.values[address] = value
            if address == REGISTERS["system.control"] and not value & 1:
                self.values[REGISTERS["host.boot_stage"]] = card.BootStage.TESTED

    def message(self):
        parser, words, self.to_card = card.Parser(), self.to_card, []
        return next(found for found in map(parser.take, words) if found)

    @staticmethod
    def status(opcode):
        return card.Status.BAD_STATE if opcode == card.Opcode.START else card.Status.OK


def run(*arguments):
    return subprocess.run([sys.executable, TOOL, *map(str, arguments)], capture_output=True, text=True)


def test_registers_by_name(tmp_path):
    file = tmp_path / "resource2"
    content = bytearray(bar.BYTES)
    struct.pack_into("<I", content, REGISTERS["info.magic"], 0x57454952)
    struct.pack_into("<I", content, 0x4004, 0x250)
    file.write_bytes(content)
    assert run(file, "read", "info.magic", "0x4004").stdout == "info.magic 0x57454952\n0x4004 0x00000250\n"
    assert run(file, "write", "system.scratch", "0x01020304").returncode == 0
    assert struct.unpack_from("<I", file.read_bytes(), REGISTERS["system.scratch"]) == (0x01020304,)
    for nowhere in ("info.magik", "0x10000", "6"):
        assert "no register" in run(file, "read", nowhere).stderr
    assert "no key LAIN" in run(file, "configure", "LAIN=1").stderr


def test_requests_get_their_replies(capsys):
    firmware = Firmware({card.Opcode.TIME_SYNC: [2, 1]})
    registers = bar.Registers(firmware)
    assert registers.ask(card.Opcode.HELLO, [1, 0x10001]) == [7]
    assert firmware.asked == [(card.Opcode.HELLO, [1, 0x10001])]
    assert "STATE_CHANGE 0x3 0x2 0x0" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="START: BAD_STATE, detail 0x7"):
        registers.ask(card.Opcode.START)
    words = registers.ask(card.Opcode.TIME_SYNC, [1, 2, 3, 4])
    assert bar.reply_of("TIME_SYNC", words) == ["servo_state 0x2", "action 0x1"]


def test_an_image_is_loaded():
    firmware = Firmware({})
    firmware.values[REGISTERS["system.control"]] = 3
    image = card.image(b"12345678", 0x10000)
    bar.Registers(firmware).load(image)
    assert firmware.values[REGISTERS["system.control"]] == 2
    slot = card.SLOT_A_BASE - card.RAM_BASE
    words = [firmware.memory[slot + at] for at in range(0, len(image), 4)]
    assert struct.pack(f"<{len(words)}I", *words) == image


def test_the_time_is_that_of_the_read_that_took_least(monkeypatch):
    firmware = Firmware({})
    now = [10**18]
    takes = iter([9000, 3000, 500, 7000, 600, 800, 4000, 900])

    def read(address):
        if address == REGISTERS["clock.now_low"]:
            half = next(takes) // 2
            now[0] += half
            moment = now[0]
            firmware.values[REGISTERS["clock.now_high"]] = moment >> 32
            now[0] += half
            return moment & 0xFFFFFFFF
        now[0] += 10**6
        return Firmware.read(firmware, address)

    firmware.read = read
    monkeypatch.setattr(bar.time, "clock_gettime_ns", lambda _: now[0])
    at_card, at_host = bar.Registers(firmware).time_pair()
    assert at_card == at_host
