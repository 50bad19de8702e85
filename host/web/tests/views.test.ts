/** Each view shows what `weir analyze` says, its link restores it, and it is worked by mouse and by keyboard. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { duration } from "../src/format";
import {
    analyze,
    axe,
    brush,
    DEMO,
    expectNoErrors,
    gridHeads,
    gridRows,
    launch,
    parameter,
    serve,
    settled,
    tab,
    type Answer,
    type Server,
    type Tab,
} from "./support";

let server: Server;
let browser: Browser;
let answer: Answer;
let one: Tab;

const byClient = ({ setup, close }: Answer["connections"][number]) =>
    setup.outcome === "REFUSED" && close.kind === "CLIENT_RST";
const hasFailed = (one: Answer["connections"][number]) =>
    ["IGNORED", "REFUSED", "RESET_LATE"].includes(one.setup.outcome) && !byClient(one);
const failedOf = (all: Answer) => all.connections.filter(hasFailed);

beforeAll(async () => {
    answer = analyze(DEMO);
    server = await serve(DEMO);
    browser = await launch();
    one = await tab(browser, server);
});
afterAll(async () => {
    await browser?.close();
    await server?.stop();
});
beforeEach(() => {
    one.errors.length = 0;
});

test("a link with columns that are gone says so, and shows the others", async () => {
    await one.show("view=connections&columns=id,old_name,duration_seconds&sort=-gone");
    expect(await gridHeads(one.page)).toEqual(["id", "duration"]);
    expect(await one.page.locator(".table .note").innerText()).toContain("without them: old_name, gone.");
    expect((await gridRows(one.page)).length).toBeGreaterThan(0);
    await one.show("view=connections");
    expect(await one.page.locator(".table .note").count()).toBe(0);
    expectNoErrors(one);
});

test("a connection's link leads there alone, and who forgets it goes on in the view", async () => {
    await one.show("view=connections");
    await one.page.locator("#row-2 a").click();
    await settled(one.page);
    expect(parameter(one.page, "view")).toBe("connection");
    expect(parameter(one.page, "row")).toBeNull();
    // Where all connections are shown none is named; it is not forgotten there.
    await one.page.getByRole("link", { name: "Setups", exact: true }).click();
    await settled(one.page);
    expect(await one.page.getByRole("button", { name: /^Forget connection/ }).count()).toBe(0);
    await one.page.getByRole("link", { name: "Connection", exact: true }).click();
    await settled(one.page);
    await one.page.getByRole("button", { name: /^Forget connection/ }).focus();
    await one.page.keyboard.press("Enter");
    await settled(one.page);
    expect(parameter(one.page, "connection")).toBeNull();
    expect(await one.page.evaluate(() => document.activeElement?.id)).toBe("main");
    expectNoErrors(one);
});

test("the page never scrolls away behind its view", async () => {
    for (const view of ["timeline", "bounce&connection=16777216"]) {
        await one.show(`view=${view}`);
        const tall = await one.page.evaluate(() => document.documentElement.scrollHeight - innerHeight);
        expect(tall, view).toBeLessThanOrEqual(0);
    }
    expectNoErrors(one);
});

test("a range behind the capture's end is told, and the page goes on", async () => {
    await one.show("view=overview&from=1000");
    expect(await one.page.locator(".bar").innerText()).toContain("behind the end of this capture");
    expect(parameter(one.page, "from")).toBeNull();
    expect(await one.page.locator("[data-chart=overview]").count()).toBe(1);
    expectNoErrors(one);
});

test("diagnosis: on a phone its table scrolls, not the page", async () => {
    const phone = await tab(browser, server);
    await phone.page.setViewportSize({ width: 390, height: 800 });
    await phone.show("view=diagnosis");
    const wide = await phone.page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide).toBeLessThanOrEqual(390);
    await phone.page.close();
});

test("on a phone the view begins on the first screen, and the list of views shows which it is", async () => {
    const phone = await tab(browser, server);
    await phone.page.setViewportSize({ width: 390, height: 800 });
    for (const view of ["overview", "timing", "bounce&connection=16777216"]) {
        await phone.show(`view=${view}`);
        const head = await phone.page.locator("main h1").boundingBox();
        expect(head?.y ?? Infinity, view).toBeLessThan(260);
        const current = await phone.page.locator("nav [aria-current]").boundingBox();
        expect(current?.x ?? -1, view).toBeGreaterThanOrEqual(0);
        expect((current?.x ?? Infinity) + (current?.width ?? 0), view).toBeLessThanOrEqual(390);
        expect(await phone.page.evaluate(() => document.documentElement.scrollWidth), view).toBeLessThanOrEqual(390);
    }
    // Where the figures of a dialogue are moved to the side, its client stays.
    await phone.show("view=dialogues");
    const table = phone.page.locator('[aria-label="Dialogues as a table"]');
    await table.evaluate((box) => (box.scrollLeft = 300));
    const client = await table.locator("tbody th").first().boundingBox();
    const frame = await table.boundingBox();
    expect(Math.abs((client?.x ?? Infinity) - (frame?.x ?? 0))).toBeLessThan(16);
    expectNoErrors(phone);
    await phone.page.close();
});

test("a SYN that nobody answered before the capture ended is told, and nothing else is", async () => {
    const folder = mkdtempSync(join(tmpdir(), "weir-page-"));
    const all = readFileSync(DEMO);
    const first = join(folder, "first.pcap");
    writeFileSync(first, all.subarray(0, 24 + 16 + all.readUInt32LE(24 + 8)));
    const short = await serve(first);
    const alone = await tab(browser, short);
    try {
        await alone.show("view=overview");
        const said = alone.page.locator(".panel", { hasText: "Nothing stands out" });
        expect(await said.innerText()).toContain("1 connection had no answer yet when the capture ended");
        await alone.page.getByRole("link", { name: "1 connection", exact: true }).click();
        await settled(alone.page);
        const heads = await gridHeads(alone.page);
        expect((await gridRows(alone.page)).map((row) => row[heads.indexOf("setup")])).toEqual(["IGNORED"]);
        await alone.show("view=diagnosis");
        expect(await alone.page.locator("main").innerText()).toContain("No connection carried enough to be measured");
        expect(await alone.page.locator('[data-table="statistics"]').count()).toBe(0);
        expectNoErrors(alone);
    } finally {
        await alone.page.close();
        await short.stop();
        rmSync(folder, { recursive: true });
    }
});

test("what is looked at most is in sight on a page that is not wide", async () => {
    const small = await tab(browser, server);
    await small.page.setViewportSize({ width: 1280, height: 800 });
    const ends = async (table: string, heads: string[]) => {
        const right = await small.page.locator(table).evaluate((grid) => grid.getBoundingClientRect().right);
        for (const name of heads) {
            const head = small.page.locator(table).getByRole("columnheader", { name, exact: true });
            const box = await head.boundingBox();
            expect((box?.x ?? Infinity) + (box?.width ?? 0), name).toBeLessThanOrEqual(right);
        }
    };
    await small.show("view=packets&connection=16777216");
    await ends('[role="grid"]', ["Seq", "Ack", "Window"]);
    await small.show("view=transactions");
    await ends('[role="grid"]', ["request", "server", "response", "end"]);
    await small.show("view=dialogues");
    const table = small.page.locator('[aria-label="Dialogues as a table"]');
    expect(await table.evaluate((box) => box.scrollWidth - box.clientWidth)).toBeLessThanOrEqual(0);
    await small.page.close();
});

test("overview: findings with their evidence, and the capture's figures", async () => {
    await one.show("view=overview");
    const titles = await one.page.$$eval(".finding h3", (all) => all.map((title) => title.textContent ?? ""));
    const shown = titles.map((title) => title.replace(/^(critical|warning|info) /, ""));
    expect([...shown].sort()).toEqual(answer.findings.map((finding) => finding.title).sort());
    const severities = titles.map((title) => ["critical", "warning", "info"].indexOf(title.split(" ")[0] ?? ""));
    expect(severities).toEqual([...severities].sort((a, b) => a - b));
    // Every sentence of the evidence: what was seen in the list, what else it may be and what to do next beneath it.
    const first = answer.findings.find((finding) => finding.title === shown[0]);
    const card = await one.page.locator(".finding").first().innerText();
    expect(first?.evidence.length).toBeGreaterThan(0);
    for (const sentence of first?.evidence ?? []) {
        expect(card).toContain(sentence.replace(/^(it may also be:? |next: )/, ""));
    }
    const tiles = await one.page.locator(".tiles").innerText();
    expect(tiles).toContain(`Connections\n${answer.summary.connections}`);
    expect(tiles).toContain(`Transactions\n${answer.summary.transactions}`);
    const { total, retransmittedPackets, dataPackets } = answer.summary.retransmissionRate;
    expect(tiles).toContain(
        `${Number((total * 100).toPrecision(3))} %\n${retransmittedPackets} of ${dataPackets} data packets`,
    );
    expectNoErrors(one);
});

test("which connections failed, when and why: three clicks from the start page", async () => {
    const failed = failedOf(answer);
    await one.page.goto(server.url);
    await settled(one.page);
    await one.page.getByRole("link", { name: /Which, when and why/ }).click();
    await settled(one.page);
    const rows = await gridRows(one.page);
    const heads = await gridHeads(one.page);
    const column = (name: string) => rows.map((row) => row[heads.indexOf(name)]);
    expect(column("id").sort()).toEqual(failed.map((connection) => connection.id).sort());
    expect(column("first packet")).toEqual(
        failed
            .map(({ firstPacketTime }) => new RegExp(`T(.*?)\\.`).exec(firstPacketTime)?.[1])
            .map((time) => expect.stringContaining(time ?? "?")),
    );
    expect(column("setup")).toEqual(failed.map(({ setup }) => setup.outcome));
    await one.page.locator("#row-0").click();
    await one.page.getByRole("link", { name: "Open it" }).click();
    await settled(one.page);
    expect(parameter(one.page, "view")).toBe("connection");
    expect(parameter(one.page, "connection")).toBe(rows[0]?.[heads.indexOf("id")]);
    expectNoErrors(one);
});

test("the same by keyboard alone", async () => {
    await one.page.goto(server.url);
    await settled(one.page);
    const focused = () => one.page.evaluate(() => document.activeElement?.textContent ?? "");
    for (let presses = 0; presses < 60 && !(await focused()).startsWith("Which, when and why"); presses += 1) {
        await one.page.keyboard.press("Tab");
    }
    await one.page.keyboard.press("Enter");
    await settled(one.page);
    // The first row is chosen, and its reason stands below.
    expect(await one.page.evaluate(() => document.activeElement?.getAttribute("role"))).toBe("grid");
    expect(await one.page.locator(".detail").innerText()).toContain(failedOf(answer)[0]?.setup.explanation);
    await one.page.keyboard.press("Enter");
    await settled(one.page);
    expect(parameter(one.page, "view")).toBe("connection");
    // It carried nothing: its packets are shown, not an empty graph.
    expect(await one.page.locator(".table.packets").count()).toBe(1);
    expect(failedOf(answer).map(({ id }) => id)).toContain(parameter(one.page, "connection"));
    expectNoErrors(one);
});

test("connections: sort, filter, columns; a link restores them", async () => {
    await one.show("view=connections");
    expect(await one.page.getByRole("status").allInnerTexts()).toContain(`${answer.connections.length} connections`);
    await one.page.getByRole("button", { name: /^duration/ }).click();
    await settled(one.page);
    const byDuration = [...answer.connections]
        .sort((a, b) => b.durationSeconds - a.durationSeconds)
        .map(({ id }) => id);
    expect((await gridRows(one.page)).map((row) => row[0])).toEqual(byDuration);
    // All of a head sorts, not its text alone.
    const head = one.page.getByRole("columnheader", { name: /^duration/ });
    await head.click({ position: { x: 3, y: 3 } });
    await settled(one.page);
    expect(await head.getAttribute("aria-sort")).toBe("ascending");
    await head.click({ position: { x: 3, y: 20 } });
    await settled(one.page);
    expect(await head.getAttribute("aria-sort")).toBe("descending");
    const port = answer.connections[0]?.client.port ?? 0;
    await one.page.keyboard.press("/");
    await one.page.keyboard.type(`client.port != ${port}`);
    await one.page.keyboard.press("Enter");
    await settled(one.page);
    const others = byDuration.filter((id) => answer.connections.find((each) => each.id === id)?.client.port !== port);
    expect((await gridRows(one.page)).map((row) => row[0])).toEqual(others);
    await one.page.getByText("Columns").click();
    await one.page.getByLabel("Find a column").fill("setup description");
    await one.page.getByLabel("setup description").check();
    await settled(one.page);
    const shown = { heads: await gridHeads(one.page), rows: await gridRows(one.page) };
    expect(shown.heads.at(-1)).toBe("setup description");
    const again = await tab(browser, server);
    await again.page.goto(one.page.url());
    await settled(again.page);
    expect({ heads: await gridHeads(again.page), rows: await gridRows(again.page) }).toEqual(shown);
    await again.page.close();
    expectNoErrors(again);
    expectNoErrors(one);
});

test("a filter completes, and says where it is wrong", async () => {
    await one.show("view=connections");
    const box = one.page.getByRole("combobox", { name: /Filter over/ });
    await box.pressSequentially("setup.outc");
    await one.page.getByRole("option", { name: /setup\.outcome/ }).waitFor();
    await box.press("ArrowDown");
    await box.press("Tab");
    expect(await box.inputValue()).toMatch(/^setup\.outcome/);
    await box.fill("no_such_field = 3");
    await box.press("Escape");
    await box.press("Enter");
    await one.page.getByRole("alert").waitFor();
    expect(await one.page.getByRole("alert").innerText()).toMatch(/no_such_field/);
    // The browser itself reports the refusal of the request.
    one.errors.splice(0, one.errors.length, ...one.errors.filter((error) => !error.includes("400")));
    expectNoErrors(one);
});

test("transactions: all of them, and those of one connection", async () => {
    await one.show("view=transactions&sort=-end_seconds");
    expect(await one.page.getByRole("status").allInnerTexts()).toContain(`${answer.transactions.length} transactions`);
    const slowest = [...answer.transactions].sort((a, b) => (b.endSeconds ?? -1) - (a.endSeconds ?? -1))[0];
    const rows = await gridRows(one.page);
    expect(rows[0]?.[0]).toBe(slowest?.connectionId);
    const heads = await gridHeads(one.page);
    expect(rows[0]?.[heads.indexOf("signature")]).toBe(slowest?.signature);
    await one.page.locator("#row-0").click();
    await one.page.getByRole("link", { name: "Only this connection" }).click();
    await settled(one.page);
    const own = answer.transactions.filter(({ connectionId }) => connectionId === slowest?.connectionId);
    expect(await one.page.getByRole("status").allInnerTexts()).toContain(`${own.length} transactions`);
    await one.page.getByText("Columns").click();
    await one.page.getByRole("button", { name: "whose time" }).click();
    await settled(one.page);
    expect((await gridHeads(one.page)).at(-1)).toBe("server uncertain");
    expectNoErrors(one);
});

test("a chosen row leads on, whatever columns are shown", async () => {
    const [first] = answer.connections;
    await one.show(`view=connections&columns=duration_seconds,server_to_client_limit_sender_seconds`);
    await one.page.locator("#row-0").click();
    await one.page.getByRole("complementary").getByText("Its transactions").waitFor();
    await one.page.getByRole("link", { name: "Only this client" }).click();
    await settled(one.page);
    expect(parameter(one.page, "filter")).toBe(`client.address = "${first?.client.address}"`);
    const title = await one.page.getByRole("button", { name: /limit sender/ }).getAttribute("title");
    expect(title).toContain("Time in which the sender itself held data back.");
    expect(title).toContain("server_to_client.limit_seconds.sender");
    await one.show("view=transactions&columns=losses");
    await one.page.locator("#row-0").click();
    await one.page.getByRole("link", { name: "Only this signature" }).waitFor();
    expectNoErrors(one);
});

test("setups: every outcome with its count; arrow keys visit what went wrong", async () => {
    await one.show("view=setups");
    const counts = new Map<string, number>();
    for (const { setup } of answer.connections) counts.set(setup.outcome, (counts.get(setup.outcome) ?? 0) + 1);
    const legend = (await one.page.locator(".legend").innerText()).replaceAll("\n", " ");
    expect(legend).toContain(`done at once (${counts.get("OK") ?? 0})`);
    expect(legend).toContain(`done after a repeat (${counts.get("RETRANSMITTED") ?? 0})`);
    const reset = answer.connections.filter(byClient).length;
    expect(legend).toContain(`refused (${(counts.get("REFUSED") ?? 0) - reset})`);
    expect(legend.includes(`reset by the client (${reset})`)).toBe(reset > 0);
    const wrong = answer.connections
        .filter(({ setup }) => setup.outcome !== "OK" && setup.outcome !== "MIDSTREAM")
        .sort((a, b) => (a.firstPacketTime < b.firstPacketTime ? -1 : 1));
    await one.page.locator('[data-chart="setups"] .plot').focus();
    for (const expected of wrong) {
        await one.page.keyboard.press("ArrowRight");
        const said = await one.page.locator('[data-chart="setups"] [aria-live]').innerText();
        expect(said).toContain(expected.firstPacketTime.slice(11, 24));
    }
    await one.page.keyboard.press("Enter");
    await one.page.waitForURL(/view=connection&/);
    expect(parameter(one.page, "connection")).toBe(wrong.at(-1)?.id);
    expectNoErrors(one);
});

test("a ring stays with its mark in another range, and goes where it is not", async () => {
    await one.page.mouse.move(0, 0);
    await one.show("view=setups");
    const chart = one.page.locator('[data-chart="setups"]');
    const said = () => chart.locator("[aria-live]").innerText();
    await chart.locator(".plot").focus();
    await one.page.keyboard.press("ArrowRight");
    const mark = await said();
    for (const key of ["w", "d"]) {
        await one.page.keyboard.press(key);
        await settled(one.page);
    }
    expect(await said()).toBe(mark);
    const ring = await chart.locator(".ring").boundingBox();
    if (!ring) throw new Error("no ring");
    const link = new URL(one.page.url()).search.slice("?v=1&".length);
    for (let step = 0; step < 3; step += 1) await one.page.keyboard.press("d");
    await settled(one.page);
    expect([await said(), await chart.locator(".ring").count()]).toEqual(["", 0]);
    // What lay there is told by the pointer, too.
    await one.show(link);
    await one.page.mouse.move(ring.x + ring.width / 2, ring.y + ring.height / 2);
    expect(await said()).toBe(mark);
    await one.page.mouse.move(0, 0);
    expectNoErrors(one);
});

test("setups: the descriptions with their counts and slowest end, and the connections behind each", async () => {
    await one.show("view=setups");
    const expected = new Map<string, { count: number; slowest: number }>();
    for (const { kind, signature, endSeconds } of answer.transactions) {
        if (kind !== "SETUP") continue;
        const before = expected.get(signature) ?? { count: 0, slowest: 0 };
        expected.set(signature, { count: before.count + 1, slowest: Math.max(before.slowest, endSeconds ?? 0) });
    }
    const rows = await one.page.$$eval('[aria-label="Setup statistics"] tbody tr', (all) =>
        all.map((row) => [...row.children].map((cell) => (cell.textContent ?? "").trim())),
    );
    expect(new Map(rows.map((row) => [row[0], [row[1], row.at(-1)]]))).toEqual(
        new Map([...expected].map(([name, { count, slowest }]) => [name, [String(count), duration(slowest)]])),
    );
    const [name, { count }] = [...expected][0] as [string, { count: number }];
    await one.page.locator('[aria-label="Setup statistics"]').getByRole("link", { name, exact: true }).click();
    await settled(one.page);
    expect(await one.page.getByRole("status").allInnerTexts()).toContain(`${count} connections`);
    expectNoErrors(one);
});

test("transaction chart: counts of every signature, in chart and table", async () => {
    await one.show("view=marks");
    const data = answer.transactions.filter(({ kind }) => kind !== "SETUP");
    expect(await one.page.locator('[data-chart="transactions"] h2').innerText()).toBe(`${data.length} transactions`);
    const counts = new Map<string, number>();
    for (const { signature } of answer.transactions) counts.set(signature, (counts.get(signature) ?? 0) + 1);
    const rows = await one.page.$$eval('[aria-label="Statistics"] tbody tr', (all) =>
        all.map((row) => [...row.children].map((cell) => (cell.textContent ?? "").trim())),
    );
    expect(new Map(rows.map((row) => [row[0] ?? "", Number(row[1])]))).toEqual(counts);
    expectNoErrors(one);
});

test("time lines: brushing zooms every view, 0 shows all again, the back button goes back", async () => {
    await one.show("view=timeline");
    await brush(one.page, "concurrency", 0.25, 0.5);
    await settled(one.page);
    const from = Number(parameter(one.page, "from"));
    const to = Number(parameter(one.page, "to"));
    const length = Math.max(...answer.connections.map(({ durationSeconds }) => durationSeconds), 5);
    expect(to - from).toBeGreaterThan(0.15 * length);
    expect(to - from).toBeLessThan(0.4 * length);
    await one.page.keyboard.press("g");
    await one.page.keyboard.press("c");
    await settled(one.page);
    expect([parameter(one.page, "view"), Number(parameter(one.page, "from"))]).toEqual(["connections", from]);
    await one.page.keyboard.press("0");
    await settled(one.page);
    expect([parameter(one.page, "from"), parameter(one.page, "to")]).toEqual([null, null]);
    await one.page.goBack();
    expect(Number(parameter(one.page, "to"))).toBe(to);
    expectNoErrors(one);
});

test("the cursor of one chart stands in all, and its figures are told", async () => {
    await one.show("view=timeline");
    const charts = one.page.locator("[data-chart] .plot");
    const cursors = one.page.locator("[data-chart] .cursor");
    expect([await cursors.count(), await charts.count()]).toEqual([0, 5]);
    await one.page.locator('[data-chart="concurrency"] .plot').focus();
    await one.page.keyboard.press("ArrowLeft");
    await expect.poll(() => cursors.count()).toBe(5);
    const places = await cursors.evaluateAll((all) => all.map((line) => line.getBoundingClientRect().x));
    expect(new Set(places).size).toBe(1);
    expect(await one.page.locator('[data-chart="concurrency"] [aria-live]').innerText()).toMatch(
        /connections \d.*requests in progress \d/,
    );
    expectNoErrors(one);
});

test("Shift and brush: a box of time and durations, and back", async () => {
    await one.show("view=setups");
    const box = await one.page.locator('[data-chart="setups"] .plot').boundingBox();
    if (!box) throw new Error("no chart");
    await one.page.keyboard.down("Shift");
    await one.page.mouse.move(box.x + 200, box.y + 200);
    await one.page.mouse.down();
    await one.page.mouse.move(box.x + 700, box.y + 350, { steps: 4 });
    await one.page.mouse.up();
    await one.page.keyboard.up("Shift");
    await settled(one.page);
    const [low, high] = [Number(parameter(one.page, "low")), Number(parameter(one.page, "high"))];
    expect(low).toBeGreaterThan(0);
    expect(high).toBeGreaterThan(low);
    expect(Number(parameter(one.page, "from"))).toBeGreaterThan(0);
    await one.page.getByRole("button", { name: /show all/ }).click();
    await settled(one.page);
    expect([parameter(one.page, "low"), parameter(one.page, "high")]).toEqual([null, null]);
    expectNoErrors(one);
});

test("dialogues: a row for each pair, with its sums", async () => {
    await one.show("view=dialogues");
    const expected = new Map<string, [connections: number, failed: number, packets: number, back: number]>();
    for (const connection of answer.connections) {
        const { client, server: to, clientToServer, serverToClient } = connection;
        const key = `${client.address} ${to.address}:${to.port}`;
        const sums = expected.get(key) ?? [0, 0, 0, 0];
        sums[0] += 1;
        sums[1] += Number(hasFailed(connection));
        sums[2] += Number(clientToServer.packets);
        sums[3] += Number(serverToClient.packets);
        expected.set(key, sums);
    }
    const rows = await one.page.$$eval('[aria-label="Dialogues as a table"] tbody tr', (all) =>
        all.map((row) => [...row.children].map((cell) => cell.textContent ?? "")),
    );
    const shown = rows.map(
        (row) =>
            [
                `${row[0]} ${row[1]}`,
                [row[2], row[3], row[4], row[10]].map((text) => Number(text?.replaceAll(",", ""))),
            ] as const,
    );
    expect(new Map(shown)).toEqual(expected);
    expectNoErrors(one);
});

test.each(["png", "svg"])("a chart is saved as %s", async (kind) => {
    await one.show("view=setups");
    const download = one.page.waitForEvent("download");
    await one.page.getByRole("button", { name: kind.toUpperCase() }).click();
    const file = readFileSync(await (await download).path());
    if (kind === "png") expect(file.subarray(1, 4).toString()).toBe("PNG");
    else {
        const marks = file.toString().match(/<path transform=/g)?.length ?? 0;
        // Every setup and the five marks of the legend.
        expect(marks).toBe(answer.connections.filter(({ setup }) => setup.endSeconds !== undefined).length + 5);
        expect(file.toString()).toContain("<title>");
    }
    expectNoErrors(one);
});

test("keys: help, theme", async () => {
    await one.show("view=overview");
    await one.page.keyboard.press("?");
    const help = one.page.getByRole("dialog", { name: "Keys" });
    await help.waitFor();
    expect(await axe(one.page)).toEqual([]);
    await one.page.keyboard.press("Escape");
    await help.waitFor({ state: "hidden" });
    const theme = () => one.page.evaluate(() => document.documentElement.dataset.theme);
    const before = await theme();
    await one.page.keyboard.press("t");
    expect(await theme()).not.toBe(before);
    await one.page.keyboard.press("t");
    expectNoErrors(one);
});

test("what lies behind the list of keys stays as it is, and Escape puts a notice away", async () => {
    await one.show("view=setups&from=x");
    const notice = one.page.locator(".bar");
    expect(await notice.innerText()).toContain("cannot be read");
    const url = one.page.url();
    for (const key of "?wgc") await one.page.keyboard.press(key);
    expect(one.page.url()).toBe(url);
    await one.page.keyboard.press("Escape");
    expect([await one.page.locator("dialog").isVisible(), await notice.count()]).toEqual([false, 1]);
    await one.page.keyboard.press("Escape");
    await expect.poll(() => notice.count()).toBe(0);
    expectNoErrors(one);
});

test("in the reader's own colours, what is chosen stands out", async () => {
    await one.page.emulateMedia({ forcedColors: "active" });
    await one.show("view=connections&row=1");
    const grounds = await one.page.evaluate(() => {
        const chosen = document.body.appendChild(document.createElement("p"));
        chosen.style.cssText = "forced-color-adjust: none; background: Highlight";
        const all = [chosen, ...document.querySelectorAll("nav a[aria-current], #row-1, #row-2")];
        return all.map((one) => getComputedStyle(one).backgroundColor);
    });
    const [highlight, ...found] = grounds;
    expect(found.map((ground) => ground === highlight)).toEqual([true, true, false]);
    await one.page.emulateMedia({ forcedColors: null });
    expectNoErrors(one);
});

test("first steps: shown until they are put away, and brought back from the keys", async () => {
    const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
    const page = await context.newPage();
    const start = async () => {
        await page.goto(`${server.url}/?v=1&view=overview`);
        await settled(page);
    };
    const tour = page.getByRole("region", { name: "First steps" });
    await start();
    expect(await tour.getByRole("listitem").count()).toBe(5);
    await start();
    expect(await tour.count()).toBe(1);
    // By keyboard alone.
    await tour.getByRole("button", { name: "Put away" }).focus();
    await page.keyboard.press("Enter");
    expect(await tour.count()).toBe(0);
    await start();
    expect(await tour.count()).toBe(0);
    await page.goto(`${server.url}/?v=1&view=setups`);
    await settled(page);
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).getByRole("button", { name: "First steps" }).click();
    await tour.waitFor();
    expect(parameter(page, "view")).toBe("overview");
    expect(await axe(page)).toEqual([]);
    await context.close();
});

test("links that cannot be followed say so", async () => {
    await one.page.goto(`${server.url}/?v=99&view=setups`);
    await settled(one.page);
    expect(await one.page.locator(".bar").innerText()).toContain("v=99");
    await one.page.goto(`${server.url}/?v=1&view=nothing`);
    await one.page.getByText("There is no view called “nothing”").waitFor();
    await one.page.goto(`${server.url}/?v=1&view=overview&capture=gone`);
    await one.page.getByText("no longer open").waitFor();
    expectNoErrors(one);
});

test.each(["light", "dark"] as const)("axe finds nothing, %s", async (theme) => {
    const other = await tab(browser, server, theme);
    for (const view of ["overview", "dialogues", "connections", "transactions", "setups", "marks", "timeline"]) {
        await other.show(`view=${view}`);
        expect(await axe(other.page), view).toEqual([]);
    }
    await other.page.close();
    expectNoErrors(other);
});

test("a view looks the same whichever was shown before, and asks for no icon", async () => {
    const asked: string[] = [];
    one.page.on("request", (request) => asked.push(request.url()));
    await one.show("view=overview");
    const styles = () => one.page.evaluate(() => document.styleSheets.length);
    const before = await styles();
    for (const view of ["Diagnosis", "Connection", "Live", "Overview"]) {
        await one.page.locator("nav").getByRole("link", { name: view, exact: true }).click();
        await settled(one.page);
    }
    expect(await styles()).toBe(before);
    expect(asked.filter((url) => url.includes("icon"))).toEqual([]);
    expectNoErrors(one);
});

test("tables of figures are not cut: names give way, and what is short is shown whole", async () => {
    const cut = () =>
        one.page.$$eval("main .scroll", (all) =>
            all
                .filter(
                    (box) =>
                        box.scrollWidth > box.clientWidth ||
                        (!box.classList.contains("long") && box.scrollHeight > box.clientHeight),
                )
                .map((box) => box.getAttribute("aria-label")),
        );
    for (const view of ["setups", "marks", "diagnosis", "delays", "dialogues"]) {
        await one.show(`view=${view}`);
        expect(await cut(), view).toEqual([]);
    }
    expectNoErrors(one);
});

test("on paper are heads, legends and figures, no ways to elsewhere, and a table says that it is cut", async () => {
    await one.page.emulateMedia({ media: "print" });
    const visible = (selector: string) => one.page.locator(selector).filter({ visible: true }).count();
    await one.show("view=connections");
    expect(await visible("nav, .filter, .tools, .ways, .top button")).toBe(0);
    expect(await visible('[role="columnheader"]')).toBeGreaterThan(5);
    expect(await one.page.getByText(/^Cut: of \d+ connections, those that were in sight/).isVisible()).toBe(true);
    await one.show("view=timeline");
    expect(await visible("nav, .filter, .tools, .ways, .top button")).toBe(0);
    expect(await visible(".legend li")).toBeGreaterThan(5);
    await one.page.emulateMedia({ media: "screen" });
    await one.show("view=connections");
    expect(await one.page.getByText(/^Cut: of/).isVisible()).toBe(false);
    expectNoErrors(one);
});
