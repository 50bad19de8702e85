import { expect, test } from "vitest";

import { layout } from "../chart/axes";
import { SvgPainter } from "../chart/painter";
import { THEMES } from "../theme";
import { axisOf, drawCeilings, rates, ROW, sentences, shareOf, type Ceilings } from "./ceilings";

/** 65 kB of window over 130 ms. */
const WINDOW: Ceilings = {
    measuredBitsPerSecond: 3.7e6,
    receiverWindowBitsPerSecond: 4e6,
    linkBitsPerSecond: 1e7,
    roundTripSeconds: 0.13,
    idealWindowBytes: 162_500,
    lightKilometres: 13_000,
};

const told = (of: Ceilings) => rates(of).map(({ label, told }) => [label, told]);
const lowest = (of: Ceilings) => rates(of).filter(({ isLowest }) => isLowest);

test("the lowest ceiling is the least of those that are known", () => {
    expect(lowest(WINDOW).map(({ limit }) => limit)).toEqual(["window"]);
    expect(lowest({ ...WINDOW, lossBitsPerSecond: 1e6 }).map(({ limit }) => limit)).toEqual(["loss"]);
    expect(lowest({ ...WINDOW, senderBitsPerSecond: 4e6 }).map(({ limit }) => limit)).toEqual(["window"]);
    // The measured rate is no ceiling.
    expect(lowest({ measuredBitsPerSecond: 1e6 })).toEqual([]);
});

test("what is not known is said, never 0; without a loss there is no ceiling of it", () => {
    expect(told(WINDOW)).toEqual([
        ["measured", "3.7 Mbit/s"],
        ["receiver's window", "4 Mbit/s"],
        ["sender's buffer", "not known"],
        ["loss (Mathis)", "none"],
        ["link", "10 Mbit/s"],
    ]);
    const nothing = rates({});
    expect(nothing.map(({ told }) => told)).toEqual(Array(5).fill("not known"));
    expect(nothing.map(({ rate }) => rate)).toEqual(Array(5).fill(null));
    // Without the round trip nothing but the link's can be told.
    expect(nothing.map(({ origin }) => origin === "the round trip is not known")).toEqual([
        true,
        true,
        true,
        true,
        false,
    ]);
});

test("what a ceiling is made of", () => {
    const origins = rates({ ...WINDOW, senderBitsPerSecond: 8e6 }).map(({ origin }) => origin);
    expect(origins[1]).toBe("its largest, 65 kB, in a round trip of 130 ms");
    expect(origins[2]).toBe("130 kB in flight while it was the limit, in a round trip of 130 ms");
    expect(origins[3]).toBe("no data were sent again");
});

test("share of a ceiling that is measured", () => {
    const [, window, sender] = rates(WINDOW);
    if (!window || !sender) throw new Error("no rows");
    expect(shareOf(3.7e6, window)).toBeCloseTo(0.925);
    expect(shareOf(undefined, window)).toBeNull();
    expect(shareOf(3.7e6, sender)).toBeNull();
    expect(shareOf(3.7e6, { ...window, rate: 0 })).toBeNull();
});

test("the lowest ceiling in words, and what would hold without it", () => {
    expect(sentences(WINDOW, "server")).toEqual([
        "The window of the client allows 4 Mbit/s over a round trip of 130 ms, least of all that is known; measured 3.7 Mbit/s, 92.5 % of it.",
        "Were it gone, the link would allow 10 Mbit/s.",
    ]);
    const { measuredBitsPerSecond, ...unmeasured } = WINDOW;
    expect(measuredBitsPerSecond).toBe(3.7e6);
    expect(sentences(unmeasured, "server")[0]).toContain("; the measured rate is not known.");
});

test("a rate far below the ceilings, and one above them", () => {
    const slow = sentences({ ...WINDOW, measuredBitsPerSecond: 1e6 }, "client").join(" ");
    expect(slow).toContain("The window of the server allows");
    expect(slow).toContain("measured 1 Mbit/s, 25 % of it: for most of the time something held it lower.");
    expect(slow).not.toContain("Were it gone");
    const link: Ceilings = { measuredBitsPerSecond: 1.1e6, linkBitsPerSecond: 1e6, roundTripSeconds: 0.1 };
    expect(sentences(link, "client")).toEqual([
        "The link allows 1 Mbit/s, and no other ceiling is known; measured 1.1 Mbit/s, which is more (what waits in the queue when the last packet passes is counted as passed).",
    ]);
    expect(sentences({ ...link, measuredBitsPerSecond: 5e6 }, "client")[0]).toContain(
        "measured 5 Mbit/s, which is more (the link may be faster than it seemed).",
    );
    const loss: Ceilings = { measuredBitsPerSecond: 4e6, lossBitsPerSecond: 2e6, roundTripSeconds: 0.02 };
    expect(sentences(loss, "server")[0]).toContain("which is more (the formula is that of long transfers).");
});

test("without a ceiling none is told", () => {
    expect(sentences({ measuredBitsPerSecond: 1e6 }, "client")).toEqual(["No ceiling is known; measured 1 Mbit/s."]);
    expect(sentences({}, "client")).toEqual(["No ceiling is known; nor is the rate."]);
});

test("what held a rate far below the ceilings is told, if it is known", () => {
    const limits = { application: 1, receiverWindow: 14, congestion: 3 };
    const slow = { ...WINDOW, measuredBitsPerSecond: 1e6 };
    expect(sentences(slow, "client", limits)[1]).toBe("What limited it longest: receiver's window, 14 s of 18 s.");
    expect(sentences(slow, "client", {})).toHaveLength(1);
    expect(sentences(slow, "client")).toHaveLength(1);
    // A window that a queue fills is no limit of its own.
    expect(sentences(WINDOW, "client", limits).join(" ")).not.toContain("longest");
});

test("the axis holds every rate, with room for words above", () => {
    const [low, high] = axisOf(rates(WINDOW)) as [number, number];
    expect(low).toBe(1e6);
    expect(high).toBeGreaterThan(1.5e7);
    // A bar of the least rate has a length.
    expect(axisOf(rates({ linkBitsPerSecond: 1e6 }))?.[0]).toBe(1e5);
    expect(axisOf(rates({}))).toBeNull();
    expect(axisOf(rates({ receiverWindowBitsPerSecond: 0, roundTripSeconds: 1 }))).toBeNull();
});

function draw(of: Ceilings, width: number): string {
    const rows = rates(of);
    const axes = {
        x: { kind: "log" as const, domain: axisOf(rows) ?? ([1, 10] as const), label: "rate" },
        y: { kind: "linear" as const, domain: [rows.length, 0] as const, label: "" },
        y2: null,
    };
    const p = new SvgPainter();
    drawCeilings(p, rows, layout(axes, width, rows.length * ROW + 52, THEMES.light, 140), THEMES.light);
    return p.finish(width, 200, "ceilings");
}

test("a bar for each rate that is known; the measured one and the lowest ceiling are filled", () => {
    const svg = draw(WINDOW, 900);
    expect(svg.match(/<rect/g)).toHaveLength(3);
    const { text, purple } = THEMES.light;
    expect([...svg.matchAll(/<rect [^>]*fill="(\S+)"/g)].map(([, fill]) => fill)).toEqual([text, purple, "none"]);
    for (const words of ["3.7 Mbit/s", "4 Mbit/s, lowest", "not known", "none", "10 Mbit/s"]) {
        expect(svg).toContain(`>${words}</text>`);
    }
    expect(svg).toContain("stroke-dasharray");
    expect(draw({ linkBitsPerSecond: 1e6 }, 900)).not.toContain("stroke-dasharray");
});

test("a rate of 0 is no unknown one, and has no bar that could be seen", () => {
    const svg = draw({ ...WINDOW, receiverWindowBitsPerSecond: 0 }, 900);
    expect(svg).toContain(">0 bit/s, lowest</text>");
    expect(svg).not.toMatch(/NaN|Infinity/);
});

test("where there is no room beside a bar, its rate stands within it", () => {
    const svg = draw(WINDOW, 330);
    expect(svg).toMatch(/text-anchor="end"[^>]*>10 Mbit\/s</);
    expect(svg).toContain(">4 Mbit/s</text>");
});
