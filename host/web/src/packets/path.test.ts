import { expect, test } from "vitest";

import { SvgPainter } from "../chart/painter";
import { THEMES } from "../theme";
import { drawPath, legWords, pathLeast } from "./path";

test("a direction of a leg in words, and what is not known", () => {
    const delay = { minSeconds: 0.001, medianSeconds: 0.002, p95Seconds: 0.003 };
    expect(legWords(delay, "2", "98")).toBe("2 ms (1 ms to 3 ms), lost 2 of 100");
    expect(legWords(undefined, undefined, undefined)).toBe("delay not known, lost 0 of 0");
});

test("all taps and both directions of all legs are drawn", () => {
    const p = new SvgPainter();
    const taps = ["a", "b", "c"].map((file) => ({ file, packets: "5", missedByCapture: file === "b" ? "3" : "0" }));
    const legs = [
        { from: "a", to: "b", lostForward: "1" },
        { from: "b", to: "c" },
    ];
    drawPath(p, taps, legs, 1000, THEMES.light);
    const text = p.finish(1000, 200, "path");
    expect(text.match(/→/g)).toHaveLength(2);
    expect(text.match(/←/g)).toHaveLength(2);
    expect(text.match(/missed/g)).toHaveLength(1);
});

test("a path is as wide as the words above its legs", () => {
    const leg = { from: "a", to: "b", lostForward: "1" };
    const one = pathLeast([leg]);
    const two = pathLeast([leg, leg]);
    expect(two - one).toBeGreaterThan(6 * "→ delay not known, lost 1 of 1".length);
    const p = new SvgPainter();
    drawPath(p, [{ file: "a" }, { file: "b" }, { file: "c" }], [leg, leg], two, THEMES.light);
    const places = [...p.finish(two, 200, "path").matchAll(/<text x="([\d.]+)"[^>]*>→/g)].map(([, x]) => Number(x));
    expect(places).toHaveLength(2);
    expect((places[1] ?? 0) - (places[0] ?? 0)).toBeGreaterThanOrEqual(two - one - 1);
});
