/**
 * Whose time it was, as parts of a stacked bar: every instant is counted once, so the parts add up to the total.
 */

import type { Colors } from "../theme";

/** TimeShares as the interface writes them; what is not set is not known and stands in the other parts. */
export interface TimeShares {
    readonly userThinkSeconds?: number;
    readonly clientProcessingSeconds?: number;
    readonly serverProcessingSeconds?: number;
    readonly latencySeconds?: number;
    readonly bandwidthSeconds?: number;
    readonly congestionSeconds?: number;
    readonly protocolSeconds?: number;
    readonly totalSeconds?: number;
}

/** What of the message Summary tells how far the time of transactions is known. */
export interface Known {
    readonly untimedTransactions?: string;
    readonly bottlenecks?: readonly unknown[];
}

/** How many transactions there are of which nothing tells whose time they were, if they are most; else 0. */
export function untimed({ untimedTransactions = "0", bottlenecks = [] }: Known): number {
    return bottlenecks.length === 0 ? Number(untimedTransactions) : 0;
}

/** A part of the time. */
export interface Share {
    readonly label: string;
    /** What it is, for the reader who wonders. */
    readonly meaning: string;
    readonly field: keyof TimeShares;
    readonly colour: keyof Colors;
    /** Whose it is in the pie of client, network and server; null: nobody's, the user thought. */
    readonly slice: "client" | "network" | "server" | null;
}

/** The parts in the order of the bar: client, network, server. */
export const SHARES: readonly Share[] = [
    {
        field: "userThinkSeconds",
        label: "user",
        meaning: "the client sent nothing for more than a second",
        colour: "grey",
        slice: null,
    },
    {
        field: "clientProcessingSeconds",
        label: "client",
        meaning: "the client worked",
        colour: "yellow",
        slice: "client",
    },
    {
        field: "latencySeconds",
        label: "latency",
        meaning: "a round trip for each turn",
        colour: "sky",
        slice: "network",
    },
    {
        field: "bandwidthSeconds",
        label: "bandwidth",
        meaning: "bytes at the rate of the path",
        colour: "blue",
        slice: "network",
    },
    { field: "congestionSeconds", label: "congestion", meaning: "queues", colour: "red", slice: "network" },
    {
        field: "protocolSeconds",
        label: "protocol",
        meaning: "windows, repair of losses, slow start, delayed ACKs: data waited and the link did not",
        colour: "purple",
        slice: "network",
    },
    {
        field: "serverProcessingSeconds",
        label: "server",
        meaning: "the server worked",
        colour: "green",
        slice: "server",
    },
];

/** Seconds of a part; 0 when it is not set. */
export function seconds(shares: TimeShares, share: Share): number {
    return shares[share.field] ?? 0;
}

/** What all parts make. */
export function sum(shares: TimeShares): number {
    return SHARES.reduce((all, share) => all + seconds(shares, share), 0);
}

/** Client, network and server of the same time. */
export function pie(shares: TimeShares): { client: number; network: number; server: number } {
    const slices = { client: 0, network: 0, server: 0 };
    for (const share of SHARES) if (share.slice !== null) slices[share.slice] += seconds(shares, share);
    return slices;
}

/** LimitSeconds of a direction. The first six add up to its transfers; the others are parts of them. */
export interface LimitSeconds {
    readonly application?: number;
    readonly sender?: number;
    readonly receiverWindow?: number;
    readonly congestion?: number;
    readonly bandwidth?: number;
    readonly unknown?: number;
}

/** What may limit a transfer; `column` is its name in the table of connections. */
export const LIMITS: readonly {
    readonly field: keyof LimitSeconds;
    readonly column: string;
    readonly label: string;
    readonly colour: keyof Colors;
}[] = [
    { field: "application", column: "application", label: "application", colour: "green" },
    { field: "sender", column: "sender", label: "sender's buffer", colour: "yellow" },
    { field: "receiverWindow", column: "receiver_window", label: "receiver's window", colour: "purple" },
    { field: "congestion", column: "congestion", label: "congestion control", colour: "red" },
    { field: "bandwidth", column: "bandwidth", label: "bandwidth", colour: "blue" },
    { field: "unknown", column: "unknown", label: "unknown", colour: "grey" },
];
