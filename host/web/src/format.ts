/** Numbers, times and sizes as the page writes them. Unknown is a dash, never 0. */

export const UNKNOWN = "–";

const GROUPED = new Intl.NumberFormat("en-GB");

export function count(value: number | bigint | string | null | undefined): string {
    if (value === null || value === undefined || value === "") return UNKNOWN;
    const number = typeof value === "bigint" ? value : Number(value);
    if (typeof number === "number" && !Number.isFinite(number)) return UNKNOWN;
    return GROUPED.format(number);
}

/** "1 packet", "2 packets", "– packets". */
export function several(value: number | bigint | string | null | undefined, one: string): string {
    const text = count(value);
    return `${text} ${one}${text === "1" ? "" : "s"}`;
}

/** A text of so many letters at most; what is left out is in its middle, where an address tells least, not the port. */
export function shortened(text: string, most: number): string {
    if (text.length <= most) return text;
    const parts = text.split(ARROW);
    const room = most - ARROW.length * (parts.length - 1);
    const each = Math.floor(room / parts.length);
    // What short ones leave goes to the long ones.
    const long = parts.filter((part) => part.length > each).length;
    const left = room - parts.reduce((sum, part) => sum + Math.min(part.length, each), 0);
    const fits = Math.max(2, each + Math.floor(left / long));
    const short = (part: string) => {
        if (part.length <= fits) return part;
        const end = Math.ceil((fits - 1) / 2);
        return `${part.slice(0, fits - 1 - end)}…${part.slice(part.length - end)}`;
    };
    return parts.map(short).join(ARROW);
}

/** Between the ends of a connection. */
const ARROW = " → ";

/**
 * Names of about so many letters at most, of which no two that differ look the same: what is left out is where they are
 * alike, and ends between their parts ("blk[154]; …blk[2x] (6); …").
 */
export function toldApart(names: readonly string[], most: number): string[] {
    const alike = (short: readonly string[], at: number) =>
        names.filter((name, other) => name !== names[at] && short[other] === short[at]);
    // First all that fits, then around the place where one first differs from those that looked the same.
    let short = names.map((name) => (name.length <= most ? name : `${name.slice(0, partBefore(name, most))}…`));
    for (let round = 0; round < names.length; round += 1) {
        const next = names.map((name, at) => {
            const others = alike(short, at);
            if (others.length === 0) return short[at] as string;
            const differs = Math.max(...others.map((other) => commonLetters(name, other)));
            const begin = partBefore(name, differs);
            const head = name.slice(0, partBefore(name, most / 3));
            const rest = name.slice(begin);
            const room = most - head.length - 1;
            const cut = rest.length <= room ? rest.length : Math.max(partBefore(rest, room), differs - begin + 1);
            return `${head}…${rest.slice(0, cut)}${cut < rest.length ? "…" : ""}`;
        });
        if (next.every((name, at) => name === short[at])) break;
        short = next;
    }
    return short.map((name, at) => (alike(short, at).length === 0 ? name : (names[at] as string)));
}

/** Where the last part of a name begins that begins at a letter or before it. */
function partBefore(name: string, letter: number): number {
    const ends = [...name.slice(0, letter + 1).matchAll(/; |--?/g)].map((found) => found.index + found[0].length);
    return ends.findLast((end) => end <= letter) ?? Math.floor(letter);
}

function commonLetters(one: string, other: string): number {
    let at = 0;
    while (at < one.length && one[at] === other[at]) at += 1;
    return at;
}

/** A figure with three significant digits and no needless zeros. */
export function figure(value: number | null | undefined): string {
    if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1000) return GROUPED.format(Math.round(value));
    if (size < 0.001) return value.toExponential(2).replace(/\.?0+e/, "e");
    return String(Number(value.toPrecision(3)));
}

/** How many on average, or a second: nothing is decided by less than a thousandth, and powers of ten are hard to read. */
export function average(value: number | null | undefined): string {
    return typeof value === "number" && value > 0 && value < 0.001 ? "< 0.001" : figure(value);
}

/** A duration in the unit that reads best: 12.3 s, 4.56 ms, 789 µs. */
export function duration(seconds: number | null | undefined): string {
    if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return UNKNOWN;
    const size = Math.abs(seconds);
    if (size === 0) return "0 s";
    if (size >= 3600) return two(Math.round(seconds / 60), "h", "min");
    if (size >= 600) return two(Math.round(seconds), "min", "s");
    if (size >= 0.9995) return `${figure(seconds)} s`;
    if (size >= 0.0009995) return `${figure(seconds * 1e3)} ms`;
    if (size >= 0.9995e-6) return `${figure(seconds * 1e6)} µs`;
    return `${figure(seconds * 1e9)} ns`;
}

/** A whole number of a small unit, 60 of which are a large one. */
function two(value: number, large: string, small: string): string {
    const rest = Math.abs(value % 60);
    return `${Math.trunc(value / 60)} ${large}${rest === 0 ? "" : ` ${rest} ${small}`}`;
}

/** A magnitude with its unit's prefix: 1.2 MB, 34 kbit/s. Decimal, as networks count. */
export function scaled(value: number | null | undefined, unit: string): string {
    if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
    const prefixes = ["", "k", "M", "G", "T"];
    let step = 0;
    let rest = value;
    while (Math.abs(rest) >= 999.5 && step < prefixes.length - 1) {
        rest /= 1000;
        step += 1;
    }
    return `${figure(rest)} ${prefixes[step]}${unit}`;
}

export const bytes = (value: number | null | undefined) => scaled(value, "B");
export const bits = (value: number | null | undefined) => scaled(value, "bit/s");

export function percent(share: number | null | undefined): string {
    if (share === null || share === undefined || !Number.isFinite(share)) return UNKNOWN;
    // Nothing is decided by a share below that, and powers of ten are hard to read.
    if (share > 0 && share < 1e-5) return "< 0.001 %";
    return `${figure(share * 100)} %`;
}

/** Nanoseconds since 1970 of an RFC 3339 time in UTC. Throws on anything else. */
export function nanoseconds(rfc3339: string): bigint {
    const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)$/.exec(rfc3339);
    if (!match) throw new Error(`not a time in UTC: ${rfc3339}`);
    const whole = Date.parse(`${match[1]}Z`);
    return BigInt(whole) * 1_000_000n + BigInt((match[2] ?? "").padEnd(9, "0"));
}

const DAY = 86_400_000_000_000n;

/** A moment, ns since 1970, to `digits` behind the point (0 to 9). `start`: ns since 1970 of second 0. */
function rounded(start: bigint, seconds: number, digits: number): bigint {
    const unit = 10n ** BigInt(9 - digits);
    const total = start + BigInt(Math.round(seconds * 1e9));
    return ((total + unit / 2n) / unit) * unit;
}

/** Time of day in UTC, `digits` behind the point (0 to 9). */
export function clock(start: bigint, seconds: number, digits: number): string {
    const inDay = ((rounded(start, seconds, digits) % DAY) + DAY) % DAY;
    const whole = Number(inDay / 1_000_000_000n);
    const pad = (value: number) => String(value).padStart(2, "0");
    const text = `${pad(Math.floor(whole / 3600))}:${pad(Math.floor(whole / 60) % 60)}:${pad(whole % 60)}`;
    if (digits === 0) return text;
    return `${text}.${String(inDay % 1_000_000_000n)
        .padStart(9, "0")
        .slice(0, digits)}`;
}

/** Day in UTC; `digits` as of the time of day that stands beside it. */
export function date(start: bigint, seconds: number, digits: number): string {
    return new Date(Number(rounded(start, seconds, digits) / 1_000_000n)).toISOString().slice(0, 10);
}

/** Time of day, with its date where that is not the date of second 0 or of `beside`. */
export function moment(start: bigint, seconds: number, digits: number, beside = 0): string {
    const day = date(start, seconds, digits);
    const time = clock(start, seconds, digits);
    return day === date(start, beside, digits) ? time : `${day} ${time}`;
}
