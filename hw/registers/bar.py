#!/usr/bin/env python3
"""A card's registers through its BAR, and its firmware through them: what docs/src/bring-up.md does by hand.

    bar.py BAR read info.magic 0x4000 ...           by name, or by address in the BAR
    bar.py BAR write system.control 2
    bar.py BAR load build/firmware/firmware.wfw     into slot A, and let it boot; the link is in bypass meanwhile
    bar.py BAR beat                                 move the host's heartbeat on until interrupted
    bar.py BAR ask HELLO 1 0x10001                  a request to the firmware: opcode and words; the reply's words
    bar.py BAR configure SERVO_SOURCE=2 EPOCH=1
    bar.py BAR time                                 TIME_SYNC with this host's TAI

BAR is the file that maps it: /sys/bus/pci/devices/0000:65:00.0/resource2. It needs root, memory access on
(setpci -s 65:00.0 COMMAND=2:2), and this host's TAI offset where the time is told (chronyd or ptp4l set it).
"""

import argparse
import ctypes
import mmap
import os
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "rtl-tests"))

import weir_protocol as card  # noqa: E402
from weir_registers import FIELDS, REGISTERS  # noqa: E402

BYTES = 1 << 16
HEARTBEAT_S = 0.025  # four times in HOST_TIMEOUT_US
PATIENCE_S = 15  # a loopback takes ten at most
PAIRS = 8


def number(text):
    return int(text, 0)


class Bar:
    """32 bits at a time, by address."""

    def __init__(self, path):
        file = os.open(path, os.O_RDWR | os.O_SYNC)
        self.map = mmap.mmap(file, BYTES)
        os.close(file)

    # Through ctypes: a slice of the map may be copied byte by byte.
    def read(self, address):
        return ctypes.c_uint32.from_buffer(self.map, address).value

    def write(self, address, value):
        ctypes.c_uint32.from_buffer(self.map, address).value = value


class Registers:
    """By name, and the mailbox."""

    def __init__(self, bar):
        self.bar = bar
        self.sequence = os.getpid() & 0xFFFF

    @staticmethod
    def address(name):
        if name in REGISTERS:
            return REGISTERS[name]
        try:
            address = number(name)
        except ValueError:
            raise SystemExit(f"no register {name} (docs/src/registers.md)") from None
        if address % 4 or not 0 <= address < BYTES:
            raise SystemExit(f"no register at {name}")
        return address

    def read(self, name):
        return self.bar.read(self.address(name))

    def write(self, name, value):
        self.bar.write(self.address(name), value & 0xFFFFFFFF)

    def field(self, name, field):
        low, width = FIELDS[name][field]
        return self.read(name) >> low & (1 << width) - 1

    def until(self, what, why):
        deadline = time.monotonic() + PATIENCE_S
        while not what():
            if time.monotonic() > deadline:
                raise SystemExit(f"{why} for {PATIENCE_S} s: boot stage {self.read('host.boot_stage'):#x}")

    def message(self):
        parser = card.Parser()
        while True:
            self.until(lambda: self.field("mailbox.to_host.status", "valid"), "no word from the firmware")
            try:
                found = parser.take(self.read("mailbox.to_host.pop"))
            except ValueError as problem:
                print(problem, file=sys.stderr)
                parser = card.Parser()
                continue
            if found:
                return found

    def ask(self, opcode, words=()):
        """Words of the reply; what the firmware says unasked meanwhile is printed."""
        self.sequence = self.sequence + 1 & 0xFFFF
        for word in card.build(opcode, words, self.sequence):
            self.until(lambda: self.field("mailbox.to_card.status", "ready"), "the firmware takes no words")
            self.write("mailbox.to_card.push", word)
        while True:
            got, sequence, status, payload = self.message()
            if got & card.UNSOLICITED:
                print(card.Opcode(got).name, *map(hex, payload), file=sys.stderr)
            elif (got, sequence) == (opcode, self.sequence):
                if status != card.Status.OK:
                    raise SystemExit(f"{card.Opcode(opcode).name}: {card.Status(status).name}, detail {payload[0]:#x}")
                return payload

    def load(self, image):
        """As docs/src/firmware.md has it, Boot and update."""
        control = self.read("system.control")
        self.write("system.control", control | 1)
        self.write("host.boot_stage", card.BootStage.LOADED)
        self.write("system.load_address", card.SLOT_A_BASE - card.RAM_BASE)
        for (word,) in struct.iter_unpack("<I", image):
            self.write("system.load_write", word)
        self.write("mailbox.request", 1)
        self.write("system.control", control & ~1)
        self.until(lambda: self.read("host.boot_stage") == card.BootStage.TESTED, "no firmware that has tested itself")

    def time_pair(self):
        """Card time and TAI of one moment: of several reads the one that took least."""
        pairs = []
        for _ in range(PAIRS):
            before = time.clock_gettime_ns(time.CLOCK_TAI)
            low = self.read("clock.now_low")
            after = time.clock_gettime_ns(time.CLOCK_TAI)
            pairs.append((after - before, self.read("clock.now_high") << 32 | low, (before + after) // 2))
        return min(pairs)[1:]


def setting(text):
    name, _, value = text.partition("=")
    if name not in card.Key.__members__:
        raise argparse.ArgumentTypeError(f"no key {name} (docs/src/card-protocol.md)")
    return card.Key[name], number(value)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bar", type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("read").add_argument("names", nargs="+")
    write = commands.add_parser("write")
    write.add_argument("name")
    write.add_argument("value", type=number)
    commands.add_parser("load").add_argument("image", type=Path)
    commands.add_parser("beat")
    ask = commands.add_parser("ask")
    ask.add_argument("opcode", choices=[opcode.name for opcode in card.Opcode if not opcode & card.UNSOLICITED])
    ask.add_argument("words", nargs="*", type=number)
    commands.add_parser("configure").add_argument("settings", nargs="+", type=setting)
    commands.add_parser("time")
    return parser.parse_args()


def reply_of(opcode, words):
    """By name, where the layout has names."""
    layout = {"GET_STATE": "state", "STATISTICS": "statistics"}.get(opcode, f"{opcode.lower()}_reply")
    names = card.LAYOUTS.get(layout, [])
    return [f"{name} {word:#x}" for name, word in zip(names, words, strict=False)] + [
        hex(word) for word in words[len(names) :]
    ]


def main():
    args = arguments()
    registers = Registers(Bar(args.bar))
    if args.command == "read":
        for name in args.names:
            print(f"{name} {registers.read(name):#010x}")
    elif args.command == "write":
        registers.write(args.name, args.value)
    elif args.command == "load":
        registers.load(args.image.read_bytes())
    elif args.command == "beat":
        while True:
            registers.write("host.heartbeat", registers.read("host.heartbeat") + 1)
            time.sleep(HEARTBEAT_S)
    elif args.command == "configure":
        registers.ask(card.Opcode.CONFIGURE, [word for pair in args.settings for word in pair])
    else:
        opcode, words = card.Opcode.TIME_SYNC, []
        if args.command == "ask":
            opcode, words = card.Opcode[args.opcode], args.words
        else:
            words = [half for value in registers.time_pair() for half in (value & 0xFFFFFFFF, value >> 32)]
        print(*reply_of(opcode.name, registers.ask(opcode, words)), sep="\n")


if __name__ == "__main__":
    main()
