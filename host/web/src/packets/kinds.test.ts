import { expect, test } from "vitest";

import { KINDS, path, placesOf } from "./kinds";
import { fan } from "./gl";

test("all polygons of all shapes are convex and turn one way", () => {
    for (const kind of KINDS) {
        for (const corners of kind.shape) {
            const turns = corners.map(([x, y, rise], at) => {
                const next = corners[(at + 1) % corners.length] as readonly number[];
                const then = corners[(at + 2) % corners.length] as readonly number[];
                // A packet 10 px high.
                const up = (corner: readonly number[]): number => (corner[1] as number) + (corner[2] as number) * 10;
                const [ax, ay] = [(next[0] as number) - x, up(next) - (y + rise * 10)];
                const [bx, by] = [(then[0] as number) - (next[0] as number), up(then) - up(next)];
                return Math.sign(ax * by - ay * bx);
            });
            expect(new Set(turns).size, kind.name).toBe(1);
        }
    }
});

test("kinds are found by name, and one that is not known is told", () => {
    expect([...placesOf(["RST", "ACK"])]).toEqual([KINDS.length - 1, 0]);
    expect(() => placesOf(["QUIC"])).toThrow("QUIC");
});

test("a bar grows upwards from its line", () => {
    const bar = KINDS.find((kind) => kind.name === "DATA");
    expect(path(bar?.shape ?? [], 10, 50, 20, 1)).toBe("M8.5 50.0L11.5 50.0L11.5 30.0L8.5 30.0Z");
});

test("a polygon of n corners is n - 2 triangles", () => {
    expect(fan(["a", "b", "c", "d"])).toEqual(["a", "b", "c", "a", "c", "d"]);
});
