import { expect, test } from "vitest";
import { duration, nanoseconds } from "../format";
import { durationStep, extent, linearTicks, logTicks, scale, timeTicks } from "./scale";

test.each(["linear", "log", "time"] as const)("%s: pixels and values are each other's inverse", (kind) => {
    const map = scale(kind, [0.002, 50], [76, 900]);
    expect(map.to(0.002)).toBeCloseTo(76);
    expect(map.to(50)).toBeCloseTo(900);
    for (const value of [0.003, 0.5, 7, 49]) expect(map.from(map.to(value))).toBeCloseTo(value, 9);
});

test("linear ticks are round and inside", () => {
    expect(linearTicks([0, 10], 5).map((tick) => tick.value)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(linearTicks([0.13, 0.41], 3).map((tick) => tick.value)).toEqual([0.2, 0.3, 0.4]);
    expect(linearTicks([5, 5], 3)).toEqual([]);
});

test("ticks of durations are whole minutes where there are several", () => {
    const labels = (most: number) => linearTicks([0, most], 6, duration, durationStep).map((tick) => tick.label);
    expect(labels(2100)).toEqual(["0 s", "10 min", "20 min", "30 min"]);
    expect(labels(50)).toEqual(["0 s", "10 s", "20 s", "30 s", "40 s", "50 s"]);
    expect(labels(200_000).at(-1)).toBe("48 h");
});

test("log ticks are powers of ten, finer where there is room", () => {
    expect(logTicks([0.001, 10], 4).map((tick) => tick.value)).toEqual([0.001, 0.01, 0.1, 1, 10]);
    expect(logTicks([1, 10], 6).map((tick) => tick.value)).toEqual([1, 2, 5, 10]);
    expect(logTicks([0.6, 30], 4).map((tick) => tick.value)).toEqual([1, 2, 5, 10, 20]);
});

test.each([
    [0.021, 0.049],
    [2.1, 2.9],
    [0.3, 0.9],
    [0.00098, 0.0011],
])("a logarithmic axis from %f to %f has ticks to read it by", (low, high) => {
    const ticks = logTicks([low, high], 4);
    expect(ticks.length).toBeGreaterThan(1);
    for (const { value } of ticks) expect(value >= low && value <= high).toBe(true);
});

test("time ticks lie at round times of day, down to the nanosecond", () => {
    const start = nanoseconds("2015-06-01T01:52:14.855300001Z");
    expect(timeTicks([0, 420], 7, start).map((tick) => tick.label)).toEqual([
        "01:53:00",
        "01:54:00",
        "01:55:00",
        "01:56:00",
        "01:57:00",
        "01:58:00",
        "01:59:00",
    ]);
    expect(timeTicks([0, 4e-9], 4, start).map((tick) => tick.label)).toEqual([
        "01:52:14.855300001",
        "01:52:14.855300002",
        "01:52:14.855300003",
        "01:52:14.855300004",
        "01:52:14.855300005",
    ]);
});

test("days are told by their dates, months and years are not thousands of ticks", () => {
    const start = nanoseconds("2015-06-01T18:00:00Z");
    const labels = (seconds: number) => timeTicks([0, seconds], 7, start).map((tick) => tick.label);
    expect(labels(3 * 43_200)).toEqual([
        "18:00:00",
        "2015-06-02",
        "06:00:00",
        "12:00:00",
        "18:00:00",
        "2015-06-03",
        "06:00:00",
    ]);
    expect(labels(4 * 86_400)).toEqual(["2015-06-02", "2015-06-03", "2015-06-04", "2015-06-05"]);
    expect(labels(100 * 86_400)).toEqual(["2015-07-01", "2015-08-01", "2015-09-01"]);
    expect(labels(1122 * 86_400)).toEqual([
        "2015-07-01",
        "2016-01-01",
        "2016-07-01",
        "2017-01-01",
        "2017-07-01",
        "2018-01-01",
    ]);
    // Of many years they are where years begin.
    expect(labels(4000 * 86_400)).toEqual([
        "2016-01-01",
        "2018-01-01",
        "2020-01-01",
        "2022-01-01",
        "2024-01-01",
        "2026-01-01",
    ]);
    expect(labels(20_000 * 86_400)).toEqual([
        "2020-01-01",
        "2030-01-01",
        "2040-01-01",
        "2050-01-01",
        "2060-01-01",
        "2070-01-01",
    ]);
    for (const days of [40, 400, 1400, 4000, 20_000]) {
        const ticks = labels(days * 86_400);
        expect(ticks.length).toBeGreaterThan(0);
        expect(ticks.length).toBeLessThan(9);
    }
});

test("the extent leaves out what is not known", () => {
    expect(extent([3, NaN, -1])).toEqual([-1, 3]);
    expect(extent([NaN])).toBeNull();
});
