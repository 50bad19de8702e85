import { expect, test } from "vitest";

import { tiers } from "./tiers";

const asks = (...pairs: string[]): { client: string; server: string }[] =>
    pairs.map((pair) => {
        const [client = "", server = ""] = pair.split(">");
        return { client, server };
    });

test("front, middle and back stand in this order", () => {
    expect(tiers(asks("web>db", "user2>web", "user1>web", "web>cache", "cache>db"))).toEqual([
        "user1",
        "user2",
        "web",
        "cache",
        "db",
    ]);
});

test("hosts that ask one another end", () => {
    expect(tiers(asks("a>b", "b>a"))).toEqual(["a", "b"]);
    expect(tiers(asks("a>a"))).toEqual(["a"]);
    expect(tiers(asks("x>a", "a>b", "b>c", "c>a")).slice(0, 2)).toEqual(["x", "a"]);
    expect(tiers([])).toEqual([]);
});

test("many hosts that all ask one another are quick", () => {
    const names = Array.from({ length: 60 }, (_, at) => `h${String(at)}`);
    const all = names.flatMap((client) => names.map((server) => ({ client, server })));
    expect(tiers(all)).toHaveLength(60);
});
