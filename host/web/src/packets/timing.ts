/** Packet timing of many connections: what the host answers, and how it is drawn. */
import type { Columns } from "../api/client";
import type { Painter } from "../chart/painter";
import type { Area } from "../chart/axes";
import { KINDS, kindsOf, placesOf, type Kind } from "./kinds";
import { line, rise, share, symbols } from "./lanes";
import { firstFrom, nextWhere, type Marks } from "./marks";

export interface Timing {
    readonly marks: Marks;
    /** Rows of the connections of the lanes, in order. */
    readonly lanes: readonly number[];
    /** Lanes that all connections share; 0: each connection has its own. */
    readonly shared: number;
    /** Packets in the range. */
    readonly rows: number;
    /** Each mark is one packet. */
    readonly exact: boolean;
}

export function readTiming(answer: Columns): Timing {
    const meta = (name: string): string => answer.metadata.get(name) ?? "";
    const places = placesOf(kindsOf(answer));
    const by = (name: string): Float64Array => new Float64Array(answer.numbers(name));
    return {
        marks: {
            time: by("time"),
            last: by("time_last"),
            lane: new Uint32Array(answer.numbers("lane")),
            server: new Uint8Array(answer.numbers("server")),
            kind: new Uint8Array(answer.numbers("kind")).map((number) => places[number] ?? 0),
            size: by("bytes"),
            least: by("bytes_min"),
            packets: by("count"),
            among: by("segments"),
            packet: new Uint32Array(answer.numbers("packet")),
            link: by("link_time"),
        },
        lanes: JSON.parse(meta("lanes")) as number[],
        shared: Number(meta("shared")),
        rows: Number(meta("rows")),
        exact: meta("exact") === "true",
    };
}

const ANOMALIES = new Set(["RETRANSMISSION", "RST", "ZERO_WINDOW"]);

/** Sent again (a SYN or FIN, too), reset or closed: what one looks for first. */
function isAnomaly({ kind, link }: Marks, mark: number): boolean {
    const name = KINDS[kind[mark] as number]?.name ?? "";
    return ANOMALIES.has(name) || (name !== "COPY" && !Number.isNaN(link[mark]));
}

/** The next (`step` 1) or previous (-1) anomaly: from a mark if that stands at the time, or else from the time; or -1. */
export function anomalyFrom(marks: Marks, from: number, time: number, step: 1 | -1): number {
    const here = from >= 0 && Math.abs((marks.time[from] as number) - time) < 1e-6;
    const before = step > 0 ? firstFrom(marks.time, time) - 1 : firstFrom(marks.time, time);
    return nextWhere(marks, here ? from : before, step, (mark) => isAnomaly(marks, mark));
}

/** Half the width of a bar, px. */
const BAR = 1.5;
/** Height of the trail of a mark that stands for packets to the right of it, px. */
const TRAIL = 2;

/** Least height of what is drawn in proportion, px. */
const LEAST = 2;

/** How packets are drawn. */
export interface Drawn {
    /** Height of a lane, px. */
    lane: number;
    /** Data as dots, where bars would hide one another. */
    dots: boolean;
    seen(kind: Kind): boolean;
}

/** The marks in sight: bars, kind by kind, and what has no payload on top. */
export function drawMarks(p: Painter, marks: Marks, area: Area, drawn: Drawn): void {
    const { lane, dots } = drawn;
    const scale = symbols(lane);
    const full = rise(lane);
    const thick = BAR * scale;
    const [from, to] = area.x.domain;
    const ofKind: number[][] = KINDS.map(() => []);
    // A mark that begins before the range may reach into it.
    for (let mark = 0; mark < marks.time.length && (marks.time[mark] as number) <= to; mark += 1) {
        if ((marks.last[mark] as number) >= from) ofKind[marks.kind[mark] as number]?.push(mark);
    }
    const plain: { xs: number[]; ys: number[]; kinds: number[] } = { xs: [], ys: [], kinds: [] };
    KINDS.forEach((kind, number) => {
        if (!drawn.seen(kind)) return;
        const color = area.colors[kind.colour];
        for (const mark of ofKind[number] as number[]) {
            const x = area.x.to(marks.time[mark] as number);
            const wide = area.x.to(marks.last[mark] as number) - x;
            const y = area.top + line(marks.lane[mark] as number, lane, marks.server[mark] === 1);
            if (kind.size === null) {
                // Over the data of its column, a few repeats are not all of it: they are on top, the line has symbols.
                const part = kind.name === "DATA" ? 1 : (marks.packets[mark] as number) / (marks.among[mark] as number);
                const tall = full * share(marks.size[mark] as number);
                const spread = full * (share(marks.size[mark] as number) - share(marks.least[mark] as number));
                if (dots) p.rect(x - thick, y - tall - thick, 2 * thick + wide, spread * part + 2 * thick, color);
                else {
                    const high = Math.min(tall, Math.max(tall * part, LEAST));
                    p.rect(x - thick, y - tall, 2 * thick + wide, high, color);
                }
            } else {
                if (wide > 1) p.rect(x, y - TRAIL / 2, wide, TRAIL, color);
                plain.xs.push(x);
                plain.ys.push(y);
                plain.kinds.push(number);
            }
        }
    });
    const looks = KINDS.map(({ shape, size, colour }) => ({
        shape,
        size: (size ?? 0) * scale,
        color: area.colors[colour],
    }));
    p.marks(plain.xs, plain.ys, plain.kinds, looks);
}

/** Most loops that are drawn: more would hide what they join. */
export const MOST_LINKS = 2000;

/** Loops from where bytes passed first to where they were sent again. Returns how many there are in sight. */
export function drawLinks(p: Painter, marks: Marks, area: Area, lane: number): number {
    const [from, to] = area.x.domain;
    const loops: string[] = [];
    let all = 0;
    for (let mark = firstFrom(marks.time, from); mark < marks.time.length; mark += 1) {
        const link = marks.link[mark] as number;
        const time = marks.time[mark] as number;
        if (Number.isNaN(link) || link > to) continue;
        all += 1;
        if (loops.length >= MOST_LINKS) continue;
        const [a, b] = [area.x.to(link), area.x.to(time)];
        const high = rise(lane) * share(marks.size[mark] as number);
        const y = area.top + line(marks.lane[mark] as number, lane, marks.server[mark] === 1) - high;
        // Above the first lane the picture ends.
        const up = Math.min(lane * 0.3, 6 + (b - a) * 0.2, Math.max(2, y - area.top - 1));
        loops.push(
            `M${a.toFixed(1)} ${y.toFixed(1)}Q${((a + b) / 2).toFixed(1)} ${(y - 2 * up).toFixed(1)} ${b.toFixed(1)} ${y.toFixed(1)}`,
        );
    }
    if (loops.length > 0) p.path(loops.join(""), null, { color: area.colors.orange, width: 1, opacity: 0.8 });
    return all;
}
