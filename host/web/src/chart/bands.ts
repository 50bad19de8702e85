/** What lies behind every chart over time: where packets were lost, and where a load phase begins and ends. */
import type { Phase } from "../api/types";
import type { Area } from "./axes";
import type { Painter } from "./painter";

/** Ranges in which a flag is set. `times` are the begins of equal columns, the last of which ends at `end`. */
export function ranges(times: ArrayLike<number>, flags: ArrayLike<number>, end: number): [number, number][] {
    const found: [number, number][] = [];
    let open: number | null = null;
    for (let i = 0; i < times.length; i += 1) {
        const at = times[i] as number;
        if (flags[i] === 1) open ??= at;
        else if (open !== null) {
            found.push([open, at]);
            open = null;
        }
    }
    if (open !== null) found.push([open, end]);
    return found;
}

export function paintBands(
    painter: Painter,
    area: Area,
    bands: readonly (readonly [number, number])[],
    color = area.colors.band,
): void {
    for (const [from, to] of bands) {
        const x = Math.max(area.x.to(from), area.left);
        const width = Math.min(area.x.to(to), area.left + area.width) - x;
        if (width > 0) painter.rect(x, area.top, Math.max(width, 1), area.height, color);
    }
}

/** Height of the bar of a phase with its name beneath, px from the top of the plot: what is drawn there cannot be told. */
const PHASE_ROOM = 20;

/** The largest value of an axis on which `most` stays beneath the phases, of a plot so tall. */
export function topOf(most: number, tall: number, phases: number): number {
    return phases > 0 ? (most * tall) / Math.max(tall - PHASE_ROOM, tall / 2) : most * 1.06;
}

export function paintPhases(painter: Painter, area: Area, phases: readonly Phase[]): void {
    for (const [index, phase] of phases.entries()) {
        const from = Math.max(area.x.to(phase.from), area.left);
        const to = Math.min(area.x.to(phase.to), area.left + area.width);
        if (to - from < 2) continue;
        const y = area.top + 4;
        painter.rect(from + 1, y, to - from - 2, 3, area.colors.muted);
        if (to - from > 60) {
            painter.text(`phase ${index + 1}`, from + 4, y + 11, { color: area.colors.muted, size: 10.5 });
        }
    }
}
