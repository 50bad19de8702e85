import { afterEach, beforeEach, expect, test, vi } from "vitest";

beforeEach(() => void vi.resetModules());
afterEach(() => void Reflect.deleteProperty(globalThis, "localStorage"));

/** The page's choices, as a browser loads them. */
async function choices() {
    const { applyTheme, choice, isDark } = await import("../theme");
    const { putAway, tourShown } = await import("../shell/Tour");
    applyTheme({ dataset: {}, style: { setProperty: () => undefined } } as unknown as HTMLElement);
    return { choice, isDark, putAway, tourShown };
}

const browser = (get: () => unknown) => Object.defineProperty(globalThis, "localStorage", { get, configurable: true });

test.each([
    ["blocked", () => browser(() => void expect.fail("SecurityError"))],
    ["none", () => browser(() => null)],
    ["full", () => browser(() => ({ getItem: () => null, setItem: () => expect.fail("QuotaExceededError") }))],
])("where the browser keeps nothing (%s), a choice lasts as long as the page", async (_, made) => {
    made();
    const { choice, isDark, putAway, tourShown } = await choices();
    expect([isDark.value, tourShown.value]).toEqual([false, true]);
    choice.value = "dark";
    putAway();
    expect([isDark.value, tourShown.value]).toEqual([true, false]);
});

test("what was chosen is so at the next visit", async () => {
    const kept = new Map<string, string>();
    const storage = { getItem: (key: string) => kept.get(key) ?? null, setItem: kept.set.bind(kept) };
    browser(() => storage);
    const first = await choices();
    first.choice.value = "dark";
    first.putAway();
    vi.resetModules();
    const { choice, tourShown } = await choices();
    expect([choice.value, tourShown.value]).toEqual(["dark", false]);
});
