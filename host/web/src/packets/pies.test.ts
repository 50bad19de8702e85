import { expect, test } from "vitest";

import { SvgPainter } from "../chart/painter";
import { THEMES } from "../theme";
import { drawPies, leastRoom, piesHeight, slice, words, type Pie } from "./pies";

const pie: Pie = { client: 1, network: 2, server: 1, title: "measured", uncertainty: null };

test("a quarter ends on the right, half at the bottom", () => {
    expect(slice(0, 0, 10, 0, 0.25)).toMatch(/^M0 0L0.00 -10.00A10 10 0 0 1 7.07 -7.07A10 10 0 0 1 10.00 -?0.00Z$/);
    expect(slice(0, 0, 10, 0, 1)).toContain("a10 10");
});

test("a part of nearly all goes around the pie, where its ends meet, too", () => {
    const nearly = slice(0, 0, 10, 0, 1 - 1e-6);
    expect(nearly).toMatch(/L-?0.00 -10.00A10 10 0 0 1 0.00 10.00A10 10 0 0 1 -?0.00 -10.00Z$/);
});

test("parts are told in shares and seconds, with what they may be off", () => {
    expect(words(pie, "network")).toBe("network 50 %: 2 s");
    expect(words({ ...pie, uncertainty: 0.001 }, "client")).toBe("client 25 %: 1 s ± 1 ms");
    // Never less than nothing.
    expect(words({ ...pie, uncertainty: 1.5 }, "client")).toBe("client 25 %: 1 s, at most 2.5 s");
});

test("less than nothing is not drawn as something", () => {
    const draw = (one: Pie) => {
        const p = new SvgPainter();
        drawPies(p, [one], 400, THEMES.light);
        return p.finish(400, 200, "pies");
    };
    expect(draw(pie).match(/<path/g)).toHaveLength(3);
    const wrong = draw({ ...pie, network: -1 });
    expect(wrong).not.toContain("<path");
    expect(wrong).toContain("less than nothing");
    const none = draw({ ...pie, client: 0, network: 0, server: 0 });
    expect(none).toContain("no time");
    expect(none).not.toContain("less than nothing");
});

test("where a page is too narrow for words beside a pie, they stand beneath", () => {
    const long = { ...pie, title: "from transactions", uncertainty: 0.199 };
    const width = leastRoom([long]);
    const places = (wide: number) => {
        const p = new SvgPainter();
        drawPies(p, [long, long], wide, THEMES.light);
        const text = p.finish(wide, 600, "pies");
        return [...text.matchAll(/<text x="([\d.]+)" y="([\d.]+)"[^>]*>(client|network|server)/g)].map(
            ([, x, y]) => [Number(x), Number(y)] as const,
        );
    };
    expect(piesHeight([long], width)).toBeGreaterThan(piesHeight([long], 900));
    for (const [x, y] of places(width)) {
        expect(x).toBeLessThan(30);
        expect(y).toBeLessThan(piesHeight([long, long], width));
    }
    expect(places(900).every(([x]) => x > 150)).toBe(true);
});
