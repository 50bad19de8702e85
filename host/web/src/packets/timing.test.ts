import { tableFromArrays, tableToIPC } from "apache-arrow";
import { expect, test } from "vitest";

import { readColumns } from "../api/client";
import { layout } from "../chart/axes";
import { SvgPainter } from "../chart/painter";
import { THEMES } from "../theme";
import { KINDS } from "./kinds";
import { rise, share } from "./lanes";
import { anomalyFrom, drawLinks, drawMarks, readTiming } from "./timing";

function answer() {
    const table = tableFromArrays({
        lane: Uint16Array.of(0, 0, 1),
        server: [false, false, true],
        kind: Uint8Array.of(0, 2, 1),
        time: Float64Array.of(1, 2, 3),
        time_last: Float64Array.of(1, 2, 3.5),
        count: Uint32Array.of(1, 1, 4),
        segments: Uint32Array.of(1, 1, 0),
        bytes_min: Uint32Array.of(1460, 730, 0),
        bytes: Uint32Array.of(1460, 1460, 0),
        packet: Uint32Array.of(10, 20, 30),
        link_time: [null, 1, null],
    });
    table.schema.metadata
        .set("kinds", JSON.stringify(["DATA", "ACK", "RETRANSMISSION"]))
        .set("lanes", "[5,9]")
        .set("shared", "0")
        .set("rows", "6")
        .set("exact", "false");
    return readTiming(readColumns(tableToIPC(table, "stream")));
}

test("repeats are visited, those of SYNs, too, from a mark or from a time", () => {
    const kinds = ["SYN", "SYN", "DATA", "COPY", "RETRANSMISSION", "RST"];
    const link = [NaN, 1, NaN, 3, 3, NaN];
    const marks = {
        ...answer().marks,
        time: Float64Array.of(1, 2, 3, 4, 5, 5),
        kind: Uint8Array.from(kinds, (name) => KINDS.findIndex((kind) => kind.name === name)),
        link: Float64Array.from(link),
    };
    expect(anomalyFrom(marks, -1, 0, 1)).toBe(1);
    expect(anomalyFrom(marks, 1, 2, 1)).toBe(4);
    expect(anomalyFrom(marks, 4, 5, 1)).toBe(5);
    expect(anomalyFrom(marks, 5, 5, 1)).toBe(-1);
    expect(anomalyFrom(marks, 5, 5, -1)).toBe(4);
    // The mark is not where the pointer went meanwhile.
    expect(anomalyFrom(marks, 5, 1.5, 1)).toBe(1);
    expect(anomalyFrom(marks, -1, 6, -1)).toBe(5);
});

test("marks have the kinds of this page", () => {
    const { marks, lanes, shared, rows, exact } = answer();
    expect([...marks.time]).toEqual([1, 2, 3]);
    expect([...marks.packet]).toEqual([10, 20, 30]);
    expect([...marks.server]).toEqual([0, 0, 1]);
    expect([...marks.kind].map((place) => KINDS[place]?.name)).toEqual(["DATA", "RETRANSMISSION", "ACK"]);
    expect([...marks.link]).toEqual([NaN, 1, NaN]);
    expect([...marks.last]).toEqual([1, 2, 3.5]);
    expect([lanes, shared, rows, exact]).toEqual([[5, 9], 0, 6, false]);
});

test("of a column, what was sent again is drawn as the part of its data that it is", () => {
    const kinds = ["DATA", "RETRANSMISSION"].map((name) => KINDS.findIndex((kind) => kind.name === name));
    const two = (again: number) => ({
        ...answer().marks,
        time: Float64Array.of(1, 1),
        last: Float64Array.of(1.1, 1.1),
        lane: Uint32Array.of(0, 0),
        server: Uint8Array.of(0, 0),
        kind: Uint8Array.from(kinds),
        size: Float64Array.of(1460, 1460),
        least: Float64Array.of(1460, 1460),
        packets: Float64Array.of(1000 - again, again),
        among: Float64Array.of(1000, 1000),
        link: Float64Array.of(NaN, NaN),
    });
    const heights = (again: number) => {
        const p = new SvgPainter();
        const x = { kind: "time", domain: [0, 2], label: "" } as const;
        const area = layout({ x, y: { ...x, kind: "linear" }, y2: null }, 400, 250, THEMES.light);
        drawMarks(p, two(again), area, { lane: 100, dots: false, seen: () => true });
        return [...p.finish(400, 250, "t").matchAll(/height="([\d.]+)"/g)].map((found) => Number(found[1])).slice(-2);
    };
    expect(heights(3)).toEqual([rise(100), 2]);
    expect(heights(500)).toEqual([rise(100), rise(100) / 2]);
});

test("what is out of sight is not drawn, and a loop reaches into the view", () => {
    const { marks } = answer();
    const draw = (from: number, to: number, dots = false): [string, number] => {
        const p = new SvgPainter();
        const x = { kind: "time", domain: [from, to], label: "" } as const;
        const area = layout({ x, y: { ...x, kind: "linear" }, y2: null }, 400, 250, THEMES.light);
        drawMarks(p, marks, area, { lane: 100, dots, seen: () => true });
        const links = drawLinks(p, marks, area, 100);
        return [p.finish(100, 200, "t"), links];
    };
    // Two bars; a mark with a trail to its last packet, and a loop.
    const whole = draw(0, 4)[0];
    expect([whole.match(/<rect/g)?.length, whole.match(/<path/g)?.length]).toEqual([3, 2]);
    // A dot as high as the packet is long; one for several from the smallest to the largest.
    const heights = [...draw(0, 4, true)[0].matchAll(/height="([\d.]+)"/g)].map((found) => Number(found[1]));
    expect(heights).toEqual(expect.arrayContaining([3, 3 + rise(100) * (share(1460) - share(730))]));
    // What begins before the range and reaches into it is there.
    expect(draw(3.2, 4)[0]).toContain("<path");
    expect(draw(3.6, 4)[0]).not.toContain("<path");
    expect(draw(2.5, 4)).toEqual([expect.not.stringContaining("Q"), 0]);
    expect(draw(1.5, 4)[1]).toBe(1);
    expect(draw(1.2, 1.4)).toEqual([expect.stringContaining("Q"), 1]);
});

test("loops of the first lane keep inside the picture", () => {
    const p = new SvgPainter();
    const x = { kind: "time", domain: [0, 4], label: "" } as const;
    const area = layout({ x, y: { ...x, kind: "linear" }, y2: null }, 400, 250, THEMES.light);
    const marks = { ...answer().marks, server: Uint8Array.of(1, 1, 1) };
    expect(drawLinks(p, marks, area, 150)).toBe(1);
    const [, from = NaN, control = NaN] = (
        /M[\d.]+ ([\d.]+)Q[\d.]+ (-?[\d.]+)/.exec(p.finish(400, 250, "t")) ?? []
    ).map(Number);
    // The curve goes half as far as its control point.
    expect((from + control) / 2).toBeGreaterThanOrEqual(area.top);
});
