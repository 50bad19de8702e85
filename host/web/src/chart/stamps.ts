/**
 * Thousands of marks at once: small pictures of them (stamps) laid into pixels, which a canvas then takes as one picture.
 * Filling as many paths takes several times as long. Pure.
 */

/** A square picture of a mark, RGBA, straight alpha; its centre lies between the middle pixels. */
export interface Stamp {
    side: number;
    pixels: Uint8ClampedArray;
}

/** Pixels of a picture that is clear at first. */
export class Layer {
    readonly pixels: Uint8ClampedArray<ArrayBuffer>;
    /** The same, a pixel each: four bytes are moved as one number. */
    private readonly whole: Uint32Array;

    constructor(
        readonly width: number,
        readonly height: number,
    ) {
        this.pixels = new Uint8ClampedArray(4 * width * height);
        this.whole = new Uint32Array(this.pixels.buffer);
    }

    /** Lay a stamp over what is there, its centre at the pixel edge nearest to x, y. What is outside is cut off. */
    stamp(stamp: Stamp, x: number, y: number): void {
        const { side } = stamp;
        const left = Math.round(x) - side / 2;
        const top = Math.round(y) - side / 2;
        if (!(left > -side && top > -side && left < this.width && top < this.height)) return;
        const source = new Uint32Array(stamp.pixels.buffer, stamp.pixels.byteOffset, side * side);
        const [firstRow, endRow] = [Math.max(0, -top), Math.min(side, this.height - top)];
        const [first, end] = [Math.max(0, -left), Math.min(side, this.width - left)];
        for (let row = firstRow; row < endRow; row += 1) {
            const to = (top + row) * this.width + left;
            for (let column = first; column < end; column += 1) {
                const from = row * side + column;
                const alpha = stamp.pixels[4 * from + 3] as number;
                if (alpha === 0) continue;
                if (alpha === 255 || this.pixels[4 * (to + column) + 3] === 0)
                    this.whole[to + column] = source[from] as number;
                else this.blend(4 * (to + column), stamp.pixels, 4 * from, alpha / 255);
            }
        }
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
