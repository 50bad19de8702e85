/** A capture of some thousand connections with load phases and periodic loss: tables that scroll, zoom, statistics. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { count, duration, nanoseconds } from "../src/format";
import {
    analyze,
    axe,
    expectNoErrors,
    gridRows,
    launch,
    parameter,
    serve,
    settled,
    tab,
    WEIR,
    type Answer,
    type Server,
    type Tab,
} from "./support";

const SEED = 7;

let folder: string;
let server: Server;
let browser: Browser;
let answer: Answer;
let one: Tab;

beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "weir-page-"));
    execFileSync(WEIR, ["scenario", "megalodon", "-o", folder, "--scale", "0.05", "--seed", String(SEED)], {
        stdio: "ignore",
    });
    const file = join(folder, "megalodon-web.pcap");
    answer = analyze(file);
    server = await serve(file);
    browser = await launch();
    one = await tab(browser, server);
});
afterAll(async () => {
    await browser?.close();
    await server?.stop();
    if (folder) rmSync(folder, { recursive: true });
});

/** Seconds since the capture's start. */
const since = (time: string) => Number(nanoseconds(time) - nanoseconds(answer.summary.start)) / 1e9;

test("the findings are those of the command, word by word", async () => {
    await one.show("view=overview"); // until then it may be read still
    const { captures } = (await (await fetch(`${server.url}/api/v1/captures`)).json()) as {
        captures: { id: string }[];
    };
    const url = `${server.url}/api/v1/captures/${captures[0]?.id}/findings`;
    const { findings } = (await (await fetch(url)).json()) as { findings: { finding: Answer["findings"][number] }[] };
    const words = (of: Answer["findings"]) => of.map(({ title, evidence }) => [title, ...evidence].join("\n")).sort();
    expect(words(findings.map(({ finding }) => finding))).toEqual(words(answer.findings));
});

test("the failed connections are those of the finding", async () => {
    await one.show("view=overview");
    await one.page.getByRole("link", { name: /Which, when and why/ }).click();
    await settled(one.page);
    const finding = answer.findings.find(({ kind }) => kind === "FAILED_CONNECTIONS");
    expect((await gridRows(one.page)).map((row) => row[0]).sort()).toEqual(finding?.connectionIds?.toSorted());
    expectNoErrors(one);
});

test("limits: of how many connections the bars and the sums are, those first that were held most", async () => {
    await one.show("view=diagnosis");
    const title = await one.page.locator('[data-chart="limits"] h2').innerText();
    expect(title).toBe(`What limited the transfers of 25 of ${count(answer.connections.length)} connections`);
    expect(await one.page.getByLabel("limited most by").inputValue()).toBe("congestion");
    expectNoErrors(one);
});

test("the table scrolls to any row", async () => {
    await one.show("view=connections&sort=-duration_seconds");
    const durations = answer.connections.map(({ durationSeconds }) => durationSeconds).sort((a, b) => b - a);
    const text = (index: number) => one.page.locator(`#row-${index} [role="gridcell"]`).nth(8).innerText();
    await one.page.locator('[role="grid"]').focus();
    await one.page.keyboard.press("End");
    const last = durations.length - 1;
    await one.page.locator(`#row-${last}[aria-selected="true"]`).waitFor();
    await settled(one.page);
    await expect.poll(() => text(last)).toBe(duration(durations[last]));
    await one.page.keyboard.press("PageUp");
    const up = Number(parameter(one.page, "row"));
    expect(up).toBeLessThan(last - 5);
    await expect.poll(() => text(up)).toBe(duration(durations[up]));
    // Another reader's link to a row in the middle.
    const middle = Math.floor(last / 2);
    await one.show(`view=connections&sort=-duration_seconds&row=${middle}`);
    await expect.poll(() => text(middle)).toBe(duration(durations[middle]));
    expectNoErrors(one);
});

test("a load phase: every view shows its time, with the figures of its rows alone", async () => {
    await one.show("view=marks");
    const phases = one.page.getByRole("button", { name: /^Phase \d/ });
    expect(await phases.count()).toBe(answer.summary.phases.length);
    await phases.nth(1).click();
    await settled(one.page);
    const from = Number(parameter(one.page, "from"));
    const to = Number(parameter(one.page, "to"));
    const inRange = answer.transactions.filter(
        ({ requestTime }) => since(requestTime) >= from && since(requestTime) < to,
    );
    const data = inRange.filter(({ kind }) => kind !== "SETUP");
    expect(data.length).toBeGreaterThan(100);
    expect(await one.page.locator('[data-chart="transactions"] h2').innerText()).toBe(
        `${count(data.length)} transactions`,
    );
    // The most frequent signature: count, and percentiles by nearest rank.
    const cells = await one.page.$$eval('[aria-label="Statistics"] tbody tr:first-child > *', (all) =>
        all.map((cell) => (cell.textContent ?? "").trim()),
    );
    const own = inRange.filter(({ signature }) => signature === cells[0]);
    expect(cells[1]).toBe(count(own.length));
    const times = own.flatMap(({ endSeconds }) => endSeconds ?? []).sort((a, b) => a - b);
    const rank = (share: number) => duration(times[Math.max(1, Math.ceil(share * times.length)) - 1]);
    expect([cells[5], ...cells.slice(7, 12)]).toEqual([0, 0.5, 0.9, 0.95, 0.99, 1].map(rank));
    await one.page.getByRole("button", { name: "Rows" }).click();
    await settled(one.page);
    expect(Number(parameter(one.page, "from"))).toBe(from);
    expectNoErrors(one);
});

test("zooming closer and closer, the marks are always those of the range", async () => {
    await one.show("view=setups");
    const length = since(answer.summary.end);
    let [low, high] = [0, length];
    for (let step = 0; step < 6; step += 1) {
        const inRange = answer.connections.filter(
            ({ firstPacketTime, setup }) =>
                setup.outcome !== "MIDSTREAM" &&
                since(firstPacketTime) >= low &&
                since(firstPacketTime) < high + (high === length ? 1 : 0),
        );
        expect(await one.page.locator('[data-chart="setups"] h2').innerText(), `${low} to ${high}`).toContain(
            `${count(inRange.length)} connection setups`,
        );
        await one.page.keyboard.press("w");
        await settled(one.page);
        [low, high] = [Number(parameter(one.page, "from") ?? 0), Number(parameter(one.page, "to") ?? length)];
        expect(high - low).toBeLessThan(length / 2 ** step);
    }
    expectNoErrors(one);
});

test("data exchange: what hosts wait for, and the calls of a request", async () => {
    const [tier] = answer.summary.tiers;
    const [request] = tier?.slowest ?? [];
    await one.show("view=exchange");
    await one.page.getByRole("button", { name: "Dependencies" }).click();
    await settled(one.page);
    expect(parameter(one.page, "dependencies")).toBe("1");
    const notes = async () => (await one.page.locator(".note").allInnerTexts()).join("\n");
    expect(await notes()).toContain(
        `${count(tier?.callsDecided ?? NaN)} fit one request by their times, ${count(tier?.callsAmbiguous ?? NaN)} fit several`,
    );
    const legend = () => one.page.locator('[data-chart="exchange"] .legend').innerText();
    expect(await legend()).toContain("waits for a call to the tier behind");
    // A request in front alone: with the connections of its calls, and the time that it waited for them.
    await one.show(`view=exchange&dependencies=1&connection=${request?.connectionId}`);
    const start = since(request?.start ?? "");
    const calls = request?.calls ?? [];
    const waited = calls.reduce((sum, { seconds }) => sum + seconds, 0);
    const range = `from=${start.toFixed(9)}&to=${(start + (request?.seconds ?? NaN)).toFixed(9)}`;
    await one.show(`view=exchange&dependencies=1&connection=${request?.connectionId}&${range}`);
    expect(await legend()).toContain(`waits for a call to the tier behind: ${duration(waited)}`);
    const plot = one.page.locator('[data-chart="exchange"] .plot');
    const told = one.page.locator('[data-chart="exchange"] [aria-live]');
    await plot.focus();
    for (let step = 0; step < 300 && !/Call.? ?1 of/.test(await told.innerText()); step += 1)
        await one.page.keyboard.press("ArrowRight");
    expect(await told.innerText()).toContain(`1 of ${calls.length}, to ${tier?.back.address}:${tier?.back.port}`);
    await one.page.keyboard.press("Enter");
    await settled(one.page);
    expect(parameter(one.page, "connection")).toBe(calls[0]?.connectionId);
    expect(await axe(one.page)).toEqual([]);
    expectNoErrors(one);
});

test("time lines: connections opened per second add up to all connections", async () => {
    await one.show("view=timeline");
    const row = one.page.locator('[data-chart="rates"] tbody tr', { hasText: "connections opened" });
    const average = Number((await row.locator("td").nth(1).innerText()).replaceAll(",", ""));
    // The average is written with three digits.
    expect((average * since(answer.summary.end)) / answer.connections.length).toBeCloseTo(1, 2);
    expectNoErrors(one);
});

test("a half-open connection leads to the finding that explains it", async () => {
    execFileSync(WEIR, ["scenario", "half-open", "-o", folder], { stdio: "ignore" });
    const half = await serve(join(folder, "half-open-tap.pcap"));
    const { page, show, errors } = await tab(browser, half);
    await show("view=connections&filter=setup.outcome%20%3D%20IGNORED");
    await page.getByRole("grid").press("ArrowDown");
    const link = page.locator(".detail").getByRole("link", { name: /^Finding: .* never completed/ });
    await link.press("Enter");
    await settled(page);
    expect(parameter(page, "finding")).toMatch(/^HALF_OPEN /);
    const chosen = page.locator(".finding:focus");
    expect(await chosen.locator("h3").innerText()).toMatch(/never completed their connections$/);
    expect(await chosen.locator(".evidence").count()).toBe(1);
    await show("view=connections&filter=setup.outcome%20%3D%20OK&row=0");
    expect(await page.locator(".detail").innerText()).not.toContain("Finding:");
    expect(errors).toEqual([]);
    await page.close();
    await half.stop();
});
