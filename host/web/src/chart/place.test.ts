import { expect, test } from "vitest";
import { placeOf, spoken } from "./place";

const marks = [3, 10, 10, 10, 40].map((x, index) => ({ x, title: "done", lines: [["client", `c${index}`]] as const }));
const at = (index: number) => marks[index] as (typeof marks)[number];
const text = (index: number) => spoken(at(index));

test("a mark is found again where it is now, among others at its place", () => {
    marks.forEach(({ x }, index) => expect(placeOf(marks.length, at, x + 0.1, text(index))).toBe(index));
});

test("of a mark that is no longer drawn, it is known how many lie before it", () => {
    expect(placeOf(marks.length, at, 20, "gone")).toBe(-1 - 4);
    expect(placeOf(marks.length, at, 10, "gone")).toBe(-1 - 1);
    expect(placeOf(marks.length, at, 99, text(4))).toBe(-1 - 5);
    expect(placeOf(0, at, 10, "gone")).toBe(-1);
});
