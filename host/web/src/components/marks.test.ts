import { Schema, Table, tableFromArrays, tableToIPC } from "apache-arrow";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Capture } from "../api/types";
import { captures, note, state } from "../state/store";
import { connectionOf, showConnectionOf } from "./marks";

beforeEach(() => {
    captures.value = [{ id: "1", state: "READY", seconds: 5 } as Capture];
    note.value = null;
});
afterEach(() => void vi.unstubAllGlobals());

/** So many rows at one instant; the id of row n is c<n>. */
function serving(total: number) {
    return vi.fn((url: string) => {
        const query = new URL(url, "http://weir").searchParams;
        const offset = Number(query.get("offset"));
        const rows = Array.from({ length: Math.min(10_000, total - offset) }, (_, at) => offset + at);
        const { schema, batches } = tableFromArrays({ row: Uint32Array.from(rows), id: rows.map((row) => `c${row}`) });
        const told = new Schema(schema.fields, new Map([["total", String(total)]]));
        return Promise.resolve(new Response(tableToIPC(new Table(told, batches), "stream").slice()));
    });
}

test("a row's connection is found among all that were open then, however many", async () => {
    const fetch = serving(25_000);
    vi.stubGlobal("fetch", fetch);
    expect(await connectionOf("connections", 24_999, 1, 2)).toBe("c24999");
    expect(fetch).toHaveBeenCalledTimes(3);
    expect(await connectionOf("connections", 7, 1, 2)).toBe("c7");
    expect(await connectionOf("connections", 25_000, 1, 2)).toBeNull();
});

test("what cannot be shown is said", async () => {
    vi.stubGlobal("fetch", serving(1));
    showConnectionOf("connections", 3, 1);
    await expect.poll(() => note.value).toContain("is not kept any more");
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
    showConnectionOf("connections", 0, 1);
    await expect.poll(() => note.value).toContain("The server does not answer");
    expect(state.value.view).toBe("overview");
});
