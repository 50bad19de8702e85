import { expect, test } from "vitest";
import type { Columns } from "../api/client";
import type { ColumnInfo } from "../api/types";
import { nanoseconds } from "../format";
import { cell, heading, longestText, widthOf } from "./columns";

const page = (value: number | string | boolean | null): Columns => ({
    rows: 1,
    metadata: new Map(),
    numbers: () => [],
    texts: () => [],
    has: () => true,
    at: () => value,
});
const info = (name: string, type: ColumnInfo["type"], unit: string): ColumnInfo => ({
    name,
    path: name,
    type,
    unit,
    doc: "",
});
const start = nanoseconds("2015-06-01T01:49:14Z");

test("cells are written in the unit of their column", () => {
    const cases: [ColumnInfo, number | string | boolean | null, string][] = [
        [info("first_packet_time", "time", "s"), 1.5, "01:49:15.500000"],
        [info("duration_seconds", "number", "s"), 0.0123, "12.3 ms"],
        [info("client_to_server_payload_bytes", "count", "B"), 52_590, "52.6 kB"],
        [info("client_to_server_ceiling_measured_bits_per_second", "number", "bit/s"), 2e6, "2 Mbit/s"],
        [info("client_to_server_rtt_delayed_ack_share", "number", "share"), 0.25, "25 %"],
        [info("client_port", "count", ""), 49_155, "49155"],
        [info("client_to_server_packets", "count", ""), 49_155, "49,155"],
        [info("setup_ecn", "bool", ""), false, "no"],
        [info("setup_end_seconds", "number", "s"), null, "–"],
    ];
    for (const [column, value, text] of cases) expect(cell(column, page(value), 0, start), column.name).toBe(text);
});

test("headings tell the direction", () => {
    expect(heading("client_to_server_payload_bytes")).toBe("→ payload");
    expect(heading("server_to_client_rtt_median_seconds")).toBe("← rtt median");
});

test("addresses have room for the longest of them", () => {
    const address = info("client_address", "text", "");
    expect(longestText([], "client_address")).toBe(15);
    const pages = [{ ...page(null), texts: () => ["10.0.0.1", null, "2001:6a8:3080:2:217:f2ff:fed6:65c0"] }];
    expect(longestText(pages, "client_address")).toBe(34);
    expect(longestText(pages, "setup_explanation")).toBe(15);
    // Figures of 13 px letters and the padding.
    expect(widthOf(address, false, 34)).toBeGreaterThanOrEqual(34 * 7.6 + 16);
    expect(widthOf(address)).toBe(150);
});

test("signatures have room for the longest of them", () => {
    const signature = info("signature", "text", "");
    const long =
        "Request: blk[154]; blk[1284]-blk[4xx]; blk[2x] (5); blk[3xxxx]; blk[2x] (6); blk[1xxxx]; blk[2x] (2); blk[3x]";
    const pages = [{ ...page(null), texts: () => ["Request: blk[127]-blk[3xxx]", long] }];
    expect(longestText(pages, "signature")).toBe(long.length);
    expect(widthOf(signature, false, long.length)).toBeGreaterThanOrEqual(long.length * 7.5 + 16);
    expect(widthOf(signature)).toBe(380);
});

test("a column has room for a rate and for the date of a time", () => {
    // 22.4 Mbit/s of 13 px letters, and the padding.
    expect(widthOf(info("rate", "number", "bit/s"))).toBeGreaterThanOrEqual(100);
    expect(widthOf(info("first_packet_time", "time", "s"), true)).toBeGreaterThan(
        widthOf(info("first_packet_time", "time", "s")),
    );
});
