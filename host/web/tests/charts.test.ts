/** What every chart can, of every view: figures under the pointer and by keys, the way to what is behind, brush, pictures, link. */
import { readFileSync } from "node:fs";
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { analyze, brush, DEMO, expectNoErrors, launch, serve, settled, tab, type Server } from "./support";

let server: Server;
let browser: Browser;
/** A connection with losses. */
let lossy = "";

beforeAll(async () => {
    const { connections, transactions } = analyze(DEMO);
    lossy = transactions.find(({ losses }) => losses > 0)?.connectionId ?? connections[0]?.id ?? "";
    server = await serve(DEMO);
    browser = await launch();
});
afterAll(async () => {
    await browser?.close();
    await server?.stop();
});

/** Charts of each view; what is brushed: time, values (that leads to their rows), or nothing because no range says anything. */
const VIEWS: readonly (readonly [view: string, charts: Record<string, "time" | "values" | "nothing">])[] = [
    ["overview", { overview: "time" }],
    ["dialogues", { dialogues: "nothing" }],
    ["delays", { delays: "nothing" }],
    ["diagnosis", { limits: "nothing" }],
    ["setups", { setups: "time" }],
    ["marks", { transactions: "time", histogram: "values" }],
    ["timeline", { concurrency: "time", rates: "time", throughput: "time", losses: "time", "setup-losses": "time" }],
    ["connection", { sequence: "time", "in-flight": "time", "ceilings-server": "nothing" }],
    ["waterfall", { waterfall: "time" }],
    ["exchange", { exchange: "time", timing: "time" }],
    ["timing", { timing: "time" }],
];

/** Where the mark stands that the tip is about. */
async function pointOf(chart: Locator): Promise<[number, number]> {
    return chart.locator(".plot").evaluate((plot) => {
        const frame = plot.getBoundingClientRect();
        const { left, right, top, bottom } = (plot.querySelector(".tip") as HTMLElement).style;
        const x = left ? parseFloat(left) - 14 : frame.width - parseFloat(right) + 14;
        const y = top ? parseFloat(top) - 8 : frame.height - parseFloat(bottom) + 8;
        return [frame.left + x, frame.top + y] as [number, number];
    });
}

for (const [view, charts] of VIEWS) {
    const state = () => `view=${view}${view === "connection" ? `&connection=${lossy}` : ""}`;

    test(`the link of ${view} gives the same pictures`, async () => {
        const one = await tab(browser, server);
        const { page } = one;
        const pictures = () =>
            page.$$eval("[data-chart] canvas", (all) => all.map((canvas) => (canvas as HTMLCanvasElement).toDataURL()));
        await one.show(state());
        const [url, before] = [page.url(), await pictures()];
        await page.reload();
        await settled(page);
        expect(page.url()).toBe(url);
        expect(await pictures()).toEqual(before);
        const all = await page.$$eval("[data-chart]", (found) =>
            found.map((each) => (each as HTMLElement).dataset.chart),
        );
        expect(all.filter((name) => name !== "pies")).toEqual(Object.keys(charts));
        expectNoErrors(one);
        await page.close();
    });

    for (const [name, brushed] of Object.entries(charts)) {
        test(`${name} of ${view}`, async () => {
            const one = await tab(browser, server);
            const { page } = one;
            await one.show(state());
            const chart = page.locator(`[data-chart="${name}"]`);
            const plot = chart.locator(".plot");
            for (const [kind, begin] of [
                ["PNG", "\x89PNG"],
                ["SVG", "<svg "],
            ] as const) {
                const download = page.waitForEvent("download");
                await chart.getByRole("button", { name: kind, exact: true }).click();
                const file = await (await download).path();
                expect(readFileSync(file, "latin1").startsWith(begin), `${name} ${kind}`).toBe(true);
            }
            // By keys a mark, the same under the pointer, and both ways to what is behind it.
            await plot.focus();
            await page.keyboard.press("ArrowRight");
            await chart.locator(".tip").waitFor();
            const told = await chart.locator("[aria-live]").innerText();
            const title = await chart.locator(".tip strong").innerText();
            expect(told).toContain(title);
            await plot.scrollIntoViewIfNeeded();
            const [x, y] = await pointOf(chart);
            const opens = await chart.locator(".tip em").count();
            // A step inwards: the first mark may stand on the axis.
            await page.mouse.move(x + 2, y);
            await chart.locator(".tip").waitFor();
            if (opens > 0) {
                const here = page.url();
                await plot.focus();
                await page.keyboard.press("ArrowRight");
                await page.keyboard.press("Enter");
                await page.waitForURL((to) => to.href !== here);
                await page.goBack();
                await settled(page);
            }
            await one.show(state());
            await plot.scrollIntoViewIfNeeded();
            const unbrushed = page.url();
            await brush(page, name, 0.3, 0.6);
            await settled(page);
            const reached = new URL(page.url()).searchParams;
            if (brushed === "time")
                expect(Number(reached.get("to")), name).toBeGreaterThan(Number(reached.get("from")));
            else if (brushed === "values") expect(reached.get("view"), name).toBe("transactions");
            else expect(page.url(), name).toBe(unbrushed);
            expectNoErrors(one);
            await page.close();
        });
    }
}
