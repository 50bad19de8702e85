/** The capture over time, in as many columns as a chart has. */
import { columns, of, type Columns } from "../api/client";
import type { Capture } from "../api/types";
import { ranges } from "../chart/bands";
import { asked, capture, param, range } from "../state/store";
import { useLoad, type Loaded } from "./load";

export interface Timeline {
    from: number;
    to: number;
    /** Length of a column, s. */
    step: number;
    times: ArrayLike<number>;
    columns: Columns;
    /** Where more than usual was lost. */
    lossy: [number, number][];
}

export const WIDTH = 800;

/** `names`: columns wanted beside the time and the lossy bands. */
export function useTimeline(names: readonly string[]): Loaded<Timeline> {
    const shown = capture.value as Capture;
    const [from, to] = range.value;
    const query = {
        ...asked.value,
        width: WIDTH,
        columns: ["time", "lossy", ...names].join(","),
        filter: param("filter"),
    };
    return useLoad(`timeline ${shown.id} ${JSON.stringify(query)}`, async (signal) => {
        const data = await columns(of(shown, "/timeline"), query, signal);
        const times = data.numbers("time");
        const step = times.length > 1 ? (times[1] as number) - (times[0] as number) : to - from;
        return { from, to, step, times, columns: data, lossy: ranges(times, data.numbers("lossy"), to) };
    });
}

/** Index of the column that holds a time. */
export function columnAt(times: ArrayLike<number>, at: number): number {
    let low = 0;
    let high = times.length - 1;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if ((times[middle] as number) <= at) low = middle;
        else high = middle - 1;
    }
    return low;
}
