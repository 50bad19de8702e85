/**
 * Values that hold until the next one, and that were several within a column of pixels: drawn as the band between
 * their smallest and their largest, which is a plain step line where each column holds one.
 */

/** Columns of equal length; NaN where a column tells nothing, so that what was before holds. */
export interface Steps {
    /** Seconds, never falling. */
    readonly time: Float64Array;
    readonly low: Float64Array;
    readonly high: Float64Array;
}

/** A corner of a line: seconds and value. */
export type Point = readonly [time: number, value: number];

/** One side of the band as a step line; from the first column that tells something on, to `end`. */
export function stepLine(time: Float64Array, value: Float64Array, end: number): Point[] {
    const points: Point[] = [];
    let last = NaN;
    for (let at = 0; at < time.length; at += 1) {
        const next = value[at] as number;
        if (Number.isNaN(next) || next === last) continue;
        const when = time[at] as number;
        if (!Number.isNaN(last)) points.push([when, last]);
        points.push([when, next]);
        last = next;
    }
    if (!Number.isNaN(last)) points.push([end, last]);
    return points;
}

/** The band as a closed line: its upper side there, its lower side back. */
export function band(steps: Steps, end: number): Point[] {
    return [...stepLine(steps.time, steps.high, end), ...stepLine(steps.time, steps.low, end).reverse()];
}

/** Smallest and largest value of columns that touch `from` to `to`, what holds when they begin included; null if there is none. */
export function extent(steps: Steps, from: number, to: number): [low: number, high: number] | null {
    let low = Infinity;
    let high = -Infinity;
    let held: Point | null = null;
    for (let at = 0; at < steps.time.length; at += 1) {
        const bottom = steps.low[at] as number;
        const top = steps.high[at] as number;
        if (Number.isNaN(bottom)) continue;
        const time = steps.time[at] as number;
        if (time > to) break;
        if (time < from) held = [bottom, top];
        else {
            low = Math.min(low, bottom);
            high = Math.max(high, top);
        }
    }
    if (held !== null) {
        low = Math.min(low, held[0]);
        high = Math.max(high, held[1]);
    }
    return high >= low ? [low, high] : null;
}
