/**
 * Thousands of marks at once: small pictures of them (stamps) laid into pixels, which a canvas then takes as one picture.
 * Filling as many paths takes several times as long. Pure.
 */

/** A square picture of a mark, RGBA, straight alpha; its centre lies between the middle pixels. */
export interface Stamp {
    side: number;
    pixels: Uint8ClampedArray;
}

/** Pixels of a stamp: their places in it and, from its corner, in the layer; as they are, and how opaque. */
interface Inked {
    at: Uint32Array;
    places: Uint32Array;
    colours: Uint32Array;
    alphas: Uint32Array;
}

/** Pixels of a picture that is clear at first. */
export class Layer {
    readonly pixels: Uint8ClampedArray<ArrayBuffer>;
    /** The same, a pixel each: four bytes are moved as one number. */
    private readonly whole: Uint32Array;
    private readonly stamps = new Map<Stamp, Inked>();

    constructor(
        readonly width: number,
        readonly height: number,
    ) {
        this.pixels = new Uint8ClampedArray(4 * width * height);
        this.whole = new Uint32Array(this.pixels.buffer);
    }

    clear(): void {
        this.whole.fill(0);
    }

    /** Lay a stamp over what is there, its centre at the pixel edge nearest to x, y. What is outside is cut off. */
    stamp(stamp: Stamp, x: number, y: number): void {
        const { side } = stamp;
        const left = Math.round(x) - side / 2;
        const top = Math.round(y) - side / 2;
        if (!(left > -side && top > -side && left < this.width && top < this.height)) return;
        const within = left >= 0 && top >= 0 && left + side <= this.width && top + side <= this.height;
        const { at, places, colours, alphas } = this.inked(stamp);
        const corner = top * this.width + left;
        for (let one = 0; one < places.length; one += 1) {
            if (!within) {
                const [column, row] = [
                    left + ((at[one] as number) % side),
                    top + Math.floor((at[one] as number) / side),
                ];
                if (column < 0 || column >= this.width || row < 0 || row >= this.height) continue;
            }
            const to = corner + (places[one] as number);
            const alpha = alphas[one] as number;
            const under = this.whole[to] as number;
            if (alpha === 255 || under >>> 24 === 0) this.whole[to] = colours[one] as number;
            else if (under >>> 24 === 255) this.whole[to] = over(colours[one] as number, under, alpha);
            else this.blend(4 * to, stamp.pixels, 4 * (at[one] as number), alpha / 255);
        }
    }

    /** Those pixels of a stamp that are not clear. */
    private inked(stamp: Stamp): Inked {
        const known = this.stamps.get(stamp);
        if (known) return known;
        const { side, pixels } = stamp;
        const source = new Uint32Array(pixels.buffer, pixels.byteOffset, side * side);
        const at = Uint32Array.from(source.keys()).filter((one) => pixels[4 * one + 3] !== 0);
        const inked = {
            at,
            places: at.map((one) => Math.floor(one / side) * this.width + (one % side)),
            colours: at.map((one) => source[one] as number),
            alphas: at.map((one) => pixels[4 * one + 3] as number),
        };
        this.stamps.set(stamp, inked);
        return inked;
    }

    /** The edge of a mark over another: "source over". */
    private blend(to: number, source: Uint8ClampedArray, from: number, alpha: number): void {
        const under = ((this.pixels[to + 3] as number) / 255) * (1 - alpha);
        const both = alpha + under;
        for (let part = 0; part < 3; part += 1) {
            this.pixels[to + part] =
                ((source[from + part] as number) * alpha + (this.pixels[to + part] as number) * under) / both;
        }
        this.pixels[to + 3] = 255 * both;
    }
}

/** A colour over an opaque one, both as four bytes in one number: two parts at once, each rounded to within one. */
function over(colour: number, under: number, alpha: number): number {
    const share = alpha + (alpha >> 7);
    const even = (colour & 0xff00ff) * share + (under & 0xff00ff) * (256 - share) + 0x800080;
    const odd = ((colour >>> 8) & 0xff) * share + ((under >>> 8) & 0xff) * (256 - share) + 0x80;
    return (0xff000000 | ((even >>> 8) & 0xff00ff) | (odd & 0xff00)) >>> 0;
}
