/** Packets of a connection as rows: a page of them, and what each says in words. */
import { columns, of, type Columns } from "../api/client";
import type { Capture } from "../api/types";
import { useLoad, type Loaded } from "../components/load";
import { count } from "../format";
import { asked, capture, param, range } from "../state/store";
import { kindsOf } from "./kinds";

/** Rows on a page: a few hundred kB on the wire. */
export const PAGE = 4000;

/** Where a packet of the outer two taps is, as the interface names it. */
export type Passage = "BOTH" | "LOST" | "MISSED" | "COPIED" | "UNDECIDED" | "OUTSIDE";

export interface Row {
    /** NaN: the tap nearest to the client does not have it. */
    readonly packet: number;
    /** Of several taps the one whose frame and time these are, that nearest to the client is 0. */
    readonly tap: number;
    /** Of the frame in its source, from 1. */
    readonly number: number;
    readonly time: number;
    readonly delta: number;
    readonly server: boolean;
    readonly kind: string;
    /** Payload, frame. */
    readonly length: number;
    readonly wire: number;
    readonly ttl: number;
    readonly ipId: number;
    readonly flags: string;
    readonly seq: number;
    readonly ack: number | null;
    /** Scaled where the scale is known; else as on the wire. */
    readonly window: number;
    readonly scaled: boolean;
    readonly sack: string | null;
    readonly block: number | null;
    /** Packet that carried these bytes first. */
    readonly original: number | null;
    readonly verdict: string;
    readonly note: string | null;
    /** When the tap nearest to the server saw it, by the clock of the one nearest to the client. */
    readonly far: number | null;
    /** When each tap between these two saw it, by the same clock. */
    readonly between: readonly (number | null)[];
    /** Null: one tap, or not known. */
    readonly passage: Passage | null;
}

export interface Page {
    readonly rows: readonly Row[];
    /** Rows before this page, and all in the range. */
    readonly offset: number;
    readonly total: number;
}

/** Names of the bits of the TCP header's flags, lowest first. */
const FLAGS = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];

export function flagNames(bits: number): string {
    // SYN before ACK, as everyone says it; PSH last, because it says least.
    const order = [1, 0, 2, 4, 5, 6, 7, 3];
    return order
        .filter((bit) => bits & (1 << bit))
        .map((bit) => FLAGS[bit])
        .join(" ");
}

export function readRows(answer: Columns): Row[] {
    const numbers = (name: string) => answer.numbers(name);
    const optional = (name: string, row: number): number | null => {
        const value = answer.at(name, row);
        return typeof value === "number" ? value : null;
    };
    const text = (name: string, row: number): string | null => {
        const value = answer.at(name, row);
        return typeof value === "string" && value !== "" ? value : null;
    };
    const [packet, number, time, delta, kind] = (["packet", "number", "time", "delta", "kind"] as const).map(numbers);
    const [length, wire, ttl, ipId, flags] = (["length", "wire_bytes", "ttl", "ip_id", "flags"] as const).map(numbers);
    const kinds = kindsOf(answer);
    const window = numbers("window");
    const seq = numbers("seq_relative");
    const taps = answer.has("passage");
    const between: string[] = [];
    while (answer.has(`between_${between.length + 1}`)) between.push(`between_${between.length + 1}`);
    return Array.from({ length: answer.rows }, (_, row) => {
        const value = (column: ArrayLike<number> | undefined) => column?.[row] ?? NaN;
        const scaled = optional("window_bytes", row);
        return {
            packet: value(packet),
            tap: taps ? (optional("tap", row) ?? 0) : 0,
            number: value(number),
            time: value(time),
            delta: value(delta),
            server: answer.at("server", row) === true,
            kind: kinds[value(kind)] ?? "?",
            length: value(length),
            wire: value(wire),
            ttl: value(ttl),
            ipId: value(ipId),
            flags: flagNames(value(flags)),
            seq: value(seq),
            ack: optional("ack_relative", row),
            window: scaled ?? value(window),
            scaled: scaled !== null,
            sack: text("sack", row),
            block: optional("block_bytes", row),
            original: optional("original", row),
            verdict: [text("class", row), text("cause", row), text("place", row)]
                .filter((one) => one !== null)
                .join(", "),
            note: text("note", row),
            far: taps ? optional("far", row) : null,
            between: between.map((name) => optional(name, row)),
            passage: taps ? (text("passage", row) as Passage | null) : null,
        };
    });
}

/** The tap nearest to the client has it. */
export function isHere(row: Row): boolean {
    return !Number.isNaN(row.packet);
}

/** When each of several taps saw a packet, that nearest to the client first; null: it did not, or that is not known. */
export function timesAt(row: Row): readonly (number | null)[] {
    return [isHere(row) ? row.time : null, ...row.between, row.far];
}

/** Neither of the outer taps has it. */
export function isBetween(row: Row): boolean {
    return !isHere(row) && row.far === null;
}

/** What became of a packet that is not at both outer taps, by the names of all. */
export function passageWords(row: Row, names: readonly string[]): string {
    if (isBetween(row)) {
        const seen = names.filter((_, tap) => typeof timesAt(row)[tap] === "number");
        const next = names[lastTap(row) + onward(row)];
        return `only at ${seen.join(" and ")}: ${row.passage === "LOST" ? `lost before ${next}` : fate(row, names, next)}`;
    }
    return fate(row, names, isHere(row) ? names[names.length - 1] : names[0]);
}

function fate(row: Row, names: readonly string[], other: string | undefined): string {
    const words: Record<Passage, string> = {
        BOTH: "",
        LOST: `lost between ${gapOf(row, names)}`,
        MISSED: `not in ${other}, which it passed`,
        COPIED: "copied between the taps",
        UNDECIDED: `lost, or missed by ${other}`,
        OUTSIDE: `${other} does not cover this time`,
    };
    return row.passage === null ? "" : words[row.passage];
}

/** The tap that saw it last on its way. */
function lastTap(row: Row): number {
    const has = (time: number | null) => time !== null;
    return row.server ? timesAt(row).findIndex(has) : timesAt(row).findLastIndex(has);
}

/** From a tap to the next on its way. */
const onward = (row: Row) => (row.server ? -1 : 1);

/** The two taps between which a packet was seen last and not seen any more. */
function gapOf(row: Row, names: readonly string[]): string {
    if (names.length < 3) return "the taps";
    const last = lastTap(row);
    return `${names[last]} and ${names[last + onward(row)]}`;
}

/** What the engine noted of a packet (EVENT.what), in words; what its kind, its verdict or its SACK blocks say already is left out. */
const NOTES: Readonly<Record<string, string>> = {
    GAP: "bytes before it not seen",
    BELOW: "",
    PARTIAL: "with new bytes",
    WILD: "far from its window",
    RESYNC: "numbers begin anew",
    COPY: "",
    ACK_UNSEEN: "acknowledges what was not seen",
    // How well the engine knows what it counted: nothing about the packet itself.
    EXPECTED_UNKNOWN: "",
    ACKED_UNKNOWN: "",
    ACKS_MORE: "",
    ACKS_REPEAT: "first answer to a repeat",
    SACK: "",
    DSACK: "",
    ZERO_WINDOW: "window closed",
    SMALL_WINDOW: "window below a segment",
    WINDOW_OPEN: "window opens",
    WINDOW_FULL: "fills the window",
    PROBE: "window probe",
    SYN_REPEAT: "SYN again",
    SYN_ACK_REPEAT: "SYN-ACK again",
    SYN_OTHER: "SYN that fits no handshake",
    FIN_REPEAT: "FIN again",
    ICMP: "ICMP error",
    SYN_DATA: "SYN with data",
    DUP_ACK: "third duplicate ACK",
    WILD_ACK: "ACK far from what was sent",
};

/** What is remarkable about a packet, in words. */
export function remarks(row: Row): string {
    const words: string[] = [];
    if (row.kind === "RETRANSMISSION") words.push("sent again");
    if (row.kind === "OUT_OF_ORDER") words.push("out of order");
    if (row.kind === "COPY") words.push("copy, keep-alive or probe");
    if (row.kind === "DSACK") words.push("tells that bytes came twice");
    if (row.sack !== null) words.push(`SACK ${row.sack}`);
    if (row.verdict !== "") words.push(row.verdict.toLowerCase().replaceAll("_", " "));
    for (const note of row.note?.split(" ") ?? []) words.push(NOTES[note] ?? note);
    if (row.kind === "ZERO_WINDOW") words.push("window closed");
    return [...new Set(words.filter(Boolean))].join("; ");
}

/** What a packet carries, as short as can be. */
export function content(row: Row): string {
    const flags = row.flags === "ACK" || row.flags === "ACK PSH" ? (row.length > 0 ? "" : "ACK") : row.flags;
    return [flags, row.length > 0 ? `${count(row.length)} bytes` : ""].filter(Boolean).join(", ");
}

/**
 * The page of the connection's packets in the page's range that `offset` or else `at` asks for; `taps`: with those that
 * only another tap has.
 */
export function usePage(id: string, taps = false): Loaded<Page> {
    const shown = capture.value as Capture;
    const route = of(shown, `/connections/${encodeURIComponent(id)}/packets`);
    const { from, to } = asked.value;
    const wanted = param("offset");
    const at = param("at");
    const [begin] = range.value;
    const both = taps ? { taps } : {};
    return useLoad(
        id === "" ? null : JSON.stringify([route, from, to, wanted, wanted === "" ? at : "", taps]),
        async (signal) => {
            let offset = Number(wanted);
            if (wanted === "" && at !== "" && Number(at) > begin) {
                const before = await columns(route, { from, to: at, limit: 1, ...both }, signal);
                offset = Math.floor(Number(before.metadata.get("total")) / PAGE) * PAGE;
            }
            const answer = await columns(route, { from, to, offset, limit: PAGE, ...both }, signal);
            return { rows: readRows(answer), offset, total: Number(answer.metadata.get("total")) };
        },
    );
}

/** Row at or after a time, or the last. */
export function rowFrom(rows: readonly Row[], time: number): number {
    // Times in links are written to the nanosecond.
    const found = rows.findIndex((row) => row.time >= time - 0.5e-9);
    return found < 0 ? rows.length - 1 : found;
}
