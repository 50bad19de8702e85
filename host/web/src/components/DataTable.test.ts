import { expect, test } from "vitest";
import type { ColumnInfo } from "../api/types";
import { columnsOf, firstRow, scrollFor } from "./DataTable";

test.each([100, 38_885, 1_000_000, 50_000_000])("of %i rows each can be scrolled to", (total) => {
    const viewport = 700;
    const reach = total - Math.ceil(viewport / 26);
    for (const row of [0, 1, 17, Math.floor(total / 3), total / 2, reach]) {
        const first = firstRow(scrollFor(row, total, viewport), total, viewport);
        expect(Math.abs(first - Math.floor(row))).toBeLessThanOrEqual(1);
    }
});

test("no element is taller than browsers draw", () => {
    expect(scrollFor(49_999_973, 50_000_000, 700)).toBeLessThanOrEqual(12_000_000);
});

test("columns that there are not any more are told, and the usual ones stand in for none at all", () => {
    const info = (name: string): ColumnInfo => ({ name, path: name, type: "count", unit: "", doc: "" });
    const byName = new Map(["a", "b", "c"].map((name) => [name, info(name)]));
    const names = (wanted: string[]) => {
        const [known, unknown] = columnsOf(wanted, ["a"], byName);
        return [known.map(({ name }) => name), unknown];
    };
    expect(names(["c", "old", "b"])).toEqual([["c", "b"], ["old"]]);
    expect(names(["old"])).toEqual([["a"], ["old"]]);
    expect(names(["a"])).toEqual([["a"], []]);
});
