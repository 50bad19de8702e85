/** Where a mark is that the reader was at, when what is drawn is another. */
import type { Hover } from "./ChartFrame";

/** What a reader hears of it. */
export const spoken = ({ title, lines }: Pick<Hover, "title" | "lines">): string =>
    `${title}. ${lines.map(([name, value]) => `${name} ${value}`).join(", ")}`;

/**
 * Place among `count` marks, in the order of `x`, of the one that reads as `text` and now lies at `x` px. Below 0: it is
 * not among them, and -1 less so many lie before it.
 */
export function placeOf(count: number, at: (index: number) => Hover, x: number, text: string): number {
    let low = 0;
    let high = count;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (at(middle).x < x - NEAR) low = middle + 1;
        else high = middle;
    }
    for (let index = low; index < count; index += 1) {
        const found = at(index);
        if (found.x > x + NEAR) break;
        if (spoken(found) === text) return index;
    }
    return -1 - low;
}

/** A time becomes pixels and back on the way, px. */
const NEAR = 0.5;
