/**
 * The bounce diagram: client on the left, server on the right, the taps between them if there are several, time downwards,
 * an arrow for each packet, coloured by its size.
 */
import type { Painter } from "../chart/painter";
import { clock, count, duration, moment } from "../format";
import type { Colors } from "../theme";
import { content, isBetween, isHere, passageWords, remarks, timesAt, type Row } from "./rows";

/** How the rows are spaced. */
export type Spacing = "even" | "time";

/** Height of a row with its label, px. */
export const ROW = 24;
/** How far an arrow falls from its sender to its receiver, px: the tap saw each packet once, so that the slope only says which way it went. */
export const FALL = 5;

/**
 * Top of each row, px, and the whole height.
 *
 * To scale, rows stand where their time is in `height` px, but never closer than a row: labels must stay readable, and
 * what follows moves down. `at`, null where they are evenly spaced: where any time stands among them, so that what was
 * later is lower at every tap; of rows of one time the last.
 */
export function rows(
    times: readonly number[],
    spacing: Spacing,
    height: number,
): { tops: Float64Array; whole: number; at: ((time: number) => number) | null } {
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
    const at = (time: number): number => {
        const next = firstFrom(times, (each) => each > time);
        const before = Math.max(0, next - 1);
        const [since, top] = [time - (times[before] ?? 0), tops[before] ?? 0];
        if (next === 0 || next === times.length) return top + since * perSecond;
        const share = since / ((times[next] as number) - (times[before] as number));
        return top + share * ((tops[next] as number) - top);
    };
    return { tops, whole: free + FALL, at: perSecond > 0 ? at : null };
}

/** Index of the first of those in order for which `holds`, as for all behind it; their number if for none. */
function firstFrom(all: ArrayLike<number>, holds: (each: number) => boolean): number {
    let low = 0;
    let high = all.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (holds(all[middle] as number)) high = middle;
        else low = middle + 1;
    }
    return low;
}

/** Rows that touch `from` px to `to` px: the first and the one after the last; `reach`: of their arrows, px. */
export function rowsBetween(tops: Float64Array, from: number, to: number, reach = FALL): [first: number, end: number] {
    const at = (y: number) => firstFrom(tops, (top) => top >= y);
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

/** Room for times on the left (of several taps those of the outer two) and remarks on the right of the lines, px. */
const LEFT = 230;
const LEFT_OF_SEVERAL = 350;
const RIGHT = 320;
/** From a tap to the end beside it, px: how far that is nobody knows. */
export const BESIDE = 80;
/** From tap to tap at least, and from the first to the last, px. */
const APART = 70;
const WIDE = 200;

/** Where the lines stand in a picture of this width; one tap is none. */
export function linesOf(width: number, count: number): { client: number; server: number; taps: number[] } {
    if (count < 2) return { client: LEFT, server: Math.max(LEFT + 160, width - RIGHT), taps: [] };
    const client = LEFT_OF_SEVERAL;
    const least = client + 2 * BESIDE + Math.max(WIDE, APART * (count - 1));
    const server = Math.max(least, width - RIGHT);
    const apart = (server - client - 2 * BESIDE) / (count - 1);
    return { client, server, taps: Array.from({ length: count }, (_, at) => client + BESIDE + at * apart) };
}

/** The least width that holds times, lines and remarks, px: in a narrower page the picture is moved from side to side. */
export const leastWidth = (count: number): number => linesOf(0, count).server + RIGHT;

/** What tells the names of captures apart, without folders and endings. */
export function shortNames(files: readonly string[]): string[] {
    const names = files.map((file) => file.replace(/.*\//, "").replace(/\.(pcapng|pcap|cap)(\.(gz|zst))?$/, ""));
    const parts = names.map((name) => name.split(/(?<=[-_. ])/));
    const same = (at: number) => parts.every((each) => at < each.length - 1 && each[at] === parts[0]?.[at]);
    let begin = 0;
    while (same(begin)) begin += 1;
    return parts.map((each) => each.slice(begin).join(""));
}

/** Names of several taps, that nearest to the client first, and where a time stands, px; null where rows are evenly spaced. */
export interface Taps {
    readonly names: readonly string[];
    at: ((time: number) => number) | null;
}

/** How far arrows reach above and below their rows, px. */
export function reachOf(all: readonly Row[], tops: Float64Array, taps: Taps | null): number {
    const at = taps?.at;
    if (!at) return FALL;
    const reaches = all.flatMap((row, index) =>
        timesAt(row).flatMap((time) => (typeof time === "number" ? Math.abs(at(time) - (tops[index] as number)) : [])),
    );
    return reaches.reduce((most, reach) => Math.max(most, reach), FALL);
}

/** A corner of an arrow. */
type Point = readonly [x: number, y: number];

/** An arrow from end to end, what is seen of it at the taps, and where it ends. */
interface Arrow {
    readonly points: readonly Point[];
    readonly seen: readonly Point[];
    readonly end: "head" | "lost" | "unknown";
}

/** The arrow of a packet that stands at `y`, the place of the tap whose time it has. */
export function arrowOf(row: Row, y: number, width: number, several: Taps | null): Arrow {
    const { client, server, taps } = linesOf(width, several?.names.length ?? 1);
    const [from, to] = row.server ? [server, client] : [client, server];
    if (several === null) {
        const points: Point[] = [
            [from, y],
            [to, y + FALL],
        ];
        return { points, seen: [], end: "head" };
    }
    const last = taps.length - 1;
    const own = row.tap;
    const times = timesAt(row);
    const place = (tap: number): Point => {
        const x = taps[tap] as number;
        // Its own place among rows of one time.
        if (tap === own) return [x, y];
        if (several.at !== null) return [x, several.at(times[tap] ?? row.time)];
        return [x, y + (FALL * (tap - own) * (row.server ? -1 : 1)) / last];
    };
    // In the order in which the packet passes them.
    const order = taps.map((_, at) => (row.server ? last - at : at));
    const places = order.filter((tap) => typeof times[tap] === "number");
    const seen = places.map(place);
    const [first, final] = [seen[0] as Point, seen[seen.length - 1] as Point];
    const half = ((taps[1] as number) - (taps[0] as number)) / (row.server ? -2 : 2);
    // Where what no outer tap has came from, nobody saw.
    const begin: Point =
        row.passage === "COPIED" || isBetween(row) ? [first[0] - half, first[1] - 1] : [from, first[1] - 1];
    const passed = places[places.length - 1] === order[last];
    if (!passed && row.passage === "LOST")
        return { points: [begin, ...seen, [final[0] + half, final[1] + FALL / 2]], seen, end: "lost" };
    if (!passed && (row.passage === "UNDECIDED" || row.passage === "OUTSIDE"))
        return { points: [begin, ...seen, [final[0] + 2 * half, final[1] + FALL]], seen, end: "unknown" };
    return { points: [begin, ...seen, [to, final[1] + 1]], seen, end: "head" };
}

/** Rows `first` to `end` of a picture of this width, whose top stands at `above` px of the whole. */
export function drawBounce(
    p: Painter,
    all: readonly Row[],
    place: { tops: Float64Array; first: number; end: number; above: number; width: number; height: number },
    look: { colors: Colors; start: bigint; chosen: number; several: Taps | null },
): void {
    const { tops, first, end, above, width, height } = place;
    const { colors, chosen } = look;
    const several = look.several === null ? null : { ...look.several };
    const at = several?.at;
    if (at) several.at = (time) => at(time) - above + ROW - 5;
    const { client, server, taps } = linesOf(width, several?.names.length ?? 1);
    for (const x of [client, server]) p.line([x, x], [0, height], { color: colors.line, width: 2 });
    for (const x of taps) p.line([x, x], [0, height], { color: colors.muted, dash: [4, 3] });
    const yOf = (index: number): number => (tops[index] as number) - above + ROW - 5;
    const each = (draw: (row: Row, y: number, index: number) => void) => {
        for (let index = first; index < end; index += 1) {
            const row = all[index];
            if (row) draw(row, yOf(index), index);
        }
    };
    each((row, y, index) => {
        if (index === chosen) p.rect(0, y - ROW + 5, width, ROW + FALL, colors.brush);
        drawArrow(p, row, arrowOf(row, y, width, several), colors);
    });
    // To scale, arrows pass other rows' labels.
    each((row, y) => {
        drawTimes(p, row, y, look);
        const again = row.kind === "RETRANSMISSION";
        const numbers = `${row.length > 0 ? `seq ${count(row.seq)}` : ""}${row.ack === null || row.length > 0 ? "" : `ack ${count(row.ack)}`}`;
        const label = [content(row), numbers, again ? "sent again" : "", legTimes(row)].filter(Boolean).join("  ");
        // Beside the dot of the row's own tap where arrows fall far.
        const own = several !== null && several.at !== null ? taps[row.tap] : undefined;
        const [x, align] =
            own === undefined
                ? ([(client + server) / 2, "center"] as const)
                : row.tap === taps.length - 1
                  ? ([own - 8, "right"] as const)
                  : ([own + 8, "left"] as const);
        const halo = several === null ? {} : { halo: colors.panel };
        p.text(label, x, y - 3, { color: colors.text, size: 11, align, baseline: "bottom", ...halo });
        const without = several === null ? "" : passageWords(row, several.names);
        const words = [without, remarks(row)].filter(Boolean).join("; ");
        p.text(cut(words, 52), server + 14, y + 1, {
            color: again || without !== "" || row.kind === "RST" ? colors.red : colors.muted,
            size: 11,
        });
    });
}

function drawArrow(p: Painter, row: Row, arrow: Arrow, colors: Colors): void {
    const size = SIZES[sizeClass(row.length)];
    const color = size ? colors[size.colour] : colors.text;
    p.line(
        arrow.points.map(([x]) => x),
        arrow.points.map(([, y]) => y),
        { color, width: row.length > 0 ? 2.2 : 1.2, ...(row.kind === "RETRANSMISSION" ? { dash: [7, 4] } : {}) },
    );
    for (const [x, y] of arrow.seen) p.mark("circle", x, y, 5, color);
    const [x, y] = arrow.points[arrow.points.length - 1] as Point;
    if (arrow.end === "lost") p.mark("cross", x, y, 10, colors.red);
    else if (arrow.end === "unknown") p.mark("ring", x, y, 8, colors.red);
    else p.path(`M${x} ${y}l${row.server ? 8 : -8} ${-3.6 - FALL / 20}v7.2Z`, color);
}

/** How long a packet took from each tap that saw it to the next. */
export function legTimes(row: Row): string {
    const times = timesAt(row).filter((time) => time !== null);
    return times
        .slice(1)
        .map((time, at) => duration(Math.abs(time - (times[at] as number))))
        .join(" + ");
}

/** Time of day, at the outer taps if there are several (in brackets at one between that alone has it), and time since the packet before. */
function drawTimes(
    p: Painter,
    row: Row,
    y: number,
    { colors, start, several }: { colors: Colors; start: bigint; several: Taps | null },
): void {
    const style = { color: colors.muted, size: 11 };
    const left = several === null ? LEFT : LEFT_OF_SEVERAL;
    // Of several taps there is no room for a date.
    const write = several === null ? moment : clock;
    if (isHere(row)) p.text(write(start, row.time, 6), 12, y + 1, style);
    if (isBetween(row)) p.text(`(${clock(start, row.time, 6)})`, 8, y + 1, style);
    if (several !== null && row.far !== null) p.text(clock(start, row.far, 6), 122, y + 1, style);
    p.text(duration(row.delta), left - 12, y + 1, { ...style, align: "right" });
}

function cut(text: string, most: number): string {
    return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
