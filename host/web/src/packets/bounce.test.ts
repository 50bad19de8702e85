import { expect, test } from "vitest";

import { SvgPainter } from "../chart/painter";
import { THEMES } from "../theme";
import { drawBounce, ROW, SIZES, rows, rowsBetween, sizeClass } from "./bounce";

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

test("each packet is an arrow towards who gets it, a repeat is dashed", () => {
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
    };
    const draw = (rowsOf: (typeof row)[]) => {
        const p = new SvgPainter();
        const { tops } = rows([0], "even", 0);
        const place = { tops, first: 0, end: rowsOf.length, above: 0, width: 900, height: 100 };
        drawBounce(p, rowsOf, place, { colors: THEMES.light, start: 0n, chosen: -1 });
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
