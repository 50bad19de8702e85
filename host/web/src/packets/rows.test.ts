import { tableFromArrays, tableToIPC } from "apache-arrow";
import { expect, test } from "vitest";

import { readColumns } from "../api/client";
import { content, flagNames, readRows, remarks, rowFrom } from "./rows";

function answer() {
    const n = [1, 2];
    const table = tableFromArrays({
        packet: Uint32Array.from(n),
        number: Float64Array.of(11, 12),
        time: Float64Array.of(0.5, 1.5),
        delta: Float64Array.of(0, 1),
        server: [false, true],
        kind: Uint8Array.of(1, 3),
        wire_bytes: Uint32Array.of(74, 1514),
        length: Uint32Array.of(0, 1448),
        ttl: Uint8Array.of(64, 128),
        flags: Uint8Array.of(2, 24),
        ip_id: Uint16Array.from(n),
        window: Uint16Array.of(65535, 512),
        window_bytes: [null, 131072],
        seq_relative: Float64Array.of(0, 1),
        ack_relative: [null, 1],
        sack: [null, "1-2"],
        block_bytes: [null, 1448],
        original: [null, 1],
        class: [null, "RETRANSMISSION"],
        cause: [null, "FAST"],
        place: [null, "BEHIND_TAP"],
        note: [null, "BELOW PARTIAL SACK ZERO_WINDOW EXPECTED_UNKNOWN ACKED_UNKNOWN ACKS_MORE"],
    });
    table.schema.metadata.set("kinds", JSON.stringify(["RST", "SYN", "FIN", "RETRANSMISSION"]));
    return readRows(readColumns(tableToIPC(table, "stream")));
}

test("rows say what is known, and no more", () => {
    const [syn, data] = answer();
    expect(syn).toMatchObject({ flags: "SYN", ack: null, window: 65535, scaled: false, block: null, server: false });
    expect(data).toMatchObject({
        kind: "RETRANSMISSION",
        ack: 1,
        window: 131072,
        scaled: true,
        block: 1448,
        original: 1,
    });
    expect(syn && remarks(syn)).toBe("");
    expect(data && remarks(data)).toBe(
        "sent again; SACK 1-2; retransmission, fast, behind tap; with new bytes; window closed",
    );
    expect(syn && content(syn)).toBe("SYN");
    expect(data && content(data)).toBe("1,448 bytes");
});

test("flags are said in the usual order", () => {
    expect(flagNames(0x12)).toBe("SYN ACK");
    expect(flagNames(0x19)).toBe("FIN ACK PSH");
    expect(flagNames(0)).toBe("");
});

test("a time is found again though a link rounds it", () => {
    const rows = answer();
    expect([0, 0.5000000004, 0.6, 9].map((time) => rowFrom(rows, time))).toEqual([0, 0, 1, 1]);
});
