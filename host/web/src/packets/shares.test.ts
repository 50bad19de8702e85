import { expect, test } from "vitest";

import { LIMITS, SHARES, pie, sum } from "./shares";

const shares = {
    userThinkSeconds: 1,
    clientProcessingSeconds: 2,
    serverProcessingSeconds: 4,
    latencySeconds: 8,
    bandwidthSeconds: 16,
    congestionSeconds: 32,
    protocolSeconds: 64,
    totalSeconds: 127,
};

test("the parts are all that the host knows, each once", () => {
    expect(sum(shares)).toBe(shares.totalSeconds);
    expect(new Set(SHARES.map((share) => share.field)).size).toBe(SHARES.length);
});

test("the pie's slices leave out only the time in which the user thought", () => {
    expect(pie(shares)).toEqual({ client: 2, network: 120, server: 4 });
});

test("a round trip that is not known is nobody’s", () => {
    expect(sum({ serverProcessingSeconds: 3, totalSeconds: 3 })).toBe(3);
});

test("colours of neighbouring parts differ", () => {
    for (const all of [SHARES, LIMITS]) expect(new Set(all.map((one) => one.colour)).size).toBe(all.length);
});
