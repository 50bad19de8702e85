"""weir_timestamp: frames unchanged, the first beat's time with the offset."""

import cocotb
import stream
from cocotb.triggers import RisingEdge
from structs import unpack


@cocotb.test()
@cocotb.parametrize(gaps=[0.0, 0.4])
async def every_frame_has_the_time_of_its_first_beat(dut, gaps):
    random = stream.seeded()
    dut.s_tvalid.value = 0
    await stream.start(dut)
    time, offset, wire = random.getrandbits(64), 0, 0
    expected, stamp, first, last = None, None, True, False
    for _ in range(5000):
        beat = None
        if random.random() >= gaps:
            last = random.random() < 0.4
            beat = (random.getrandbits(512), random.getrandbits(64), last)
            dut.s_tdata.value, dut.s_tkeep.value, dut.s_tlast.value = beat
            wire = random.getrandbits(20)
        # Near the ends of its range, now and then.
        offset = random.choice([0, -1, 2**31 - 1, -(2**31), random.randrange(-1000, 1000)])
        time = random.choice([time + 3, time + 4, random.getrandbits(64), 5]) % 2**64
        dut.s_tvalid.value = beat is not None
        dut.tai_ns.value, dut.offset.value, dut.s_wire_length.value = time, offset, wire
        await RisingEdge(dut.clk)
        # What the edge before took in.
        assert bool(dut.m_tvalid.value) == (expected is not None)
        if expected:
            user = unpack("frame_user_t", int(dut.m_tuser.value))
            got = (int(dut.m_tdata.value), int(dut.m_tkeep.value), bool(dut.m_tlast.value))
            assert (*got, user["timestamp"], user["wire_length"]) == expected
        expected = None
        if beat:
            if first:
                stamp = ((time + offset) % 2**64, wire)
            expected = (*beat, *stamp)
            first = last
