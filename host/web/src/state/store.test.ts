import { beforeEach, expect, test, vi } from "vitest";
import { asked, captures, note, pan, range, state, zoomTo } from "./store";
import type { Capture } from "../api/types";

const written: string[] = [];
vi.stubGlobal("location", { search: "" });
vi.stubGlobal("history", {
    pushState: (_: unknown, __: string, url: string) => written.push(url),
    replaceState: (_: unknown, __: string, url: string) => written.push(url),
});

const all = { view: "setups", capture: null, from: null, to: null, params: {} };

beforeEach(() => {
    written.length = 0;
    note.value = null;
    state.value = all;
    captures.value = [{ id: "1", state: "READY", seconds: 5 } as Capture];
});

test("the server is asked for a range with the last packet in it, whatever the chart shows", () => {
    expect([range.value, asked.value]).toEqual([[0, 5], { from: null, to: null }]);
    zoomTo(3, 5, { low: "1" });
    expect([range.value, asked.value]).toEqual([[3, 5], { from: 3, to: null }]);
    zoomTo(3, 4, { low: "1" });
    expect([range.value, asked.value]).toEqual([[3, 4], { from: 3, to: 4 }]);
});

test("what a daemon has forgotten is no part of the whole, and a link to it leads there all the same", () => {
    captures.value = [{ id: "1", state: "READY", seconds: 500, keptFrom: 400 } as Capture];
    expect([range.value, asked.value]).toEqual([[400, 500], { from: null, to: null }]);
    zoomTo(300, 450);
    expect([range.value, asked.value]).toEqual([[400, 450], { from: null, to: 450 }]);
    pan(-1);
    expect(range.value).toEqual([400, 450]);
    state.value = { ...all, from: 100, to: 200 };
    expect(range.value).toEqual([100, 200]);
    state.value = { ...all, to: 200 };
    expect(range.value[0]).toBeLessThan(200);
});

test("a range behind the end is the whole capture as soon as the capture is known, in the address, too", () => {
    captures.value = null;
    state.value = { ...all, from: 1000 };
    expect(range.value[1]).toBeGreaterThan(range.value[0]);
    captures.value = [{ id: "1", state: "READY", seconds: 5 } as Capture];
    expect(state.value).toEqual(all);
    expect(note.value).toContain("behind the end");
    expect(written).toEqual(["?v=1&view=setups"]);
});
