/**
 * Colours, light and dark, in one place: style sheets read them as CSS variables, charts from `colors`.
 * Data colours are Okabe and Ito's (safe for colour-blind readers), each shifted until it has at least 3:1 against the
 * panel; text has at least 4.5:1. Meaning is never in the colour alone: marks also differ in shape.
 */
import { computed, effect, signal } from "@preact/signals";
import { remember, remembered } from "./state/remembered";

const LIGHT = {
    page: "#f3f5f7",
    panel: "#ffffff",
    raised: "#e9edf1",
    text: "#1b1f24",
    muted: "#505a66",
    line: "#cdd5dd",
    grid: "#e4e8ed",
    accent: "#0a5aa8",
    onAccent: "#ffffff",
    stripe: "#f3f5f799",
    edge: "#1b1f2438",
    band: "#c24a0026",
    cursor: "#1b1f24",
    brush: "#0a5aa833",
    blue: "#0072b2",
    orange: "#a86500",
    green: "#00785a",
    red: "#c03a00",
    purple: "#97467f",
    sky: "#2a85b9",
    yellow: "#857300",
    grey: "#5d6873",
};

export type Colors = typeof LIGHT;

const DARK: Colors = {
    page: "#101418",
    panel: "#181d23",
    raised: "#252c35",
    text: "#e6e9ed",
    muted: "#a7b1bd",
    line: "#3a4450",
    grid: "#262d36",
    accent: "#6cb6ff",
    onAccent: "#0d1116",
    stripe: "#10141899",
    edge: "#e6e9ed40",
    band: "#ff8a4c30",
    cursor: "#e6e9ed",
    brush: "#6cb6ff40",
    blue: "#4aa8e8",
    orange: "#e69f00",
    green: "#27b98d",
    red: "#ff7a45",
    purple: "#d98cc0",
    sky: "#8fd0f5",
    yellow: "#e8dc45",
    grey: "#98a3af",
};

export type Choice = "auto" | "light" | "dark";

const KEY = "weir.theme";
const systemDark = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;
const dark = signal(systemDark?.matches ?? false);
systemDark?.addEventListener("change", (event) => (dark.value = event.matches));

/** What the reader chose; kept in this browser. */
export const choice = signal<Choice>(stored());

function stored(): Choice {
    const value = remembered(KEY);
    return value === "light" || value === "dark" ? value : "auto";
}

export const isDark = computed(() => (choice.value === "auto" ? dark.value : choice.value === "dark"));
export const colors = computed<Colors>(() => (isDark.value ? DARK : LIGHT));

/** Colours of series whose order means nothing (signatures, hosts), in order. */
export const series = computed<readonly string[]>(() => {
    const c = colors.value;
    return [c.blue, c.orange, c.green, c.purple, c.sky, c.red, c.yellow, c.grey];
});

export function applyTheme(root: HTMLElement): void {
    effect(() => {
        root.dataset.theme = isDark.value ? "dark" : "light";
        root.style.colorScheme = isDark.value ? "dark" : "light";
        for (const [name, value] of Object.entries(colors.value)) root.style.setProperty(`--${name}`, value);
        remember(KEY, choice.value);
    });
}

/** For tests of contrast. */
export const THEMES = { light: LIGHT, dark: DARK };
