import { expect, test } from "vitest";
import { THEMES } from "./theme";

/** Contrast of two colours, WCAG 2.2, section "contrast ratio". */
function contrast(one: string, other: string): number {
    const luminance = (color: string) => {
        const [r, g, b] = [1, 3, 5].map((at) => {
            const part = parseInt(color.slice(at, at + 2), 16) / 255;
            return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        }) as [number, number, number];
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
    return (high + 0.05) / (low + 0.05);
}

test.each(Object.entries(THEMES))("%s: text has 4.5:1 and data 3:1", (_, colors) => {
    for (const text of [colors.text, colors.muted, colors.accent]) {
        for (const ground of [colors.panel, colors.page]) expect(contrast(text, ground)).toBeGreaterThanOrEqual(4.5);
    }
    expect(contrast(colors.text, colors.raised)).toBeGreaterThanOrEqual(4.5);
    expect(contrast(colors.onAccent, colors.accent)).toBeGreaterThanOrEqual(4.5);
    const { blue, orange, green, red, purple, sky, yellow, grey } = colors;
    for (const data of [blue, orange, green, red, purple, sky, yellow, grey]) {
        expect(contrast(data, colors.panel), data).toBeGreaterThanOrEqual(3);
    }
});
