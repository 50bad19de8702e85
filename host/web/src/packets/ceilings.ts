/** What each limit would allow a direction, beside the rate that was measured (docs/src/limits.md). */
import type { Area } from "../chart/axes";
import type { Painter } from "../chart/painter";
import { bits, bytes, duration, percent } from "../format";
import type { Colors } from "../theme";
import { LIMITS, type LimitSeconds } from "./shares";

/** Ceilings as the interface writes them; what is not set is not known. */
export interface Ceilings {
    readonly measuredBitsPerSecond?: number;
    readonly receiverWindowBitsPerSecond?: number;
    readonly senderBitsPerSecond?: number;
    readonly lossBitsPerSecond?: number;
    readonly linkBitsPerSecond?: number;
    readonly roundTripSeconds?: number;
    readonly idealWindowBytes?: number;
    readonly lightKilometres?: number;
}

type Sender = "client" | "server";

type Limit = "window" | "buffer" | "loss" | "link";

/** A row of the chart: the measured rate, or a ceiling. */
export interface Rate {
    readonly label: string;
    readonly colour: keyof Colors;
    /** Whose ceiling it is; null: it is the measured rate. */
    readonly limit: Limit | null;
    /** The least of the ceilings that are known. */
    readonly isLowest: boolean;
    /** bit/s; null: there is none to tell. */
    readonly rate: number | null;
    /** Rate in words, or why there is none: "not known", "none". */
    readonly told: string;
    /** What it is made of, or what is missing. */
    readonly origin: string;
}

const NOT_KNOWN = "not known";
const NO_ROUND_TRIP = "the round trip is not known";

/** The measured rate, then the ceilings. */
export function rates(of: Ceilings): Rate[] {
    const trip = of.roundTripSeconds;
    const over = `a round trip of ${duration(trip)}`;
    const perTrip = (rate: number | undefined) => bytes(((rate ?? NaN) * (trip ?? NaN)) / 8);
    const row = (
        looks: Pick<Rate, "limit" | "label" | "colour">,
        rate: number | undefined,
        origin: string,
        missing: string,
        without = NOT_KNOWN,
    ) => ({
        ...looks,
        rate: rate ?? null,
        told: rate === undefined ? without : bits(rate),
        origin: rate !== undefined ? origin : trip === undefined && looks.limit !== "link" ? NO_ROUND_TRIP : missing,
    });
    const ceilings = [
        row(
            { limit: "window", label: "receiver's window", colour: "purple" },
            of.receiverWindowBitsPerSecond,
            `its largest, ${perTrip(of.receiverWindowBitsPerSecond)}, in ${over}`,
            "the scale of its windows is not known",
        ),
        row(
            { limit: "buffer", label: "sender's buffer", colour: "yellow" },
            of.senderBitsPerSecond,
            `${perTrip(of.senderBitsPerSecond)} in flight while it was the limit, in ${over}`,
            "it was never the limit, so nothing tells its size",
        ),
        row(
            { limit: "loss", label: "loss (Mathis)", colour: "red" },
            of.lossBitsPerSecond,
            `segment ÷ (round trip · √(2p/3)); p: share of the data packets that were sent again; ${over}`,
            "no data were sent again",
            // Without a loss the formula has no ceiling; all else is only not known.
            trip === undefined ? NOT_KNOWN : "none",
        ),
        row(
            { limit: "link", label: "link", colour: "blue" },
            of.linkBitsPerSecond,
            "the bandwidth that was given, or the best rate while it was busy",
            "it was never seen busy, and no bandwidth was given",
        ),
    ];
    const known = ceilings.flatMap(({ rate }) => (rate === null ? [] : [rate]));
    const lowest = ceilings.findIndex(({ rate }) => rate === Math.min(...known));
    const measured = row(
        { limit: null, label: "measured", colour: "text" },
        of.measuredBitsPerSecond,
        "new bytes, from the first packet of each transfer to the acknowledgment of its last",
        "the application had nothing to send for most of the time",
    );
    return [{ ...measured, isLowest: false }, ...ceilings.map((one, at) => ({ ...one, isLowest: at === lowest }))];
}

/** Share of a ceiling that is measured; null where one of them is not known. */
export function shareOf(measured: number | undefined, ceiling: Rate): number | null {
    return measured === undefined || ceiling.rate === null || ceiling.rate === 0 ? null : measured / ceiling.rate;
}

/** Below this share of the lowest ceiling, no ceiling can have held for most of the time. */
const NEAR = 0.5;
/** Up to this share of the link's rate a queue that was left behind tells why more was measured. */
const LITTLE_MORE = 1.25;

/** The lowest ceiling against the measured rate, and the one that holds when it goes, or what held below all of them: sentences. */
export function sentences(of: Ceilings, sender: Sender, limits?: LimitSeconds): string[] {
    const receiver = sender === "client" ? "server" : "client";
    const known = rates(of)
        .filter(({ limit, rate }) => limit !== null && rate !== null)
        .sort((a, b) => (a.rate as number) - (b.rate as number));
    const [lowest, next] = known;
    const measured = of.measuredBitsPerSecond;
    if (!lowest) {
        return [`No ceiling is known; ${measured === undefined ? "nor is the rate" : `measured ${bits(measured)}`}.`];
    }
    const names: Readonly<Record<Limit, string>> = {
        window: `the window of the ${receiver}`,
        buffer: `the send buffer of the ${sender}`,
        loss: "the rate of loss",
        link: "the link",
    };
    const name = ({ limit, label }: Rate) => (limit === null ? label : names[limit]);
    const upper = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
    const over = lowest.limit === "link" ? "" : ` over a round trip of ${duration(of.roundTripSeconds)}`;
    return [
        `${upper(name(lowest))} allows ${bits(lowest.rate)}${over}${next ? ", least of all that is known" : ", and no other ceiling is known"}; ${against(measured, lowest)}.`,
        ...(isFar(measured, lowest)
            ? longest(limits)
            : next
              ? [`Were it gone, ${name(next)} would allow ${bits(next.rate)}.`]
              : []),
    ];
}

function against(measured: number | undefined, lowest: Rate): string {
    const share = shareOf(measured, lowest);
    if (measured === undefined) return "the measured rate is not known";
    const rate = `measured ${bits(measured)}`;
    if (share === null) return rate;
    if (share > 1) {
        const why: Partial<Record<Limit, string>> = {
            loss: " (the formula is that of long transfers)",
            link:
                share > LITTLE_MORE
                    ? " (the link may be faster than it seemed)"
                    : " (what waits in the queue when the last packet passes is counted as passed)",
        };
        return `${rate}, which is more${(lowest.limit && why[lowest.limit]) ?? ""}`;
    }
    const most = isFar(measured, lowest) ? ": for most of the time something held it lower" : "";
    return `${rate}, ${percent(share)} of it${most}`;
}

const isFar = (measured: number | undefined, lowest: Rate) => (shareOf(measured, lowest) ?? 1) < NEAR;

/** What limited the transfers for the longest time, if anything is known of it. (Near a ceiling it may be what a queue fills.) */
function longest(limits: LimitSeconds | undefined): string[] {
    const all = LIMITS.map(({ field, label }) => ({ label, seconds: limits?.[field] ?? 0 }));
    const most = all.reduce((best, one) => (one.seconds > best.seconds ? one : best));
    const sum = all.reduce((total, { seconds }) => total + seconds, 0);
    return sum > 0 ? [`What limited it longest: ${most.label}, ${duration(most.seconds)} of ${duration(sum)}.`] : [];
}

/** Share of the axis above the highest rate, for its words. */
const ABOVE = 0.2;

/** Rates that the axis shows, from below the least, at a power of ten, to above the most; null: there are none. */
export function axisOf(rows: readonly Rate[]): [number, number] | null {
    const known = rows.flatMap(({ rate }) => (rate !== null && rate > 0 ? [rate] : []));
    if (known.length === 0) return null;
    const low = 10 ** Math.floor(Math.log10(Math.min(...known) / 1.5));
    return [low, low * (Math.max(...known) / low) ** (1 / (1 - ABOVE))];
}

/** Height of a row, and within it of its bar, px. */
export const ROW = 24;
const BAR = 16;
/** A letter of a rate, px. */
const LETTER = 6.8;

/** Bars from the left; the measured one and the lowest ceiling are filled, the measured rate stands as a line across the ceilings. */
export function drawCeilings(p: Painter, rows: readonly Rate[], area: Area, c: Colors): void {
    const right = area.left + area.width;
    const endOf = (rate: number) => Math.max(area.left, area.x.to(rate));
    const isFilled = (row: Rate) => row.limit === null || row.isLowest;
    rows.forEach((row, at) => {
        if (row.rate === null) return;
        const y = area.y.to(at) + (ROW - BAR) / 2;
        const color = c[row.colour];
        p.rect(area.left, y, endOf(row.rate) - area.left, BAR, isFilled(row) ? color : null, { color, width: 1.6 });
    });
    const measured = rows.find(({ limit }) => limit === null)?.rate ?? null;
    if (measured !== null) {
        const x = endOf(measured);
        p.line([x, x], [area.y.to(0) + ROW / 2, area.y.to(rows.length)], { color: c.text, width: 1.4, dash: [4, 3] });
    }
    rows.forEach((row, at) => {
        const end = row.rate === null ? area.left : endOf(row.rate);
        const fits = (text: string) => end + 8 + text.length * LETTER <= right;
        const whole = row.isLowest ? `${row.told}, lowest` : row.told;
        const text = fits(whole) ? whole : row.told;
        const beside = fits(text);
        p.text(text, beside ? end + 8 : end - 6, area.y.to(at + 0.5), {
            color: row.rate === null ? c.muted : c.text,
            size: beside ? 12 : 11,
            bold: row.isLowest,
            align: beside ? "left" : "right",
            // Within an outline there is nothing to be read over but a line.
            ...(beside || isFilled(row) ? { halo: c.panel } : {}),
        });
    });
}
