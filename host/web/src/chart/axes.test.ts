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
