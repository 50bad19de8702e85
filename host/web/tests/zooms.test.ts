/**
 * Any zoom of a large capture is there within 200 ms: from the key until nothing is asked for or drawn any more.
 * WEIR_CAPTURE names the capture (the full megalodon); without it there is nothing to measure.
 */
import { expect, test } from "vitest";
import { launch, serve, settled, tab } from "./support";

const CAPTURE = process.env.WEIR_CAPTURE;
if (CAPTURE === undefined) process.stdout.write("WEIR_CAPTURE is not set: zooms are not measured\n");

/** Longest time of a zoom, ms. */
const LONGEST = 200;
const KEYS = ["w", "w", "w", "w", "d", "d", "s", "s", "0", "w"];
const VIEWS: readonly (readonly [string, string])[] = [
    ["setups", "view=setups"],
    ["transactions", "view=marks"],
    ["timing", "view=timing"],
    ["exchange", "view=exchange"],
    ["waterfall", "view=waterfall"],
    ["rates", "view=timeline"],
];

test.skipIf(CAPTURE === undefined)(
    "every zoom",
    async () => {
        const server = await serve(CAPTURE ?? "");
        const browser = await launch();
        const slow: string[] = [];
        for (const [chart, state] of VIEWS) {
            const one = await tab(browser, server);
            const { page } = one;
            await one.show(state);
            await page.locator(`[data-chart="${chart}"] .plot`).focus();
            const times: number[] = [];
            for (const key of KEYS) {
                const time = await page.evaluate(
                    (key) =>
                        new Promise<number>((done) => {
                            const begin = performance.now();
                            let calm = 0;
                            const look = () => {
                                const now = performance.now();
                                // A frame that begins with nothing on its way shows what was drawn before it.
                                if (document.querySelector("[aria-busy=true]")) calm = 0;
                                else if (calm === 0) calm = now;
                                else if (now - calm > 100) return done(calm - begin);
                                requestAnimationFrame(look);
                            };
                            document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
                            requestAnimationFrame(look);
                        }),
                    key,
                );
                times.push(time);
                await settled(page);
            }
            process.stdout.write(`${state}: ${times.map((time) => time.toFixed(0)).join(", ")} ms\n`);
            slow.push(...times.filter((time) => time > LONGEST).map((time) => `${state}: ${time.toFixed(0)} ms`));
            expect(one.errors).toEqual([]);
            await page.close();
        }
        await browser.close();
        await server.stop();
        // A busy machine may disturb one or two.
        expect(slow.length, slow.join(", ")).toBeLessThanOrEqual(3);
    },
    600_000,
);
