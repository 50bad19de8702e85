/** What the charts of a connection have in common: lines, bars and marks in the coordinates of two scales. */
import type { Painter } from "../chart/painter";
import type { Scale } from "../chart/scale";
import type { Colors } from "../theme";
import type { Mark, Sequence } from "./sequence";
import { stepLine, type Point, type Steps } from "./steps";

export interface Axes {
    readonly x: Scale;
    readonly y: Scale;
}

function coordinates(points: readonly Point[], { x, y }: Axes): [Float64Array, Float64Array] {
    return [Float64Array.from(points, ([time]) => x.to(time)), Float64Array.from(points, ([, value]) => y.to(value))];
}

/** A value over time. */
function drawSteps(p: Painter, steps: Steps, axes: Axes, color: string, dash?: readonly number[]): void {
    const points = stepLine(steps, ...axes.x.domain);
    p.line(...coordinates(points, axes), { color, width: 1.4, ...(dash ? { dash } : {}) });
}

/** Data of each row as a bar from its first to its last byte. */
function drawData(p: Painter, of: Sequence, { x, y }: Axes, color: string): void {
    const [from, to] = x.domain;
    const xs: number[] = [];
    const ys: number[] = [];
    const ticks: number[] = [];
    for (let at = 0; at < of.time.length; at += 1) {
        const time = of.time[at] as number;
        const low = of.sent.low[at] as number;
        if (time < from || time > to || Number.isNaN(low)) continue;
        const px = x.to(time);
        const top = y.to(of.sent.high[at] as number);
        const bottom = Math.max(y.to(low), top + 1.5);
        xs.push(px, px, NaN);
        ys.push(bottom, top, NaN);
        // tcptrace's arrow heads, where a segment is tall enough to have them.
        if (of.exact && bottom - top > 9) ticks.push(px, top, px, bottom);
    }
    p.line(xs, ys, { color, width: 2 });
    const tx: number[] = [];
    const ty: number[] = [];
    for (let at = 0; at < ticks.length; at += 2) {
        const [px, py] = [ticks[at] as number, ticks[at + 1] as number];
        tx.push(px - 3, px + 3, NaN);
        ty.push(py, py, NaN);
    }
    p.line(tx, ty, { color, width: 1 });
}

/** The whole time-sequence graph but its axes. */
export function drawSequence(p: Painter, of: Sequence, marks: readonly Mark[], axes: Axes, c: Colors): void {
    drawSteps(p, of.edge, axes, c.purple, [5, 3]);
    drawSteps(p, of.acknowledged, axes, c.green);
    drawData(p, of, axes, c.text);
    const { x, y } = axes;
    const [from, to] = x.domain;
    for (const mark of marks) {
        if (mark.time < from || mark.time > to) continue;
        const px = x.to(mark.time);
        const [top, bottom] = [y.to(mark.high), Math.max(y.to(mark.low), y.to(mark.high) + 3)];
        if (mark.what === "again") {
            p.rect(px - 2, top, 4, bottom - top, c.red);
            if (bottom - top < 12) p.mark("ring", px, (top + bottom) / 2, 9, c.red);
        } else {
            const color = mark.what === "dsack" ? c.orange : c.blue;
            p.rect(px - 1, top, 2, bottom - top, color);
            p.line([px - 3, px + 3], [top, top], { color });
            p.line([px - 3, px + 3], [bottom, bottom], { color });
        }
    }
}

/** Payload under way against the window, with the window that would fill the path. */
export function drawFlight(p: Painter, of: Sequence, axes: Axes, c: Colors): void {
    drawSteps(p, of.window, axes, c.purple, [5, 3]);
    drawSteps(p, of.inFlight, axes, c.blue);
    if (of.ideal !== null) {
        const y = axes.y.to(of.ideal);
        const [from, to] = axes.x.domain;
        p.line([axes.x.to(from), axes.x.to(to)], [y, y], { color: c.orange, width: 1.4, dash: [2, 3] });
    }
}
