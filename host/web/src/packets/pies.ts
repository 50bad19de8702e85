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

/** Place of a pie, px. */
const WIDE = 330;
const TALL = 170;
const RADIUS = 68;

export function piesHeight(count: number, width: number): number {
    const across = Math.max(1, Math.floor(width / WIDE));
    return Math.ceil(count / across) * TALL + 10;
}

/** A slice as a path, from `begin` to `end` of the whole turn; the first begins at the top. */
export function slice(x: number, y: number, r: number, begin: number, end: number): string {
    if (end - begin >= 1 - 1e-9) return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
    const at = (turn: number) => {
        const angle = turn * 2 * Math.PI;
        return `${(x + r * Math.sin(angle)).toFixed(2)} ${(y - r * Math.cos(angle)).toFixed(2)}`;
    };
    return `M${x} ${y}L${at(begin)}A${r} ${r} 0 ${end - begin > 0.5 ? 1 : 0} 1 ${at(end)}Z`;
}

/** A part in words. */
export function words(pie: Pie, name: (typeof SLICES)[number]["name"]): string {
    const total = pie.client + pie.network + pie.server;
    const give = pie.uncertainty === null ? "" : ` ± ${duration(pie.uncertainty)}`;
    return `${name} ${percent(pie[name] / total)}: ${duration(pie[name])}${give}`;
}

export function drawPies(p: Painter, pies: readonly Pie[], width: number, c: Colors): void {
    const across = Math.max(1, Math.floor(width / WIDE));
    pies.forEach((pie, at) => {
        const left = (at % across) * WIDE + 8;
        const top = Math.floor(at / across) * TALL;
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
            const line = top + 60 + row * 24;
            p.rect(left + 2 * RADIUS + 14, line - 6, 12, 12, c[colour]);
            p.text(words(pie, name), left + 2 * RADIUS + 32, line, { color: c.text, size: 12 });
        });
        if (!drawn) p.text("cannot be drawn: less than nothing", left, y, { color: c.muted, size: 12 });
    });
}
