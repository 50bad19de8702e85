import { expect, test } from "vitest";

import { layout } from "../chart/axes";
import { SvgPainter } from "../chart/painter";
import { THEMES } from "../theme";
import { drawWaits, offsetOf, placesOf, WHYS, type Wait } from "./waits";

const wait: Wait = {
    time: 1,
    end: 2,
    host: "web",
    why: WHYS[1],
    seconds: 1,
    count: 1,
    client: "user:1",
    server: "web:80",
    connection: "1",
    behind: null,
    callConnection: null,
    call: NaN,
    calls: 0,
    forConnection: null,
    forTime: NaN,
};

test("what a host waits for at the same time stands side by side, and a free place is taken again", () => {
    const all = [wait, { ...wait, time: 1.5, end: 3 }, { ...wait, time: 2, end: 4 }, { ...wait, host: "db" }];
    expect([...placesOf(all)]).toEqual([0, 1, 0, 0]);
    expect([0, 1, 2, 3].map(offsetOf)).toEqual([0, -5, 5, -10]);
    expect(Math.max(...placesOf(Array.from({ length: 20 }, () => wait)))).toBe(5);
});

test("a wait is a bar on its host's line; the network's is a triangle", () => {
    const draw = (one: Wait, from = 0) => {
        const p = new SvgPainter();
        const x = { kind: "time", domain: [from, 10], label: "" } as const;
        const area = layout({ x, y: { kind: "linear", domain: [2, 0], label: "" }, y2: null }, 400, 200, THEMES.light);
        drawWaits(p, [one], placesOf([one]), new Map([["web", 1]]), area);
        return p.finish(400, 200, "waits");
    };
    expect(draw(wait)).toContain(THEMES.light.orange);
    expect(draw({ ...wait, why: WHYS[5] })).toMatch(new RegExp(`V[0-9.]+L.*${THEMES.light.red}`));
    expect(draw(wait, 5)).not.toContain(THEMES.light.orange);
    expect(draw({ ...wait, host: "unknown" })).not.toContain(THEMES.light.orange);
});
