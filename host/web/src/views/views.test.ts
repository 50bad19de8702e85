import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import type { Dialogue, DialogueSide, FindingEntry } from "../api/types";
import { byteAt, replaceBytes } from "../components/FilterBox";
import { ratio, shares, statistics } from "../chart/SeriesChart";
import { unmarked } from "../components/marks";
import { arrange, rateColor } from "./dialogues";
import { limitedAtAll, limitOf, statistic } from "./diagnosis";
import { behind, packetsTold, told, valueName, valueText } from "./overview";
import { sentAtLeast } from "./timeline";
import { VIEWS } from "./index";
import { barColour, COLOURED, lookOf } from "./marks";
import { THEMES } from "../theme";
import { and, FAILED, idsFilter, quoted } from "./open";

test("views have names and keys of their own", () => {
    for (const part of ["name", "key", "title"] as const) {
        expect(new Set(VIEWS.map((view) => view[part])).size).toBe(VIEWS.length);
    }
});

test("which connection is chosen is said where it is shown alone, and nowhere else", () => {
    const shows = ({ name }: { name: string }) =>
        /<(OfConnection|Selected)\b/.test(readFileSync(resolve(import.meta.dirname, `${name}.tsx`), "utf8"));
    expect(VIEWS.filter((view) => view.one).map(({ name }) => name)).toEqual(
        VIEWS.filter(shows).map(({ name }) => name),
    );
});

test("filters: values are quoted, alternatives kept together", () => {
    expect(quoted('a"b\\c*')).toBe('"a\\"b\\\\c\\*"');
    expect(and("a = 1 OR b = 2", "", "c = 3")).toBe("(a = 1 OR b = 2) AND c = 3");
    expect(and("", "a = 1 OR b = 2")).toBe("a = 1 OR b = 2");
    expect(idsFilter(["1", "2"])).toBe("id = 1 OR id = 2");
    expect(idsFilter(Array(500).fill("1")).split(" OR ")).toHaveLength(200);
});

test("a completion replaces bytes, not characters", () => {
    const text = 'name = "Zürich" AND cli';
    const to = byteAt(text, text.length);
    expect(to).toBe(text.length + 1);
    expect(replaceBytes(text, to - 3, to, "client.port")).toEqual({
        text: 'name = "Zürich" AND client.port',
        caret: 31,
    });
});

test("a share of lost segments is one at most, also where they were lost before the tap and none passed", () => {
    const lost = [2, 1, 0, 1, 0];
    const passed = [1, 0, 4, 4, 0];
    const { values, average } = shares(lost, sentAtLeast(passed, lost));
    expect(Array.from(values)).toEqual([1, 1, 0, 0.25, NaN]);
    expect(average).toBeCloseTo(4 / 11);
    expect(sentAtLeast([NaN], [1])).toEqual(new Float64Array([NaN]));
});

test("where nothing was sent, there is nothing that could be limited", () => {
    expect(limitedAtAll([])).toBe(false);
    expect(limitedAtAll([{ seconds: [0, NaN] }])).toBe(false);
    expect(limitedAtAll([{ seconds: [NaN] }, { seconds: [0, 0.1] }])).toBe(true);
});

test("the limit that cost most is looked at first", () => {
    expect(limitOf([{ name: "LATENCY" }, { name: "LOSS_RECOVERY" }, { name: "SENDER" }])).toBe("congestion");
    expect(limitOf([{ name: "SERVER_PROCESSING" }, { name: "SENDER" }])).toBe("sender");
    expect(limitOf([])).toBe("receiver_window");
});

test("a statistic has the unit that its figure is in", () => {
    expect(statistic(39254636, "bytes")).toBe("39.3 MB");
    expect(statistic(15.203, "ms")).toBe("15.2 ms");
    expect(statistic(1544, "kbit/s")).toBe("1.54 Mbit/s");
    expect(statistic(128)).toBe("128");
    expect(statistic(undefined, "kbit/s")).toBe("–");
});

test("rows that have no mark are counted", () => {
    expect(unmarked({ inRange: 5, withoutValue: 0 }, "setup time")).toBeNull();
    expect(unmarked({ inRange: 1, withoutValue: 1 }, "setup time")).toBe(
        "Without a mark: 1 of 1, whose setup time is not known.",
    );
});

test("figures of a series leave out what is not known", () => {
    expect(statistics({ values: [NaN, 4, 1, 3] })).toEqual({ min: 1, max: 4, last: 3, average: 8 / 3, p95: 4 });
    expect(statistics({ values: [4, 6], low: [1, 2], mean: [2, 5] })).toMatchObject({ min: 1, average: 3.5, max: 6 });
    expect(statistics({ values: [NaN] })).toBeNull();
    expect([...ratio([4, 1], [2, 0])]).toEqual([2, NaN]);
    // A moment with nothing but a repeat weighs no more than its one segment.
    const sentAgain = shares([1, 1, 0], [1, 99, 0]);
    expect(statistics(sentAgain)).toMatchObject({ max: 1, average: 0.02 });
});

const side = (bytes: number): DialogueSide => ({
    packets: 1,
    bytes,
    dataPackets: 0,
    retransmittedPackets: 0,
    retransmissionRate: null,
    lostBeforeTap: 0,
    lostBehindTap: 0,
    lostUnknown: 0,
    missedByCapture: 0,
    minRttSeconds: null,
});
const dialogue = (client: string, server: string, bytes: number): Dialogue => ({
    client,
    server,
    port: 80,
    connections: 1,
    failed: 0,
    clientToServer: side(bytes),
    serverToClient: side(0),
});

test("dialogues: each host once, the busiest on top", () => {
    const { clients, servers, lines } = arrange([
        dialogue("a", "s", 1),
        dialogue("b", "s", 5),
        dialogue("b", "2001::1", 1),
    ]);
    expect(clients).toEqual(["b", "a"]);
    expect(servers).toEqual(["s:80", "[2001::1]:80"]);
    expect(lines).toHaveLength(6);
});

test("colours of rates change above their line, and unknown has its own", () => {
    const c = THEMES.light;
    expect([0, 0.005, 0.0051, 0.05, 0.2].map((rate) => rateColor(rate, c))).toEqual([
        c.green,
        c.green,
        c.blue,
        c.orange,
        c.red,
    ]);
    expect(rateColor(null, c)).toBe(c.grey);
});

test("findings lead to their rows, and values have their units", () => {
    const entry = (kind: string, ids: string[]): FindingEntry => ({
        key: kind,
        finding: { kind, severity: "INFO", title: "t", connectionIds: ids },
    });
    expect(behind(entry("LOSS", []))).toBeNull();
    expect(behind(entry("LOSS", ["7"]))?.to.params?.filter).toBe("id = 7");
    expect(behind(entry("FAILED_CONNECTIONS", ["7"]))?.to.params).toMatchObject({
        filter: "id = 7",
        columns: expect.stringContaining("setup_explanation"),
    });
    // As many as a finding can name: there may be more.
    expect(behind(entry("LOSS", Array(1000).fill("7")))?.label).toBe("Its connections (first 200)");
    expect(behind(entry("LOSS", Array(999).fill("7")))?.label).toBe("Its connections (first 200 of 999)");
    const many = entry("FAILED_CONNECTIONS", Array(1000).fill("7"));
    expect(behind(many)?.to.params?.filter).toBe(FAILED);
    const all = { ...many, finding: { ...many.finding, values: { connections: 6305 } } };
    expect(behind(all)?.label).toBe("Which, when and why (6,305)");
    expect(valueText("costSeconds", 0.25)).toBe("250 ms");
    expect(["costSeconds", "seconds", "lostSynsAtLeast", "p99Seconds"].map(valueName)).toEqual([
        "cost",
        "seconds",
        "lost syns at least",
        "p99",
    ]);
    expect(valueText("rate", 0.031)).toBe("3.1 %");
    expect(valueText("clientToServer", 0.0263)).toBe("2.63 %");
    expect(valueText("rateInside", 0.0126)).toBe("1.26 %");
    expect(valueText("seconds", [0.3, 0.5])).toBe("300 ms, 500 ms");
});

test("what was seen, what else it may be and what to do next are told apart", () => {
    expect(
        told(["3 of 4 were lost", "it may also be: a busy link", "it may also be dirt", "next: look at the counters"]),
    ).toEqual({
        facts: ["3 of 4 were lost"],
        alternatives: ["a busy link", "dirt"],
        next: ["look at the counters"],
    });
});

test("kinds of transactions are told apart: marks by colour and shape, parts of bars by colour, the rest in grey", () => {
    const kinds = Array.from({ length: 15 }, (_, kind) => kind);
    const looks = kinds.map((kind) => JSON.stringify(lookOf(kind, "a")));
    expect(new Set(looks).size).toBe(kinds.length);
    const bars = [...kinds.map((kind) => barColour(kind, "a")), barColour(15, "other")];
    expect(new Set(bars.slice(0, COLOURED)).size).toBe(COLOURED);
    expect(new Set(bars.slice(COLOURED))).toEqual(new Set([THEMES.light.grey]));
    expect(bars.slice(0, COLOURED)).not.toContain(THEMES.light.grey);
});

test("a capture that is mostly no TCP says so", () => {
    expect(packetsTold({ packets: "1000", tcpPackets: "900" })).toBe("1,000 packets");
    expect(packetsTold({ packets: "1000", tcpPackets: "12" })).toBe("1,000 packets, 12 of them TCP");
    expect(packetsTold({ packets: "1", tcpPackets: "0" })).toBe("1 packet, 0 of them TCP");
    expect(packetsTold({ packets: "0" })).toBe("0 packets");
});
