import { expect, test } from "vitest";
import type { Capture } from "../api/types";
import { captures } from "../state/store";
import { reach, timeAxis } from "./ChartFrame";
import { ticksOf } from "./axes";

test("marks reach beside the plot where what is kept begins and ends, and only there", () => {
    expect(reach([0, 5], [0, 5])).toEqual([6, 6]);
    expect(reach([1, 5], [0, 5])).toEqual([0, 6]);
    expect(reach([1, 5], [1, 5])).toEqual([6, 6]);
    expect(reach([0, 4], [0, 5])).toEqual([6, 0]);
});

test("an empty capture has no time of day, one of a single instant has", () => {
    const capture = { id: "1", state: "READY", start: "1970-01-01T00:00:00Z", seconds: 0, packets: "0" };
    const shown = (packets: string) => {
        captures.value = [{ ...capture, packets } as Capture];
        const axis = timeAxis();
        return [axis.label, ticksOf(axis, 5, 0n).length > 0];
    };
    expect(shown("0")).toEqual(["no packets, no time", false]);
    expect(shown("1")).toEqual(["time of day (UTC)", true]);
});
