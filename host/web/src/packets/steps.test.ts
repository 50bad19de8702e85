import { expect, test } from "vitest";

import { extent, largestSoFar, stepLine, type Steps } from "./steps";

const f = (...values: number[]): Float64Array => Float64Array.from(values);
const exact = (time: Float64Array, value: Float64Array): Steps => ({ time, low: value, high: value, last: value });

test("a value holds until the next one, and over columns that tell nothing", () => {
    expect(stepLine(exact(f(0, 1, 2, 3), f(5, NaN, 7, 7)), 0, 9)).toEqual([
        [0, 5],
        [2, 5],
        [2, 7],
        [3, 7],
        [9, 7],
    ]);
    expect(stepLine(exact(f(0, 1), f(NaN, NaN)), 0, 9)).toEqual([]);
});

test("what held before the range is known in it", () => {
    expect(stepLine(exact(f(0, 1, 5), f(3, 4, 9)), 2, 6)).toEqual([
        [2, 4],
        [5, 4],
        [5, 9],
        [6, 9],
    ]);
    expect(stepLine(exact(f(0, 1, 5), f(3, 4, 9)), 2, 3)).toEqual([
        [2, 4],
        [3, 4],
    ]);
});

test("a column of several values shows them all, and goes on with the last", () => {
    const points = stepLine({ time: f(1), low: f(2), high: f(8), last: f(5) }, 0, 3);
    expect(points).toEqual([
        [1, 2],
        [1, 8],
        [1, 5],
        [3, 5],
    ]);
});

test("the extent knows what held when the range began", () => {
    const steps = { time: f(0, 1, 2, 3), low: f(10, NaN, 4, 99), high: f(12, NaN, 5, 99), last: f(11, NaN, 5, 99) };
    expect(extent(steps, 1.5, 2.5)).toEqual([4, 11]);
    expect(extent(steps, 0.5, 1.5)).toEqual([11, 11]);
    expect(extent(steps, -2, -1)).toBeNull();
});

test("the largest so far", () => {
    expect([...largestSoFar(f(NaN, 3, NaN, 2, 7))]).toEqual([NaN, 3, 3, 3, 7]);
});
