import { tableFromArrays, tableToIPC } from "apache-arrow";
import { expect, test } from "vitest";

import { readColumns } from "../api/client";
import { lostOf, nameOf, namesOf, type Side } from "./connection";

test("an IPv6 address stands in brackets before its port", () => {
    expect(nameOf({ address: "2001:db8::1", port: 443 })).toBe("[2001:db8::1]:443");
    expect(nameOf({ address: "10.0.0.1", port: 0 })).toBe("10.0.0.1:0");
    expect(nameOf({})).toBe("?:?");
    const table = tableFromArrays({
        client_address: ["::1", null],
        client_port: [1, null],
        server_address: ["10.0.0.2", "::2"],
        server_port: [80, 81],
    });
    expect(namesOf(readColumns(tableToIPC(table, "stream")))).toEqual(["[::1]:1 → 10.0.0.2:80", "?:? → [::2]:81"]);
});

test("losses are told by their place", () => {
    const side: Side = {
        packets: "9",
        payloadBytes: "9",
        retransmittedPackets: "0",
        lostUpstream: "0",
        lostDownstream: "0",
        lostUnknown: "0",
        missedByCapture: "0",
        zeroWindows: "0",
        maxInFlight: "0",
    };
    expect(lostOf(side)).toBe("none");
    expect(lostOf({ ...side, lostDownstream: "2", lostUnknown: "1" })).toBe("2 behind the tap, 1 at a place unknown");
});
