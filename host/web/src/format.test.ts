import { expect, test } from "vitest";
import { bits, bytes, clock, count, duration, nanoseconds, percent, UNKNOWN } from "./format";

test("durations take the unit that reads best", () => {
    const pairs: [number, string][] = [
        [0, "0 s"],
        [2e-9, "2 ns"],
        [0.0000015, "1.5 µs"],
        [0.00456, "4.56 ms"],
        [0.9999, "1 s"],
        [12.34, "12.3 s"],
        [754, "12 min 34 s"],
        [600, "10 min"],
        [719.7, "12 min"],
        [3600, "1 h"],
        [7122, "1 h 59 min"],
        [7230, "2 h 1 min"],
    ];
    for (const [value, text] of pairs) expect(duration(value)).toBe(text);
});

test("sizes, rates and shares", () => {
    expect([bytes(999), bytes(52590), bits(34e6), percent(0.0123)]).toEqual([
        "999 B",
        "52.6 kB",
        "34 Mbit/s",
        "1.23 %",
    ]);
    expect([percent(2.34e-6), percent(1.2e-5), percent(0)]).toEqual(["< 0.001 %", "0.0012 %", "0 %"]);
    expect(count("178465")).toBe("178,465");
});

test("unknown is a dash, never 0", () => {
    expect([count(null), duration(undefined), bytes(NaN), percent(null)]).toEqual(Array(4).fill(UNKNOWN));
});

test("times of day round as a whole and keep nanoseconds", () => {
    const start = nanoseconds("2015-06-01T23:59:59.999999999Z");
    expect(clock(start, 0, 9)).toBe("23:59:59.999999999");
    expect(clock(start, 0, 3)).toBe("00:00:00.000");
    expect(clock(nanoseconds("2015-06-01T01:52:14Z"), 0.8553, 4)).toBe("01:52:14.8553");
    expect(() => nanoseconds("2015-06-01 01:52")).toThrow("not a time");
});
