import { expect, test } from "vitest";

import { firstFrom, type Marks, nearest, nextWhere } from "./marks";

function marks(time: number[], kind: number[]): Marks {
    const n = time.length;
    return {
        time: Float64Array.from(time),
        last: Float64Array.from(time),
        lane: new Uint32Array(n),
        server: new Uint8Array(n),
        kind: Uint8Array.from(kind),
        size: new Float64Array(n),
        least: new Float64Array(n),
        packets: new Float64Array(n).fill(1),
        among: new Float64Array(n).fill(1),
        packet: new Uint32Array(n),
        link: new Float64Array(n).fill(NaN),
    };
}

test("the first mark not before a time", () => {
    const time = Float64Array.from([0, 1, 1, 2]);
    expect([-1, 0, 0.5, 1, 1.5, 2, 3].map((at) => firstFrom(time, at))).toEqual([0, 0, 1, 1, 3, 3, 4]);
});

test("of marks at one place the one on top is picked", () => {
    const all = marks([1, 1, 1, 5], [0, 3, 2, 9]);
    const x = (mark: number): number => (all.time[mark] as number) * 100;
    expect(nearest(all, [0, 2], [101, 0], 6, x, () => 0)).toBe(1);
    expect(nearest(all, [0, 2], [108, 0], 6, x, () => 0)).toBe(-1);
    expect(nearest(all, [0, 9], [498, 3], 6, x, () => 0)).toBe(3);
});

test("the next one of a kind, either way", () => {
    const all = marks([1, 2, 3, 4], [9, 0, 9, 0]);
    const is = (mark: number): boolean => all.kind[mark] === 9;
    expect(nextWhere(all, -1, 1, is)).toBe(0);
    expect(nextWhere(all, 0, 1, is)).toBe(2);
    expect(nextWhere(all, 2, 1, is)).toBe(-1);
    expect(nextWhere(all, 2, -1, is)).toBe(0);
});
