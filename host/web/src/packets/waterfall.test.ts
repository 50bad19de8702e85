import { expect, test } from "vitest";

import { bar, bars, endOf, totals, type Transaction } from "./waterfall";

const one: Transaction = {
    connection: "1",
    signature: "",
    kind: "DATA",
    start: 10,
    request: 0.5,
    server: 2,
    response: 1,
    end: 3,
    requestBytes: 1,
    responseBytes: 1,
    losses: 0,
    own: null,
    uncertain: null,
};

test("the parts of a bar follow one another without a gap", () => {
    const parts = bar(one, 9);
    expect(parts.map((part) => part.name)).toEqual(["client", "request", "server", "response"]);
    parts.slice(1).forEach((part, at) => expect(part.from).toBe(parts[at]?.to));
    expect(parts[3]?.to).toBe(endOf(one));
    expect(totals([parts])).toEqual({ client: 1, setup: 0, request: 0.5, server: 2, response: 1 });
});

test("what is not known is not drawn", () => {
    const open = { ...one, server: null, response: null, end: null };
    expect(bar(open, null)).toEqual([{ name: "request", from: 10, to: 10.5 }]);
});

test("one that overlaps the last has no time before it", () => {
    expect(bar(one, 11)[0]?.name).toBe("request");
});

test("a setup is one piece from its first SYN to its end", () => {
    const setup = { ...one, kind: "SETUP", request: 0, server: 0.01, response: 0.01, end: 0.02 };
    expect(bar(setup, null)).toEqual([{ name: "setup", from: 10, to: 10.02 }]);
});

test("what came before is found in the same connection, in any order", () => {
    const later = { ...one, start: 20 };
    const other = { ...one, connection: "2", start: 15 };
    const [second, third, first] = bars([later, other, one]);
    expect(second?.[0]).toEqual({ name: "client", from: 13.5, to: 20 });
    expect(third?.[0]?.name).toBe("request");
    expect(first?.[0]?.name).toBe("request");
});
