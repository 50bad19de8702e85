/**
 * Marks of packets in columns, in order of time: each is one packet, or all packets of one kind and side of a
 * connection within one column of pixels.
 */

/** Columns of equal length. */
export interface Marks {
    /** Seconds since the dataset's start, never falling. */
    readonly time: Float64Array;
    /** Of the last packet that it stands for. */
    readonly last: Float64Array;
    /** Lane of the connection. */
    readonly lane: Uint32Array;
    /** 1: sent by the server. */
    readonly server: Uint8Array;
    /** Index into KINDS. */
    readonly kind: Uint8Array;
    /** Payload, bytes; the largest of several. */
    readonly size: Float64Array;
    /** The smallest of several. */
    readonly least: Float64Array;
    /** How many packets it stands for. */
    readonly packets: Float64Array;
    /** Data segments of its lane, side and column, of which it is a part. */
    readonly among: Float64Array;
    /** The packet it shows. */
    readonly packet: Uint32Array;
    /** When the bytes of a retransmission passed first, seconds; NaN for what has no link. */
    readonly link: Float64Array;
}

/** Index of the first mark not before a time. */
export function firstFrom(time: Float64Array, at: number): number {
    let low = 0;
    let high = time.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if ((time[middle] as number) < at) low = middle + 1;
        else high = middle;
    }
    return low;
}

/**
 * The mark nearest to a place, or -1 if none is within `reach` px.
 *
 * `x` and `y` give the place of a mark in px; only marks with a time from `from` to `to` are looked at.
 */
export function nearest(
    marks: Marks,
    [from, to]: readonly [number, number],
    place: readonly [number, number],
    reach: number,
    x: (mark: number) => number,
    y: (mark: number) => number,
): number {
    let best = -1;
    let least = reach * reach;
    const end = marks.time.length;
    for (let mark = firstFrom(marks.time, from); mark < end && (marks.time[mark] as number) <= to; mark += 1) {
        const dx = x(mark) - place[0];
        const dy = y(mark) - place[1];
        const distance = dx * dx + dy * dy;
        // Of marks at one place the one drawn last, which is on top.
        if (
            distance < least ||
            (distance === least && best >= 0 && (marks.kind[mark] as number) >= (marks.kind[best] as number))
        ) {
            best = mark;
            least = distance;
        }
    }
    return best;
}

/** The next mark after (`step` 1) or before (-1) one for which `is` holds, or -1. */
export function nextWhere(marks: Marks, from: number, step: 1 | -1, is: (mark: number) => boolean): number {
    for (let mark = from + step; mark >= 0 && mark < marks.time.length; mark += step) if (is(mark)) return mark;
    return -1;
}
