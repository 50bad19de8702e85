"""weir_framer: frames tell the truth about the records in them; nothing lost under any back-pressure."""

import cocotb
import stream
import weir_records as records
from cocotb.triggers import RisingEdge

CONFIG = stream.config()
MAX_RECORDS = CONFIG.get("MaxRecords", records.FRAME_MAX_RECORDS)
FLUSH_CLOCKS, DEPTH, FRAMES = CONFIG["FlushClocks"], CONFIG["Depth"], CONFIG["Frames"]
DESTINATION, SOURCE = bytes.fromhex("0a0b0c0d0e0f"), bytes.fromhex("021122334455")
LANE, EPOCH = 3, 0xBEEF
FIRST = 2**32 - 700  # the record number wraps during the test


class Framer:
    """Drives the framer clock by clock, checks every beat that leaves against what went in."""

    def __init__(self, dut, gap=None, stall=None, first=FIRST):
        self.dut, self.first = dut, first
        self.random = stream.seeded()
        self.expected = []
        self.source = stream.Source(dut, "s", self.words(), gap)
        self.sink = stream.Sink(dut, "m", ("tdata", "tlast", "tkeep"), stall)
        self.limit = 0
        self.taken = self.frames = self.remaining = self.clock = 0
        self.sizes, self.last_taken = [], 0
        dut.flush.value = 0
        dut.now.value = 0
        dut.destination_mac.value = int.from_bytes(DESTINATION, "big")
        dut.source_mac.value = int.from_bytes(SOURCE, "big")
        dut.lane.value, dut.epoch.value = LANE, EPOCH

    def words(self):
        while True:
            number = len(self.expected)
            data = records.build(records.Kind.EVENT, sequence=(self.first + number) % 2**32, time=number)
            data = data[:24] + self.random.randbytes(40)
            self.expected.append(data)
            yield {"data": int.from_bytes(data, "little")}

    async def step(self, flush=False):
        await RisingEdge(self.dut.clk)
        beat = self.sink.step()
        self.source.step()
        self.clock += 1
        self.dut.now.value = self.clock
        self.dut.flush.value = int(flush)
        if beat:
            self.check(beat[0].to_bytes(64, "little"), *beat[1:])

    def check(self, data, last, keep):
        assert keep == 2**64 - 1
        if self.remaining:
            assert data == self.expected[self.taken], f"record {self.taken}"
            self.remaining -= 1
            self.taken += 1
            assert last == (self.remaining == 0)
            return
        header = records.parse_frame_header(data)
        assert not last
        self.remaining = header.pop("records")
        assert 1 <= self.remaining <= MAX_RECORDS
        assert header.pop("time") <= self.clock
        assert header == {
            "destination": DESTINATION,
            "source": SOURCE,
            "ethertype": b"\x88\xb5",
            "version": records.FRAME_VERSION,
            "lane": LANE,
            "epoch": EPOCH,
            "first_sequence": (self.first + self.taken) % 2**32,
            "sequence": self.frames,
            "total": self.taken,
        }
        self.frames += 1
        self.sizes.append(self.remaining)

    async def drain(self):
        """Stop offering and wait until everything is out."""
        self.sink.stall = None
        self.source.gap = lambda: True
        waited = 0
        while self.source.offered is not None or self.taken < self.source.sent or self.remaining:
            await self.step()
            waited += 1
            assert waited < 100 * (DEPTH + FLUSH_CLOCKS), "records stay inside"
        await RisingEdge(self.dut.clk)
        assert int(self.dut.records_in.value) == self.source.sent == self.taken
        assert int(self.dut.records_out.value) == self.taken
        assert int(self.dut.frames_out.value) == self.frames


@cocotb.test(skip=FLUSH_CLOCKS < MAX_RECORDS)
async def maximum(dut):
    """Records without a pause: only full frames, MaxRecords records in MaxRecords + 1 clocks."""
    await stream.start(dut)
    framer = Framer(dut)
    clocks = 100_000
    for _ in range(clocks):
        await framer.step()
    rate, bound = framer.taken / clocks, MAX_RECORDS / (MAX_RECORDS + 1)
    dut._log.info("%.4f records per clock, at most %.4f", rate, bound)
    assert rate > bound * (1 - 2 * (MAX_RECORDS + 10) / clocks)
    assert set(framer.sizes) == {MAX_RECORDS}
    await framer.drain()


@cocotb.test()
async def a_single_record_leaves_after_the_timeout(dut):
    await stream.start(dut)
    framer = Framer(dut)
    await framer.step()
    framer.source.gap = lambda: True
    for _ in range(FLUSH_CLOCKS + 12):
        await framer.step()
    assert framer.sizes == [1]
    assert framer.taken == 1


@cocotb.test()
async def a_flush_covers_what_came_before_it(dut):
    await stream.start(dut)
    framer = Framer(dut, gap=lambda: framer.source.sent >= 2)
    await framer.step()
    await framer.step()
    await framer.step(flush=True)
    for _ in range(12):
        await framer.step()
    assert framer.sizes == [min(2, MAX_RECORDS)] + [1] * (MAX_RECORDS == 1)
    # With nothing inside it does nothing: the next record waits for its own time.
    await framer.step(flush=True)
    await framer.step()
    framer.source.gap = lambda: framer.source.sent >= 3
    for _ in range(12):
        await framer.step()
    if FLUSH_CLOCKS > 30 and MAX_RECORDS > 1:
        assert framer.taken == 2
    await framer.drain()


@cocotb.test()
@cocotb.parametrize(shares=[(0.5, 0.5, 0.01), (0.05, 0.7, 0.1), (0.9, 0.1, 0.0), (0.9, 0.9, 0.3)])
async def stress(dut, shares):
    await stream.start(dut)
    gap, stall, flush = stream.in_runs(shares[0], 40), stream.in_runs(shares[1], 40), stream.randomly(shares[2])
    framer = Framer(dut, gap, stall)
    for _ in range(20_000):
        await framer.step(flush())
    assert framer.frames > 20
    await framer.drain()


@cocotb.test()
async def a_blocked_output_loses_nothing(dut):
    await stream.start(dut)
    blocked = [True]
    framer = Framer(dut, stall=lambda: blocked[0])
    for _ in range(4 * DEPTH + 40):
        await framer.step()
    assert not dut.s_ready.value
    assert framer.taken == 0
    blocked[0] = False
    for _ in range(4 * DEPTH):
        await framer.step()
    await framer.drain()
