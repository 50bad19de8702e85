import { tableFromArrays, tableToIPC } from "apache-arrow";
import { expect, test } from "vitest";

import { readColumns } from "../api/client";
import { flightTop, readMarks, readSequence, rowAt, valuesBetween } from "./sequence";

const f = (...values: number[]): Float64Array => Float64Array.from(values);

function answer(): Parameters<typeof readSequence>[0] {
    const table = tableFromArrays({
        time: f(0, 1, 2),
        time_last: f(0, 1, 2),
        seq_low: f(0, 1, 1461),
        seq_high: f(1, 1461, 2921),
        ack_low: f(0, 1, 1461),
        ack_high: f(0, 1, 1461),
        edge_low: f(65535, 65536, 66996),
        edge_high: f(65535, 65536, 66996),
        in_flight_min: f(1, 1460, 1460),
        in_flight_max: f(1, 1460, 1460),
        window_min: f(65535, 65535, 65535),
        window_max: f(65535, 65535, 65535),
        packets: f(1, 1, 1),
        retransmitted: f(0, 0, 1),
        sacks: f(0, 0, 0),
        bytes: f(0, 1460, 1460),
    });
    table.schema.metadata.set("side", "client").set("exact", "true").set("ideal_window_bytes", "38000");
    return readColumns(tableToIPC(table, "stream"));
}

test("what the host answers is read", () => {
    const of = readSequence(answer());
    expect([of.side, of.exact, of.ideal]).toEqual(["client", true, 38000]);
    expect([...of.sent.high]).toEqual([1, 1461, 2921]);
    // After a column holds what was sent and not acknowledged in it.
    expect([...of.inFlight.last]).toEqual([1, 1460, 1460]);
    expect([...of.window.last]).toEqual([65535, 65535, 65535]);
});

test("after a column of several packets holds what was sent and not acknowledged in it", () => {
    const table = tableFromArrays({
        time: f(0, 1),
        seq_low: f(0, NaN),
        seq_high: f(1000, NaN),
        ack_low: f(100, NaN),
        ack_high: f(400, NaN),
        edge_low: f(5100, NaN),
        edge_high: f(5400, NaN),
        in_flight_min: f(0, NaN),
        in_flight_max: f(800, NaN),
        window_min: f(5100, NaN),
        window_max: f(5200, NaN),
        packets: f(3, 0),
        retransmitted: f(0, 0),
        sacks: f(0, 0),
        bytes: f(1000, 0),
    });
    const of = readSequence(readColumns(tableToIPC(table, "stream")));
    expect(of.inFlight.last[0]).toBe(600);
    // 5,000 was never there: it is the edge of one packet less the acknowledgment of another.
    expect(of.window.last[0]).toBe(5100);
    expect(of.side).toBe("server");
});

test("a window far above does not press the data flat", () => {
    const of = readSequence(answer());
    const [low, high] = valuesBetween(of, 0, 3);
    expect(low).toBeLessThan(0);
    expect(high).toBeGreaterThan(2921);
    expect(high).toBeLessThan(2921 * 1.2);
    // One that is near is in the picture.
    const near = {
        ...of,
        edge: { time: of.time, low: f(4000, 4000, 4000), high: f(4000, 4000, 4000), last: f(4000, 4000, 4000) },
    };
    expect(valuesBetween(near, 0, 3)[1]).toBeGreaterThan(4000);
    expect(valuesBetween(of, -5, -4)).toEqual([0, 1]);
});

test("repeats are the sender's, SACKs its peer's, and the first block of a D-SACK came twice", () => {
    const table = tableFromArrays({
        packet: Uint32Array.of(7, 8, 9),
        time: f(1, 2, 3),
        kind: Uint8Array.of(0, 1, 0),
        server: [true, false, false],
        seq_relative: f(1461, 5, 5),
        length: Uint32Array.of(1460, 0, 100),
        sack: [null, "1-1461 4000-5460", null],
    });
    table.schema.metadata.set("kinds", JSON.stringify(["RETRANSMISSION", "DSACK"]));
    const marks = readMarks(readColumns(tableToIPC(table, "stream")), "server");
    expect(marks).toEqual([
        { packet: 7, time: 1, low: 1461, high: 2921, what: "again" },
        { packet: 8, time: 2, low: 1, high: 1461, what: "dsack" },
        { packet: 8, time: 2, low: 4000, high: 5460, what: "sack" },
    ]);
});

test("the row nearest to a time", () => {
    const of = readSequence(answer());
    expect([-1, 0.4, 0.6, 1.2, 9].map((time) => rowAt(of, time))).toEqual([0, 0, 1, 1, 2]);
});

test("a window many times as large leaves the picture, and that is told", () => {
    const of = readSequence(answer());
    expect(flightTop({ ...of, ideal: null }, 0, 3)).toEqual({ value: 1460 * 1.15, cut: true });
    expect(flightTop(of, 0, 3)).toEqual({ value: 65535 * 1.08, cut: false });
});
