import { expect, test } from "vitest";
import { pageWithin } from "./Pages";

test.each([
    [0, 0, 0],
    [0, 9, 0],
    [300, 9, 0],
    [100, 101, 100],
    [100, 100, 0],
    [5000, 250, 200],
])("offset %i of %i rows, 100 on a page: %i", (offset, total, page) => {
    expect(pageWithin(offset, total, 100)).toBe(page);
});
