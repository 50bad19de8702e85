/**
 * The bounce diagram: client on the left, server on the right, time downwards, an arrow for each packet, coloured by its
 * size.
 */
import type { Painter } from "../chart/painter";
import { clock, count, duration } from "../format";
import type { Colors } from "../theme";
import { content, remarks, type Row } from "./rows";

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
 * what follows moves down.
 */
export function rows(
    times: readonly number[],
    spacing: Spacing,
    height: number,
): { tops: Float64Array; whole: number } {
    const tops = new Float64Array(times.length);
    const first = times[0] ?? 0;
    const span = (times[times.length - 1] ?? 0) - first;
    let free = 0;
    times.forEach((time, row) => {
        const place = spacing === "time" && span > 0 ? ((time - first) / span) * height : 0;
        const top = Math.max(free, place);
        tops[row] = top;
        free = top + ROW;
    });
    return { tops, whole: free + FALL };
}

/** Rows that touch `from` px to `to` px: the first and the one after the last. */
export function rowsBetween(tops: Float64Array, from: number, to: number): [first: number, end: number] {
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
    return [at(from - ROW - FALL), at(to)];
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

/** Room for times on the left and remarks on the right of the two lines, px. */
const LEFT = 230;
const RIGHT = 320;

/** Rows `first` to `end` of a picture of this width, whose top stands at `above` px of the whole. */
export function drawBounce(
    p: Painter,
    all: readonly Row[],
    place: { tops: Float64Array; first: number; end: number; above: number; width: number; height: number },
    look: { colors: Colors; start: bigint; chosen: number },
): void {
    const { tops, first, end, above, width, height } = place;
    const { colors, start, chosen } = look;
    const [client, server] = [LEFT, Math.max(LEFT + 160, width - RIGHT)];
    for (const x of [client, server]) p.line([x, x], [0, height], { color: colors.line, width: 2 });
    for (let index = first; index < end; index += 1) {
        const row = all[index];
        if (!row) continue;
        const y = (tops[index] as number) - above + ROW - 5;
        if (index === chosen) p.rect(0, y - ROW + 5, width, ROW + FALL, colors.brush);
        const [from, to] = row.server ? [server, client] : [client, server];
        const size = SIZES[sizeClass(row.length)];
        const color = size ? colors[size.colour] : colors.text;
        const again = row.kind === "RETRANSMISSION";
        p.line([from, to], [y, y + FALL], {
            color,
            width: row.length > 0 ? 2.2 : 1.2,
            ...(again ? { dash: [7, 4] } : {}),
        });
        const back = row.server ? 8 : -8;
        p.path(`M${to} ${y + FALL}l${back} ${-3.6 - FALL / 20}v7.2Z`, color);
        p.text(clock(start, row.time, 6), 12, y + 1, { color: colors.muted, size: 11 });
        p.text(duration(row.delta), LEFT - 12, y + 1, { color: colors.muted, size: 11, align: "right" });
        const middle = (client + server) / 2;
        const numbers = `${row.length > 0 ? `seq ${count(row.seq)}` : ""}${row.ack === null || row.length > 0 ? "" : `ack ${count(row.ack)}`}`;
        const label = [content(row), numbers, again ? "sent again" : ""].filter(Boolean).join("  ");
        p.text(label, middle, y - 3, { color: colors.text, size: 11, align: "center", baseline: "bottom" });
        p.text(cut(remarks(row), 52), server + 14, y + 1, {
            color: again || row.kind === "RST" ? colors.red : colors.muted,
            size: 11,
        });
    }
}

function cut(text: string, most: number): string {
    return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
