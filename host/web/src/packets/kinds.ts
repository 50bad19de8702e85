/**
 * What a packet is drawn as. Shape and colour both tell the kind, so that neither alone is needed to read a chart.
 */

import type { Columns } from "../api/client";
import type { Shape } from "../chart/painter";
import type { Colors } from "../theme";

/** One kind of packet. */
export interface Kind {
    /** As the interface names it. */
    readonly name: string;
    readonly label: string;
    readonly colour: keyof Colors;
    /** Its mark. */
    readonly shape: Shape;
    /** Width of the mark, px; null: a bar as tall as the packet is long. */
    readonly size: number | null;
}

/** All kinds. Later ones are drawn over earlier ones: what is rare and matters must not be hidden. */
export const KINDS: readonly Kind[] = [
    { name: "ACK", label: "ACK", colour: "sky", shape: "diamond", size: 5 },
    { name: "DATA", label: "data, as tall as it is long", colour: "text", shape: "square", size: null },
    { name: "COPY", label: "copy, keep-alive or window probe", colour: "grey", shape: "ring", size: 7 },
    { name: "SACK", label: "SACK", colour: "blue", shape: "diamond", size: 7 },
    { name: "DSACK", label: "D-SACK", colour: "purple", shape: "diamond", size: 8 },
    { name: "ZERO_WINDOW", label: "zero window", colour: "yellow", shape: "square", size: 8 },
    { name: "SYN", label: "SYN, SYN-ACK", colour: "green", shape: "triangle", size: 8 },
    { name: "FIN", label: "FIN", colour: "purple", shape: "square", size: 6 },
    { name: "OUT_OF_ORDER", label: "data out of order", colour: "yellow", shape: "square", size: null },
    { name: "RETRANSMISSION", label: "sent again", colour: "orange", shape: "square", size: null },
    { name: "RST", label: "RST", colour: "red", shape: "cross", size: 9 },
];

/** Names of the kinds of an answer's packets, by its numbers. */
export function kindsOf(answer: Columns): string[] {
    return (JSON.parse(answer.metadata.get("kinds") ?? "[]") as (string | { name: string })[]).map((kind) =>
        typeof kind === "string" ? kind : kind.name,
    );
}

/** For each of the interface's numbers of kinds, the place in KINDS. */
export function placesOf(names: readonly string[]): Uint8Array {
    return Uint8Array.from(names, (name) => {
        const place = KINDS.findIndex((kind) => kind.name === name);
        if (place < 0)
            throw new Error(`The host knows a kind of packets, ${name}, that this page does not: load the page again.`);
        return place;
    });
}
