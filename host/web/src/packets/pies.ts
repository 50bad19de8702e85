/** Pies of client, network and server time, side by side. */
import type { Painter } from "../chart/painter";
import { duration, percent } from "../format";
import type { Colors } from "../theme";

export interface Pie {
    readonly client: number;
    readonly network: number;
    readonly server: number;
    /** How it was found, in words. */
    readonly title: string;
    /** Of each part, seconds; null when the method has none. */
    readonly uncertainty: number | null;
}

export const SLICES = [
    { name: "client", colour: "yellow" },
    { name: "network", colour: "blue" },
    { name: "server", colour: "green" },
] as const satisfies readonly { name: keyof Pie; colour: keyof Colors }[];

/** Height of the place of a pie, px. */
const TALL = 170;
const RADIUS = 68;
/** From a pie's left edge to the words beside it, and a letter of these, px. */
const WORDS = 2 * RADIUS + 32;
const LETTER = 6.6;

/** From the left edge to words beneath a pie, and the height that they add, px. */
const BENEATH = 26;
const WORDS_TALL = 24 * SLICES.length;

/** Room for a pie with the longest words of all so far from its left edge, px. */
function room(pies: readonly Pie[], before: number): number {
    const texts = pies.flatMap((pie) => SLICES.map(({ name }) => words(pie, name)));
    const titles = pies.map(({ title }) => title.length * (LETTER + 0.6));
    return Math.max(...titles, ...texts.map((text) => before + text.length * LETTER)) + 24;
}

/** Room that they need at least, px: with the words beneath, as on a page too narrow for them beside. */
export const leastRoom = (pies: readonly Pie[]): number => room(pies, BENEATH);

/** How many stand side by side in a picture so wide, each with so much room, and whether their words stand beneath. */
function placesOf(pies: readonly Pie[], width: number) {
    const beside = room(pies, WORDS);
    const beneath = beside > width;
    const across = beneath ? 1 : Math.floor(width / beside);
    return { beneath, across, wide: beside, tall: TALL + (beneath ? WORDS_TALL : 0) };
}

export function piesHeight(pies: readonly Pie[], width: number): number {
    const { across, tall } = placesOf(pies, width);
    return Math.ceil(pies.length / across) * tall + 10;
}

/** A slice as a path, from `begin` to `end` of the whole turn; the first begins at the top. */
export function slice(x: number, y: number, r: number, begin: number, end: number): string {
    if (end - begin >= 1 - 1e-9) return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
    const at = (turn: number) => {
        const angle = turn * 2 * Math.PI;
        return `${(x + r * Math.sin(angle)).toFixed(2)} ${(y - r * Math.cos(angle)).toFixed(2)}`;
    };
    // In two halves: an arc of nearly a whole turn ends where it begins once it is rounded, and would not be drawn.
    const arc = (to: number) => `A${r} ${r} 0 0 1 ${at(to)}`;
    return `M${x} ${y}L${at(begin)}${arc((begin + end) / 2)}${arc(end)}Z`;
}

/** A part in words. */
export function words(pie: Pie, name: (typeof SLICES)[number]["name"]): string {
    const total = pie.client + pie.network + pie.server;
    const said = `${name} ${percent(pie[name] / total)}: ${duration(pie[name])}`;
    const { uncertainty } = pie;
    if (uncertainty === null || uncertainty === 0) return said;
    // No part is less than nothing.
    return uncertainty > pie[name]
        ? `${said}, at most ${duration(pie[name] + uncertainty)}`
        : `${said} ± ${duration(uncertainty)}`;
}

export function drawPies(p: Painter, pies: readonly Pie[], width: number, c: Colors): void {
    const { beneath, across, wide, tall } = placesOf(pies, width);
    pies.forEach((pie, at) => {
        const left = (at % across) * wide + 8;
        const top = Math.floor(at / across) * tall;
        const [x, y] = [left + RADIUS, top + 26 + RADIUS];
        p.text(pie.title, left, top + 10, { color: c.text, size: 12.5, bold: true });
        const total = pie.client + pie.network + pie.server;
        // The article's own arithmetic may leave less than nothing for the network: then there is no pie to draw.
        const drawn = total > 0 && SLICES.every(({ name }) => pie[name] >= 0);
        let turned = 0;
        SLICES.forEach(({ name, colour }, row) => {
            const part = pie[name] / total;
            if (drawn && part > 0) {
                p.path(slice(x, y, RADIUS, turned, turned + part), c[colour], { color: c.panel, width: 1.5 });
                turned += part;
            }
            const line = top + row * 24 + (beneath ? TALL + 8 : 60);
            const begin = left + (beneath ? BENEATH - 8 : WORDS);
            p.rect(begin - 18, line - 6, 12, 12, c[colour]);
            p.text(words(pie, name), begin, line, { color: c.text, size: 12 });
        });
        if (drawn) return;
        const why = total === 0 ? ["no time"] : ["cannot be drawn:", "less than nothing"];
        why.forEach((line, row) => p.text(line, x, y + 16 * row, { color: c.muted, size: 12, align: "center" }));
    });
}
