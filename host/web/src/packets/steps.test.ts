import { expect, test } from "vitest";

import { band, extent, stepLine } from "./steps";

const f = (...values: number[]): Float64Array => Float64Array.from(values);

test("a value holds until the next one, and over columns that tell nothing", () => {
    expect(stepLine(f(0, 1, 2, 3), f(5, NaN, 7, 7), 9)).toEqual([
        [0, 5],
        [2, 5],
        [2, 7],
        [9, 7],
    ]);
    expect(stepLine(f(0, 1), f(NaN, NaN), 9)).toEqual([]);
});

test("a band is closed and has both sides", () => {
    const points = band({ time: f(0, 1), low: f(1, 2), high: f(3, 4) }, 2);
    expect(points[0]).toEqual([0, 3]);
    expect(points.at(-1)).toEqual([0, 1]);
    expect(Math.max(...points.map(([, value]) => value))).toBe(4);
});

test("the extent knows what held when the range began", () => {
    const steps = { time: f(0, 1, 2, 3), low: f(10, NaN, 4, 99), high: f(12, NaN, 5, 99) };
    expect(extent(steps, 1.5, 2.5)).toEqual([4, 12]);
    expect(extent(steps, 0.5, 1.5)).toEqual([10, 12]);
    expect(extent(steps, -2, -1)).toBeNull();
});
