/** What the charts of a connection have in common: bands, bars and marks in the coordinates of two scales. */
import type { Painter } from "../chart/painter";
import type { Scale } from "../chart/scale";
import type { Colors } from "../theme";
import type { Mark, Sequence } from "./sequence";
import { band, stepLine, type Point, type Steps } from "./steps";

export interface Axes {
    readonly x: Scale;
    readonly y: Scale;
}

function coordinates(points: readonly Point[], { x, y }: Axes): [Float64Array, Float64Array] {
    return [Float64Array.from(points, ([time]) => x.to(time)), Float64Array.from(points, ([, value]) => y.to(value))];
}

/** Rows with a time from `from` to `to`, and one on either side, so that lines reach the edges. */
export function cut(steps: Steps, from: number, to: number): Steps {
    let begin = 0;
    while (begin < steps.time.length && (steps.time[begin] as number) < from) begin += 1;
    // What held before: the last row that told something.
    let before = begin - 1;
    while (before >= 0 && Number.isNaN(steps.low[before] as number)) before -= 1;
    let end = begin;
    while (end < steps.time.length && (steps.time[end] as number) <= to) end += 1;
    const pick = (column: Float64Array): Float64Array =>
        before >= 0
            ? Float64Array.from([column[before] as number, ...column.subarray(begin, end)])
            : column.subarray(begin, end);
    return { time: pick(steps.time), low: pick(steps.low), high: pick(steps.high) };
}

/** A value over time: the band between its smallest and largest, with its outline. */
export function drawBand(p: Painter, all: Steps, axes: Axes, color: string, dash?: readonly number[]): void {
    const [from, to] = axes.x.domain;
    const steps = cut(all, from, to);
    const area = band(steps, to);
    if (area.length === 0) return;
    const [xs, ys] = coordinates(area, axes);
    p.area(xs, ys, `${color}30`);
    for (const side of [steps.high, steps.low]) {
        p.line(...coordinates(stepLine(steps.time, side, to), axes), { color, width: 1.4, ...(dash ? { dash } : {}) });
        // Where each row holds one value, both sides are one line.
        if (steps.low.every((value, at) => value === steps.high[at] || Number.isNaN(value))) break;
    }
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
    drawBand(p, of.edge, axes, c.purple, [5, 3]);
    drawBand(p, of.acknowledged, axes, c.green);
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
    drawBand(p, of.window, axes, c.purple, [5, 3]);
    drawBand(p, of.inFlight, axes, c.blue);
    if (of.ideal !== null) {
        const y = axes.y.to(of.ideal);
        const [from, to] = axes.x.domain;
        p.line([axes.x.to(from), axes.x.to(to)], [y, y], { color: c.orange, width: 1.4, dash: [2, 3] });
    }
}
