/**
 * The bounce diagram: client on the left, server on the right, the taps between them if there are two, time downwards, an
 * arrow for each packet, coloured by its size.
 */
import type { Painter } from "../chart/painter";
import { clock, count, duration } from "../format";
import type { Colors } from "../theme";
import { content, passageWords, remarks, type Row } from "./rows";

/** How the rows are spaced. */
export type Spacing = "even" | "time";

/** Height of a row with its label, px. */
export const ROW = 24;
/** How far an arrow falls from its sender to its receiver, px: the tap saw each packet once, so that the slope only says which way it went. */
export const FALL = 5;
/** How far it falls at most between two taps, to scale. */
const MOST_FALL = 400;

/**
 * Top of each row, px, and the whole height.
 *
 * To scale, rows stand where their time is in `height` px, but never closer than a row: labels must stay readable, and
 * what follows moves down.
 */
export function rows(
    times: readonly number[],
    spacing: Spacing,
    height: number,
): { tops: Float64Array; whole: number; perSecond: number } {
    const tops = new Float64Array(times.length);
    const first = times[0] ?? 0;
    const span = (times[times.length - 1] ?? 0) - first;
    const perSecond = spacing === "time" && span > 0 ? height / span : 0;
    let free = 0;
    times.forEach((time, row) => {
        const top = Math.max(free, (time - first) * perSecond);
        tops[row] = top;
        free = top + ROW;
    });
    return { tops, whole: free + FALL, perSecond };
}

/** Rows that touch `from` px to `to` px: the first and the one after the last; `reach`: of their arrows, px. */
export function rowsBetween(tops: Float64Array, from: number, to: number, reach = FALL): [first: number, end: number] {
    const at = (y: number): number => {
        let low = 0;
        let high = tops.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if ((tops[middle] as number) < y) low = middle + 1;
            else high = middle;
        }
        return low;
    };
    return [at(from - ROW - reach), at(to + reach - FALL)];
}

/** Names of the classes of packet sizes, smallest first, with their largest payload. */
export const SIZES: readonly { readonly label: string; readonly most: number; readonly colour: keyof Colors }[] = [
    { label: "no payload", most: 0, colour: "grey" },
    { label: "to 99 bytes", most: 99, colour: "sky" },
    { label: "to 499 bytes", most: 499, colour: "purple" },
    { label: "to 1,399 bytes", most: 1399, colour: "green" },
    { label: "1,400 bytes and more", most: Infinity, colour: "orange" },
];

/** Class of a payload's size. */
export function sizeClass(bytes: number): number {
    return SIZES.findIndex(({ most }) => bytes <= most);
}

/** Room for times on the left (also of two taps) and remarks on the right of the lines, px. */
const LEFT = 230;
const LEFT_OF_TWO = 330;
const RIGHT = 320;
/** From a tap to the end beside it, px: how far that is nobody knows. */
const BESIDE = 80;

/** Where the lines stand in a picture of this width. */
export function linesOf(width: number, two: boolean): { client: number; server: number; taps: number[] } {
    const client = two ? LEFT_OF_TWO : LEFT;
    const server = Math.max(client + (two ? 2 * BESIDE + 200 : 160), width - RIGHT);
    return { client, server, taps: two ? [client + BESIDE, server - BESIDE] : [] };
}

/** Names of the taps, that nearest to the client first, and px for a second, 0 where rows are evenly spaced. */
export interface TwoTaps {
    readonly names: readonly [string, string];
    readonly perSecond: number;
}

/** How far arrows reach above and below their rows, px. */
export function reachOf(two: TwoTaps | null): number {
    return two !== null && two.perSecond > 0 ? MOST_FALL : FALL;
}

/** A corner of an arrow. */
type Point = readonly [x: number, y: number];

/** An arrow from end to end, what is seen of it at the taps, and where it ends. */
interface Arrow {
    readonly points: readonly Point[];
    readonly seen: readonly Point[];
    readonly end: "head" | "lost" | "unknown";
}

/** The arrow of a packet that stands at `y`, the place of the tap nearest to the client where that has it. */
export function arrowOf(row: Row, y: number, width: number, two: TwoTaps | null): Arrow {
    const { client, server, taps } = linesOf(width, two !== null);
    const [near, far] = taps;
    if (two === null || near === undefined || far === undefined) {
        const [from, to] = row.server ? [server, client] : [client, server];
        const points: Point[] = [
            [from, y],
            [to, y + FALL],
        ];
        return { points, seen: [], end: "head" };
    }
    const both = row.passage === "BOTH" && row.far !== null;
    const took = both ? Math.abs((row.far ?? 0) - row.time) : 0;
    const fall = Math.max(FALL, Math.min(MOST_FALL, took * two.perSecond));
    const here = !Number.isNaN(row.packet);
    // The tap that has it stands at the row; the other is before or after it.
    const atNear: Point = [near, here ? y : y + (row.server ? fall : -fall)];
    const atFar: Point = [far, here ? y + (row.server ? -fall : fall) : y];
    const [first, second] = row.server ? [atFar, atNear] : [atNear, atFar];
    const begin: Point = [row.server ? server : client, first[1] - 1];
    const end: Point = [row.server ? client : server, second[1] + 1];
    const middle: Point = [(near + far) / 2, (first[1] + second[1]) / 2];
    const upstream = here !== row.server;
    const seen = both ? [first, second] : [here ? atNear : atFar];
    if (!both && upstream && row.passage === "LOST") return { points: [begin, first, middle], seen, end: "lost" };
    if (!both && upstream && (row.passage === "UNDECIDED" || row.passage === "OUTSIDE"))
        return { points: [begin, first, second], seen, end: "unknown" };
    if (row.passage === "COPIED") return { points: [middle, second, end], seen, end: "head" };
    return { points: [begin, first, second, end], seen, end: "head" };
}

/** Rows `first` to `end` of a picture of this width, whose top stands at `above` px of the whole. */
export function drawBounce(
    p: Painter,
    all: readonly Row[],
    place: { tops: Float64Array; first: number; end: number; above: number; width: number; height: number },
    look: { colors: Colors; start: bigint; chosen: number; two: TwoTaps | null },
): void {
    const { tops, first, end, above, width, height } = place;
    const { colors, chosen, two } = look;
    const { client, server, taps } = linesOf(width, two !== null);
    for (const x of [client, server]) p.line([x, x], [0, height], { color: colors.line, width: 2 });
    for (const x of taps) p.line([x, x], [0, height], { color: colors.muted, dash: [4, 3] });
    for (let index = first; index < end; index += 1) {
        const row = all[index];
        if (!row) continue;
        const y = (tops[index] as number) - above + ROW - 5;
        if (index === chosen) p.rect(0, y - ROW + 5, width, ROW + FALL, colors.brush);
        const size = SIZES[sizeClass(row.length)];
        const color = size ? colors[size.colour] : colors.text;
        const again = row.kind === "RETRANSMISSION";
        const arrow = arrowOf(row, y, width, two);
        p.line(
            arrow.points.map(([x]) => x),
            arrow.points.map(([, y]) => y),
            { color, width: row.length > 0 ? 2.2 : 1.2, ...(again ? { dash: [7, 4] } : {}) },
        );
        for (const [x, y] of arrow.seen) p.mark("circle", x, y, 5, color);
        const [x1, y1] = arrow.points[arrow.points.length - 1] as Point;
        if (arrow.end === "lost") p.mark("cross", x1, y1, 10, colors.red);
        else if (arrow.end === "unknown") p.mark("ring", x1, y1, 8, colors.red);
        else p.path(`M${x1} ${y1}l${row.server ? 8 : -8} ${-3.6 - FALL / 20}v7.2Z`, color);
        drawTimes(p, row, y, look);
        const numbers = `${row.length > 0 ? `seq ${count(row.seq)}` : ""}${row.ack === null || row.length > 0 ? "" : `ack ${count(row.ack)}`}`;
        const took = row.passage === "BOTH" && row.far !== null ? duration(Math.abs(row.far - row.time)) : "";
        const label = [content(row), numbers, again ? "sent again" : "", took].filter(Boolean).join("  ");
        // Beside the dot of the row's own tap where arrows fall far.
        const [near, far] = two !== null && two.perSecond > 0 ? taps : [];
        const [x, align] =
            near === undefined || far === undefined
                ? ([(client + server) / 2, "center"] as const)
                : Number.isNaN(row.packet)
                  ? ([far - 8, "right"] as const)
                  : ([near + 8, "left"] as const);
        p.text(label, x, y - 3, { color: colors.text, size: 11, align, baseline: "bottom" });
        const without = two === null ? "" : passageWords(row, otherTap(row, two));
        const words = [without, remarks(row)].filter(Boolean).join("; ");
        p.text(cut(words, 52), server + 14, y + 1, {
            color: again || without !== "" || row.kind === "RST" ? colors.red : colors.muted,
            size: 11,
        });
    }
}

/** The tap that does not have a packet. */
export function otherTap(row: Row, two: TwoTaps): string {
    return two.names[Number.isNaN(row.packet) ? 0 : 1];
}

/** Time of day, of each tap if there are two, and time since the packet before. */
function drawTimes(
    p: Painter,
    row: Row,
    y: number,
    { colors, start, two }: { colors: Colors; start: bigint; two: TwoTaps | null },
): void {
    const style = { color: colors.muted, size: 11 };
    const left = two === null ? LEFT : LEFT_OF_TWO;
    if (two === null || !Number.isNaN(row.packet)) p.text(clock(start, row.time, 6), 12, y + 1, style);
    if (two !== null && row.far !== null) p.text(clock(start, row.far, 6), 122, y + 1, style);
    p.text(duration(row.delta), left - 12, y + 1, { ...style, align: "right" });
}

function cut(text: string, most: number): string {
    return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
