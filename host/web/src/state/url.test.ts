import { expect, test } from "vitest";
import { parse, serialise, within, type State } from "./url";
import { changed } from "./store";

const full: State = {
    view: "setups",
    capture: "c 1&x",
    from: 1.000000001,
    to: 420.5,
    params: { filter: "client.port = 80 AND id = 3", scale: "log" },
};

test("a link restores everything", () => {
    expect(parse(serialise(full))).toEqual({ state: full, note: null });
});

test("a link of another version is shown from the start and says so", () => {
    const { state, note } = parse("?v=9&view=setups&capture=c1&from=1&to=2&filter=x");
    expect(state).toEqual({ view: "overview", capture: "c1", from: null, to: null, params: {} });
    expect(note).toContain("v=9");
});

test.each([
    ...["from=abc", "to=", "from=3&to=2", "from=2&to=2", "from=-1", "from=-2&to=3", "to=-1"],
    ...["from=Infinity", "from=1e999", "to=Infinity", "to=1e12"],
])("a range that is none shows all: %s", (range) => {
    const { state, note } = parse(`?v=1&view=setups&${range}`);
    expect([state.view, state.from, state.to]).toEqual(["setups", null, null]);
    expect(note).toContain("time range");
});

test("a link to a time behind the capture's end shows all of it and says so", () => {
    const link = parse("?v=1&view=setups&from=1000&filter=x");
    const { state, note } = within(link, 5);
    expect(state).toEqual({ ...link.state, from: null, to: null });
    expect(note).toContain("behind the end");
    expect(within(link, 1000)).toEqual(link);
    expect(within(parse("?v=1&to=1000"), 5).note).toBeNull();
});

test("another view keeps what is shared and forgets the rest", () => {
    expect(changed(full, { view: "connections" }).params).toEqual({ filter: "client.port = 80 AND id = 3" });
    expect(changed(full, { params: { scale: "" } }).params).toEqual({ filter: "client.port = 80 AND id = 3" });
});

test("another capture keeps the view's choices and forgets what belongs to the capture", () => {
    const next = changed(full, { capture: "c2" });
    expect([next.from, next.to, next.params]).toEqual([null, null, { scale: "log" }]);
});

test.each([
    ["another range", { from: 2 }],
    ["all of the capture", { from: null, to: null }],
    ["another filter", { params: { filter: "id = 4" } }],
    ["a filter over transactions", { params: { requests: "losses > 0" } }],
    ["another connection", { params: { connection: "7" } }],
    ["another order", { params: { sort: "id" } }],
])("a list begins at its first row: %s", (_, change) => {
    const before = { ...full, params: { ...full.params, offset: "300", row: "312" } };
    const { params } = changed(before, change);
    expect([params.offset, params.row]).toEqual(["0", undefined]);
});

test("a place in the list stays with the list, and is what a change says", () => {
    const before = { ...full, params: { offset: "300", row: "312" } };
    expect(changed(before, { params: { scale: "log" } }).params).toMatchObject({ offset: "300", row: "312" });
    expect(changed(before, { from: 2, params: { offset: "100" } }).params.offset).toBe("100");
});
