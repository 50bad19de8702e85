import { expect, test } from "vitest";

import { lostOf, type Side } from "./connection";

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
