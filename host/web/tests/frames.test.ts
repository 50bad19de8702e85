/**
 * Moving a large capture stays within a frame, by the browser's own trace: the processor time of each task of the
 * page's main thread. WEIR_CAPTURE names the capture (the full megalodon); without it there is nothing to measure.
 */
import { expect, test } from "vitest";
import { launch, memory, serve, settled, tab } from "./support";

interface TraceEvent {
    name: string;
    ph: string;
    pid: number;
    tid: number;
    dur?: number;
    /** Processor time, µs. */
    tdur?: number;
    args?: { name?: string };
}

const CAPTURE = process.env.WEIR_CAPTURE;
if (CAPTURE === undefined) process.stdout.write("WEIR_CAPTURE is not set: frames are not measured\n");

/** Longest task that leaves a frame of 1/60 s in time, ms. */
const FRAME = 16;
/** Memory that the browser may take, MB, and what a view may move, kB. */
const MEMORY = 500;
const MOVED = 1000;
const KEYS = ["w", "w", "w", "d", "d", "d", "d", "a", "a", "d", "d", "s", "a", "a", "w", "d"];
const VIEWS: readonly (readonly [string, string])[] = [
    ["timing", "view=timing"],
    ["timing", "view=timing&lanes=500&from=300&to=330"],
    ["timing", "view=timing&rows=together&from=300&to=330"],
    ["exchange", "view=exchange&from=300&to=310"],
    ["waterfall", "view=waterfall&from=300&to=302"],
];

test.skipIf(CAPTURE === undefined)(
    "panning and zooming",
    async () => {
        const server = await serve(CAPTURE ?? "");
        const browser = await launch();
        for (const [chart, state] of VIEWS) {
            const one = await tab(browser, server);
            const { page } = one;
            const session = await page.context().newCDPSession(page);
            let moved = 0;
            await session.send("Network.enable");
            session.on("Network.loadingFinished", (event) => void (moved += event.encodedDataLength));
            await one.show(state);
            const first = moved;
            const events: TraceEvent[] = [];
            session.on(
                "Tracing.dataCollected",
                (event) => void events.push(...(event.value as unknown as TraceEvent[])),
            );
            await session.send("Tracing.start", {
                categories: "devtools.timeline,toplevel",
                transferMode: "ReportEvents",
            });
            await page.locator(`[data-chart="${chart}"] .plot`).focus();
            for (const key of KEYS) {
                await page.keyboard.press(key);
                await page.waitForTimeout(120);
            }
            await settled(page);
            const ended = new Promise<void>((done) => session.once("Tracing.tracingComplete", () => done()));
            await session.send("Tracing.end");
            await ended;
            const main = new Set(
                events
                    .filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain")
                    .map(({ pid, tid }) => `${pid} ${tid}`),
            );
            const tasks = events
                .filter(({ name, ph, pid, tid }) => name.endsWith("RunTask") && ph === "X" && main.has(`${pid} ${tid}`))
                .map(({ tdur, dur }) => (tdur ?? dur ?? 0) / 1000)
                .sort((a, b) => a - b);
            const over = tasks.filter((time) => time > FRAME).length;
            const taken = memory();
            process.stdout.write(
                `${state}: ${tasks.length} tasks, longest ${tasks.at(-1)?.toFixed(1)} ms, ${over} above ${FRAME} ms; browser ${taken.toFixed(0)} MB; first view ${(first / 1e3).toFixed(0)} kB, ${KEYS.length} steps ${((moved - first) / 1e3).toFixed(0)} kB\n`,
            );
            expect(tasks.length).toBeGreaterThan(KEYS.length);
            expect(over).toBe(0);
            expect(taken).toBeGreaterThan(0);
            expect(taken).toBeLessThan(MEMORY);
            expect(first / 1e3).toBeLessThan(MOVED);
            await page.close();
        }
        await browser.close();
        await server.stop();
    },
    600_000,
);
