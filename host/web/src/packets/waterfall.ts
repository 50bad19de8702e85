/**
 * The waterfall: a bar for each transaction, cut into the parts of its time.
 */
import type { Columns } from "../api/client";
import type { Colors } from "../theme";

/** What the interface tells of a transaction; null is unknown. */
export interface Transaction {
    readonly connection: string;
    readonly signature: string;
    /** SETUP, DATA or CLOSE. */
    readonly kind: string;
    /** First packet of the request, seconds since the capture's start. */
    readonly start: number;
    /** First to last packet of the request. */
    readonly request: number;
    /** Last packet of the request to the first of the response. */
    readonly server: number | null;
    /** First to last packet of the response. */
    readonly response: number | null;
    /** Last packet of the request to the last of the response; of a setup, first SYN to its end. */
    readonly end: number | null;
    readonly requestBytes: number;
    readonly responseBytes: number;
    readonly losses: number;
    /** The server's share of its time, and how far that may be off. */
    readonly own: number | null;
    readonly uncertain: number | null;
}

/**
 * Parts of a bar in order. Between request and response passes more than the server's own time: repeats of what was lost
 * on its way are in it, too.
 */
export const PARTS = [
    { name: "client", label: "client, before the request", colour: "grey" },
    { name: "setup", label: "handshake", colour: "purple" },
    { name: "request", label: "request", colour: "blue" },
    { name: "server", label: "wait for the response", colour: "orange" },
    { name: "response", label: "response", colour: "green" },
] as const satisfies readonly { name: string; label: string; colour: keyof Colors }[];

/** Name of a part. */
export type PartName = (typeof PARTS)[number]["name"];

/** A piece of a bar. */
export interface Part {
    readonly name: PartName;
    readonly from: number;
    readonly to: number;
}

export const COLUMNS =
    "connection_id,signature,kind,request_time,request_seconds,server_seconds,response_seconds,end_seconds,request_bytes,response_bytes,losses,shares_server_processing_seconds,server_uncertain_seconds";

export function readTransactions(answer: Columns): Transaction[] {
    const optional = (name: string, row: number): number | null => {
        const value = answer.at(name, row);
        return typeof value === "number" ? value : null;
    };
    const text = (name: string, row: number) => String(answer.at(name, row) ?? "");
    return Array.from({ length: answer.rows }, (_, row) => ({
        connection: text("connection_id", row),
        signature: text("signature", row),
        kind: text("kind", row),
        start: optional("request_time", row) ?? NaN,
        request: optional("request_seconds", row) ?? 0,
        server: optional("server_seconds", row),
        response: optional("response_seconds", row),
        end: optional("end_seconds", row),
        requestBytes: optional("request_bytes", row) ?? NaN,
        responseBytes: optional("response_bytes", row) ?? NaN,
        losses: optional("losses", row) ?? 0,
        own: optional("shares_server_processing_seconds", row),
        uncertain: optional("server_uncertain_seconds", row),
    }));
}

/** The bar of a transaction; `before` is when the previous one of its connection ended, null for none. */
export function bar(of: Transaction, before: number | null): Part[] {
    const parts: Part[] = [];
    const add = (name: PartName, from: number, to: number): void => {
        if (to > from) parts.push({ name, from, to });
    };
    if (of.kind === "SETUP") {
        add("setup", of.start, endOf(of));
        return parts;
    }
    if (before !== null) add("client", before, of.start);
    const asked = of.start + of.request;
    add("request", of.start, asked);
    const answered = of.server === null ? null : asked + of.server;
    if (answered !== null) {
        add("server", asked, answered);
        if (of.response !== null) add("response", answered, answered + of.response);
    }
    return parts;
}

/** End of a transaction as far as it is known. */
export function endOf(of: Transaction): number {
    if (of.kind === "SETUP") return of.start + (of.end ?? 0);
    return of.start + of.request + (of.end ?? (of.server ?? 0) + (of.response ?? 0));
}

/** Bars of transactions in any order: what came before each is looked for among them. */
export function bars(all: readonly Transaction[]): Part[][] {
    const order = all.map((_, at) => at).sort((a, b) => (all[a] as Transaction).start - (all[b] as Transaction).start);
    const ended = new Map<string, number>();
    const found: Part[][] = all.map(() => []);
    for (const at of order) {
        const one = all[at] as Transaction;
        found[at] = bar(one, ended.get(one.connection) ?? null);
        ended.set(one.connection, endOf(one));
    }
    return found;
}

/** Seconds of each part over all bars. */
export function totals(of: readonly (readonly Part[])[]): Record<PartName, number> {
    const sums: Record<PartName, number> = { client: 0, setup: 0, request: 0, server: 0, response: 0 };
    for (const part of of.flat()) sums[part.name] += part.to - part.from;
    return sums;
}
