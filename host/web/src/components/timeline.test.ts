import { expect, test } from "vitest";
import { perSecond } from "./timeline";

test("rates are over a second at least", () => {
    const counts = [0, 1, 0, 0, 2, 0, 0, 0, 0, 1];
    expect([...perSecond(counts, 0.25)]).toEqual([2.4, 2.4, 2.4, 2.4, 2.4, 0.8, 0.8, 0.8, 0.8, 0.8]);
    expect([...perSecond([1, 0, 4], 2)]).toEqual([0.5, 0, 2]);
    expect([...perSecond([1, 0, 0, 2, 3, 0], 0.6)].map((rate) => rate * 1.2)).toEqual([1, 1, 2, 2, 3, 3]);
    // All that is shown is shorter.
    expect([...perSecond([0, 1], 1e-9)]).toEqual([1, 1]);
    expect([...perSecond([1], 1e-6)]).toEqual([1]);
    expect([...perSecond([], 1)]).toEqual([]);
});

test("no rate is told where a count is not known", () => {
    expect([...perSecond([NaN, 1, 1, 1], 0.5)]).toEqual([NaN, NaN, 2, 2]);
});
