/**
 * What a packet is drawn as. Shape and colour both tell the kind, so that neither alone is needed to read a chart.
 */

import type { Shape } from "../chart/painter";
import type { Colors } from "../theme";

/** A corner: x and y in px (y upwards) from the packet's place, and how many heights of its size it stands above that. */
export type Corner = readonly [x: number, y: number, rise: number];

/** One kind of packet. */
export interface Kind {
    /** As the interface names it. */
    readonly name: string;
    readonly label: string;
    readonly colour: keyof Colors;
    /** Its mark in a legend. */
    readonly sample: Shape;
    /** Convex polygons. */
    readonly shape: readonly (readonly Corner[])[];
}

const bar: readonly Corner[][] = [
    [
        [-1.5, 0, 0],
        [1.5, 0, 0],
        [1.5, 0, 1],
        [-1.5, 0, 1],
    ],
];

/** A dot that stands as high as the packet is long, where bars would hide one another. */
export const DOT: readonly Corner[][] = [
    [
        [-1.5, -1.5, 1],
        [1.5, -1.5, 1],
        [1.5, 1.5, 1],
        [-1.5, 1.5, 1],
    ],
];

function diamond(r: number): Corner[][] {
    return [
        [
            [0, -r, 0],
            [r, 0, 0],
            [0, r, 0],
            [-r, 0, 0],
        ],
    ];
}

function triangle(w: number, h: number): Corner[][] {
    return [
        [
            [-w, -h / 2, 0],
            [w, -h / 2, 0],
            [0, h / 2, 0],
        ],
    ];
}

function square(r: number): Corner[][] {
    return [
        [
            [-r, -r, 0],
            [r, -r, 0],
            [r, r, 0],
            [-r, r, 0],
        ],
    ];
}

function cross(r: number, t: number): Corner[][] {
    return [
        [
            [-r, -r + t, 0],
            [-r + t, -r, 0],
            [r, r - t, 0],
            [r - t, r, 0],
        ],
        [
            [-r, r - t, 0],
            [r - t, -r, 0],
            [r, -r + t, 0],
            [-r + t, r, 0],
        ],
    ];
}

/** A ring of four convex pieces. */
function frame(r: number, t: number): Corner[][] {
    const box = (x0: number, y0: number, x1: number, y1: number): Corner[] => [
        [x0, y0, 0],
        [x1, y0, 0],
        [x1, y1, 0],
        [x0, y1, 0],
    ];
    return [box(-r, -r, r, -r + t), box(-r, r - t, r, r), box(-r, -r, -r + t, r), box(r - t, -r, r, r)];
}

/** All kinds. Later ones are drawn over earlier ones: what is rare and matters must not be hidden. */
export const KINDS: readonly Kind[] = [
    { name: "ACK", label: "ACK", colour: "sky", sample: "diamond", shape: diamond(3) },
    { name: "DATA", label: "data, as tall as it is long", colour: "text", sample: "square", shape: bar },
    { name: "COPY", label: "copy, keep-alive or window probe", colour: "grey", sample: "ring", shape: frame(3.5, 1.3) },
    { name: "SACK", label: "SACK", colour: "blue", sample: "diamond", shape: diamond(4.5) },
    { name: "DSACK", label: "D-SACK", colour: "purple", sample: "diamond", shape: diamond(5) },
    { name: "ZERO_WINDOW", label: "zero window", colour: "yellow", sample: "square", shape: square(4) },
    { name: "SYN", label: "SYN, SYN-ACK", colour: "green", sample: "triangle", shape: triangle(4.5, 9) },
    { name: "FIN", label: "FIN", colour: "purple", sample: "square", shape: square(3) },
    { name: "OUT_OF_ORDER", label: "data out of order", colour: "yellow", sample: "square", shape: bar },
    { name: "RETRANSMISSION", label: "sent again", colour: "orange", sample: "square", shape: bar },
    { name: "RST", label: "RST", colour: "red", sample: "cross", shape: cross(5, 2.2) },
];

/** Kinds as the host numbers them (docs/src/page-api.md), for asking and for rows of packets. */
export const HOST_KINDS: readonly string[] = [
    "RST",
    "SYN",
    "FIN",
    "RETRANSMISSION",
    "OUT_OF_ORDER",
    "COPY",
    "DATA",
    "DSACK",
    "SACK",
    "ZERO_WINDOW",
    "ACK",
];

/** For each of the interface's numbers of kinds, the place in KINDS. */
export function placesOf(names: readonly string[]): Uint8Array {
    return Uint8Array.from(names, (name) => {
        const place = KINDS.findIndex((kind) => kind.name === name);
        if (place < 0)
            throw new Error(`The host knows a kind of packets, ${name}, that this page does not: load the page again.`);
        return place;
    });
}

/** The shape as a path in px (y downwards) about a place, for drawing without WebGL and for SVG. */
export function path(shape: Kind["shape"], x: number, y: number, height: number, scale: number): string {
    return shape
        .map((corners) => {
            const points = corners.map(
                ([dx, dy, rise]) => `${(x + dx * scale).toFixed(1)} ${(y - dy * scale - rise * height).toFixed(1)}`,
            );
            return `M${points.join("L")}Z`;
        })
        .join("");
}
