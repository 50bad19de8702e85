/** From values to pixels and to the ticks of an axis. Pure. */
import { clock, date, figure } from "../format";

export type AxisKind = "linear" | "log" | "time";

export interface Scale {
    kind: AxisKind;
    /** Smallest and largest value shown. */
    domain: readonly [number, number];
    /** Pixel of a value; outside the domain it lies outside the range. */
    to(value: number): number;
    /** Value at a pixel. */
    from(pixel: number): number;
}

export function scale(kind: AxisKind, domain: readonly [number, number], pixels: readonly [number, number]): Scale {
    const map = kind === "log" ? Math.log10 : (value: number) => value;
    const back = kind === "log" ? (value: number) => 10 ** value : (value: number) => value;
    const low = map(domain[0]);
    const width = map(domain[1]) - low || 1;
    const [first, last] = pixels;
    return {
        kind,
        domain,
        to: (value) => first + ((map(value) - low) / width) * (last - first),
        from: (pixel) => back(low + ((pixel - first) / (last - first || 1)) * width),
    };
}

export interface Tick {
    value: number;
    label: string;
}

/** Steps of 1, 2 or 5 times a power of ten, about `wanted` of them. */
export function niceStep(width: number, wanted: number): number {
    const rough = width / Math.max(1, wanted);
    const power = 10 ** Math.floor(Math.log10(rough));
    const factor = rough / power;
    return (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10) * power;
}

const DAY = 86400;
const MONTH = 30.44 * DAY;
/** Months between ticks; beyond, years. */
const MONTHS = [1, 3, 6, 12];
const STEPS = [
    ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200],
    ...[1, 2, 7, 30, 365].map((days) => days * DAY),
];

/** The same in seconds: whole minutes and hours where there are several. */
export function durationStep(width: number, wanted: number): number {
    const rough = width / Math.max(1, wanted);
    return (rough > 30 ? STEPS.find((one) => one >= rough) : undefined) ?? niceStep(width, wanted);
}

export function linearTicks(
    [low, high]: readonly [number, number],
    wanted: number,
    label: (value: number) => string = figure,
    nice = niceStep,
): Tick[] {
    if (!(high > low)) return [];
    const step = nice(high - low, wanted);
    const ticks: Tick[] = [];
    for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index += 1) {
        const value = Number((index * step).toPrecision(12));
        ticks.push({ value, label: label(value) });
    }
    return ticks;
}

/** Powers of ten, with 2 and 5 between them when there is room; within a decade, where that tells little, even steps. */
export function logTicks(
    [low, high]: readonly [number, number],
    wanted: number,
    label: (value: number) => string = figure,
): Tick[] {
    if (!(low > 0) || !(high > low)) return [];
    const decades = Math.log10(high / low);
    const factors = decades * 3 <= wanted || decades < 2 ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(decades / wanted));
    const ticks: Tick[] = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
        if (power % every !== 0) continue;
        for (const factor of factors) {
            const value = Number(`${factor}e${power}`);
            if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push({ value, label: label(value) });
        }
    }
    return decades < 1 && ticks.length < 3 ? linearTicks([low, high], wanted, label) : ticks;
}

/** Ticks where months, quarters, halves or round numbers of years begin. */
function monthTicks([low, high]: readonly [number, number], rough: number, start: bigint): Tick[] {
    const seconds = Number(start) / 1e9;
    const step = MONTHS.find((months) => months * MONTH >= rough) ?? 12 * niceStep(rough / (12 * MONTH), 1);
    const monthOf = (value: number) => {
        const day = new Date((seconds + value) * 1000);
        return day.getUTCFullYear() * 12 + day.getUTCMonth();
    };
    const ticks: Tick[] = [];
    for (let month = Math.ceil(monthOf(low) / step) * step; month <= monthOf(high); month += step) {
        const value = Date.UTC(Math.floor(month / 12), month % 12) / 1000 - seconds;
        if (value >= low && value <= high) ticks.push({ value, label: date(start, value, 0) });
    }
    return ticks;
}

/** Ticks at round times of day; midnight is told by the day that begins. `start`: ns since 1970 of second 0. */
export function timeTicks([low, high]: readonly [number, number], wanted: number, start: bigint): Tick[] {
    if (!(high > low)) return [];
    const rough = (high - low) / Math.max(1, wanted);
    if (rough > 7 * DAY) return monthTicks([low, high], rough, start);
    const step = rough < 1 ? niceStep(high - low, wanted) : (STEPS.find((one) => one >= rough) ?? 7 * DAY);
    const digits = step >= 1 ? 0 : Math.min(9, Math.ceil(-Math.log10(step) - 1e-9));
    // Rounding in whole nanoseconds: seconds since midnight are too coarse for a double when steps are below 10 ns.
    const stepNs = BigInt(Math.max(1, Math.round(step * 1e9)));
    const lowNs = start + BigInt(Math.round(low * 1e9));
    const highNs = start + BigInt(Math.round(high * 1e9));
    const ticks: Tick[] = [];
    for (let at = ((lowNs + stepNs - 1n) / stepNs) * stepNs; at <= highNs; at += stepNs) {
        const value = Number(at - start) / 1e9;
        const midnight = at % BigInt(DAY * 1e9) === 0n;
        ticks.push({ value, label: midnight ? date(start, value, 0) : clock(start, value, digits) });
    }
    return ticks;
}

/** Smallest and largest finite value; null when there is none. */
export function extent(values: ArrayLike<number>): [number, number] | null {
    let low = Infinity;
    let high = -Infinity;
    for (let index = 0; index < values.length; index += 1) {
        const value = values[index] as number;
        if (value < low) low = value;
        if (value > high) high = value;
    }
    return low <= high ? [low, high] : null;
}
