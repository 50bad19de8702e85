import { tableFromArrays, tableToIPC } from "apache-arrow";
import { expect, test } from "vitest";

import { readColumns } from "../api/client";
import { layout } from "../chart/axes";
import { SvgPainter } from "../chart/painter";
import { THEMES } from "../theme";
import { KINDS } from "./kinds";
import { drawLinks, drawMarks, readTiming, together } from "./timing";

function answer() {
    const table = tableFromArrays({
        lane: Uint16Array.of(1, 0, 0),
        server: [true, false, false],
        kind: Uint8Array.of(1, 0, 2),
        time: Float64Array.of(3, 1, 2),
        count: Uint32Array.of(1, 1, 1),
        bytes: Uint32Array.of(0, 1460, 1460),
        packet: Uint32Array.of(30, 10, 20),
        link_time: [null, null, 1],
    });
    table.schema.metadata
        .set("kinds", JSON.stringify(["DATA", "ACK", "RETRANSMISSION"]))
        .set("lanes", "[5,9]")
        .set("rows", "3")
        .set("exact", "true");
    return readTiming(readColumns(tableToIPC(table, "stream")));
}

test("marks come in order of time, with the kinds of this page", () => {
    const { marks, lanes, rows, exact } = answer();
    expect([...marks.time]).toEqual([1, 2, 3]);
    expect([...marks.packet]).toEqual([10, 20, 30]);
    expect([...marks.server]).toEqual([0, 0, 1]);
    expect([...marks.kind].map((place) => KINDS[place]?.name)).toEqual(["DATA", "RETRANSMISSION", "ACK"]);
    expect([...marks.link]).toEqual([NaN, 1, NaN]);
    expect([lanes, rows, exact]).toEqual([[5, 9], 3, true]);
    expect([...together(marks).lane]).toEqual([0, 0, 0]);
});

test("what is out of sight is not drawn, and a loop reaches into the view", () => {
    const { marks } = answer();
    const draw = (from: number, to: number): [string, number] => {
        const p = new SvgPainter();
        const x = { kind: "time", domain: [from, to], label: "" } as const;
        const area = layout({ x, y: { ...x, kind: "linear" }, y2: null }, 400, 250, THEMES.light);
        drawMarks(p, marks, area, 100, (kind) => kind.shape);
        const links = drawLinks(p, marks, area, 100);
        return [p.finish(100, 200, "t"), links];
    };
    expect(draw(0, 4)[0].match(/<path/g)).toHaveLength(4);
    expect(draw(2.5, 4)).toEqual([expect.not.stringContaining("Q"), 0]);
    expect(draw(1.5, 4)[1]).toBe(1);
    expect(draw(1.2, 1.4)).toEqual([expect.stringContaining("Q"), 1]);
});
