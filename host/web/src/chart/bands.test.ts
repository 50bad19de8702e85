import { expect, test } from "vitest";
import { ranges } from "./bands";

test("columns that follow one another are one band", () => {
    expect(ranges([0, 1, 2, 3, 4], [1, 1, 0, 0, 1], 5)).toEqual([
        [0, 2],
        [4, 5],
    ]);
    expect(ranges([0, 1], [0, 0], 2)).toEqual([]);
});
