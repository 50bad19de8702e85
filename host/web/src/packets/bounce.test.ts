import { expect, test } from "vitest";

import { SvgPainter } from "../chart/painter";
import { THEMES } from "../theme";
import {
    arrowOf,
    drawBounce,
    FALL,
    legTimes,
    leastWidth,
    linesOf,
    reachOf,
    ROW,
    SIZES,
    rows,
    rowsBetween,
    shortNames,
    sizeClass,
} from "./bounce";
import { passageWords } from "./rows";

test("rows to scale stand at their times and never on one another", () => {
    const { tops, whole } = rows([0, 0.001, 0.002, 5, 10], "time", 1000);
    expect([...tops]).toEqual([0, ROW, 2 * ROW, 500, 1000]);
    expect(whole).toBeGreaterThan(1000 + ROW - 1);
    expect([...rows([3, 3, 3], "time", 1000).tops]).toEqual([0, ROW, 2 * ROW]);
    expect([...rows([0, 9, 10], "even", 1000).tops]).toEqual([0, ROW, 2 * ROW]);
});

test("the rows in sight", () => {
    const { tops } = rows(
        Array.from({ length: 1000 }, (_, at) => at),
        "even",
        0,
    );
    const [first, end] = rowsBetween(tops, 100 * ROW, 110 * ROW);
    expect(first).toBeLessThanOrEqual(99);
    expect(first).toBeGreaterThan(95);
    expect(end).toBe(110);
});

test("every size has one class", () => {
    expect([0, 1, 99, 100, 1399, 1400, 65535].map(sizeClass)).toEqual([0, 1, 1, 2, 3, 4, SIZES.length - 1]);
});

const row = {
    packet: 1,
    tap: 0,
    number: 1,
    time: 0,
    delta: 0,
    server: false,
    kind: "DATA",
    length: 1460,
    wire: 1514,
    ttl: 64,
    ipId: 1,
    flags: "ACK",
    seq: 1,
    ack: 1,
    window: 1000,
    scaled: true,
    sack: null,
    block: null,
    original: null,
    verdict: "",
    note: null,
    far: null,
    between: [],
    passage: null,
};

test("each packet is an arrow towards who gets it, a repeat is dashed", () => {
    const draw = (rowsOf: (typeof row)[]) => {
        const p = new SvgPainter();
        const { tops } = rows([0], "even", 0);
        const place = { tops, first: 0, end: rowsOf.length, above: 0, width: 900, height: 100 };
        drawBounce(p, rowsOf, place, { colors: THEMES.light, start: 0n, chosen: -1, several: null });
        return p.finish(900, 100, "bounce");
    };
    const there = draw([row]);
    expect(there).toContain("M230 ");
    expect(there).toContain("1,460 bytes  seq 1");
    expect(there).toContain(THEMES.light.orange);
    expect(there).not.toContain("dasharray");
    const back = draw([{ ...row, server: true, kind: "RETRANSMISSION" }]);
    expect(back).toContain("M580 ");
    expect(back).toContain("dasharray");
});

test("with two taps an arrow passes both, and ends where it was lost", () => {
    const two = { names: ["a", "b"], at: (time: number) => 50 + 20 * (time - 1) } as const;
    const [near = NaN, far = NaN] = linesOf(1000, 2).taps;
    const seen = { ...row, time: 1, far: 1.5, passage: "BOTH" } as const;
    expect(arrowOf(seen, 50, 1000, two).seen).toEqual([
        [near, 50],
        [far, 60],
    ]);
    // What the server sends was at its tap before.
    expect(arrowOf({ ...seen, server: true, far: 0.5 }, 50, 1000, two).seen).toEqual([
        [far, 40],
        [near, 50],
    ]);
    expect(arrowOf(seen, 50, 1000, { ...two, at: null }).seen[1]).toEqual([far, 50 + FALL]);
    const lost = arrowOf({ ...row, passage: "LOST" }, 50, 1000, two);
    expect([lost.end, lost.seen, lost.points.at(-1)?.[0]]).toEqual(["lost", [[near, 50]], (near + far) / 2]);
    const back = arrowOf({ ...row, server: true, packet: NaN, tap: 1, far: 1, passage: "LOST" }, 50, 1000, two);
    expect([back.end, back.seen, back.points.at(-1)?.[0]]).toEqual(["lost", [[far, 50]], (near + far) / 2]);
    // A capture that missed it does not stop it.
    expect(arrowOf({ ...row, passage: "MISSED" }, 50, 1000, two)).toMatchObject({ end: "head", seen: [[near, 50]] });
});

test("to scale with several taps what was later is lower, at whichever tap, also where rows are pushed apart", () => {
    // A burst whose ACKs come within the time of a row: a request, its ACK 20 ms behind the far tap, and a pause.
    const request = { ...row, time: 1, far: 1.03, passage: "BOTH" } as const;
    const burst = [1, 1.0001, 1.0002].map((time) => ({ ...request, time, far: time + 0.03 }));
    const ack = { ...request, server: true, length: 0, time: 1.0801, far: 1.0501 };
    const last = { ...request, time: 9, far: 9.03 };
    const all = [...burst, ack, last];
    const { tops, at } = rows(
        all.map(({ time }) => time),
        "time",
        1000,
    );
    const dots = all.flatMap((each, index) => {
        const seen = arrowOf(each, tops[index] as number, 1000, { names: ["a", "b"], at }).seen.map(([, y]) => y);
        return (each.server ? seen.reverse() : seen).map((y, tap) => ({ y, time: tap === 0 ? each.time : each.far }));
    });
    const inTime = [...dots].sort((a, b) => a.time - b.time).map(({ y }) => y);
    expect(inTime).toHaveLength(10);
    expect(inTime).toEqual([...inTime].sort((a, b) => a - b));
    expect(reachOf(all, tops, { names: ["a", "b"], at })).toBeGreaterThan(ROW);
});

test("with three taps an arrow has a dot at each that saw it, and ends behind the last of them", () => {
    const three = { names: ["a", "b", "c"], at: (time: number) => 50 + 20 * (time - 1) } as const;
    const [a = NaN, b = NaN, c = NaN] = linesOf(1100, 3).taps;
    expect(c - b).toBeCloseTo(b - a);
    const seen = { ...row, time: 1, between: [1.5], far: 3, passage: "BOTH" } as const;
    expect(arrowOf(seen, 50, 1100, three).seen).toEqual([
        [a, 50],
        [b, 60],
        [c, 90],
    ]);
    expect(legTimes(seen)).toBe("500 ms + 1.5 s");
    // Evenly spaced it falls evenly; where the tap between missed it, it passes without a dot.
    expect(arrowOf(seen, 50, 1100, { ...three, at: null }).seen[1]).toEqual([b, 50 + FALL / 2]);
    const unseen = arrowOf({ ...seen, between: [null] }, 50, 1100, three);
    expect([unseen.seen.length, unseen.end]).toEqual([2, "head"]);
    // Lost behind the second tap, on the way there and back.
    const lost = { ...seen, far: null, passage: "LOST" } as const;
    const there = arrowOf(lost, 50, 1100, three);
    expect([there.end, there.seen.length, there.points.at(-1)?.[0]]).toEqual(["lost", 2, (b + c) / 2]);
    expect(passageWords(lost, three.names)).toBe("lost between b and c");
    const back = { ...lost, server: true, packet: NaN, tap: 2, time: 3, far: 3, between: [3.5] } as const;
    const fell = arrowOf(back, 50, 1100, three);
    expect([fell.end, fell.seen.length, fell.points.at(-1)?.[0]]).toEqual(["lost", 2, (a + b) / 2]);
    expect(passageWords(back, three.names)).toBe("lost between b and a");
});

test("what only taps between the outer ones saw begins and ends beside them", () => {
    const four = { names: ["a", "b", "c", "d"], at: (time: number) => 50 + 20 * (time - 1) } as const;
    const [a = NaN, b = NaN, c = NaN, d = NaN] = linesOf(1200, 4).taps;
    const there = { ...row, packet: NaN, tap: 1, time: 1, between: [1, 1.5], passage: "LOST" } as const;
    const arrow = arrowOf(there, 50, 1200, four);
    expect(arrow.seen).toEqual([
        [b, 50],
        [c, 60],
    ]);
    expect([arrow.points[0]?.[0], arrow.points.at(-1)?.[0], arrow.end]).toEqual([(a + b) / 2, (c + d) / 2, "lost"]);
    expect(passageWords(there, four.names)).toBe("only at b and c: lost before d");
    const back = { ...there, server: true, tap: 2, between: [null, 1], passage: "UNDECIDED" } as const;
    const fell = arrowOf(back, 50, 1200, four);
    expect([fell.points[0]?.[0], fell.seen, fell.end]).toEqual([(c + d) / 2, [[c, 50]], "unknown"]);
    expect(passageWords(back, four.names)).toBe("only at c: lost, or missed by b");
});

test("six taps have their lines in a narrow picture, too", () => {
    const { taps, server } = linesOf(700, 6);
    expect(taps.slice(1).map((x, at) => x - (taps[at] as number))).toEqual(Array.from({ length: 5 }, () => 70));
    expect(server).toBe((taps.at(-1) as number) + 80);
});

test("names of taps are short and differ", () => {
    const short = (...files: string[]) => shortNames(files);
    expect(short("/a/demo-client.pcap", "demo-server.pcapng.gz")).toEqual(["client", "server"]);
    expect(short("t_10.0.0.1_a", "t_10.0.0.2_a", "t_10.0.0.2_b")).toEqual(["1_a", "2_a", "2_b"]);
    expect(short("x.pcap", "x.pcap")).toEqual(["x", "x"]);
    expect(short("a.pcap", "b.pcap")).toEqual(["a", "b"]);
    expect(short("site-a.pcap", "site-a-2.pcap")).toEqual(["a", "a-2"]);
});

test.each([1, 2, 6])(
    "the least width has room beside the lines of %i taps, and a wider picture none to spare",
    (count) => {
        const width = leastWidth(count);
        expect(linesOf(width, count)).toEqual(linesOf(0, count));
        expect(linesOf(width + 1, count).server).toBe(linesOf(0, count).server + 1);
    },
);
