/** Opening captures from the page: by choosing, by dropping; progress, cancel, and files that are none. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
    DEMO,
    expectNoErrors,
    launch,
    parameter,
    serve,
    serveAt,
    settled,
    tab,
    type Server,
    type Tab,
} from "./support";

let server: Server;
let browser: Browser;
let one: Tab;

beforeAll(async () => {
    server = await serve(DEMO);
    browser = await launch();
    one = await tab(browser, server);
});
afterAll(async () => {
    await browser?.close();
    await server?.stop();
});

const captures = () => one.page.$$eval("header select option", (all) => all.map((option) => option.textContent ?? ""));

test("a file that is chosen is shown, beside those that are open", async () => {
    await one.show("view=connections");
    await one.page
        .getByLabel("Capture file")
        .setInputFiles({ name: "again.pcap", mimeType: "application/octet-stream", buffer: readFileSync(DEMO) });
    await one.page.waitForFunction(() => document.querySelector("header select")?.textContent?.includes("again.pcap"));
    await settled(one.page);
    expect((await captures()).map((name) => name.replace(/ \(.*/, ""))).toEqual(["demo.pcap", "again.pcap"]);
    await one.page.getByRole("link", { name: /Which, when and why/ }).waitFor();
    expect(parameter(one.page, "view")).toBe("overview");
    expectNoErrors(one);
});

test("a file that is dropped is shown", async () => {
    await one.show("view=overview");
    const content = readFileSync(DEMO).toString("base64");
    await one.page.evaluate((text) => {
        const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([bytes], "dropped.pcap"));
        for (const type of ["dragover", "drop"]) {
            document.body.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
        }
    }, content);
    await one.page.waitForFunction(() =>
        document.querySelector("header select")?.textContent?.includes("dropped.pcap"),
    );
    await one.page.getByRole("link", { name: /Which, when and why/ }).waitFor();
    expectNoErrors(one);
});

test("a file that is no capture says so, and the others stay", async () => {
    await one.show("view=overview");
    await one.page.getByLabel("Capture file").setInputFiles({
        name: "letter.pcap",
        mimeType: "text/plain",
        buffer: Buffer.from("Dear analyst, this is no capture.\n"),
    });
    await one.page.locator("main .error").waitFor();
    expect((await one.page.locator("main .error").innerText()).match(/letter\.pcap/g)).toHaveLength(1);
    await one.page.getByLabel("Capture", { exact: true }).selectOption({ label: "demo.pcap" });
    await settled(one.page);
    await one.page.getByRole("link", { name: /Which, when and why/ }).waitFor();
    const open = await captures();
    await one.page.getByLabel("Capture", { exact: true }).selectOption({ label: "letter.pcap (failed)" });
    await one.page.getByRole("button", { name: "Close" }).click();
    await settled(one.page);
    expect(await captures()).toEqual(open.filter((name) => !name.startsWith("letter.pcap")));
    expectNoErrors(one);
});

test("a file above the limit is not sent, and the page says how to open it", async () => {
    await one.page.route("**/api/v1/captures", async (route) => {
        const response = await route.fetch();
        const answer = (await response.json()) as { limits: Record<string, string> };
        await route.fulfill({ response, json: { ...answer, limits: { ...answer.limits, uploadBytes: "1000" } } });
    });
    await one.show("view=overview");
    const before = await captures();
    await one.page
        .getByLabel("Capture file")
        .setInputFiles({ name: "huge.pcap", mimeType: "application/octet-stream", buffer: Buffer.alloc(2000) });
    await one.page.getByText("huge.pcap has 2 kB, the server takes up to 1 kB").waitFor();
    expect(await captures()).toEqual(before);
    await one.page.unroute("**/api/v1/captures");
    expectNoErrors(one);
});

test("a capture that ends in the middle of a packet is shown up to there, and says so", async () => {
    await one.show("view=overview");
    const content = readFileSync(DEMO);
    await one.page.getByLabel("Capture file").setInputFiles({
        name: "cut.pcap",
        mimeType: "application/octet-stream",
        buffer: content.subarray(0, Math.floor(content.length / 2) + 5),
    });
    await one.page.waitForFunction(() => document.querySelector("header select")?.textContent?.includes("cut.pcap"));
    await one.page.locator("main .warning[role=alert]").waitFor();
    expect(await one.page.locator(".tiles").innerText()).toMatch(/Connections\n[1-9]/);
    expectNoErrors(one);
});

test("sending shows its progress and can be cancelled", async () => {
    await one.show("view=overview");
    const before = await captures();
    const network = await one.page.context().newCDPSession(one.page);
    const slow = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 200_000 };
    await network.send("Network.enable");
    await network.send("Network.emulateNetworkConditions", slow);
    await one.page
        .getByLabel("Capture file")
        .setInputFiles({ name: "large.pcap", mimeType: "application/octet-stream", buffer: Buffer.alloc(20_000_000) });
    const bar = one.page.getByRole("status").filter({ hasText: "Sending large.pcap" });
    await bar.waitFor();
    expect(await bar.locator("progress").getAttribute("max")).toBe("20000000");
    await bar.getByRole("button", { name: "Cancel" }).click();
    await bar.waitFor({ state: "detached" });
    await network.send("Network.emulateNetworkConditions", { ...slow, uploadThroughput: -1 });
    await one.page.reload();
    await settled(one.page);
    expect(await captures()).toEqual(before);
});

test("a server that comes back is shown by itself, as it is then, and so is a view that was not loaded before", async () => {
    const folder = mkdtempSync(join(tmpdir(), "weir-page-"));
    const part = join(folder, "part.pcap");
    const demo = readFileSync(DEMO);
    writeFileSync(part, demo.subarray(0, demo.length / 2));
    const gone = await serve(DEMO);
    const other = await tab(browser, gone);
    await other.show("view=overview");
    const tile = other.page.locator(".tiles div", { hasText: "Connections" }).locator("dd");
    const before = await tile.innerText();
    await gone.stop();
    await other.page.getByText("The connection to the server is lost").waitFor();
    await other.page.getByRole("link", { name: "Setups", exact: true }).click();
    await other.page.getByText("The part of the page that draws Setups was not loaded yet").waitFor();
    const back = await serveAt(new URL(gone.url).port, part);
    await other.page.locator('[data-chart="setups"]').waitFor({ timeout: 20_000 });
    await other.page.getByText("The connection to the server is lost").waitFor({ state: "detached" });
    // What was loaded of the server before is not shown either.
    await other.page.getByRole("link", { name: "Overview", exact: true }).click();
    await settled(other.page);
    expect(Number(await tile.innerText())).toBeLessThan(Number(before));
    // The same while a view is shown: its figures are the new ones without any action.
    await back.stop();
    await other.page.getByText("The connection to the server is lost").waitFor();
    const again = await serveAt(new URL(gone.url).port, DEMO);
    await expect.poll(() => tile.innerText(), { timeout: 20_000 }).toBe(before);
    await again.stop();
    rmSync(folder, { recursive: true });
    await other.page.close();
});
