/**
 * What charts draw on. One set of strokes, two surfaces: a canvas to look at (and PNG), an SVG text to keep. Charts say
 * each thing once, so that both pictures are the same. Pixels are CSS pixels.
 */

import { Layer, type Stamp } from "./stamps";

export type Shape = "circle" | "ring" | "square" | "diamond" | "triangle" | "cross" | "plus" | "star";

export interface Stroke {
    color: string;
    width?: number;
    dash?: readonly number[];
    opacity?: number;
}

export interface TextStyle {
    color: string;
    size?: number;
    align?: "left" | "center" | "right";
    baseline?: "top" | "middle" | "bottom";
    bold?: boolean;
    /** Around each letter, so that it can be read over lines. */
    halo?: string;
    /** Turned a quarter to the left, for a vertical axis. */
    vertical?: boolean;
}

/** How marks look. */
export interface Look {
    shape: Shape;
    size: number;
    color: string;
}

export interface Painter {
    /** Joined points; a NaN makes a gap. */
    line(xs: ArrayLike<number>, ys: ArrayLike<number>, stroke: Stroke): void;
    /** Filled outline. */
    area(xs: ArrayLike<number>, ys: ArrayLike<number>, color: string): void;
    rect(x: number, y: number, width: number, height: number, fill: string | null, stroke?: Stroke): void;
    /** SVG path data, filled or stroked. */
    path(data: string, fill: string | null, stroke?: Stroke): void;
    /** A mark with its centre at x, y, about `size` wide. */
    mark(shape: Shape, x: number, y: number, size: number, color: string): void;
    /** Many marks, each over those before it; `looks` has the place in `of` of the look of each. */
    marks(xs: ArrayLike<number>, ys: ArrayLike<number>, looks: ArrayLike<number>, of: readonly Look[]): void;
    text(text: string, x: number, y: number, style: TextStyle): void;
    /** Draw within a rectangle only. */
    clip(x: number, y: number, width: number, height: number, draw: () => void): void;
}

const FONT = "system-ui, sans-serif";
/** Width of the line around a letter, half of which is seen. */
const HALO = 4;

/** Outline of a shape around 0, 0 with radius 1, as SVG path data; strokes only where `stroked`. */
const OUTLINES: Record<Shape, { points: (r: number) => string; stroked: boolean }> = {
    circle: { points: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`, stroked: false },
    ring: { points: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`, stroked: true },
    square: { points: (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}Z`, stroked: false },
    diamond: { points: (r) => `M0 ${-1.25 * r}L${1.25 * r} 0L0 ${1.25 * r}L${-1.25 * r} 0Z`, stroked: false },
    triangle: { points: (r) => `M0 ${-1.2 * r}L${1.15 * r} ${r}L${-1.15 * r} ${r}Z`, stroked: false },
    cross: { points: (r) => `M${-r} ${-r}L${r} ${r}M${-r} ${r}L${r} ${-r}`, stroked: true },
    plus: { points: (r) => `M${-r} 0H${r}M0 ${-r}V${r}`, stroked: true },
    star: {
        points: (r) => `M${-r} 0H${r}M${-r / 2} ${-r}L${r / 2} ${r}M${-r / 2} ${r}L${r / 2} ${-r}`,
        stroked: true,
    },
};

export class CanvasPainter implements Painter {
    private readonly paths = new Map<string, Path2D>();

    constructor(private readonly context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D) {}

    private stroke(style: Stroke, draw: () => void): void {
        const c = this.context;
        c.strokeStyle = style.color;
        c.lineWidth = style.width ?? 1;
        c.lineJoin = "round";
        c.globalAlpha = style.opacity ?? 1;
        c.setLineDash([...(style.dash ?? [])]);
        draw();
        c.setLineDash([]);
        c.globalAlpha = 1;
    }

    line(xs: ArrayLike<number>, ys: ArrayLike<number>, style: Stroke): void {
        const c = this.context;
        c.beginPath();
        let open = false;
        for (let i = 0; i < xs.length; i += 1) {
            const x = xs[i] as number;
            const y = ys[i] as number;
            if (Number.isNaN(x) || Number.isNaN(y)) open = false;
            else if (open) c.lineTo(x, y);
            else {
                c.moveTo(x, y);
                open = true;
            }
        }
        this.stroke(style, () => c.stroke());
    }

    area(xs: ArrayLike<number>, ys: ArrayLike<number>, color: string): void {
        const c = this.context;
        c.beginPath();
        for (let i = 0; i < xs.length; i += 1) c.lineTo(xs[i] as number, ys[i] as number);
        c.closePath();
        c.fillStyle = color;
        c.fill();
    }

    rect(x: number, y: number, width: number, height: number, fill: string | null, stroke?: Stroke): void {
        const c = this.context;
        if (fill !== null) {
            c.fillStyle = fill;
            c.fillRect(x, y, width, height);
        }
        if (stroke) this.stroke(stroke, () => c.strokeRect(x, y, width, height));
    }

    path(data: string, fill: string | null, stroke?: Stroke): void {
        const shape = new Path2D(data);
        if (fill !== null) {
            this.context.fillStyle = fill;
            this.context.fill(shape);
        }
        if (stroke) this.stroke(stroke, () => this.context.stroke(shape));
    }

    mark(shape: Shape, x: number, y: number, size: number, color: string): void {
        const c = this.context;
        const key = `${shape} ${size}`;
        let path = this.paths.get(key);
        if (!path) this.paths.set(key, (path = new Path2D(OUTLINES[shape].points(size / 2))));
        c.translate(x, y);
        if (OUTLINES[shape].stroked) {
            c.strokeStyle = color;
            c.lineWidth = 1.6;
            c.stroke(path);
        } else {
            c.fillStyle = color;
            c.fill(path);
        }
        c.translate(-x, -y);
    }

    marks(xs: ArrayLike<number>, ys: ArrayLike<number>, looks: ArrayLike<number>, of: readonly Look[]): void {
        const c = this.context;
        const { a: ratio, e: left, f: top } = c.getTransform();
        const { width, height } = c.canvas;
        const stamps = of.map((look) => stampOf(look, ratio));
        const strips = inStrips(ys.length, height, (index) => {
            const half = (stamps[looks[index] as number]?.side ?? NaN) / 2;
            const y = Math.round((ys[index] as number) * ratio + top);
            return [y - half, y + half];
        });
        const layer = new Layer(width, STRIP);
        const picture = new OffscreenCanvas(width, STRIP);
        const pixels = picture.getContext("2d");
        c.save();
        c.setTransform(1, 0, 0, 1, 0, 0);
        for (const [strip, marks] of strips) {
            layer.clear();
            for (const index of marks) {
                const stamp = stamps[looks[index] as number] as Stamp;
                const y = (ys[index] as number) * ratio + top;
                layer.stamp(stamp, (xs[index] as number) * ratio + left, y - strip * STRIP);
            }
            pixels?.putImageData(new ImageData(layer.pixels, width, STRIP), 0, 0);
            c.drawImage(picture, 0, strip * STRIP);
        }
        c.restore();
    }

    text(text: string, x: number, y: number, style: TextStyle): void {
        const c = this.context;
        c.font = `${style.bold ? "600 " : ""}${style.size ?? 12}px ${FONT}`;
        c.fillStyle = style.color;
        c.textAlign = style.align ?? "left";
        c.textBaseline = style.baseline ?? "middle";
        if (style.halo) this.stroke({ color: style.halo, width: HALO }, () => c.strokeText(text, x, y));
        if (style.vertical) {
            c.save();
            c.translate(x, y);
            c.rotate(-Math.PI / 2);
            c.fillText(text, 0, 0);
            c.restore();
        } else c.fillText(text, x, y);
    }

    clip(x: number, y: number, width: number, height: number, draw: () => void): void {
        const c = this.context;
        c.save();
        c.beginPath();
        c.rect(x, y, width, height);
        c.clip();
        draw();
        c.restore();
    }
}

/** Height of a strip of pixels, so that what has no marks needs none: of a thousand lanes, or between two lines. */
const STRIP = 64;

/** Marks by the strip that they lie in, or the two, each in its order; `extent`: first pixel of a mark, and that after its last. */
function inStrips(
    count: number,
    height: number,
    extent: (index: number) => readonly [number, number],
): Map<number, number[]> {
    const strips = new Map<number, number[]>();
    for (let index = 0; index < count; index += 1) {
        const [top, bottom] = extent(index);
        const last = Math.ceil(Math.min(bottom, height) / STRIP) - 1;
        for (let strip = Math.max(0, Math.floor(top / STRIP)); strip <= last; strip += 1) {
            const marks = strips.get(strip);
            if (marks) marks.push(index);
            else strips.set(strip, [index]);
        }
    }
    return strips;
}

/** Those made last: the same marks are drawn at each step of a zoom. */
const madeStamps = new Map<string, Stamp>();
const MOST_STAMPS = 200;

function stampOf(look: Look, ratio: number): Stamp {
    const key = `${look.shape} ${look.size} ${look.color} ${ratio}`;
    const made = madeStamps.get(key);
    if (made) return made;
    if (madeStamps.size >= MOST_STAMPS) madeStamps.clear();
    const stamp = makeStamp(look, ratio);
    madeStamps.set(key, stamp);
    return stamp;
}

/** A mark as pixels, with room for what juts out and for its softened edge. */
function makeStamp({ shape, size, color }: Look, ratio: number): Stamp {
    const side = 2 * (Math.ceil((size * ratio * 1.25) / 2) + Math.ceil(ratio));
    const context = new OffscreenCanvas(side, side).getContext("2d", { willReadFrequently: true });
    if (!context) return { side, pixels: new Uint8ClampedArray(4 * side * side) };
    context.setTransform(ratio, 0, 0, ratio, side / 2, side / 2);
    new CanvasPainter(context).mark(shape, 0, 0, size, color);
    return { side, pixels: context.getImageData(0, 0, side, side).data };
}

const escape = (text: string) => text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);
const short = (value: number) => String(Math.round(value * 100) / 100);

export class SvgPainter implements Painter {
    private readonly parts: string[] = [];
    private clips = 0;

    private strokeText(style: Stroke): string {
        const dash = style.dash?.length ? ` stroke-dasharray="${style.dash.join(" ")}"` : "";
        const opacity = style.opacity === undefined ? "" : ` stroke-opacity="${style.opacity}"`;
        return ` stroke="${style.color}" stroke-width="${style.width ?? 1}" stroke-linejoin="round"${dash}${opacity}`;
    }

    line(xs: ArrayLike<number>, ys: ArrayLike<number>, style: Stroke): void {
        let data = "";
        let open = false;
        for (let i = 0; i < xs.length; i += 1) {
            const x = xs[i] as number;
            const y = ys[i] as number;
            if (Number.isNaN(x) || Number.isNaN(y)) open = false;
            else {
                data += `${open ? "L" : "M"}${short(x)} ${short(y)}`;
                open = true;
            }
        }
        if (data) this.path(data, null, style);
    }

    area(xs: ArrayLike<number>, ys: ArrayLike<number>, color: string): void {
        const points = Array.from(xs, (x, i) => `${short(x)},${short(ys[i] as number)}`);
        this.parts.push(`<polygon points="${points.join(" ")}" fill="${color}"/>`);
    }

    rect(x: number, y: number, width: number, height: number, fill: string | null, stroke?: Stroke): void {
        this.parts.push(
            `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" fill="${fill ?? "none"}"${stroke ? this.strokeText(stroke) : ""}/>`,
        );
    }

    path(data: string, fill: string | null, stroke?: Stroke): void {
        this.parts.push(`<path d="${data}" fill="${fill ?? "none"}"${stroke ? this.strokeText(stroke) : ""}/>`);
    }

    mark(shape: Shape, x: number, y: number, size: number, color: string): void {
        const { points, stroked } = OUTLINES[shape];
        const paint = stroked ? `fill="none" stroke="${color}" stroke-width="1.6"` : `fill="${color}"`;
        this.parts.push(`<path transform="translate(${short(x)} ${short(y)})" d="${points(size / 2)}" ${paint}/>`);
    }

    marks(xs: ArrayLike<number>, ys: ArrayLike<number>, looks: ArrayLike<number>, of: readonly Look[]): void {
        for (let index = 0; index < xs.length; index += 1) {
            const look = of[looks[index] as number];
            if (look) this.mark(look.shape, xs[index] as number, ys[index] as number, look.size, look.color);
        }
    }

    text(text: string, x: number, y: number, style: TextStyle): void {
        const anchor = { left: "start", center: "middle", right: "end" }[style.align ?? "left"];
        const baseline = { top: "hanging", middle: "central", bottom: "text-after-edge" }[style.baseline ?? "middle"];
        const turn = style.vertical ? ` transform="rotate(-90 ${short(x)} ${short(y)})"` : "";
        const halo = style.halo ? `${this.strokeText({ color: style.halo, width: HALO })} paint-order="stroke"` : "";
        this.parts.push(
            `<text x="${short(x)}" y="${short(y)}" fill="${style.color}" font-size="${style.size ?? 12}"${style.bold ? ' font-weight="600"' : ""} text-anchor="${anchor}" dominant-baseline="${baseline}"${halo}${turn}>${escape(text)}</text>`,
        );
    }

    clip(x: number, y: number, width: number, height: number, draw: () => void): void {
        const id = `clip${(this.clips += 1)}`;
        this.parts.push(
            `<clipPath id="${id}"><rect x="${x}" y="${y}" width="${width}" height="${height}"/></clipPath><g clip-path="url(#${id})">`,
        );
        draw();
        this.parts.push("</g>");
    }

    /** Draw moved by x, y. */
    shift(x: number, y: number, draw: () => void): void {
        this.parts.push(`<g transform="translate(${x} ${y})">`);
        draw();
        this.parts.push("</g>");
    }

    /** The whole file. */
    finish(width: number, height: number, title: string): string {
        return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FONT}"><title>${escape(title)}</title>${this.parts.join("")}</svg>\n`;
    }
}
