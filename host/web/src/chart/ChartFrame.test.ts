import { expect, test } from "vitest";
import { reach } from "./ChartFrame";

test("marks reach beside the plot where the capture begins and ends, and only there", () => {
    expect(reach([0, 5], 5)).toEqual([6, 6]);
    expect(reach([1, 5], 5)).toEqual([0, 6]);
    expect(reach([0, 4], 5)).toEqual([6, 0]);
});
