/** How the columns of the tables are named and written. */
import type { Columns } from "../api/client";
import type { ColumnInfo } from "../api/types";
import { bits, bytes, count, duration, figure, moment, percent, UNKNOWN } from "../format";

/** Headings of what is looked at most; the others are called as their column. Tooltips have the whole name. */
const SHORT: Readonly<Record<string, string>> = {
    first_packet_time: "first packet",
    client_address: "client",
    server_address: "server",
    setup_outcome: "setup",
    setup_explanation: "why",
    setup_syn_count: "SYNs",
    setup_syn_ack_count: "SYN-ACKs",
    setup_end_seconds: "setup took",
    close_kind: "close",
    payload_bytes: "payload",
    retransmitted_packets: "sent again",
    sack_blocks: "SACKs",
    payload_bits_per_second: "rate",
    ceiling_measured_bits_per_second: "transfer rate",
    request_time: "request at",
};

/** Heading of a column, from its name. */
export function heading(name: string): string {
    const side = name.startsWith("client_to_server_") ? "→ " : name.startsWith("server_to_client_") ? "← " : "";
    const own = name.replace(/^(client_to_server|server_to_client)_/, "");
    const short = SHORT[own];
    if (short !== undefined) return side + short;
    const rest = own
        .replace(/_seconds$/, "")
        .replace(/_bits_per_second$/, " rate")
        .replaceAll("_", " ");
    return side + rest;
}

/** What a column is, for its tooltip and for screen readers. */
export function headingTitle(info: ColumnInfo): string {
    const unit = info.unit === "" ? "" : `, ${info.unit}`;
    return [info.name.replaceAll("_", " "), info.doc, `(in filters: ${info.path}${unit})`].filter(Boolean).join(" · ");
}

export function isNumeric(info: ColumnInfo): boolean {
    return info.type !== "text" && info.type !== "bool" && info.type !== "id";
}

/** Of an IPv4 address. */
const ADDRESS_LETTERS = 15;

/** Of a signature: longer ones end with dots of their own. */
const SIGNATURE_LETTERS = 125;

/** Letters of the longest address or signature in a column of these pages, at least those of IPv4. */
export function longestText(pages: Iterable<Columns>, name: string): number {
    let most = ADDRESS_LETTERS;
    for (const page of isAddress(name) || isSignature(name) ? pages : []) {
        if (page.has(name)) for (const text of page.texts(name)) most = Math.max(most, text?.length ?? 0);
    }
    return most;
}

const isAddress = (name: string) => /address/.test(name);
const isSignature = (name: string) => /description|signature/.test(name);

/** A column's width, CSS pixels; `dated`: times have their dates; `letters`: of its longest address or signature. */
export function widthOf(info: ColumnInfo, dated = false, letters = ADDRESS_LETTERS): number {
    if (isSignature(info.name)) return Math.max(380, Math.ceil(Math.min(letters, SIGNATURE_LETTERS) * 7.6) + 20);
    if (/explanation|missing|evidence/.test(info.name)) return 380;
    if (info.type === "time") return dated ? 215 : 130;
    if (info.type === "text") return isAddress(info.name) ? Math.ceil(letters * 8.2) + 27 : 130;
    if (info.type === "id") return 110;
    // A rate: 22.4 Mbit/s.
    const least = info.unit === "bit/s" ? 100 : 70;
    return Math.max(least, Math.min(150, heading(info.name).length * 7.4 + 34));
}

/** Text of a cell. `start`: ns since 1970 of the capture's second 0. */
export function cell(info: ColumnInfo, page: Columns, row: number, start: bigint): string {
    const value = page.at(info.name, row);
    if (value === null || value === "") return UNKNOWN;
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (typeof value === "string") return value;
    if (info.type === "time") return moment(start, value, 6);
    switch (info.unit) {
        case "s":
            return duration(value);
        case "B":
            return bytes(value);
        case "bit/s":
            return bits(value);
        case "share":
            return percent(value);
    }
    // Ports and numbers of things are names, not amounts.
    if (/(^|_)(port|row|tunnel_id|index|id)$/.test(info.name)) return String(value);
    return info.type === "number" ? figure(value) : count(value);
}
