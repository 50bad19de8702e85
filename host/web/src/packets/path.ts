/** The path of several taps: taps as places, legs between them with their delays and losses. */
import type { Int64 } from "../api/types";
import type { Painter } from "../chart/painter";
import { count, duration, several } from "../format";
import type { Colors } from "../theme";

export interface Tap {
    readonly file: string;
    readonly packets?: Int64;
    readonly missedByCapture?: Int64;
    readonly ttlClientSide?: number;
    readonly ttlServerSide?: number;
    readonly macClientSide?: string;
    readonly macServerSide?: string;
    readonly connections?: Int64;
    readonly connectionsOnlyHere?: Int64;
    readonly givenUp?: Int64;
}

export interface Delay {
    readonly minSeconds?: number;
    readonly medianSeconds?: number;
    readonly p95Seconds?: number;
    readonly maxSeconds?: number;
    readonly samples?: Int64;
}

export interface ClockPiece {
    readonly start?: string;
    readonly end?: string;
    readonly offsetSeconds?: number;
    readonly offsetWidthSeconds?: number;
    readonly skewPpm?: number;
}

export interface Leg {
    readonly from: string;
    readonly to: string;
    readonly offsetSeconds?: number;
    readonly offsetWidthSeconds?: number;
    readonly skewPpm?: number;
    readonly skewWidthPpm?: number;
    readonly matched?: Int64;
    readonly onlyFrom?: Int64;
    readonly onlyTo?: Int64;
    readonly lostForward?: Int64;
    readonly lostBackward?: Int64;
    readonly arrivedForward?: Int64;
    readonly arrivedBackward?: Int64;
    readonly delayForward?: Delay;
    readonly delayBackward?: Delay;
    readonly duplicatedForward?: Int64;
    readonly duplicatedBackward?: Int64;
    readonly undecided?: Int64;
    readonly outside?: Int64;
    readonly clock?: readonly ClockPiece[];
    readonly roundTripSeconds?: number;
    readonly placement?: readonly string[];
}

export const PATH_HEIGHT = 200;
/** Room for the ends of the path, px; from the picture's edge to the first tap; and a letter of the words above a leg. */
const END = 96;
const FIRST = END + 60;
const LETTER = 6.3;

/** Names of files without their folders, where these still differ. */
export function tapName(taps: readonly Tap[]): (file: string) => string {
    const bare = (file: string): string => file.replace(/.*\//, "");
    const differ = new Set(taps.map(({ file }) => bare(file))).size === taps.length;
    return differ ? bare : (file) => file;
}

/** One direction of a leg, in words. */
export function legWords(delay: Delay | undefined, lost: Int64 | undefined, arrived: Int64 | undefined): string {
    const time =
        delay === undefined
            ? "delay not known"
            : `${duration(delay.medianSeconds)} (${duration(delay.minSeconds)} to ${duration(delay.p95Seconds)})`;
    return `${time}, lost ${count(lost ?? "0")} of ${count(Number(arrived ?? 0) + Number(lost ?? 0))}`;
}

/** Both directions of a leg, in words. */
const wordsAbove = (leg: Leg): [string, string] => [
    `→ ${legWords(leg.delayForward, leg.lostForward, leg.arrivedForward)}`,
    `← ${legWords(leg.delayBackward, leg.lostBackward, leg.arrivedBackward)}`,
];

/** Width in which the words above the legs do not meet, px. */
export function pathLeast(legs: readonly Leg[]): number {
    const letters = Math.max(0, ...legs.flatMap(wordsAbove).map((words) => words.length));
    return Math.ceil(2 * FIRST + legs.length * (letters * LETTER + 12));
}

/** Taps from the client's side to the server's, and what happens between them. */
export function drawPath(p: Painter, taps: readonly Tap[], legs: readonly Leg[], width: number, c: Colors): void {
    const y = 100;
    const nameOf = tapName(taps);
    const step = taps.length > 1 ? (width - 2 * FIRST) / (taps.length - 1) : 0;
    const x = (at: number): number => FIRST + at * step;
    p.line([END - 30, width - END + 30], [y, y], { color: c.line, width: 3 });
    for (const [at, label] of [
        [END - 34, "clients"],
        [width - END + 34, "servers"],
    ] as const) {
        p.mark("square", at, y, 16, c.muted);
        p.text(label, at, y - 22, { color: c.text, size: 12, align: "center" });
    }
    taps.forEach((tap, at) => {
        p.mark("circle", x(at), y, 18, c.accent);
        p.text(nameOf(tap.file), x(at), y + 26, { color: c.text, size: 12, bold: true, align: "center" });
        const missed = Number(tap.missedByCapture ?? 0);
        p.text(several(tap.packets ?? "0", "packet"), x(at), y + 44, { color: c.muted, size: 11, align: "center" });
        if (missed > 0) {
            p.text(`missed ${count(missed)}`, x(at), y + 60, { color: c.orange, size: 11, align: "center" });
        }
    });
    legs.forEach((leg, at) => {
        const [a, b] = [x(at) + 16, x(at + 1) - 16];
        const middle = (a + b) / 2;
        const lines = [
            {
                y: y - 30,
                from: a,
                to: b,
                color: c.blue,
            },
            {
                y: y - 12,
                from: b,
                to: a,
                color: c.green,
            },
        ];
        for (const one of lines) {
            p.line([one.from, one.to], [one.y, one.y], { color: one.color, width: 1.6 });
            const back = one.to > one.from ? -9 : 9;
            p.path(`M${one.to} ${one.y}l${back} -4v8Z`, one.color);
        }
        wordsAbove(leg).forEach((words, row) =>
            p.text(words, middle, y - 66 + 18 * row, { color: c.text, size: 11.5, align: "center" }),
        );
    });
}
