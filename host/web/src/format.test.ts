import { expect, test } from "vitest";
import {
    average,
    bits,
    bytes,
    clock,
    count,
    duration,
    moment,
    nanoseconds,
    percent,
    several,
    shortened,
    toldApart,
    UNKNOWN,
} from "./format";

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

test("a moment of another day has its date", () => {
    const start = nanoseconds("2015-06-01T23:59:58Z");
    expect(moment(start, 1, 0)).toBe("23:59:59");
    expect(moment(start, 1.6, 0)).toBe("2015-06-02 00:00:00");
    expect(moment(start, 1.6, 1)).toBe("23:59:59.6");
    expect(moment(start, 4000, 0, 3600)).toBe("01:06:38");
});

test("one thing is not several", () => {
    expect([several(1, "packet"), several("1234", "packet"), several(0, "packet")]).toEqual([
        "1 packet",
        "1,234 packets",
        "0 packets",
    ]);
});

test("addresses are shortened in the middle and keep their ports", () => {
    const end = (port: number) => `[2001:db8:1234:5678:9abc:def0:1111:2222]:${port}`;
    expect(shortened(end(65535), 24)).toBe("[2001:db8:1…:2222]:65535");
    expect(shortened("10.0.0.1:80", 24)).toBe("10.0.0.1:80");
    expect(shortened(`${end(50123)} → 10.0.0.1:80`, 40)).toMatch(/^.{26} → 10\.0\.0\.1:80$/);
    const both = shortened(`${end(50123)} → ${end(443)}`, 45);
    expect(both.length).toBeLessThanOrEqual(45);
    expect(both).toMatch(/^\[2001.*….*:50123 → \[2001.*….*\]:443$/);
});

test("an average of next to nothing is no power of ten", () => {
    expect(average(7.62e-7)).toBe("< 0.001");
    expect(average(0.0635)).toBe("0.0635");
    expect(average(0)).toBe("0");
    expect(average(undefined)).toBe("–");
});

test("signatures that are cut are told apart", () => {
    const begin = "blk[154]; blk[1284]-blk[4xx]; blk[2x] (5); ";
    const names = [
        `${begin}blk[3xxxx]; blk[2x] (6); blk[1xxxx]; blk[2x] (2); blk[3x]`,
        `${begin}blk[3xxxx]; blk[2x] (7); blk[1xxxx]; blk[2x] (2); blk[3x]`,
        `${begin}blk[1xxxx]; blk[1xxxx]; blk[2x] (5); blk[1xxxx]; blk[1xxx]; ...`,
        "blk[178]; blk[1284]-blk[2xx]; blk[2x] (5); blk[4xx]; blk[2x] (3); blk[3x]",
        "blk[127]-blk[3xxx]",
    ];
    expect(toldApart(names, 46)).toEqual([
        "blk[154]; …blk[2x] (6); blk[1xxxx]; …",
        "blk[154]; …blk[2x] (7); blk[1xxxx]; …",
        "blk[154]; …blk[1xxxx]; blk[1xxxx]; …",
        "blk[178]; blk[1284]-blk[2xx]; blk[2x] (5); …",
        "blk[127]-blk[3xxx]",
    ]);
    expect(toldApart(["same", "same"], 46)).toEqual(["same", "same"]);
    // Where there are no parts, letters are left out.
    const letters = "a".repeat(60);
    expect(toldApart([`${letters}b`, `${letters}c`], 20)).toEqual(["aaaaaa…b", "aaaaaa…c"]);
});
