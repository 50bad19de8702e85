/** Application messages between hosts over time: what the host answers, and how it is drawn. */
import type { Columns } from "../api/client";
import type { Painter } from "../chart/painter";
import type { Area } from "../chart/axes";
import { tiers } from "./tiers";

export interface Message {
    readonly time: number;
    /** Of its last packet. */
    readonly end: number;
    readonly sender: string;
    readonly receiver: string;
    readonly port: number;
    /** Sent by the server: a response. */
    readonly server: boolean;
    readonly bytes: number;
    readonly packets: number;
    /** Messages that it stands for. */
    readonly count: number;
    /** Row of its connection (of the first of several). */
    readonly row: number;
}

export function readMessages(answer: Columns): Message[] {
    const senders = answer.texts("sender");
    const receivers = answer.texts("receiver");
    const numbers = (["time", "time_last", "port", "bytes", "packets", "count", "row"] as const).map((name) =>
        answer.numbers(name),
    );
    return senders.map((sender, at) => {
        const [time = NaN, end = NaN, port = NaN, bytes = NaN, packets = NaN, count = NaN, row = NaN] = numbers.map(
            (column) => column[at] as number,
        );
        const server = answer.at("server", at) === true;
        return {
            time,
            end,
            sender: sender ?? "?",
            receiver: receivers[at] ?? "?",
            port,
            server,
            bytes,
            packets,
            count,
            row,
        };
    });
}

/** Hosts that have a line, at most: those of the pairs with most messages. */
const MOST_HOSTS = 40;

/** The hosts in the order of their tiers, and how many are left out. */
export function hostsOf(all: readonly Message[]): { hosts: string[]; leftOut: number } {
    const pairs = new Map<string, { client: string; server: string; count: number }>();
    const seen = new Set<string>();
    for (const { sender, receiver, server: response, count } of all) {
        const [client, server] = response ? [receiver, sender] : [sender, receiver];
        const key = `${client} ${server}`;
        const pair = pairs.get(key);
        if (pair) pair.count += count;
        else pairs.set(key, { client, server, count });
        seen.add(sender).add(receiver);
    }
    // By pairs: of the busiest hosts alone, no two may have sent each other anything.
    const kept = new Set<string>();
    for (const { client, server } of [...pairs.values()].sort((a, b) => b.count - a.count)) {
        const more = [client, server].filter((host) => !kept.has(host));
        if (kept.size + more.length <= MOST_HOSTS) for (const host of more) kept.add(host);
    }
    const hosts = tiers([...pairs.values()].filter(({ client, server }) => kept.has(client) && kept.has(server)));
    return { hosts, leftOut: seen.size - hosts.length };
}

/** What an arrow stands for; `exact`: each for one message. */
export function arrowsAre(exact: boolean): string {
    return exact
        ? "Each arrow is an application message (a data block), from the line of the host that sent it to that of its receiver, from its first packet to its last"
        : "Each arrow is an application message (a data block) or all of one host to a port of another, or back, that begin within a column: from the line of the host that sent them to that of their receiver, from the first packet of the first to the last of all";
}

/** Width of a message by its size, px: ten times as large is a px more. */
export function widthOf(bytes: number): number {
    return 1 + Math.min(5, Math.log10(Math.max(1, bytes)));
}

/** What is drawn with one stroke: messages of one direction and about one width. */
interface Stroke {
    readonly color: string;
    readonly width: number;
    readonly xs: number[];
    readonly ys: number[];
    /** The heads, as one path. */
    heads: string;
}

/** Each message from its sender's line to its receiver's, slanted by the time that it took: the tap saw each packet once. */
export function drawMessages(
    p: Painter,
    all: readonly Message[],
    lines: ReadonlyMap<string, number>,
    area: Area,
): void {
    const { colors, x } = area;
    const [from, to] = x.domain;
    // A stroke for each message would take longer than a frame.
    const strokes = new Map<string, Stroke>();
    for (const message of all) {
        const [sender, receiver] = [lines.get(message.sender), lines.get(message.receiver)];
        if (sender === undefined || receiver === undefined || message.time > to || message.end < from) continue;
        const color = message.server ? colors.green : colors.blue;
        const width = Math.round(widthOf(message.bytes));
        const key = `${color} ${width}`;
        let stroke = strokes.get(key);
        if (!stroke) strokes.set(key, (stroke = { color, width, xs: [], ys: [], heads: "" }));
        const [y0, y1] = [area.y.to(sender), area.y.to(receiver)];
        const [x0, x1] = [x.to(message.time), x.to(message.end)];
        stroke.xs.push(x0, x1, NaN);
        stroke.ys.push(y0, y1, NaN);
        const way = Math.sign(y1 - y0) || 1;
        const head = 3 + width;
        stroke.heads += `M${x1.toFixed(1)} ${y1.toFixed(1)}l${(-head * 0.6).toFixed(1)} ${-head * way}h${(head * 1.2).toFixed(1)}Z`;
    }
    for (const { color, width, xs, ys, heads } of strokes.values()) {
        p.line(xs, ys, { color, width, opacity: 0.75 });
        p.path(heads, color);
    }
}
