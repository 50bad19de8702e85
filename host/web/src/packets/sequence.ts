/**
 * The time-sequence graph of one direction, as tcptrace draws it: data as bars from the first to the last byte sent, the
 * line of what was acknowledged below, the line of what the receiver's window allowed above, what was sent again and
 * what was acknowledged selectively as marks. And payload under way against the window.
 */
import type { Columns } from "../api/client";
import { kindsOf } from "./kinds";
import { firstFrom } from "./marks";
import { extent, largestSoFar, type Steps } from "./steps";

/** What `/sequence` answers: a row for each column of pixels, or for each packet. Numbers are relative to the first. */
export interface Sequence {
    readonly time: Float64Array;
    readonly sent: Steps;
    readonly acknowledged: Steps;
    /** Acknowledgment plus window: how far the sender may go. */
    readonly edge: Steps;
    readonly inFlight: Steps;
    readonly window: Steps;
    /** Data segments, repeats and ACKs with SACK of each row. */
    readonly packets: ArrayLike<number>;
    readonly retransmitted: ArrayLike<number>;
    readonly sacks: ArrayLike<number>;
    /** Payload, repeats included. */
    readonly bytes: ArrayLike<number>;
    /** Who sent these data. */
    readonly side: "client" | "server";
    /** Window that would fill the path, bytes; null when it is not known. */
    readonly ideal: number | null;
    /** Each row is one packet. */
    readonly exact: boolean;
}

export function readSequence(answer: Columns): Sequence {
    const column = (name: string): Float64Array => Float64Array.from(answer.numbers(name));
    const time = column("time");
    const [sent, acknowledged, edge] = ["seq", "ack", "edge"].map((name) => {
        const high = column(`${name}_high`);
        // What was sent, acknowledged and allowed only grows, but for repeats.
        return { time, low: column(`${name}_low`), high, last: largestSoFar(high) };
    }) as [Steps, Steps, Steps];
    /** What holds after a column is the difference of what two others reached in it; `high` where one is not known yet. */
    const difference = (low: string, high: string, above: Steps, below: Steps): Steps => {
        const [least, most] = [column(low), column(high)];
        const last = most.map((value, at) => {
            const rest = (above.last[at] as number) - (below.last[at] as number);
            // Never a value that was not there: what was sent before the range is not known.
            return Number.isNaN(rest) ? value : Math.min(value, Math.max(least[at] as number, rest));
        });
        return { time, low: least, high: most, last };
    };
    const ideal = Number(answer.metadata.get("ideal_window_bytes") ?? NaN);
    return {
        time,
        sent,
        acknowledged,
        edge,
        inFlight: difference("in_flight_min", "in_flight_max", sent, acknowledged),
        window: difference("window_min", "window_max", edge, acknowledged),
        packets: answer.numbers("packets"),
        retransmitted: answer.numbers("retransmitted"),
        sacks: answer.numbers("sacks"),
        bytes: answer.numbers("bytes"),
        side: answer.metadata.get("side") === "client" ? "client" : "server",
        ideal: Number.isFinite(ideal) ? ideal : null,
        exact: answer.metadata.get("exact") === "true",
    };
}

/** A repeat or a range that was acknowledged selectively. */
export interface Mark {
    readonly packet: number;
    readonly time: number;
    readonly low: number;
    readonly high: number;
    readonly what: "again" | "sack" | "dsack";
}

/** Repeats of `side` and SACKs of its peer, from rows of `/packets`. */
export function readMarks(answer: Columns, side: "client" | "server"): Mark[] {
    const kinds = kindsOf(answer);
    const marks: Mark[] = [];
    const kind = answer.numbers("kind");
    const time = answer.numbers("time");
    const packet = answer.numbers("packet");
    for (let row = 0; row < answer.rows; row += 1) {
        const name = kinds[kind[row] as number] ?? "";
        const own = (answer.at("server", row) === true) === (side === "server");
        const place = { packet: packet[row] as number, time: time[row] as number };
        if (own && name === "RETRANSMISSION") {
            const low = Number(answer.at("seq_relative", row));
            marks.push({ ...place, low, high: low + Number(answer.at("length", row)), what: "again" });
        }
        const edges = own ? null : answer.at("sack", row);
        if (typeof edges === "string") {
            edges.split(" ").forEach((block, at) => {
                const [low = NaN, high = NaN] = block.split("-").map(Number);
                // The first block tells what came twice (RFC 2883 4).
                marks.push({ ...place, low, high, what: name === "DSACK" && at === 0 ? "dsack" : "sack" });
            });
        }
    }
    return marks;
}

/** The values that the graph must show between two times: of all lines, but of the window only what is near the data. */
export function valuesBetween(of: Sequence, from: number, to: number): [low: number, high: number] {
    const found = [of.sent, of.acknowledged].map((steps) => extent(steps, from, to)).filter((one) => one !== null);
    if (found.length === 0) return [0, 1];
    const low = Math.min(...found.map((one) => one[0]));
    const high = Math.max(...found.map((one) => one[1]));
    const span = Math.max(high - low, 1);
    const edge = extent(of.edge, from, to)?.[1] ?? high;
    // A window far above would press the data flat; then it is told beside the picture.
    return [low - span * 0.03, edge <= high + span ? edge + span * 0.05 : high + span * 0.12];
}

/** The row nearest to a time; -1 without any. */
export function rowAt(of: Sequence, time: number): number {
    if (of.time.length === 0) return -1;
    const after = firstFrom(of.time, time);
    if (after === 0) return 0;
    const before = after - 1;
    const nearer = time - (of.time[before] as number) <= (of.time[after] ?? Infinity) - time;
    return nearer ? before : after;
}

/** Rows in a range that tell something of a value. */
export function rowsWithin(of: Sequence, steps: Steps, from: number, to: number): number[] {
    const rows: number[] = [];
    for (let row = firstFrom(of.time, from); row < of.time.length && (of.time[row] as number) < to; row += 1) {
        if (!Number.isNaN(steps.low[row] as number)) rows.push(row);
    }
    return rows;
}

/** How high the picture of what is in flight reaches, and whether the window is above it. */
export function flightTop(of: Sequence, from: number, to: number): { value: number; cut: boolean } {
    const flight = extent(of.inFlight, from, to)?.[1] ?? 0;
    const window = extent(of.window, from, to)?.[1] ?? 0;
    const needed = Math.max(flight, of.ideal ?? 0, 1);
    // A window many times as large would press the flight flat.
    const cut = window > needed * 6;
    return { value: Math.max(needed * 1.15, cut ? 0 : window * 1.08), cut };
}
