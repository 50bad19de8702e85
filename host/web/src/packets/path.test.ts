import { expect, test } from "vitest";

import { SvgPainter } from "../chart/painter";
import { THEMES } from "../theme";
import { drawPath, legWords } from "./path";

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
