/** What hosts wait for between their messages: what the host answers, and how it is drawn on the hosts' lines. */
import type { Columns } from "../api/client";
import type { Painter } from "../chart/painter";
import type { Area } from "../chart/axes";
import type { Colors } from "../theme";

/** What for, as the interface names it. */
export const WHYS = [
    { name: "CLIENT", label: "client works or pauses", colour: "grey" },
    { name: "SERVER", label: "server works", colour: "orange" },
    { name: "CALL", label: "waits for a call to the tier behind", colour: "sky" },
    { name: "UNDECIDED", label: "works, or waits for a call that fits several requests", colour: "yellow" },
    { name: "REQUEST", label: "network takes the request", colour: "purple" },
    { name: "RESPONSE", label: "network takes the response", colour: "red" },
] as const satisfies readonly { name: string; label: string; colour: keyof Colors }[];

export type Why = (typeof WHYS)[number];

export interface Wait {
    readonly time: number;
    readonly end: number;
    readonly host: string;
    readonly why: Why;
    /** Of all that it stands for. */
    readonly seconds: number;
    readonly count: number;
    readonly client: string;
    readonly server: string;
    readonly connection: string;
    /** The service behind and the call's connection. */
    readonly behind: string | null;
    readonly callConnection: string | null;
    /** Which of the calls of its request; NaN: none. */
    readonly call: number;
    readonly calls: number;
    /** The request in front that this one is a call for. */
    readonly forConnection: string | null;
    readonly forTime: number;
}

export interface Waits {
    readonly all: readonly Wait[];
    readonly total: number;
    readonly exact: boolean;
    /** Of each kind in the range. */
    readonly sums: ReadonlyMap<string, { count: number; seconds: number }>;
    /** Calls of the whole capture: of one request, of one of several, of somebody else. */
    readonly decided: number;
    readonly ambiguous: number;
    readonly alone: number;
}

export function readWaits(answer: Columns): Waits {
    const { metadata, rows } = answer;
    const column = {
        numbers: Object.fromEntries(
            (["time", "time_last", "why", "seconds", "count", "call", "calls", "for_time"] as const).map((name) => [
                name,
                answer.numbers(name),
            ]),
        ),
        texts: Object.fromEntries(
            (["host", "client", "server", "connection", "behind", "call_connection", "for_connection"] as const).map(
                (name) => [name, answer.texts(name)],
            ),
        ),
    };
    const kinds = JSON.parse(metadata.get("kinds") ?? "[]") as { name: string; count: number; seconds: number }[];
    const all = Array.from({ length: rows }, (_, row): Wait => {
        const number = (name: string) => column.numbers[name]?.[row] ?? NaN;
        const text = (name: string) => column.texts[name]?.[row] ?? null;
        return {
            time: number("time"),
            end: number("time_last"),
            host: text("host") ?? "?",
            why: whyOf(kinds[number("why")]?.name),
            seconds: number("seconds"),
            count: number("count"),
            client: text("client") ?? "?",
            server: text("server") ?? "?",
            connection: text("connection") ?? "",
            behind: text("behind"),
            callConnection: text("call_connection"),
            call: number("call"),
            calls: number("calls"),
            forConnection: text("for_connection"),
            forTime: number("for_time"),
        };
    });
    const said = (name: string) => Number(metadata.get(name) ?? "0");
    return {
        all,
        total: said("rows"),
        exact: metadata.get("exact") === "true",
        sums: new Map(kinds.map((kind) => [kind.name, kind])),
        decided: said("decided"),
        ambiguous: said("ambiguous"),
        alone: said("alone"),
    };
}

function whyOf(kind: string | undefined): Why {
    const why = WHYS.find(({ name }) => name === kind);
    if (!why) throw new Error(`The host waits for something, ${kind}, that this page does not know: load it again.`);
    return why;
}

/** Bars beside each other at a host's line: the rest share the last place. */
const LANES = 6;
/** Height of a bar, px, and of its place. */
const BAR = 4;
export const PLACE = 5;

/** Place of each wait among those of its host at the same time: the first that is free. */
export function placesOf(all: readonly Wait[]): Uint8Array {
    const taken = new Map<string, number[]>();
    const order = all.map((_, at) => at).sort((a, b) => (all[a] as Wait).time - (all[b] as Wait).time);
    const places = new Uint8Array(all.length);
    for (const at of order) {
        const { host, time, end } = all[at] as Wait;
        let ends = taken.get(host);
        if (!ends) taken.set(host, (ends = new Array<number>(LANES).fill(-Infinity)));
        const free = ends.findIndex((until) => until <= time);
        const place = free < 0 ? LANES - 1 : free;
        ends[place] = Math.max(ends[place] as number, end);
        places[at] = place;
    }
    return places;
}

/** Distance of the middle of a place from its host's line, px: around it, from the middle outwards. */
export function offsetOf(place: number): number {
    return (place % 2 === 0 ? 1 : -1) * Math.ceil(place / 2) * PLACE;
}

/** Each wait a bar on its host's line; of the network, a triangle that falls towards the end. */
export function drawWaits(
    p: Painter,
    all: readonly Wait[],
    places: Uint8Array,
    lines: ReadonlyMap<string, number>,
    area: Area,
): void {
    const [from, to] = area.x.domain;
    const paths = new Map<string, string>();
    all.forEach((wait, at) => {
        const line = lines.get(wait.host);
        if (line === undefined || wait.time > to || wait.end < from) return;
        const x0 = Math.max(area.x.to(wait.time), area.left - 10);
        const x1 = Math.max(Math.min(area.x.to(wait.end), area.left + area.width + 10), x0 + 1);
        const y = area.y.to(line) + offsetOf(places[at] as number);
        const [left, right] = [x0.toFixed(1), x1.toFixed(1)];
        const network = wait.why.name === "REQUEST" || wait.why.name === "RESPONSE";
        const outline = network
            ? `M${left} ${y - BAR}V${y + BAR}L${right} ${y}Z`
            : `M${left} ${y - BAR / 2}H${right}V${y + BAR / 2}H${left}Z`;
        const color = area.colors[wait.why.colour];
        paths.set(color, (paths.get(color) ?? "") + outline);
    });
    for (const [color, outline] of paths) p.path(outline, color);
}
