/** Marks of setups and transactions: as they come, and how they are found again. */
import { columns, of, type Columns } from "../api/client";
import type { Capture, Kind } from "../api/types";
import type { Area } from "../chart/axes";
import type { Look, Painter } from "../chart/painter";
import { count } from "../format";
import { capture, go, note, param, zoomTo } from "../state/store";
import { openConnection } from "../views/open";
import { message } from "./load";

/** By time. */
export interface Marks {
    count: number;
    times: ArrayLike<number>;
    values: ArrayLike<number>;
    mins: ArrayLike<number>;
    kinds: ArrayLike<number>;
    counts: ArrayLike<number>;
    losses: ArrayLike<number>;
    rows: ArrayLike<number>;
    names: readonly Kind[];
    /** Each mark is one row. */
    exact: boolean;
    /** Rows in the range, and those of them that have no value. */
    inRange: number;
    withoutValue: number;
    /** Values from and to; null: there are none. */
    extent: readonly [number, number] | null;
}

/** Cells that marks are asked for in: half as wide and half as tall as the marks of a large range. */
export const CELLS = { width: 400, height: 190 };

const numberOf = (data: Columns, name: string) => Number(data.metadata.get(name) ?? "0");

export function readMarks(data: Columns): Marks {
    const low = numberOf(data, "low");
    const high = numberOf(data, "high");
    return {
        count: data.rows,
        times: data.numbers("time"),
        values: data.numbers("value"),
        mins: data.numbers("min"),
        kinds: data.numbers("kind"),
        counts: data.numbers("count"),
        losses: data.numbers("losses"),
        rows: data.numbers("row"),
        names: JSON.parse(data.metadata.get("kinds") ?? "[]") as Kind[],
        exact: data.metadata.get("exact") === "true",
        inRange: numberOf(data, "rows"),
        withoutValue: numberOf(data, "without_value"),
        extent: data.rows > 0 && high > 0 ? [low, high] : null,
    };
}

/** The durations that the reader asked for; null: all. */
export function chosenValues(): [number, number] | null {
    const low = Number(param("low", "NaN"));
    const high = Number(param("high", "NaN"));
    return low > 0 && high > low ? [low, high] : null;
}

/** Zoom into a range of time and of durations. */
export function zoomBox([from, to]: [number, number], [low, high]: [number, number]): void {
    zoomTo(from, to, { low: low.toPrecision(6), high: high.toPrecision(6) });
}

/** The axis of the values: those chosen, or a little beyond those there are, and never empty. */
export function valueDomain(marks: Marks): [number, number] {
    const chosen = chosenValues();
    if (chosen !== null) return chosen;
    if (marks.extent === null) return [0.001, 1];
    const [low, high] = marks.extent;
    const least = low > 0 ? low : Math.min(1e-6, high / 10);
    return least < high ? [least / 1.25, high * 1.25] : [least / 3, high * 3];
}

/** Marks of kinds that are shown, in their order. */
export function shownMarks(marks: Marks, hidden: (name: string) => boolean): number[] {
    const seen = marks.names.map(({ name }) => !hidden(name));
    const shown: number[] = [];
    for (let index = 0; index < marks.count; index += 1) {
        if (seen[marks.kinds[index] as number]) shown.push(index);
    }
    return shown;
}

/** How many rows in the range have no mark, in words; null: none. `what`: their value. */
export function unmarked(
    { inRange, withoutValue }: Pick<Marks, "inRange" | "withoutValue">,
    what: string,
): string | null {
    if (withoutValue === 0) return null;
    return `Without a mark: ${count(withoutValue)} of ${count(inRange)}, whose ${what} is not known.`;
}

/** Draw marks, the last on top; `looks`: of each kind. */
export function paintMarks(
    painter: Painter,
    area: Area,
    marks: Marks,
    order: readonly number[],
    looks: readonly Look[],
): void {
    const xs = new Float64Array(order.length);
    const ys = new Float64Array(order.length);
    const kinds = new Uint8Array(order.length);
    for (let at = 0; at < order.length; at += 1) {
        const index = order[at] as number;
        xs[at] = area.x.to(marks.times[index] as number);
        ys[at] = area.y.to(marks.values[index] as number);
        kinds[at] = marks.kinds[index] as number;
    }
    painter.marks(xs, ys, kinds, looks);
}

/** Rows of one answer, at most. */
const MOST = 10_000;

/**
 * The id of a row's connection; null where no such row is. The interface knows rows by number, and gives them by time:
 * that of the row's begin, or, with an end, of something that happened in it.
 */
export async function connectionOf(
    table: "connections" | "transactions",
    row: number,
    from: number,
    end?: number,
): Promise<string | null> {
    const id = table === "connections" ? "id" : "connection_id";
    const until = end ?? from;
    const query = {
        from,
        // Neighbouring doubles: the range must hold the time itself.
        to: until + Math.max(2e-9, until * 2 ** -51),
        touch: end === undefined ? "begin" : "overlap",
        columns: `row,${id}`,
        limit: MOST,
    };
    for (let offset = 0, total = 1; offset < total; offset += MOST) {
        const found = await columns(of(capture.value as Capture, `/${table}`), { ...query, offset });
        total = numberOf(found, "total");
        const place = Array.from(found.numbers("row")).indexOf(row);
        if (place >= 0) return String(found.at(id, place));
    }
    return null;
}

/** Show the connection of a row, or say why not. */
export function showConnectionOf(...row: Parameters<typeof connectionOf>): void {
    connectionOf(...row).then(
        (id) => {
            if (id === null) note.value = "The connection behind it is not kept any more.";
            else openConnection(id);
        },
        (error: unknown) => (note.value = `The connection behind it: ${message(error)}`),
    );
}

/** Show the connection of a mark, or, of one that stands for many, its surroundings. */
export function openMark(
    table: "connections" | "transactions",
    marks: Marks,
    index: number,
    range: [number, number],
): void {
    const time = marks.times[index] as number;
    if ((marks.counts[index] as number) > 1) {
        const half = (range[1] - range[0]) / 40;
        go({ from: Math.max(0, time - half), to: time + half });
        return;
    }
    showConnectionOf(table, marks.rows[index] as number, time);
}
