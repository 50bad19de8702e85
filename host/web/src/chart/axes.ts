/** The frame of a chart: grid, ticks, labels; and where the plot lies. */
import type { Colors } from "../theme";
import type { Painter } from "./painter";
import { duration, shortened } from "../format";
import {
    durationStep,
    linearTicks,
    logTicks,
    niceStep,
    scale,
    timeTicks,
    type AxisKind,
    type Scale,
    type Tick,
} from "./scale";

export interface AxisSpec {
    kind: AxisKind;
    domain: readonly [number, number];
    /** What the axis measures, with its unit. */
    label: string;
    /** Counts things: ticks at whole numbers only. */
    whole?: boolean;
    /** Text of a tick. */
    format?: (value: number) => string;
    /** Instead of round values: these (rows of connections, names). */
    ticks?: readonly Tick[];
    /** Labels without lines, where lines would cross what stands on them. */
    plain?: boolean;
}

/** Where the plot lies in the picture, CSS pixels, and how values get there. */
export interface Area {
    left: number;
    top: number;
    width: number;
    height: number;
    x: Scale;
    y: Scale;
    /** The scale on the right; null without. */
    y2: Scale | null;
    colors: Colors;
}

export interface Axes {
    x: AxisSpec;
    y: AxisSpec;
    y2: AxisSpec | null;
}

const TOP = 10;
const BOTTOM = 42;
/** Of a tick's label, px. */
const LETTER = 6.6;
/** Share of the picture that the labels at the left may take. */
const MOST_ROOM = 0.4;
/** Beside these labels, px: the distance from the plot, and what the axis measures. */
const BESIDE = 24;
const MEASURED = 14;
/** Between two labels side by side, px. */
const GAP = 6;
/** At the left, where nothing else is said, px: the same for all charts, which stand above one another. */
export const ROOM = 88;
const rightRoom = (axes: Axes) => (axes.y2 ? 68 : 18);

/** Height of the plot in a picture so tall. */
export const plotHeight = (height: number) => Math.max(10, height - TOP - BOTTOM);

export function layout(axes: Axes, width: number, height: number, colors: Colors, room = ROOM): Area {
    const left = Math.round(Math.min(room, width * MOST_ROOM));
    const inner = Math.max(10, width - left - rightRoom(axes));
    const tall = plotHeight(height);
    return {
        left,
        top: TOP,
        width: inner,
        height: tall,
        x: scale(axes.x.kind, axes.x.domain, [left, left + inner]),
        y: scale(axes.y.kind, axes.y.domain, [TOP + tall, TOP]),
        y2: axes.y2 ? scale(axes.y2.kind, axes.y2.domain, [TOP + tall, TOP]) : null,
        colors,
    };
}

export function ticksOf(axis: AxisSpec, wanted: number, start: bigint): readonly Tick[] {
    if (axis.ticks) return axis.ticks;
    if (axis.kind === "time") return timeTicks(axis.domain, wanted, start);
    const nice = axis.format === duration ? durationStep : niceStep;
    const ticks =
        axis.kind === "log"
            ? logTicks(axis.domain, wanted, axis.format)
            : linearTicks(axis.domain, wanted, axis.format, nice);
    return axis.whole ? ticks.filter((tick) => Number.isInteger(tick.value)) : ticks;
}

/** A name of so many letters at most; what was cut at its end already is cut there. */
function fitting(name: string, most: number): string {
    if (!name.endsWith("…")) return shortened(name, most);
    return name.length <= most ? name : `${name.slice(0, Math.max(1, most - 1))}…`;
}

/** `start`: ns since 1970 of second 0, for axes of time. */
export function drawAxes(painter: Painter, area: Area, axes: Axes, start: bigint): void {
    const { left, top, width, height, colors } = area;
    const bottom = top + height;
    const right = left + width;
    let isCut = false;
    for (const tick of ticksOf(axes.y, height / 40, start)) {
        const y = area.y.to(tick.value);
        if (y < top - 1 || y > bottom + 1) continue;
        if (!axes.y.plain) painter.line([left, right], [y, y], { color: colors.grid });
        // A name may be cut, a figure not: its unit would go.
        const beside = BESIDE + (axes.y.label === "" ? 0 : MEASURED);
        const label = axes.y.ticks ? fitting(tick.label, Math.floor((left - beside) / (LETTER - 0.3))) : tick.label;
        isCut ||= label !== tick.label;
        painter.text(label, left - 8, y, { color: colors.muted, align: "right", size: 11 });
    }
    let free = -Infinity;
    for (const tick of ticksOf(axes.x, width / (axes.x.kind === "time" ? 110 : 75), start)) {
        const x = area.x.to(tick.value);
        if (x < left - 1 || x > right + 1) continue;
        painter.line([x, x], [top, bottom], { color: colors.grid });
        // The last label keeps inside the picture, and none covers the one before it.
        const half = (tick.label.length * LETTER) / 2;
        const middle = Math.min(x, right + rightRoom(axes) - half);
        if (middle - half < free) continue;
        free = middle + half + GAP;
        painter.text(tick.label, middle, bottom + 12, { color: colors.muted, align: "center", size: 11 });
    }
    if (axes.y2 && area.y2) {
        for (const tick of ticksOf(axes.y2, height / 40, start)) {
            const y = area.y2.to(tick.value);
            if (y < top - 1 || y > bottom + 1) continue;
            painter.line([right, right + 4], [y, y], { color: colors.line });
            painter.text(tick.label, right + 8, y, { color: colors.muted, size: 11 });
        }
        painter.text(axes.y2.label, right + 58, top + height / 2, {
            color: colors.muted,
            align: "center",
            size: 11,
            vertical: true,
        });
    }
    painter.line([left, left, right], [top, bottom, bottom], { color: colors.line });
    // Letters differ in width: names that were cut may need the room of what they are.
    if (!isCut)
        painter.text(axes.y.label, 12, top + height / 2, {
            color: colors.muted,
            align: "center",
            size: 11,
            vertical: true,
        });
    painter.text(axes.x.label, left + width / 2, bottom + 30, { color: colors.muted, align: "center", size: 11 });
}
