/**
 * Values that hold until the next one, and that were several within a column of pixels: drawn as a line that stands
 * upright from the smallest to the largest where there were several, and is level at the last of them after that.
 */

/** Columns of equal length; NaN where a column tells nothing, so that what was before holds. */
export interface Steps {
    /** Seconds, never falling. */
    readonly time: Float64Array;
    readonly low: Float64Array;
    readonly high: Float64Array;
    /** What holds until the next column. */
    readonly last: Float64Array;
}

/** A corner of a line: seconds and value. */
export type Point = readonly [time: number, value: number];

/** The line from what held at `from`, or from the first column that tells something, to `to`. */
export function stepLine(steps: Steps, from: number, to: number): Point[] {
    const points: Point[] = [];
    let held = NaN;
    for (let at = 0; at < steps.time.length; at += 1) {
        const low = steps.low[at] as number;
        if (Number.isNaN(low)) continue;
        const time = steps.time[at] as number;
        if (time > to) break;
        const last = steps.last[at] as number;
        const high = steps.high[at] as number;
        const begin = held;
        held = last;
        if (time < from) continue;
        if (!Number.isNaN(begin)) {
            if (points.length === 0) points.push([from, begin]);
            points.push([time, begin]);
        }
        if (low !== last) points.push([time, low]);
        if (high !== last) points.push([time, high]);
        if (last !== begin || low !== high) points.push([time, last]);
    }
    if (!Number.isNaN(held)) {
        if (points.length === 0) points.push([from, held]);
        points.push([to, held]);
    }
    return points;
}

/** Smallest and largest value from `from` to `to`, what holds when they begin included; null if there is none. */
export function extent(steps: Steps, from: number, to: number): [low: number, high: number] | null {
    let low = Infinity;
    let high = -Infinity;
    let held = NaN;
    for (let at = 0; at < steps.time.length; at += 1) {
        const bottom = steps.low[at] as number;
        if (Number.isNaN(bottom)) continue;
        const time = steps.time[at] as number;
        if (time > to) break;
        if (time < from) held = steps.last[at] as number;
        else {
            low = Math.min(low, bottom);
            high = Math.max(high, steps.high[at] as number);
        }
    }
    if (!Number.isNaN(held)) {
        low = Math.min(low, held);
        high = Math.max(high, held);
    }
    return high >= low ? [low, high] : null;
}

/** The largest so far, NaN before the first. */
export function largestSoFar(values: Float64Array): Float64Array {
    let most = NaN;
    return values.map((value) => {
        if (!Number.isNaN(value) && !(value <= most)) most = value;
        return most;
    });
}
