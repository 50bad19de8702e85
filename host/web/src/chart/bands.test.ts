import { expect, test } from "vitest";
import { ranges, topOf } from "./bands";

test("columns that follow one another are one band", () => {
    expect(ranges([0, 1, 2, 3, 4], [1, 1, 0, 0, 1], 5)).toEqual([
        [0, 2],
        [4, 5],
    ]);
    expect(ranges([0, 1], [0, 0], 2)).toEqual([]);
});

test("the largest value is drawn beneath the bars of the phases and their names", () => {
    const tall = 158;
    const beneath = (phases: number) => tall * (1 - 2 / topOf(2, tall, phases));
    expect(beneath(1)).toBeCloseTo(20);
    expect(beneath(0)).toBeLessThan(10);
    expect(topOf(2, 10, 1)).toBe(4);
});
