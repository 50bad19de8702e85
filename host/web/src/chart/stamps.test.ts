import { expect, test } from "vitest";
import { Layer, type Stamp } from "./stamps";

/** Two by two, all of one colour. */
const plain = (...color: number[]): Stamp => ({
    side: 2,
    pixels: Uint8ClampedArray.from([...color, ...color, ...color, ...color]),
});
const at = (layer: Layer, x: number, y: number) => [
    ...layer.pixels.subarray(4 * (y * layer.width + x), 4 * (y * layer.width + x) + 4),
];
const CLEAR = [0, 0, 0, 0];

test("a stamp lies around its centre, cut off at the edges", () => {
    const layer = new Layer(4, 3);
    layer.stamp(plain(9, 8, 7, 255), 2.2, 1.4);
    expect([at(layer, 1, 0), at(layer, 2, 1), at(layer, 0, 0), at(layer, 3, 1), at(layer, 1, 2)]).toEqual([
        [9, 8, 7, 255],
        [9, 8, 7, 255],
        CLEAR,
        CLEAR,
        CLEAR,
    ]);
    layer.stamp(plain(1, 1, 1, 255), 0, 3);
    expect([at(layer, 0, 2), at(layer, 3, 1), at(layer, 1, 2)]).toEqual([[1, 1, 1, 255], CLEAR, CLEAR]);
    const before = [...layer.pixels];
    for (const [x, y] of [
        [-2, 0],
        [0, -1.6],
        [5.1, 1],
        [1, 4.2],
        [NaN, 1],
        [1, Infinity],
    ] as const)
        layer.stamp(plain(5, 5, 5, 255), x, y);
    expect([...layer.pixels]).toEqual(before);
});

test("what is half clear lets through what is beneath", () => {
    const layer = new Layer(2, 2);
    layer.stamp(plain(200, 0, 0, 128), 1, 1);
    expect(at(layer, 0, 0)).toEqual([200, 0, 0, 128]);
    layer.stamp(plain(0, 0, 0, 255), 1, 1);
    layer.stamp(plain(200, 100, 0, 51), 1, 1);
    expect(at(layer, 1, 1)).toEqual([40, 20, 0, 255]);
    layer.stamp(plain(7, 7, 7, 0), 1, 1);
    expect(at(layer, 1, 1)).toEqual([40, 20, 0, 255]);
});
