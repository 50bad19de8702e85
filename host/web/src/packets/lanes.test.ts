import { expect, test } from "vitest";

import { laneHeight, line, share } from "./lanes";

test("few lanes are tall, many are low, and none vanishes", () => {
    expect(laneHeight(0)).toBe(laneHeight(1));
    for (const count of [1, 5, 40, 200, 500]) {
        expect(laneHeight(count)).toBeGreaterThanOrEqual(3);
        expect(laneHeight(count)).toBeLessThanOrEqual(150);
    }
    expect(laneHeight(40) * 40).toBe(560);
});

test("the server stands above the client, within the lane", () => {
    expect(line(0, 100, true)).toBeLessThan(line(0, 100, false));
    expect(line(3, 100, true)).toBeGreaterThan(300);
    expect(line(3, 100, false)).toBeLessThan(400);
});

test("a bar without payload shows, and one byte is not taken for a full segment", () => {
    expect(share(0)).toBeGreaterThan(0.1);
    expect(share(1)).toBeLessThan(share(500));
    expect(share(9000)).toBe(1);
});
