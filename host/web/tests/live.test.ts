/** A daemon's page: what was measured, and that a lost connection is said. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { analyze, DEMO, launch, serveLive, tab, type Server } from "./support";

let folder: string;
let server: Server;
let browser: Browser;

beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "weir-page-live-"));
    server = await serveLive(DEMO, folder);
    browser = await launch();
});
afterAll(async () => {
    await browser?.close();
    await server?.stop();
    if (folder) rmSync(folder, { recursive: true });
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
