/** A daemon's page: what was measured, and that a lost connection is said. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { analyze, DEMO, launch, serve, serveLive, settled, tab, type Server } from "./support";

let folder: string;
let server: Server;
let file: Server;
let browser: Browser;

beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "weir-page-live-"));
    server = await serveLive(DEMO, folder);
    file = await serve(DEMO);
    browser = await launch();
});
afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await file?.stop();
    if (folder) rmSync(folder, { recursive: true });
});

/** How many packets each view of them tells of, in the words of the page. */
async function told(of: Server, connections: number): Promise<string[]> {
    const one = await tab(browser, of);
    const said: string[] = [];
    await one.show("view=timing");
    said.push(await one.page.locator(".note").first().innerText());
    await one.show("view=connections&sort=-server_to_client_retransmitted_packets");
    await expect.poll(() => one.page.locator('[role="grid"]').getAttribute("aria-rowcount")).toBe(`${connections + 1}`);
    await one.page.locator('[role="grid"] [id^="row-"]').first().click();
    await one.page.keyboard.press("Enter");
    await settled(one.page);
    for (const key of ["i", "b"]) {
        await one.page.keyboard.press("g");
        await one.page.keyboard.press(key);
        await settled(one.page);
        said.push(await one.page.locator("main").innerText());
    }
    expect(one.errors).toEqual([]);
    await one.page.close();
    return said;
}

/** Rates, shares of them and the distance of a round trip. */
const BY_TIMES = /(\d[\d.,]*(?: [kMG](?=bit))?) ?(bit\/s|%|km)/g;

/** A figure with its prefix. */
function inUnits(text = ""): number {
    const [value = "", prefix = ""] = text.split(" ");
    return Number(value.replaceAll(",", "")) * 1000 ** " kMG".indexOf(prefix || " ");
}

test("packets of what is measured are shown as those of the file", async () => {
    const packets = async (of: Server) => {
        const answer = (await (await fetch(`${of.url}/api/v1/captures`)).json()) as {
            captures: { state: string; packets?: string }[];
        };
        return answer.captures[0]?.packets;
    };
    await expect.poll(() => packets(file), { timeout: 20_000 }).toMatch(/^[1-9]/);
    const all = await packets(file);
    await expect.poll(() => packets(server), { timeout: 20_000 }).toBe(all);
    const connections = analyze(DEMO).connections.length;
    const [mine, theirs] = [await told(server, connections), await told(file, connections)];
    expect(theirs[0]).toContain("packets in this range, each drawn");
    // A daemon numbers connections anew each time, and this port stamps in whole microseconds.
    const plain = (text: string) =>
        text
            .replace(/connection \d+/g, "connection")
            .replace(/[\d:.]*\d\.?\d* ?(ns|µs|ms|s|UTC)\b|\d+:\d+:[\d.]+/g, "time")
            .replace(BY_TIMES, "$2");
    expect(mine.map(plain)).toEqual(theirs.map(plain));
    // What is made of times is as near as these are.
    const figures = (all: string[]) => [...all.join("\n").matchAll(BY_TIMES)].map(([, value]) => inUnits(value));
    const [live, whole] = [figures(mine), figures(theirs)];
    expect(whole.length).toBeGreaterThan(5);
    whole.forEach((value, at) => expect(Math.abs((live[at] as number) / value - 1)).toBeLessThan(0.02));
});

/** A page over the file to which the test tells news, as if it were live, and whose `route` takes its time. */
async function newsTo(view: string, route: string, wait: number) {
    const one = await tab(browser, file);
    await one.page.addInitScript(() => {
        class Stream extends EventTarget {
            static CLOSED = 2;
            readyState = 1;
            onerror = () => undefined;
            onopen = () => undefined;
            close(): void {}
        }
        const streams: Stream[] = [];
        const made = class extends Stream {
            constructor() {
                super();
                streams.push(this);
            }
        };
        Object.assign(globalThis, { EventSource: made, streams });
    });
    await one.page.goto(`${file.url}/?v=1&view=${view}`);
    const { captures } = (await (await fetch(`${file.url}/api/v1/captures`)).json()) as { captures: object[] };
    await one.page.route(`**${route}?*`, async (request) => {
        await new Promise((done) => setTimeout(done, wait));
        await request.continue().catch(() => undefined); // what was cancelled
    });
    return {
        ...one,
        tell: (changed: object) =>
            one.page.evaluate(
                (data) => {
                    const { streams } = globalThis as unknown as { streams: EventTarget[] };
                    for (const stream of streams) stream.dispatchEvent(new MessageEvent("capture", { data }));
                },
                JSON.stringify({ ...captures[0], ...changed }),
            ),
        /** As after a stream that was lost: all is asked for again at once. */
        renew: () =>
            one.page.evaluate(() => {
                const { streams } = globalThis as unknown as { streams: { onerror(): void; onopen(): void }[] };
                for (const stream of streams) {
                    stream.onerror();
                    stream.onopen();
                }
            }),
    };
}

test("what takes longer than it is to the next news is shown all the same", async () => {
    const { page, tell } = await newsTo("live", "/timeline", 300);
    const charts = page.locator("[data-chart^=live]");
    const began = Date.now();
    for (let news = 1; (await charts.count()) === 0; news += 1) {
        expect(Date.now() - began, "ms without a chart").toBeLessThan(5000);
        await tell({ kind: "LIVE", revision: `9${news}`, seconds: 10 + news / 10 });
        await page.waitForTimeout(50);
    }
    await page.close();
});

test("news of a list leave it where it was scrolled to, and its rows in sight", async () => {
    const { page, renew } = await newsTo("connections", "/connections", 150);
    await page.setViewportSize({ width: 1400, height: 400 });
    await page.waitForSelector('[role="gridcell"]:not(:empty)');
    const grid = page.locator('[role="grid"]');
    await grid.evaluate((box) => (box.scrollTop = 50));
    const now = () =>
        grid.evaluate((box) => ({
            top: box.scrollTop,
            blank: box.querySelectorAll('[role="gridcell"]:empty').length,
        }));
    await expect.poll(now).toEqual({ top: 50, blank: 0 });
    const asked = page.waitForRequest("**/connections?*");
    const answered = page.waitForResponse("**/connections?*");
    await renew();
    await asked;
    expect(await now()).toEqual({ top: 50, blank: 0 });
    await answered;
    await page.waitForTimeout(100);
    expect(await now()).toEqual({ top: 50, blank: 0 });
    await page.close();
});

test("findings and figures come by themselves; when the daemon ends, the page says so", async () => {
    const answer = analyze(DEMO);
    const one = await tab(browser, server);
    // At once, while the daemon may still be measuring; no reload follows.
    await one.page.goto(`${server.url}/?v=1&view=overview`);
    const tile = one.page.locator(".tiles div", { hasText: "Connections" }).locator("dd");
    await expect.poll(() => tile.innerText(), { timeout: 20_000 }).toBe(answer.summary.connections);
    const titles = () => one.page.$$eval(".finding h3", (all) => all.map((title) => title.textContent ?? ""));
    await expect
        .poll(async () => (await titles()).map((title) => title.replace(/^\w+ /, "")).sort(), { timeout: 20_000 })
        .toEqual(answer.findings.map(({ title }) => title).sort());
    expect(await one.page.getByLabel("Capture", { exact: true }).innerText()).toContain("(live)");
    expect(one.errors).toEqual([]);
    await server.stop();
    await one.page.getByText("The connection to the server is lost").waitFor();
});
