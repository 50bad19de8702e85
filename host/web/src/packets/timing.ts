/** Packet timing of many connections: what the host answers, and how it is drawn. */
import type { Columns } from "../api/client";
import type { Painter } from "../chart/painter";
import type { Area } from "../chart/axes";
import { KINDS, path, placesOf, type Kind } from "./kinds";
import { line, rise, share, symbols } from "./lanes";
import { firstFrom, type Marks } from "./marks";

export interface Timing {
    readonly marks: Marks;
    /** Rows of the connections of the lanes, in order. */
    readonly lanes: readonly number[];
    /** Packets in the range. */
    readonly rows: number;
    /** Each mark is one packet. */
    readonly exact: boolean;
}

export function readTiming(answer: Columns): Timing {
    const meta = (name: string): string => answer.metadata.get(name) ?? "";
    const places = placesOf(
        (JSON.parse(meta("kinds")) as (string | { name: string })[]).map((kind) =>
            typeof kind === "string" ? kind : kind.name,
        ),
    );
    const server = answer.numbers("server");
    const order = Uint32Array.from({ length: answer.rows }, (_, row) => row);
    const time = Float64Array.from(answer.numbers("time"));
    order.sort((a, b) => (time[a] as number) - (time[b] as number));
    const by = (name: string): Float64Array => {
        const column = answer.numbers(name);
        return Float64Array.from(order, (row) => column[row] as number);
    };
    const kind = by("kind");
    return {
        marks: {
            time: Float64Array.from(order, (row) => time[row] as number),
            lane: Uint32Array.from(by("lane")),
            server: Uint8Array.from(order, (row) => Number(server[row])),
            kind: Uint8Array.from(kind, (number) => places[number] ?? 0),
            size: by("bytes"),
            packets: by("count"),
            packet: Uint32Array.from(by("packet")),
            link: by("link_time"),
        },
        lanes: JSON.parse(meta("lanes")) as number[],
        rows: Number(meta("rows")),
        exact: meta("exact") === "true",
    };
}

/** All connections on one pair of rows: what they do at once shows. */
export function together(marks: Marks): Marks {
    return { ...marks, lane: new Uint32Array(marks.lane.length) };
}

/** Marks as paths, for browsers without WebGL2. */
export function drawMarks(
    p: Painter,
    marks: Marks,
    area: Area,
    lane: number,
    shapeOf: (kind: Kind) => Kind["shape"],
): void {
    const scale = symbols(lane);
    const full = rise(lane);
    const data = KINDS.map(() => "");
    const [from, to] = area.x.domain;
    for (let mark = firstFrom(marks.time, from); mark < marks.time.length; mark += 1) {
        const time = marks.time[mark] as number;
        if (time > to) break;
        const number = marks.kind[mark] as number;
        const kind = KINDS[number];
        if (!kind) continue;
        const y = area.top + line(marks.lane[mark] as number, lane, marks.server[mark] === 1);
        data[number] += path(shapeOf(kind), area.x.to(time), y, full * share(marks.size[mark] as number), scale);
    }
    KINDS.forEach((kind, number) => {
        const all = data[number];
        if (all) p.path(all, area.colors[kind.colour]);
    });
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
        const up = Math.min(lane * 0.3, 6 + (b - a) * 0.2);
        loops.push(
            `M${a.toFixed(1)} ${y.toFixed(1)}Q${((a + b) / 2).toFixed(1)} ${(y - 2 * up).toFixed(1)} ${b.toFixed(1)} ${y.toFixed(1)}`,
        );
    }
    if (loops.length > 0) p.path(loops.join(""), null, { color: area.colors.orange, width: 1, opacity: 0.8 });
    return all;
}
