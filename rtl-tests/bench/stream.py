"""What the benches share: clock and reset, and one light driver and monitor for valid/ready streams.

The driver sets pins and looks at them once per clock, which makes tens of thousands of clocks a second even with
512-bit data. Ports are named <prefix>_valid, <prefix>_ready (or _tvalid, _tready) and <prefix>_<field>.
"""

import json
import os
import random

from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer

PERIOD_NS = 4  # simulated; the design is for 3.33


def config():
    """Parameters of the bench as the runner's table has them."""
    return json.loads(os.environ["WEIR_BENCH"])["parameters"]


def seeded():
    """A generator of its own for each use, repeated by WEIR_SEED."""
    return random.Random(random.getrandbits(64))


async def start(dut, clk="clk", rst="rst"):
    """Start the clock and hold reset for a few clocks; the caller sets its pins in the clock in which reset falls."""
    clock, reset = getattr(dut, clk), getattr(dut, rst)
    clock.value = 0
    reset.value = 1
    await Timer(PERIOD_NS, "ns")  # registers start random: no edge before reset is there
    Clock(clock, PERIOD_NS, unit="ns").start(start_high=False)
    for _ in range(4):
        await RisingEdge(clock)
    reset.value = 0


async def clocks(clock, count):
    """Until `count` rising edges from now: ClockCycles, but asleep for all but the last."""
    await Timer(1000 * PERIOD_NS * count - 750 * PERIOD_NS, "ps")
    await RisingEdge(clock)


def handshake(dut, prefix):
    """(valid, ready or None) of a stream; AXI4-Stream names start with t."""
    t = "t" if hasattr(dut, f"{prefix}_tvalid") else ""
    return getattr(dut, f"{prefix}_{t}valid"), getattr(dut, f"{prefix}_{t}ready", None)


class Source:
    """Offers words in order. `words` are {field: value}; `gap()` true makes an empty clock before a word."""

    def __init__(self, dut, prefix, words, gap=None):
        self.valid, self.ready = handshake(dut, prefix)
        self.pins = {}
        self.dut, self.prefix = dut, prefix
        self.words, self.gap = iter(words), gap
        self.offered = None
        self.sent = 0
        self.done = False
        self.valid.value = 0

    def step(self):
        """Once per clock, after the edge: True when a word went over at that edge."""
        went = self.offered is not None and (self.ready is None or bool(self.ready.value))
        if went:
            self.sent += 1
            self.offered = None
        if self.offered is None:
            if self.gap is not None and self.gap():
                self.valid.value = 0
                return went
            self.offered = next(self.words, None)
            if self.offered is None:
                self.done = True
                self.valid.value = 0
                return went
            self.valid.value = 1
            for name, value in self.offered.items():
                if name not in self.pins:
                    self.pins[name] = getattr(self.dut, f"{self.prefix}_{name}")
                self.pins[name].value = value
        return went


class Sink:
    """Takes words; `stall()` true makes ready low for a clock. Gives the fields named, as integers."""

    def __init__(self, dut, prefix, fields=("data",), stall=None):
        self.valid, self.ready = handshake(dut, prefix)
        self.fields = [getattr(dut, f"{prefix}_{name}") for name in fields]
        self.stall = stall
        self.is_ready = self.ready is None
        self.received = 0
        if self.ready is not None:
            self.ready.value = 0

    def step(self):
        """Once per clock, after the edge: the word that went over at that edge as a tuple, or None."""
        word = None
        if self.is_ready and self.valid.value:
            word = tuple(int(field.value) for field in self.fields)
            self.received += 1
        if self.ready is not None:
            is_ready = self.stall is None or not self.stall()
            if is_ready != self.is_ready:
                self.is_ready = is_ready
                self.ready.value = int(is_ready)
        return word


def randomly(share):
    """True with that share, from a generator that WEIR_SEED repeats."""
    source = seeded()
    return lambda: source.random() < share


def in_runs(share, length):
    """True in runs of about `length` clocks that make up that share of the time: stalls as real ones come."""
    source = seeded()
    state = [False]

    def now():
        if source.random() < (1 - share if state[0] else share) * 2 / length:
            state[0] = not state[0]
        return state[0]

    return now
