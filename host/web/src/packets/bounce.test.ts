import { expect, test } from "vitest";

import { SvgPainter } from "../chart/painter";
import { THEMES } from "../theme";
import { arrowOf, drawBounce, FALL, linesOf, ROW, SIZES, rows, rowsBetween, sizeClass } from "./bounce";

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
    passage: null,
};

test("each packet is an arrow towards who gets it, a repeat is dashed", () => {
    const draw = (rowsOf: (typeof row)[]) => {
        const p = new SvgPainter();
        const { tops } = rows([0], "even", 0);
        const place = { tops, first: 0, end: rowsOf.length, above: 0, width: 900, height: 100 };
        drawBounce(p, rowsOf, place, { colors: THEMES.light, start: 0n, chosen: -1, two: null });
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
    const two = { names: ["a", "b"], perSecond: 20 } as const;
    const [near = NaN, far = NaN] = linesOf(1000, true).taps;
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
    expect(arrowOf(seen, 50, 1000, { ...two, perSecond: 0 }).seen[1]).toEqual([far, 50 + FALL]);
    const lost = arrowOf({ ...row, passage: "LOST" }, 50, 1000, two);
    expect([lost.end, lost.seen, lost.points.at(-1)?.[0]]).toEqual(["lost", [[near, 50]], (near + far) / 2]);
    const back = arrowOf({ ...row, server: true, packet: NaN, far: 1, passage: "LOST" }, 50, 1000, two);
    expect([back.end, back.seen, back.points.at(-1)?.[0]]).toEqual(["lost", [[far, 50]], (near + far) / 2]);
    // A capture that missed it does not stop it.
    expect(arrowOf({ ...row, passage: "MISSED" }, 50, 1000, two)).toMatchObject({ end: "head", seen: [[near, 50]] });
});
