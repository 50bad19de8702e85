/** Views of packets, delays and taps show what `weir packets` and `weir analyze` say; links, keys, accessibility. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { readColumns } from "../src/api/client";
import { bits, bytes, count, duration, percent } from "../src/format";
import { ROW } from "../src/packets/bounce";
import type { Ceilings } from "../src/packets/ceilings";
import { passageWords, readRows, timesAt } from "../src/packets/rows";
import {
    axe,
    DEMO,
    expectNoErrors,
    gridHeads,
    gridRows,
    launch,
    parameter,
    ROOT,
    serve,
    settled,
    tab,
    WEIR,
} from "./support";
import type { Answer, Server, Tab } from "./support";

interface PacketRow {
    number: string;
    time: string;
    fromServer?: boolean;
    flags: string;
    seq: number;
    length?: number;
}

interface Said {
    connections: {
        id: string;
        serverToClient: { retransmittedPackets: string; maxInFlight: string; ceilings?: Ceilings };
    }[];
    transactions: { connectionId: string }[];
    summary: {
        packets: string;
        start: string;
        delays: Record<string, number>;
        delaysUncertainSeconds: number;
        bottlenecks: { name: string; seconds: number; remedy: string }[];
        diagnosis: { category: string; verdict: string }[];
        statistics: { name: string; total?: number }[];
    };
    legs: { lostForward?: string; lostBackward?: string; matched?: string }[];
    taps: { file: string }[];
}

/** 10.77.0.2, the server of the demo. */
const SERVER = 0x0a4d0002;
const TAPS = ["demo-client.pcap", "demo-server.pcap"].map((file) => resolve(ROOT, "docs/demo", file));

let server: Server;
let pair: Server;
let browser: Browser;
let said: Said;
let packets: Map<string, PacketRow[]>;
let one: Tab;

const run = (...args: string[]) =>
    JSON.parse(execFileSync(WEIR, [...args, "--format", "json"], { maxBuffer: 1 << 28, encoding: "utf8" })) as unknown;

beforeAll(async () => {
    said = run("analyze", DEMO) as Said;
    packets = new Map(
        said.connections.map(({ id }) => [
            id,
            (run("packets", DEMO, "--connection", id) as { packets: PacketRow[] }).packets,
        ]),
    );
    server = await serve(DEMO);
    pair = await serve(...TAPS);
    browser = await launch();
    one = await tab(browser, server);
});
afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await pair?.stop();
});
beforeEach(() => {
    one.errors.length = 0;
});

/** Seconds since the capture's start. */
const since = (time: string) => {
    const ns = (text: string) => {
        const [whole = "", part = ""] = text.replace("Z", "").split(".");
        return BigInt(Date.parse(`${whole}Z`)) * 1_000_000n + BigInt(part.padEnd(9, "0"));
    };
    return Number(ns(time) - ns(said.summary.start)) / 1e9;
};
/** The connection in which most packets of the server were sent again. */
const lossy = (): [string, PacketRow[]] => {
    const again = (one: Said["connections"][number]) => Number(one.serverToClient.retransmittedPackets);
    const id = [...said.connections].sort((a, b) => again(b) - again(a))[0]?.id ?? "";
    return [id, packets.get(id) ?? []];
};
const plot = (page: Page, chart: string) => page.locator(`[data-chart="${chart}"] .plot`);
const told = (page: Page, chart: string) => page.locator(`[data-chart="${chart}"] [aria-live]`).innerText();
const notes = async (page: Page) => (await page.locator(".note").allInnerTexts()).join("\n");

test("packet timing counts every packet, in any range", async () => {
    await one.show("view=timing");
    expect(await notes(one.page)).toContain(`${said.summary.packets} packets in this range, each drawn`);
    expect(await one.page.locator(".pages").innerText()).toBe(`${said.connections.length} connections`);
    const [from, to] = [0.5, 1.7];
    await one.show(`view=timing&from=${from}&to=${to}`);
    const inside = [...packets.values()].flat().filter(({ time }) => since(time) >= from && since(time) < to);
    expect(inside.length).toBeGreaterThan(50);
    expect(await notes(one.page)).toContain(`${inside.length} packets in this range`);
    expectNoErrors(one);
});

test("packet timing by keyboard: step to a mark, open its connection; n finds a repeat", async () => {
    await one.show("view=timing");
    await plot(one.page, "timing").focus();
    await one.page.keyboard.press("ArrowRight");
    expect(await told(one.page, "timing")).toContain("SYN");
    await one.page.keyboard.press("Enter");
    await settled(one.page);
    expect(parameter(one.page, "view")).toBe("connection");
    const first = [...packets].sort((a, b) => since(a[1][0]?.time ?? "") - since(b[1][0]?.time ?? ""))[0];
    expect(parameter(one.page, "connection")).toBe(first?.[0]);
    await one.show("view=timing&hide=ACK");
    expect(await one.page.getByRole("button", { name: "ACK", exact: true }).getAttribute("aria-pressed")).toBe("false");
    expectNoErrors(one);
});

test("a chart is saved as SVG and as PNG", async () => {
    await one.show("view=timing");
    for (const kind of ["SVG", "PNG"]) {
        const coming = one.page.waitForEvent("download");
        await one.page.locator('[data-chart="timing"]').getByRole("button", { name: kind }).click();
        const file = await (await coming).path();
        const content = readFileSync(file);
        if (kind === "SVG") expect(content.toString()).toMatch(/^<svg [^]*10\.77\.0\.1[^]*<\/svg>\s*$/);
        else expect(content.subarray(1, 4).toString()).toBe("PNG");
        expect(content.length).toBeGreaterThan(5000);
    }
    expectNoErrors(one);
});

test("one connection: its figures, both directions, its own time in the link", async () => {
    const [id, rows] = lossy();
    await one.show(`view=connection&connection=${id}`);
    const facts = await one.page.locator(".attributes").first().innerText();
    expect(facts).toContain(`Packets\n${rows.length}`);
    expect(Number(parameter(one.page, "from"))).toBeLessThanOrEqual(since(rows[0]?.time ?? ""));
    expect(Number(parameter(one.page, "to"))).toBeGreaterThan(since(rows.at(-1)?.time ?? ""));
    for (const side of ["client", "server"]) {
        await one.page.getByRole("button", { name: `Data of the ${side}` }).click();
        await settled(one.page);
        expect(parameter(one.page, "side")).toBe(side);
        expect(await one.page.locator('[data-chart="sequence"] h2').innerText()).toContain(side);
    }
    // The most that the keys find under way is what the engine counted.
    await plot(one.page, "in-flight").focus();
    let most = 0;
    for (let before = "", now = "."; now !== before;) {
        before = now;
        await one.page.keyboard.press("ArrowRight");
        now = await told(one.page, "in-flight");
        const found = /In flight (?:[\d,]+ to )?([\d,]+), Window/.exec(now);
        most = Math.max(most, Number(found?.[1]?.replaceAll(",", "") ?? NaN));
    }
    const counted = said.connections.find((each) => each.id === id)?.serverToClient.maxInFlight;
    expect(most).toBe(Number(counted));
    expectNoErrors(one);
});

test("one connection: what each limit would allow, and what was measured", async () => {
    const [id] = lossy();
    await one.show(`view=connection&connection=${id}`);
    const ceilings = said.connections.find((each) => each.id === id)?.serverToClient.ceilings;
    const { receiverWindowBitsPerSecond: window, lossBitsPerSecond: loss, roundTripSeconds: trip } = ceilings ?? {};
    if (!window || !loss || !trip) throw new Error("no ceilings");
    const rows = one.page.locator('[data-chart="ceilings-server"] [data-table="ceilings"] tbody tr');
    const cells = await rows.evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    expect(cells.map((row) => row.slice(0, 2))).toEqual([
        ["measured", bits(ceilings?.measuredBitsPerSecond)],
        ["receiver's window", bits(window)],
        ["sender's buffer", "not known"],
        ["loss (Mathis), lowest", bits(loss)],
        ["link", "not known"],
    ]);
    expect(cells[1]?.[3]).toBe(`its largest, ${bytes((window * trip) / 8)}, in a round trip of ${duration(trip)}`);
    expect(await one.page.locator(".said").innerText()).toContain(`The rate of loss allows ${bits(loss)} over`);
    // By keys the same.
    await plot(one.page, "ceilings-server").focus();
    for (let step = 0; step < 4; step += 1) await one.page.keyboard.press("ArrowRight");
    expect(await told(one.page, "ceilings-server")).toContain(`the lowest ceiling. Rate ${bits(loss)}`);
    // What a phone cannot show beside one another scrolls in its place.
    await one.page.setViewportSize({ width: 390, height: 800 });
    await settled(one.page);
    expect(await one.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await one.page.setViewportSize({ width: 1400, height: 900 });
    expectNoErrors(one);
});

test("the packets of a connection, row by row; n goes to what was sent again", async () => {
    const [id, rows] = lossy();
    await one.show(`view=packets&connection=${id}`);
    const heads = await gridHeads(one.page);
    const cells = await gridRows(one.page);
    const column = (name: string) => cells.map((row) => row[heads.indexOf(name)]);
    const shown = rows.slice(0, cells.length);
    expect(cells.length).toBeGreaterThan(10);
    expect(column("No.")).toEqual(shown.map(({ number }) => count(number)));
    expect(column("From")).toEqual(shown.map(({ fromServer }) => (fromServer ? "server" : "client")));
    expect(column("Data")).toEqual(shown.map(({ length }) => count(length ?? 0)));
    const first = (server: boolean) => shown.find(({ fromServer }) => (fromServer ?? false) === server)?.seq ?? NaN;
    expect(column("Seq")).toEqual(
        shown.map(({ seq, fromServer }) => count((seq - first(fromServer ?? false) + 2 ** 32) % 2 ** 32)),
    );
    expect(column("Time").map((time) => time?.slice(-9))).toEqual(shown.map(({ time }) => time.slice(-10, -1)));
    await one.page.locator('[role="grid"]').focus();
    await one.page.keyboard.press("n");
    const chosen = one.page.locator('[role="row"][aria-selected="true"]');
    expect(await chosen.innerText()).toContain("sent again");
    const link = one.page.url();
    await one.page.goto("about:blank");
    await one.page.goto(link);
    await settled(one.page);
    expect(await chosen.innerText()).toContain("sent again");
    await one.page.locator('[role="grid"]').focus();
    await one.page.keyboard.press("Enter");
    await settled(one.page);
    expect(parameter(one.page, "view")).toBe("connection");
    expectNoErrors(one);
});

test("bounce diagram: an arrow for each packet, told as one moves", async () => {
    const [id, rows] = lossy();
    await one.show(`view=bounce&connection=${id}`);
    const diagram = one.page.getByRole("group", { name: `Bounce diagram of ${rows.length} packets` });
    await diagram.focus();
    await one.page.keyboard.press("Home");
    const live = one.page.locator('[data-chart="bounce"] [aria-live]');
    expect(await live.innerText()).toContain("client sends SYN");
    await one.page.keyboard.press("ArrowDown");
    expect(await live.innerText()).toContain("server sends SYN ACK");
    await one.page.getByRole("button", { name: "To scale" }).click();
    expect(parameter(one.page, "spacing")).toBe("time");
    await one.page.getByRole("button", { name: "To scale" }).click();
    // The pointer tells the packet under it; dragged along the rows it zooms to their time.
    const box = await diagram.boundingBox();
    if (!box) throw new Error("no diagram");
    const row = (at: number) => [box.x + 300, box.y + (at + 0.6) * ROW] as const;
    await one.page.mouse.move(...row(1));
    expect(await one.page.locator(".tip").innerText()).toContain("server sends SYN ACK");
    await one.page.mouse.down();
    await one.page.mouse.move(...row(2));
    await one.page.mouse.move(...row(3));
    await one.page.mouse.up();
    await settled(one.page);
    await one.page.getByRole("group", { name: "Bounce diagram of 3 packets" }).waitFor();
    expect(Number(parameter(one.page, "from"))).toBeCloseTo(since(rows[1]?.time ?? ""), 8);
    await one.page.mouse.move(...row(2));
    await one.page.mouse.click(...row(2));
    await expect.poll(() => Number(parameter(one.page, "at"))).toBeCloseTo(since(rows[3]?.time ?? ""), 8);
    expectNoErrors(one);
});

test("bounce diagram of two taps: what is at both, and what was lost between them", async () => {
    const both = run("analyze", ...TAPS) as Said;
    const two = await tab(browser, pair);
    const passages = new Map<string, number>();
    let lost = "";
    for (const { id } of both.connections) {
        const answer = await fetch(`${pair.url}/api/v1/captures/1/connections/${id}/packets?taps=true&limit=20000`);
        const rows = readRows(readColumns(new Uint8Array(await answer.arrayBuffer())));
        for (const { passage, server, far, time } of rows) {
            const what = `${passage} ${server ? "server" : "client"}`;
            passages.set(what, (passages.get(what) ?? 0) + 1);
            // 10 ms each way.
            if (passage === "BOTH") expect(Math.abs((far ?? NaN) - time)).toBeCloseTo(0.011, 2);
        }
        if (rows.some(({ passage, server }) => passage === "LOST" && server)) lost = id;
    }
    const leg = both.legs[0];
    expect(passages.get("LOST client")).toBe(Number(leg?.lostForward));
    expect(passages.get("LOST server")).toBe(Number(leg?.lostBackward));
    expect((passages.get("BOTH client") ?? 0) + (passages.get("BOTH server") ?? 0)).toBe(Number(leg?.matched));
    await two.show(`view=bounce&connection=${lost}`);
    await two.page.locator(".bounce").focus();
    await two.page.keyboard.press("Home");
    const live = two.page.locator('[data-chart="bounce"] [aria-live]');
    expect(await live.innerText()).toMatch(/client sends SYN\. From tap to tap 1\d[.\d]* ms, at server /);
    for (let step = 0; step < 100 && !(await live.innerText()).includes("lost between the taps"); step += 1)
        await two.page.keyboard.press("ArrowDown");
    expect(await live.innerText()).toMatch(/server sends .*lost between the taps/);
    expect(await axe(two.page)).toEqual([]);
    expectNoErrors(two);
    await two.page.close();
});

/** Losses on both legs between three taps. */
const THREE = `
name = "three"
description = "Three taps"
duration_s = 8
seed = 5
host = [
    { name = "users", address = "10.3.0.10", stack = "linux" },
    { name = "server", address = "10.3.1.10", stack = "linux" },
]
load = [{ dialogue = "visit", to_s = 6, per_s = 5 }]
[[path]]
between = ["users", "server"]
taps = ["client", "middle", "server"]
leg = [
    { forward = { delay_ms = 0.1 }, backward = { delay_ms = 0.1 } },
    { forward = { delay_ms = 8, loss = 0.02, hops = 2 }, backward = { delay_ms = 8, loss = 0.02, hops = 2 } },
    { forward = { delay_ms = 3, loss = 0.02, hops = 1 }, backward = { delay_ms = 3, loss = 0.02, hops = 1 } },
    { forward = { delay_ms = 0.1 }, backward = { delay_ms = 0.1 } },
]
[[service]]
name = "pages"
host = "server"
port = 8080
[exchange.page]
request = "300-900"
cpu_ms = [1, 5]
response = [{ writes = "2000-20000" }]
[dialogue.visit]
client = "users"
service = "pages"
body = ["page"]
count = [3, 8]
think_ms = [20, 100]
close = "client_fin"
`;

/** A pcap file without some of its frames, the first of which is 1. */
function without(file: string, frames: ReadonlySet<number>): Buffer {
    const all = readFileSync(file);
    const kept = [all.subarray(0, 24)];
    for (let at = 24, number = 1; at < all.length; number += 1) {
        const end = at + 16 + all.readUInt32LE(at + 8);
        if (!frames.has(number)) kept.push(all.subarray(at, end));
        at = end;
    }
    return Buffer.concat(kept);
}

test("bounce diagram of three taps: each packet at each of them, and between which two it was lost", async () => {
    const folder = mkdtempSync(resolve(tmpdir(), "weir-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(resolve(folder, "three.toml"), THREE);
    execFileSync(WEIR, ["scenario", resolve(folder, "three.toml"), "-o", folder], { stdio: "ignore" });
    const names = ["client", "middle", "server"];
    const files = names.map((name) => resolve(folder, `three-${name}.pcap`));
    const { connections } = run("analyze", ...files) as Answer;
    const truth = readFileSync(resolve(folder, "three-wire.jsonl"), "utf8").trim().split("\n");
    const three = await serve(...files);
    onTestFinished(() => three.stop());
    const one = await tab(browser, three);
    // Once they are read.
    await one.show("view=taps");
    const lost: string[] = [];
    let example = "";
    // Frames of the tap at the server of what is lost before that at the client.
    const towards = new Map<number, string>();
    for (const { id, client } of connections) {
        const answer = await fetch(`${three.url}/api/v1/captures/1/connections/${id}/packets?taps=true&limit=20000`);
        for (const row of readRows(readColumns(new Uint8Array(await answer.arrayBuffer())))) {
            const [first, middle = null, last] = timesAt(row);
            if (row.passage === "LOST") {
                lost.push(`${client.port} ${row.ipId} ${passageWords(row, names)}`);
                if (row.server && middle !== null) {
                    example = id;
                    if (row.length > 0) towards.set(row.number, `${id} ${row.ipId}`);
                }
            } else {
                expect(row.passage).toBe("BOTH");
                expect(Math.abs((middle ?? NaN) - (first ?? NaN))).toBeCloseTo(0.008, 3);
                expect(Math.abs((last ?? NaN) - (middle ?? NaN))).toBeCloseTo(0.003, 3);
            }
        }
    }
    const legs = ["", "", "client and middle", "middle and server"];
    const told = truth.map((line) => {
        const { leg, direction, src_port, dst_port, ip_id } = JSON.parse(line) as Record<string, number | string>;
        const two = legs[Number(leg)] ?? "";
        return direction === "c2s"
            ? `${src_port} ${ip_id} lost between ${two}`
            : `${dst_port} ${ip_id} lost between ${two.split(" and ").reverse().join(" and ")}`;
    });
    expect(lost.length).toBeGreaterThan(50);
    expect(lost.sort()).toEqual(told.sort());
    await one.show(`view=bounce&connection=${example}`);
    expect(await one.page.locator(".sides span").allInnerTexts()).toEqual(expect.arrayContaining(names));
    await one.page.locator(".bounce").focus();
    await one.page.keyboard.press("Home");
    const live = one.page.locator('[data-chart="bounce"] [aria-live]');
    expect(await live.innerText()).toMatch(/client sends SYN\. From tap to tap 8[.\d]* ms \+ 3[.\d]* ms, at server /);
    expect(await axe(one.page)).toEqual([]);
    expectNoErrors(one);
    await one.page.close();

    // A tap at the server that does not have them either: only the one in the middle saw them.
    expect(towards.size).toBeGreaterThan(5);
    const poorer = resolve(folder, "three-poorer.pcap");
    writeFileSync(poorer, without(files[2] ?? "", new Set(towards.keys())));
    const middleOnly = await serve(files[0] ?? "", files[1] ?? "", poorer);
    onTestFinished(() => middleOnly.stop());
    const other = await tab(browser, middleOnly);
    await other.show("view=taps");
    const found: string[] = [];
    const at = { id: "", time: NaN };
    for (const { id } of connections) {
        const url = `${middleOnly.url}/api/v1/captures/1/connections/${id}/packets?taps=true&limit=20000`;
        for (const row of readRows(readColumns(new Uint8Array(await (await fetch(url)).arrayBuffer())))) {
            if (row.tap !== 1) continue;
            expect(passageWords(row, names)).toBe("only at middle: lost before client");
            expect(timesAt(row)).toEqual([null, row.time, null]);
            found.push(`${id} ${row.ipId}`);
            Object.assign(at, { id, time: row.time });
        }
    }
    expect(found.sort()).toEqual([...towards.values()].sort());
    await other.show(`view=bounce&connection=${at.id}&at=${at.time.toFixed(9)}`);
    expect(await other.page.locator('[data-chart="bounce"] [aria-live]').innerText()).toContain("only at middle");
    expectNoErrors(other);
    await other.page.close();
});

test("waterfall: a bar for each transaction, of all and of one connection", async () => {
    await one.show("view=waterfall");
    expect(await one.page.locator(".pages").innerText()).toBe(`${said.transactions.length} transactions`);
    const [id] = lossy();
    const own = said.transactions.filter(({ connectionId }) => connectionId === id);
    await one.show(`view=waterfall&connection=${id}`);
    expect(await one.page.locator(".pages").innerText()).toBe(`${own.length} transactions`);
    const legend = await one.page.locator('[data-chart="waterfall"] .legend').innerText();
    // From packet to packet it is not the server's own time alone: that is told beside it.
    expect(legend).toContain("wait for the response");
    expect(legend).not.toMatch(/server/);
    await plot(one.page, "waterfall").focus();
    for (let step = 0; step < own.length; step += 1) {
        await one.page.keyboard.press("ArrowRight");
        if ((await told(one.page, "waterfall")).includes("The server’s own")) break;
    }
    expect(await told(one.page, "waterfall")).toContain("The server’s own");
    const shares = [...legend.matchAll(/([\d.]+) %/g)].map((found) => Number(found[1]));
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(100, 0);
    expectNoErrors(one);
});

test("data exchange: every application message", async () => {
    await one.show("view=exchange");
    const messages = said.summary.statistics.find(({ name }) => name === "Application Messages")?.total;
    expect(await notes(one.page)).toContain(`${messages} messages in this range`);
    await plot(one.page, "exchange").focus();
    await one.page.keyboard.press("ArrowRight");
    expect(await told(one.page, "exchange")).toContain("request");
    expectNoErrors(one);
});

test("whose time it was: the parts and their sum", async () => {
    await one.show("view=delays&by=none");
    const cells = await one.page.locator("table.sums tbody tr").first().locator("td").allInnerTexts();
    const { delays } = said.summary;
    expect(cells[0]).toBe(count(said.transactions.length));
    expect(cells[1]).toBe(duration(delays.totalSeconds));
    expect(cells.slice(2)).toEqual(
        ["userThink", "clientProcessing", "latency", "bandwidth", "congestion", "protocol", "serverProcessing"].map(
            (part) => duration(delays[`${part}Seconds`]),
        ),
    );
    const pie = (await one.page.getByRole("img").getAttribute("aria-label")) ?? "";
    const worked = delays.serverProcessingSeconds ?? NaN;
    const all = (delays.totalSeconds ?? NaN) - (delays.userThinkSeconds ?? 0);
    const give = ` ± ${duration(said.summary.delaysUncertainSeconds)}`;
    expect(pie).toContain(`server ${percent(worked / all)}: ${duration(worked)}${give}`);
    // Of a part of the capture it is not known.
    await one.show("view=delays&by=none&from=0&to=2");
    expect(await one.page.getByRole("img").getAttribute("aria-label")).not.toContain("±");
    expectNoErrors(one);
});

test("of one direction nothing tells whose time it was, and no handshake is all of it", async () => {
    const folder = mkdtempSync(resolve(tmpdir(), "weir-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const demo = resolve(ROOT, "docs/demo/demo.pcap");
    const all = readFileSync(demo);
    const answers = new Set<number>();
    for (let at = 24, number = 1; at < all.length; number += 1) {
        // The source address behind the headers of the record and of Ethernet.
        if (all.readUInt32BE(at + 16 + 26) === SERVER) answers.add(number);
        at += 16 + all.readUInt32LE(at + 8);
    }
    const file = resolve(folder, "one-way.pcap");
    writeFileSync(file, without(demo, answers));
    const oneWay = await serve(file);
    onTestFinished(() => oneWay.stop());
    const other = await tab(browser, oneWay);
    await other.show("view=delays");
    expect(await other.page.locator(".note").first().innerText()).toContain("is not known, which is most of them");
    expect(await other.page.locator('[data-chart="pies"]').count()).toBe(0);
    await other.show("view=diagnosis");
    expect(await other.page.getByLabel("What cost time").innerText()).toContain("Not known");
    expectNoErrors(other);
    await other.page.close();
});

test("diagnosis: every category with its verdict", async () => {
    await one.show("view=diagnosis");
    const rows = await one.page.locator('[data-table="diagnosis"] tbody tr').allInnerTexts();
    expect(rows).toHaveLength(said.summary.diagnosis.length);
    said.summary.diagnosis.forEach(({ category, verdict }, at) => {
        const words = (text: string) => text.toLowerCase().replaceAll("_", " ");
        expect(rows[at]?.toLowerCase()).toContain(words(category));
        expect(rows[at]).toContain(words(verdict));
    });
    const costs = one.page.getByRole("region", { name: "What cost time" }).locator("tbody tr");
    expect((await costs.allInnerTexts()).map((row) => row.split("\t").at(-1))).toEqual(
        said.summary.bottlenecks.map(({ remedy }) => remedy),
    );
    const [first] = said.summary.bottlenecks;
    expect(await costs.first().innerText()).toContain(duration(first?.seconds));
    expect(await one.page.locator('[data-table="statistics"] tbody tr').count()).toBe(said.summary.statistics.length);
    expectNoErrors(one);
});

test("two taps: what the leg between them lost; one tap says how to have two", async () => {
    const both = run("analyze", ...TAPS) as Said;
    const two = await tab(browser, pair);
    await two.show("view=taps");
    const leg = both.legs[0];
    const cell = (label: string) => two.page.locator("tr", { hasText: label }).locator("td").first().innerText();
    expect(await cell("Lost on the leg, forward")).toBe(count(leg?.lostForward ?? "0"));
    expect(await cell("Lost on the leg, backward")).toBe(count(leg?.lostBackward ?? "0"));
    expect(await cell("Packets in both captures")).toBe(count(leg?.matched ?? "0"));
    expect(await axe(two.page)).toEqual([]);
    expectNoErrors(two);
    await two.page.close();
    await one.show("view=taps");
    expect(await one.page.locator("main").innerText()).toContain("weir view client.pcapng server.pcapng");
    expectNoErrors(one);
});

test("a file is not live, and the view says what is", async () => {
    await one.show("view=live");
    expect(await one.page.locator("main").innerText()).toContain("weir serve --port PORT --page");
    expectNoErrors(one);
});

test("every view passes the accessibility scan, light and dark, with and without a connection", async () => {
    const [id] = lossy();
    for (const theme of ["light", "dark"] as const) {
        const each = await tab(browser, server, theme);
        for (const view of [
            "timing",
            "connection",
            "packets",
            "bounce",
            "waterfall",
            "exchange",
            "exchange&dependencies=1",
            "delays",
            "diagnosis",
        ]) {
            for (const of of theme === "light" ? ["", `&connection=${id}`] : [`&connection=${id}`]) {
                await each.show(`view=${view}${of}`);
                expect(await axe(each.page), `${view}${of}, ${theme}`).toEqual([]);
            }
        }
        expectNoErrors(each);
        await each.page.close();
    }
});
