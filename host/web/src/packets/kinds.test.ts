import { expect, test } from "vitest";

import { KINDS, placesOf } from "./kinds";

test("kinds are found by name, and one that is not known is told", () => {
    expect([...placesOf(["RST", "ACK"])]).toEqual([KINDS.length - 1, 0]);
    expect(() => placesOf(["QUIC"])).toThrow("QUIC");
});
