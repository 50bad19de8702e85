"""The firmware's real image on the card's CPU: boot, mailbox, guard of the link, clock, faults, update with rollback.

Traffic runs all the time (weir_firmware_bench.sv); whatever happens to the firmware, each frame leaves as it came.
Times are scaled by configuration: the link's heartbeat every 25 us, the host's within 400 us, a reference every
100 us. Needs build/firmware (make firmware).
"""

import struct
import subprocess
from pathlib import Path

import cocotb
import stream
import weir_protocol as card
from cocotb.triggers import FallingEdge, RisingEdge
from registers import Registers

BUILD = Path(__file__).resolve().parents[2] / "build" / "firmware"
IMAGE = BUILD / "firmware.wfw"
KHZ = 300_000
LOOP_US = 970  # sum of the tasks' bounds
HEARTBEAT = stream.config()["Heartbeat"]
ABI = card.ABI_MAJOR << 16 | card.ABI_MINOR
LIVE = {
    card.Key.BEAT_US: HEARTBEAT * 1000 // KHZ // 4,
    card.Key.HOST_TIMEOUT_US: 400,
    card.Key.HEALTHY_PERIODS: 3,
    card.Key.STATISTICS_MS: 0,
}


def clocks(us):
    return us * KHZ // 1000


class Host:
    """What the service on the host does: loads the image, talks by mailbox, beats."""

    def __init__(self, dut):
        self.dut = dut
        self.regs = Registers(dut)
        self.parser = card.Parser()
        self.sequence = 0
        self.told = []  # unsolicited messages
        self.beating = None

    async def load(self, image, offset=card.SLOT_A_BASE - card.RAM_BASE):
        await self.regs.write("system.load_address", offset)
        for (word,) in struct.iter_unpack("<I", image):
            await self.regs.write("system.load_write", word)

    async def release(self):
        """Let the CPU go; until the firmware's self-test is done."""
        await self.regs.write("host.boot_stage", card.BootStage.LOADED)
        await self.regs.write("system.control", measure_reset=1)
        await self.booted()

    async def booted(self, stage=card.BootStage.TESTED, most=8_000_000):
        found = 0
        for _ in range(most // 5000):
            await stream.clocks(self.dut.clk, 5000)
            before, found = found, await self.regs.read("host.boot_stage")
            if found != before:
                self.dut._log.info(f"boot stage {found:#x} at {await self.regs.read('timer.now_low')}")
            if found == stage:
                return
        raise AssertionError(f"boot stage {found:#x}, not {stage!r}")

    async def push(self, words):
        for word in words:
            while not await self.regs.read("mailbox.to_card.status", "ready"):
                pass
            await self.regs.write("mailbox.to_card.push", word)

    async def message(self, most=6_000_000):
        """The next message of the card."""
        for _ in range(most // 100):
            if not await self.regs.read("mailbox.to_host.status", "valid"):
                await stream.clocks(self.dut.clk, 80)
                continue
            got = self.parser.take(await self.regs.read("mailbox.to_host.pop"))
            if got:
                return got
        raise AssertionError("no message")

    async def reply(self):
        """The next message that is a reply."""
        while True:
            got = await self.message()
            if not got[0] & card.UNSOLICITED:
                return got
            self.told.append((got[0], got[3]))

    async def ask(self, opcode, payload=(), status=card.Status.OK):
        """Payload of the reply; every request has one."""
        self.sequence = self.sequence + 1 & 0xFFFF
        await self.push(card.build(opcode, payload, self.sequence))
        got, sequence, how, words = await self.reply()
        assert (got, sequence) == (opcode, self.sequence), (got, sequence)
        assert how == status, (opcode, card.Status(how), words)
        return words

    async def state(self):
        return card.named("state", await self.ask(card.Opcode.GET_STATE))

    async def configure(self, values):
        await self.ask(card.Opcode.CONFIGURE, [word for pair in values.items() for word in pair])

    async def faults(self):
        """(code, detail0, detail1) of the log's entries."""
        found, at = [], 1
        while True:
            newest, count, *words = await self.ask(card.Opcode.READ_FAULT_LOG, [at])
            entries = [card.named("fault_entry", words[8 * i : 8 * i + 8]) for i in range(count)]
            found += [(card.FaultCode(e["code"]), e["detail0"], e["detail1"]) for e in entries]
            if not entries or entries[-1]["sequence"] == newest:
                return found
            at = entries[-1]["sequence"] + 1

    def beat(self):
        async def forever():
            count = 0
            while True:
                count += 1
                await self.regs.write("host.heartbeat", count)
                await stream.clocks(self.dut.clk, clocks(50))

        self.beating = cocotb.start_soon(forever())

    def stop_beating(self):
        self.beating.cancel()

    async def run(self):
        """HELLO, CONFIGURE, START; until frames are measured."""
        await self.ask(card.Opcode.HELLO, [1, ABI])
        await self.configure(LIVE)
        self.beat()
        await self.ask(card.Opcode.START)
        await self.until(lambda: self.dut.measured.value, 20 * clocks(50))

    async def until(self, what, most):
        for passed in range(0, most, 50):
            await stream.clocks(self.dut.clk, 50)
            if what():
                return passed
        raise AssertionError(f"not within {most} clocks")


async def power_on(dut):
    for name in ("pps", "records_in", "records_out", "table_bad"):
        getattr(dut, name).value = 0
    await stream.start(dut)
    host = Host(dut)
    await stream.clocks(dut.clk, 5)
    # The reset of a bench leaves memory as the test before left it.
    await host.load(bytes(card.KEPT_BYTES), card.KEPT_BASE - card.RAM_BASE)
    return host


async def all_frames(dut):
    """Nothing was lost, damaged or out of order; a few are on their way."""
    await FallingEdge(dut.clk)
    assert int(dut.wrong.value) == 0
    assert int(dut.sent.value) - int(dut.frames.value) <= 2
    assert int(dut.frames.value) > 100


@cocotb.test(skip=not IMAGE.exists())
async def from_power_on_to_bypass_and_back(dut):
    """Boot, self-test, configuration, start; the host is lost, comes back; the firmware hangs and is reset."""
    host = await power_on(dut)
    await host.load(IMAGE.read_bytes())
    await host.release()
    hello = card.named("hello_reply", await host.ask(card.Opcode.HELLO, [1, ABI]))
    assert hello["abi"] == ABI and hello["slot"] == 0 and hello["boot_reason"] == card.BootReason.FIRST
    state = await host.state()
    assert state["state"] == card.CardState.IDLE and state["faults"] == 0, await host.faults()
    assert not dut.measured.value
    assert await host.regs.read("watchdog.timeout") == 100 * KHZ
    assert await host.regs.read("watchdog.control") == 3
    # Locked.
    await host.regs.write("watchdog.timeout", 7)
    assert await host.regs.read("watchdog.timeout") == 100 * KHZ

    tests = 0x3F
    run, failed, _ = await host.ask(card.Opcode.SELF_TEST, [tests, 10])
    assert (run, failed) == (tests, 0)
    await host.run()
    await all_frames(dut)
    turn = card.named("statistics", await host.ask(card.Opcode.STATISTICS))["loop_us"]
    dut._log.info(f"longest turn of the main loop: {turn} us")
    assert turn < LOOP_US
    # Words that mean nothing, a damaged message, then one that is good.
    await host.push([0, 0x57010103, 1, 2, 3, 4, 5, 6])
    got = await host.reply()
    assert got[0] == 1 and got[2] == card.Status.BAD_CRC
    assert (await host.state())["garbage_words"] == 8

    # The host falls silent.
    host.stop_beating()
    passed = await host.until(lambda: not dut.measured.value, clocks(1000) + HEARTBEAT)
    dut._log.info(f"bypass {passed} clocks after the host's last heartbeat")
    assert passed <= clocks(LIVE[card.Key.HOST_TIMEOUT_US] + LIVE[card.Key.BEAT_US] + 50) + HEARTBEAT + clocks(50)
    state = await host.state()
    assert state["unhealthy"] == card.HealthBit.HOST_LOST and state["state"] == card.CardState.RUNNING
    assert (await host.faults())[-1][0] == card.FaultCode.HOST_LOST
    host.beat()
    await host.until(lambda: dut.measured.value, clocks(1000))
    await all_frames(dut)

    # A fault in the key table: told, bypassed for a while, back.
    await RisingEdge(dut.clk)
    dut.table_bad.value = 1
    await RisingEdge(dut.clk)
    dut.table_bad.value = 0
    await host.until(lambda: not dut.measured.value, clocks(100) + HEARTBEAT)
    await host.until(lambda: dut.measured.value, clocks(1000))
    assert (await host.faults())[-1][0] == card.FaultCode.HARDWARE

    # The firmware is gone within a moment: bypass, and its code is loaded again under traffic.
    await host.ask(card.Opcode.CONFIRM)
    await host.regs.write("system.control", cpu_reset=1)
    await host.until(lambda: not dut.measured.value, HEARTBEAT + 1000)
    await host.load(IMAGE.read_bytes())
    await host.release()
    await host.run()
    hello = card.named("hello_reply", await host.ask(card.Opcode.HELLO, [1, ABI]))
    assert hello["boot_reason"] == card.BootReason.CONFIRMED and hello["boots"] == 2
    assert [code for code, *_ in await host.faults()] == [card.FaultCode.HOST_LOST, card.FaultCode.HARDWARE]
    await all_frames(dut)


@cocotb.test(skip=not IMAGE.exists())
async def a_stop_cuts_nothing(dut):
    """STOP under traffic: no fault of the inline path, records leave before measuring is reset; START right behind it."""
    host = await power_on(dut)
    await host.load(IMAGE.read_bytes())
    await host.release()
    await host.run()
    dut.records_in.value = 100
    dut.records_out.value = 20

    async def leave():
        await host.until(lambda: not dut.measured.value, clocks(1000))
        await RisingEdge(dut.flush)
        await stream.clocks(dut.clk, clocks(400))
        assert not dut.rst_measure.value
        dut.records_out.value = 100

    leaving = cocotb.start_soon(leave())
    for _ in range(2):
        await host.ask(card.Opcode.STOP)
        assert leaving.done() and dut.rst_measure.value and not dut.measured.value
        assert (await host.state())["state"] == card.CardState.IDLE
        await host.ask(card.Opcode.CONFIGURE, [card.Key.INLINE_ENABLE, 1])
        await host.ask(card.Opcode.START)
        await host.until(lambda: dut.measured.value, 20 * clocks(50))
        assert await host.regs.read("inline.port[0].faults") == 0
    await all_frames(dut)
    assert await host.faults() == []


@cocotb.test(skip=not IMAGE.exists())
async def the_clock_locks(dut):
    """Edges every 100 us, 41 ppm too fast: locked, and the offset stays small; without them holdover."""
    host = await power_on(dut)
    await host.load(IMAGE.read_bytes())
    await host.release()
    await host.ask(card.Opcode.HELLO, [1, ABI])
    tai = 1_800_000_000 * 10**9 + 12345
    now = await host.regs.read_pair("clock.now")
    action = (await host.ask(card.Opcode.TIME_SYNC, [now & 0xFFFFFFFF, now >> 32, tai & 0xFFFFFFFF, tai >> 32]))[1]
    assert action == card.SyncAction.SET
    assert 0 <= await host.regs.read_pair("clock.now") - tai < 10**6
    await host.configure({card.Key.SERVO_PERIOD_US: 100, card.Key.SERVO_SOURCE: card.ServoSource.PPS})

    # 30,000 clocks are 100 us of the card; the reference has one clock less, now and then two.
    period = 30_000 * (1 - 41e-6)
    offsets = []

    async def edges():
        at, k = 0, 0
        while True:
            k += 1
            gap = round(k * period) - at
            at += gap
            await stream.clocks(dut.clk, gap - 10)
            dut.pps.value = 1
            await stream.clocks(dut.clk, 10)
            dut.pps.value = 0

    task = cocotb.start_soon(edges())
    locked_after = 0
    while await host.regs.read("host.servo_state") != card.ServoState.LOCKED:
        await stream.clocks(dut.clk, 30_000)
        locked_after += 1
        assert locked_after < 25
    dut._log.info(f"locked after {locked_after} periods")
    for _ in range(20):
        await stream.clocks(dut.clk, 30_000)
        captured = await host.regs.read_pair("clock.pps_ns")
        offsets.append((captured + 50_000) % 100_000 - 50_000)
    dut._log.info(f"offsets: {offsets}")
    assert max(map(abs, offsets)) < 50
    state = await host.state()
    rate = state["servo_rate"] - (state["servo_rate"] >> 31 << 32)
    # The reference is faster: so is the card's clock now. 14,317 are 1 ppm; 3.3 ns of an edge are 33 ppm here.
    assert 0 < rate < 100 * 14317
    # The second is wrong, say three pairs of a host that is 5 ms off: only the second changes.
    begun = await host.regs.read_pair("timer.now")
    for wanted in (card.SyncAction.DOUBTED, card.SyncAction.DOUBTED, card.SyncAction.SET):
        now = await host.regs.read_pair("clock.now")
        tai = now - 3 * 10**9 + 5 * 10**6
        request = [now & 0xFFFFFFFF, now >> 32, tai & 0xFFFFFFFF, tai >> 32]
        assert (await host.ask(card.Opcode.TIME_SYNC, request))[1] == wanted
    # Told once a millisecond.
    await stream.clocks(dut.clk, clocks(1100))
    code, low, high = (await host.faults())[-1]
    assert code == card.FaultCode.TIME_STEP and (high << 32 | low) == 2**64 - 3 * 10**9
    passed = (await host.regs.read_pair("timer.now") - begun) // 30_000
    captured = await host.regs.read_pair("clock.pps_ns")
    assert abs((captured + 50_000) % 100_000 - 50_000) < 50
    assert captured // 10**9 == now // 10**9 - 3
    assert await host.regs.read("host.servo_state") == card.ServoState.LOCKED
    task.cancel()
    # Three edges are missed, and the state is told once a millisecond: it had been LOCKED for up to ten periods, too.
    await stream.clocks(dut.clk, clocks(500 + 1100))
    assert await host.regs.read("host.servo_state") == card.ServoState.HOLDOVER
    code, periods, held = (await host.faults())[-1]
    assert code == card.FaultCode.REFERENCE_LOST and 0 <= periods - 20 - passed <= 1 + 1 + 10 + 3
    assert held == await host.regs.read("clock.rate")


@cocotb.test(skip=not IMAGE.exists())
async def an_update_is_rolled_back(dut):
    """A new image that never runs: refused when damaged, given up after three boots when it crashes; the traffic goes on."""
    host = await power_on(dut)
    await host.load(IMAGE.read_bytes())
    await host.release()
    await host.run()
    await host.ask(card.Opcode.CONFIRM)
    # A jump to nowhere: the trap of the ROM's vector restarts.
    crash = card.image(struct.pack("<4I", 0x13, 0, 0, 0), 0x00020000)
    damaged = crash[:-1] + b"\1"
    for image, status in ((damaged, card.Status.FAILED), (crash, card.Status.OK)):
        assert (await host.ask(card.Opcode.UPDATE_BEGIN, [len(image)])) == [1]
        words = [word for (word,) in struct.iter_unpack("<I", image)]
        await host.ask(card.Opcode.UPDATE_DATA, [0, *words])
        await host.ask(card.Opcode.UPDATE_END, status=status)
    await host.ask(card.Opcode.RESET)
    await host.regs.write("host.boot_stage", 0)
    await host.booted(card.BootStage.TESTED, most=12_000_000)
    await host.run()
    hello = card.named("hello_reply", await host.ask(card.Opcode.HELLO, [1, ABI]))
    assert hello["slot"] == 0 and hello["boots"] == 5
    codes = [code for code, *_ in await host.faults()]
    assert card.FaultCode.IMAGE_REFUSED in codes and card.FaultCode.ROLLBACK in codes
    await all_frames(dut)


@cocotb.test(skip=not IMAGE.exists())
async def a_trap_is_logged(dut):
    """An instruction that is none, in the running program: the handler notes it, the CPU starts anew and logs it."""
    host = await power_on(dut)
    await host.load(IMAGE.read_bytes())
    await host.release()
    await host.ask(card.Opcode.HELLO, [1, ABI])
    symbols = subprocess.run(
        ["riscv64-unknown-elf-nm", "-n", str(BUILD / "firmware.elf")], check=True, capture_output=True, text=True
    ).stdout
    places = {line.split()[-1]: int(line.split()[0], 16) for line in symbols.splitlines()}
    # The whole function: its first words may be in the instruction cache, with the end of the one before.
    begin, end = places["card_start"], min(a for a in places.values() if a > places["card_start"])
    await host.load(bytes(end - begin), begin - card.RAM_BASE)
    await host.push(card.build(card.Opcode.START, (), 99))
    await host.booted(card.BootStage.ROM)
    await host.booted(card.BootStage.TESTED)
    illegal_instruction = 2
    ((code, cause, place),) = await host.faults()
    assert (code, cause) == (card.FaultCode.TRAP, illegal_instruction) and begin <= place < end
    assert await host.regs.read("system.boot", "reason") == 3
    # The code is whole again: it came from the slot.
    await host.run()
    await all_frames(dut)


@cocotb.test(skip=not IMAGE.exists())
async def what_is_no_fault_and_what_does_not_end_one(dut):
    """A host that uses addresses without a register while the card boots breaks nothing; a test of nothing mends nothing."""
    host = await power_on(dut)
    await host.load(IMAGE.read_bytes())

    async def ask_for_nothing():
        while True:
            await host.regs.read_at(0x00F0)
            await stream.clocks(dut.clk, 500)

    await host.regs.write("host.boot_stage", card.BootStage.LOADED)
    await host.regs.write("system.control", measure_reset=1)
    await host.booted(card.BootStage.FIRMWARE)
    task = cocotb.start_soon(ask_for_nothing())
    await host.booted()
    task.cancel()
    assert (await host.state())["state"] == card.CardState.IDLE, await host.faults()

    await host.run()
    # The clock is set, then set back by more than a second.
    for change in (1_800_000_000 * 10**9, -2 * 10**9):
        now = await host.regs.read_pair("clock.now")
        tai = now + change
        await host.ask(card.Opcode.TIME_SYNC, [now & 0xFFFFFFFF, now >> 32, tai & 0xFFFFFFFF, tai >> 32])
    for _ in range(30):
        await stream.clocks(dut.clk, clocks(100))
        if await host.regs.read("host.state") == card.CardState.FAULT:
            break
    await host.ask(card.Opcode.SELF_TEST, [0, 0])
    assert (await host.state())["state"] == card.CardState.FAULT
    await host.ask(card.Opcode.STOP)
    assert (await host.state())["state"] == card.CardState.IDLE
