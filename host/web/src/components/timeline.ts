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

/**
 * Counts by column as rates, over as many columns as make up a second at least: of what is rare, one in a column of
 * milliseconds would be hundreds per second. What is shown may be shorter than a second: what happened in it is in one.
 */
export function perSecond(counts: ArrayLike<number>, step: number): Float64Array {
    const columns = counts.length;
    const least = Math.ceil(1 / step - 1e-6);
    const groups = Math.max(1, Math.floor(columns / least));
    const rates = new Float64Array(columns);
    for (let group = 0; group < groups; group += 1) {
        const from = Math.round((group * columns) / groups);
        const to = Math.round(((group + 1) * columns) / groups);
        let sum = 0;
        for (let at = from; at < to; at += 1) sum += counts[at] as number;
        rates.fill(sum / Math.max(1, (to - from) * step), from, to);
    }
    return rates;
}
