import { expect, test } from "vitest";
import { SvgPainter } from "./painter";

test("what is unknown makes a gap in a line", () => {
    const painter = new SvgPainter();
    painter.line([0, 1, 2, 3, 4], [5, 5, NaN, 6, 6], { color: "#000" });
    expect(painter.finish(10, 10, "t")).toContain('d="M0 5L1 5M3 6L4 6"');
});

test("texts cannot break out of the picture", () => {
    const painter = new SvgPainter();
    painter.text('<script>&"', 1, 2, { color: "#000" });
    const file = painter.finish(10, 10, "<b>");
    expect(file).not.toContain("<script");
    expect(file).not.toContain("<b>");
    expect(file).toContain("&#60;script&#62;&#38;&#34;");
});
