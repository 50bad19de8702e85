"""weir_merge: order, clamping, grid, whole seconds, pauses, back-pressure, against a model of section 1."""

import heapq

import cocotb
import stream
from cocotb.triggers import RisingEdge
from structs import pack, unpack, width

PORTS = stream.config()["Ports"]
DRAIN = stream.config()["DrainClocks"]
PACKET, VISIT, PORT, END = range(4)
SECOND, FINE, MAX_TIME, FOREVER = 10**9, 10**7, 1 << 63, (1 << 64) - 1
META = width("meta_t")
# Some real time, far from 0, just before a whole second.
START = 1_700_000_000 * SECOND - 5 * FINE


def merged(ports, visits):
    """[(kind, port or index, time, number)] in the order of the heads: visits before packets of the same time."""
    heads = [(min(times[0], MAX_TIME), port + 1, 0) for port, times in enumerate(ports) if times]
    heads += [(visits[0][1], 0, 0)] if visits else []
    heapq.heapify(heads)
    while heads:
        _, source, at = heapq.heappop(heads)
        if source == 0:
            yield VISIT, *visits[at], 0
            following = [time for _, time in visits[at + 1 : at + 2]]
        else:
            yield PACKET, source - 1, ports[source - 1][at], at + 1
            following = ports[source - 1][at + 1 : at + 2]
        if following:
            heapq.heappush(heads, (min(following[0], MAX_TIME), source, at + 1))


def timeline(words):
    """What comes out for words in order: (kind, port or index, time, number, clamped)."""
    now, next_second = 0, None
    for kind, which, own, number in words:
        time = max(now, min(own, MAX_TIME))
        if next_second is not None and (time > next_second or (time == next_second and kind != VISIT)):
            yield from ((PORT, port, next_second, 0, False) for port in range(PORTS))
            next_second = None
        if next_second is None:
            next_second = (time // SECOND + 1) * SECOND
        if kind == PORT:
            yield from ((PORT, port, time, 0, False) for port in range(PORTS))
        else:
            yield kind, which, time, number, kind == PACKET and own < now
        now = time


def reports(packets):
    """PORT records of the software engine (`pass_second`): [(port, second)] for (port, time) in order."""
    now, next_second, counted, reported = 0, 0, [0] * PORTS, [0] * PORTS
    for port, own in packets:
        now = max(now, min(own, MAX_TIME))
        if now >= next_second:
            if next_second:
                yield from ((p, next_second) for p in range(PORTS) if counted[p] != reported[p])
                reported = list(counted)
            next_second = (now // SECOND + 1) * SECOND
        counted[port] += 1


class Feed:
    """Offers a port's words or the visits; the horizon is a time that is not too late, at times a bad one."""

    def __init__(self, valid, ready, times, show, gap, random):
        self.valid, self.ready, self.times, self.show = valid, ready, times, show
        self.gap, self.random = gap, random
        # The earliest time from each word on.
        self.earliest = [FOREVER]
        for time in reversed(times):
            self.earliest.append(min(time, self.earliest[-1]))
        self.earliest.reverse()
        self.at = 0
        self.offered = False

    def step(self, ready):
        """After an edge: (valid, horizon) for the next one."""
        if self.offered and ready:
            self.at += 1
            self.offered = False
        if not self.offered and self.at < len(self.times) and not self.gap():
            self.offered = True
            self.show(self.at)
        horizon = self.earliest[self.at]
        if horizon != FOREVER and self.random.random() < 0.5:
            horizon = max(0, horizon - self.random.randrange(1, 1 << self.random.randrange(1, 30)))
        return self.offered, horizon


async def run(dut, ports, visits, end=(), gaps=0.0, stall=None):
    """Feed everything, check everything; clocks that it took."""
    random = stream.seeded()
    gap = stream.randomly(gaps) if gaps else lambda: False
    metas = [0] * PORTS
    last = max([FOREVER if not (t := [*p]) else max(t) for p in ports if p] + [time for _, time in visits] + [0])
    # The first item of the end waits for all before it; then it is now, whatever time comes with the others.
    last = min(last, MAX_TIME)
    end = [(kind, index, random.choice([0, last]) if at else last) for at, (kind, index) in enumerate(end)]
    items = [(VISIT, *visit) for visit in visits] + end

    def show_port(port):
        def show(at):
            metas[port] = pack("meta_t", {"timestamp": ports[port][at], "number": at + 1, "port": port, "seq": at})

        return show

    def show_visit(at):
        dut.s_visit_kind.value, dut.s_visit_index.value, dut.s_visit_time.value = items[at]

    dut.m_ready.value = 0
    dut.s_latest.value = (1 << 64 * PORTS) - 1
    dut.s_meta_valid.value = 0
    dut.s_visit_valid.value = 0
    feeds = [Feed(None, None, times, show_port(port), gap, random) for port, times in enumerate(ports)]
    visit_times = [time if kind == VISIT else FOREVER for kind, _, time in items]
    visit_feed = Feed(None, None, visit_times, show_visit, gap, random)

    order = [*merged(ports, visits), *((*item, 0) for item in end)]
    expected = list(timeline(order))
    clocks = received = 0
    is_ready, words = False, []
    while received < len(expected):
        await RisingEdge(dut.clk)
        clocks += 1
        assert clocks < 2000 + 400 * len(expected), f"stuck behind word {received}"
        if is_ready and dut.m_valid.value:
            word = unpack("word_t", int(dut.m_word.value))
            meta, kind = word["meta"], word["kind"]
            which = meta["port"] if kind in (PACKET, PORT) else word["index"]
            number = meta["number"] if kind == PACKET else 0
            got = (kind, which, meta["timestamp"], number, bool(word["clamped"]))
            assert got == expected[received], f"word {received}: {got}, expected {expected[received]}"
            if kind == PACKET:
                assert meta["seq"] == number - 1
            if kind != PORT:
                fine = meta["timestamp"] // FINE
                assert word["fine_start"] == fine * FINE
                assert (word["fine_number"], word["fine_digit"]) == (fine & 0xFFFF, fine % 10)
            words.append(got)
            received += 1
        ready = int(dut.s_meta_ready.value)
        valid, horizons, all_metas = 0, 0, 0
        for port, feed in enumerate(feeds):
            offered, horizon = feed.step(ready >> port & 1)
            valid |= offered << port
            horizons |= horizon << (64 * port)
            all_metas |= metas[port] << (META * port)
        dut.s_meta.value, dut.s_meta_valid.value, dut.s_horizon.value = all_metas, valid, horizons
        offered, horizon = visit_feed.step(int(dut.s_visit_ready.value))
        dut.s_visit_valid.value, dut.s_visit_horizon.value = offered, horizon
        is_ready = not (stall and stall())
        dut.m_ready.value = is_ready
    for _ in range(2 * DRAIN + 100):
        await RisingEdge(dut.clk)
        assert not dut.m_valid.value
    check_reports(words, ports)
    return clocks


def check_reports(words, ports):
    """With the changed-check that comes later in the pipeline, reports are those of the software."""
    packets = [(which, ports[which][number - 1]) for kind, which, _, number, _ in words if kind == PACKET]
    counted, reported, written = [0] * PORTS, [0] * PORTS, []
    for kind, which, time, _, _ in words:
        if kind == PACKET:
            counted[which] += 1
        if kind == END:
            break
        if kind == PORT and counted[which] != reported[which]:
            reported[which] = counted[which]
            written.append((which, time))
    wanted = list(reports(packets))
    # Visits behind the last packet may bring one more.
    assert written[: len(wanted)] == wanted and len(written) <= len(wanted) + PORTS


def times_from(random, start, count, style):
    """A port's times: steps of a style, at times backwards, on whole seconds, on the 1,024 ns of visits."""
    time, out = start, []
    for _ in range(count):
        match style:
            case "dense":
                time += random.randrange(0, 20)
            case "mixed":
                time += random.choice([0, 1, 7, 300, 1024, 10**6, 3 * 10**6, FINE - 1, FINE, 2 * FINE, 10 * FINE])
                time += random.choice([0, 0, 0, SECOND, 7 * SECOND]) if random.random() < 0.1 else 0
                if random.random() < 0.1:
                    time = time // SECOND * SECOND + random.choice([0, 0, SECOND])
                elif random.random() < 0.1:
                    time = time // 1024 * 1024
        backwards = style == "mixed" and random.random() < 0.05
        out.append(max(0, time - random.choice([1, 5, 10**5, 2 * SECOND])) if backwards else time)
    return out


def visits_between(random, first, last, count):
    """Sparse visits in order, some at whole seconds (every second even one is on the visits' grid)."""
    found = {random.randrange(first, last + 1) // 1024 * 1024 for _ in range(count)}
    seconds = range(first // (2 * SECOND) * 2 * SECOND, last + 1, 2 * SECOND)
    found |= set(random.sample(list(seconds), min(len(seconds), count // 10 + 1)))
    return [(random.getrandbits(18), time) for time in sorted(found)]


@cocotb.test()
async def equal_times_go_by_visit_then_port(dut):
    await stream.start(dut)
    await run(dut, [[START, START, START + 1]] * PORTS, [(5, START), (6, START), (7, START + 1)])


@cocotb.test()
async def nothing_overtakes_what_may_still_come(dut):
    """With a horizon at a word's own time the lower port waits no more, the higher one does; a visit goes first."""
    await stream.start(dut)
    dut.m_ready.value = 1
    dut.s_meta.value = sum(pack("meta_t", {"timestamp": START, "port": port}) << (META * port) for port in range(PORTS))
    dut.s_latest.value = (1 << 64 * PORTS) - 1
    dut.s_visit_horizon.value = START
    dut.s_visit_valid.value = 0
    dut.s_meta_valid.value = (1 << PORTS) - 2
    dut.s_horizon.value = START | FOREVER << 64
    await RisingEdge(dut.clk)
    dut.s_meta_valid.value = 0
    for _ in range(2 * DRAIN + 100):
        await RisingEdge(dut.clk)
        assert not dut.m_valid.value, "a visit at this time, or a word of port 0, could still come"
    dut.s_visit_horizon.value = START + 1
    for _ in range(2 * DRAIN + 100):
        await RisingEdge(dut.clk)
        assert not dut.m_valid.value, "a word of port 0 at this time could still come"
    dut.s_horizon.value = START + 1 | FOREVER << 64
    for _ in range(2 * DRAIN + 100):
        await RisingEdge(dut.clk)
        if dut.m_valid.value:
            return
    raise AssertionError("nothing can come before it any more")


@cocotb.test()
async def first_word_reports_nothing(dut):
    for first in (0, 1, FINE - 1, FINE, SECOND - 1, SECOND, START, MAX_TIME - 1, MAX_TIME + 5):
        await stream.start(dut)
        await run(dut, [[first, first]] + [[]] * (PORTS - 1), [])


@cocotb.test()
async def one_report_for_many_seconds(dut):
    await stream.start(dut)
    s = START // SECOND * SECOND
    times = [s + 1, s + SECOND - 1, s + SECOND, s + SECOND + 1, s + 9 * SECOND, s + 9 * SECOND + 5]
    await run(dut, [times] + [[]] * (PORTS - 1), [], end=[(END, 3), (END, 9), (PORT, 0)])


@cocotb.test()
async def a_visit_at_the_second_goes_before_its_report(dut):
    await stream.start(dut)
    even = START // (2 * SECOND) * 2 * SECOND + 2 * SECOND
    visits = [(1, even - 1024), (2, even), (3, even), (4, even + 1024), (5, even + 6 * SECOND)]
    await run(dut, [[even - SECOND // 2, even, even + 6 * SECOND]] + [[]] * (PORTS - 1), visits)


@cocotb.test()
async def full_rate(dut):
    await stream.start(dut)
    random = stream.seeded()
    count = 6000
    ports = [times_from(random, START + 6 * FINE, count // PORTS, "dense") for _ in range(PORTS)]
    clocks = await run(dut, ports, [])
    dut._log.info("%.4f words per clock", count / clocks)
    assert clocks < count + 3 * DRAIN + 100


@cocotb.test()
@cocotb.parametrize(
    gaps=[0.0, 0.5],
    stalls=[None, (0.5, 1), (0.5, 40)],
    style=["dense", "mixed"],
)
async def random_times(dut, gaps, stalls, style):
    await stream.start(dut)
    random = stream.seeded()
    ports = [times_from(random, START + random.randrange(FINE), 400, style) for _ in range(PORTS)]
    ports[random.randrange(PORTS)] = []
    if style == "mixed" and random.random() < 0.3:
        ports[0].append(random.randrange(MAX_TIME, 1 << 64))
    last = max(min(time, MAX_TIME) for times in ports for time in times + [START])
    visits = visits_between(random, START, min(last, START + 2000 * SECOND), 200)
    end = [(END, random.getrandbits(18)) for _ in range(20)] + [(PORT, 0)]
    await run(dut, ports, visits, end, gaps, stall=stream.in_runs(*stalls) if stalls else None)


@cocotb.test()
async def a_word_is_not_clamped_by_the_reset_before(dut):
    await stream.start(dut)
    await run(dut, [[START + SECOND]] + [[]] * (PORTS - 1), [])
    await stream.start(dut)
    await run(dut, [[START]] + [[]] * (PORTS - 1), [])


@cocotb.test()
# Within the horizon, beyond it, beyond a scan period.
@cocotb.parametrize(busy=[1, PORTS], back=[30, 500, 3000, 500_000, 3600 * SECOND])
async def nothing_waits_for_a_clock_that_went_back(dut, busy, back):
    """As on a card: stamps of a clock, words some time later, horizons behind it; the clock goes back half way."""
    await stream.start(dut)
    random = stream.seeded()
    most, clocks, step_ns = 2048, 6000, 3
    tai, stepped = START, clocks // 2
    under_way, queues = [[] for _ in range(PORTS)], [[] for _ in range(PORTS)]
    horizons, sent, got = [0] * PORTS, [], []
    dut.m_ready.value, dut.s_visit_valid.value, dut.s_meta_valid.value = 1, 0, 0
    offered = [False] * PORTS
    now = 0
    for clock in range(clocks + 2000):
        await RisingEdge(dut.clk)
        if dut.m_valid.value:
            word = unpack("word_t", int(dut.m_word.value))
            if word["kind"] == PACKET:
                own, arrived, before = sent[word["meta"]["number"]]
                assert clock - arrived < most // step_ns + 100, "held up"
                assert bool(word["clamped"]) == (own < now)
                now = max(now, own)
                assert word["meta"]["timestamp"] == now
                got.append((not before, own, word["meta"]["port"], word["meta"]["number"]))
        tai += step_ns - (back if clock == stepped else 0)
        ready = int(dut.s_meta_ready.value)
        valid = all_metas = all_horizons = 0
        for port in range(PORTS):
            if offered[port] and ready >> port & 1:
                queues[port].pop(0)
            if clock < clocks and port < busy and random.random() < 0.1:
                under_way[port].append((clock + random.randrange(20, 400), len(sent)))
                sent.append([tai, None, clock < stepped])
            while under_way[port] and under_way[port][0][0] <= clock:
                queues[port].append(under_way[port].pop(0)[1])
                sent[queues[port][-1]][1] = clock
            if not queues[port]:
                horizons[port] = tai - most
            offered[port] = bool(queues[port])
            if queues[port]:
                number = queues[port][0]
                meta = pack("meta_t", {"timestamp": sent[number][0], "number": number, "port": port})
                valid, all_metas = valid | 1 << port, all_metas | meta << META * port
            all_horizons |= horizons[port] << 64 * port
        dut.s_meta.value, dut.s_meta_valid.value, dut.s_horizon.value = all_metas, valid, all_horizons
        dut.s_latest.value = sum(tai << 64 * port for port in range(PORTS))
        dut.s_visit_horizon.value = tai
    assert len(got) == len(sent) > 100 * busy
    for port in range(PORTS):
        numbers = [number for _, _, which, number in got if which == port]
        assert numbers == sorted(numbers)


@cocotb.test()
async def what_waited_when_the_clock_went_back_goes_in_order(dut):
    await stream.start(dut)
    dut.m_ready.value = 1
    times = [START + 10, START + 5] + [0] * (PORTS - 2)
    dut.s_meta.value = sum(pack("meta_t", {"timestamp": times[p], "port": p}) << (META * p) for p in range(PORTS))
    dut.s_meta_valid.value = 3
    dut.s_latest.value = (1 << 64 * PORTS) - 1
    dut.s_horizon.value = 0
    dut.s_visit_valid.value, dut.s_visit_horizon.value = 0, 0
    await RisingEdge(dut.clk)
    dut.s_meta_valid.value = 0
    for _ in range(2 * DRAIN + 100):
        await RisingEdge(dut.clk)
        assert not dut.m_valid.value, "a visit, or a word of another port, could still come"
    dut.s_latest.value = 0
    dut.s_visit_kind.value, dut.s_visit_index.value, dut.s_visit_time.value = VISIT, 3, START + 7
    dut.s_visit_valid.value = 1
    got = []
    for _ in range(2 * DRAIN + 200):
        await RisingEdge(dut.clk)
        dut.s_visit_valid.value = 0
        if dut.m_valid.value:
            word = unpack("word_t", int(dut.m_word.value))
            got.append((word["kind"], word["meta"]["timestamp"], bool(word["clamped"])))
    assert got == [(PACKET, START + 5, False), (VISIT, START + 7, False), (PACKET, START + 10, False)]
