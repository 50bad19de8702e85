import { expect, test } from "vitest";
import { bits } from "../format";
import { THEMES } from "../theme";
import { drawAxes, layout, type AxisSpec } from "./axes";
import { SvgPainter } from "./painter";

/** The frame of a chart with this vertical axis, as SVG. */
function frame(y: AxisSpec): string {
    const axes = { x: { kind: "linear", domain: [0, 1], label: "" } as const, y, y2: null };
    const painter = new SvgPainter();
    drawAxes(painter, layout(axes, 800, 210, THEMES.light), axes, 0n);
    return painter.finish(800, 210, "axes");
}

test.each([
    [4.4e7, "40 Mbit/s"],
    [6.3e5, "600 kbit/s"],
])("rates up to %f keep their whole unit: %s", (most, label) => {
    expect(frame({ kind: "linear", domain: [0, most], label: "", format: bits })).toContain(`>${label}<`);
});

test("a name that is too long for its room is cut in the middle", () => {
    const name = "a-server-with-a-long-name:8443";
    const svg = frame({ kind: "linear", domain: [0, 1], label: "", ticks: [{ value: 0.5, label: name }] });
    expect(svg).not.toContain(name);
    expect(svg).toMatch(/>a-se….*8443</);
});

test("what an axis counts gives way to names that are cut", () => {
    const named = (label: string) =>
        frame({ kind: "linear", domain: [0, 1], label: "13 connections", ticks: [{ value: 0.5, label }] });
    expect(named("a-server-with-a-long-name:8443")).not.toContain("13 connections");
    expect(named("a:80")).toContain("13 connections");
});

test("a name that is cut at its end already is cut there again", () => {
    const ticks = [{ value: 0.5, label: "blk[178]; blk[1284]-blk[2xx]; b…" }];
    expect(frame({ kind: "linear", domain: [0, 1], label: "", ticks })).toMatch(/>blk\[178\];?…</);
});

/** Labels beneath a chart so wide: where each begins and ends, px. */
function beneath(x: AxisSpec, width: number): [number, number][] {
    const axes = { x, y: { kind: "linear", domain: [0, 1], label: "" } as const, y2: null };
    const painter = new SvgPainter();
    drawAxes(painter, layout(axes, width, 210, THEMES.light), axes, 0n);
    const texts = [...painter.finish(width, 210, "axes").matchAll(/<text x="([\d.]+)" y="180"[^>]*>([^<]+)</g)];
    return texts.map(([, at, text = ""]) => [Number(at) - text.length * 3.3, Number(at) + text.length * 3.3]);
}

test.each([
    ["rates on a phone", { kind: "log", domain: [8e5, 7e7], label: "", format: bits } as const, 300],
    ["nanoseconds", { kind: "time", domain: [0, 1e-8], label: "" } as const, 700],
])("no label covers the one before it: %s", (_, axis, width) => {
    const places = beneath(axis, width);
    expect(places.length).toBeGreaterThan(1);
    places.slice(1).forEach(([begin], at) => expect(begin).toBeGreaterThan(places[at]?.[1] ?? 0));
});
