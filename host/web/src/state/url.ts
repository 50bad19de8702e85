/** What the page shows, as its URL says it: a link restores the view, the range, the filter and every choice. */

export const VERSION = 1;

export interface State {
    /** Name of the view, as in views/index.ts. */
    view: string;
    /** Id of the capture; null: the first that the server has. */
    capture: string | null;
    /** Seconds since the start of the capture; null: from its start. */
    from: number | null;
    /** Seconds since the start of the capture; null: to its end. */
    to: number | null;
    /** Everything else, by name: SHARED ones stay when the view changes, the others are the view's own. */
    params: Readonly<Record<string, string>>;
}

/**
 * Choices that mean the same in every view: `filter` is over connections, `requests` is the filter over transactions,
 * `connection` an id.
 */
export const SHARED: readonly string[] = ["filter", "requests", "connection"];

const NAMED = new Set(["v", "view", "capture", "from", "to"]);

export interface Parsed {
    state: State;
    /** What of the URL could not be followed, for the reader; null when all could. */
    note: string | null;
}

export function parse(search: string, start = "overview"): Parsed {
    const query = new URLSearchParams(search);
    const version = query.get("v");
    const fresh: State = { view: start, capture: query.get("capture"), from: null, to: null, params: {} };
    if (version !== null && version !== String(VERSION)) {
        return {
            state: fresh,
            note: `This link was made by another version of the page (v=${version}, this is ${VERSION}): it is shown from the start.`,
        };
    }
    let from = seconds(query.get("from"));
    let to = seconds(query.get("to"));
    let note: string | null = null;
    if (Number.isNaN(from) || Number.isNaN(to) || (from ?? 0) < 0 || (to !== null && (from ?? 0) >= to)) {
        note = "The time range of this link cannot be read: the whole capture is shown.";
        from = to = null;
    }
    const params: Record<string, string> = {};
    for (const [name, value] of query) {
        if (!NAMED.has(name)) params[name] = value;
    }
    return { state: { ...fresh, view: query.get("view") ?? start, from, to, params }, note };
}

/** No capture is longer (300 years), and later times have no date that can be written. */
const LONGEST = 1e10;

function seconds(text: string | null): number | null {
    if (text === null) return null;
    return text.trim() === "" || !(Number(text) <= LONGEST) ? NaN : Number(text);
}

/** A link to a time behind the end of the capture that it is opened on: a longer one was meant. */
export function within({ state, note }: Parsed, end: number): Parsed {
    if (state.from === null || state.from <= end) return { state, note };
    return {
        state: { ...state, from: null, to: null },
        note: "The time range of this link lies behind the end of this capture: the whole capture is shown.",
    };
}

export function serialise(state: State): string {
    const query = new URLSearchParams({ v: String(VERSION), view: state.view });
    if (state.capture !== null) query.set("capture", state.capture);
    if (state.from !== null) query.set("from", short(state.from));
    if (state.to !== null) query.set("to", short(state.to));
    for (const name of Object.keys(state.params).sort()) {
        const value = state.params[name];
        if (value !== undefined && value !== "") query.set(name, value);
    }
    return `?${query.toString()}`;
}

/** Nanoseconds are the finest that a capture knows. */
function short(value: number): string {
    return String(Number(value.toFixed(9)));
}
