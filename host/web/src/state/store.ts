/** The page's state: one signal, mirrored in the URL. Views read it and change it here, never through `location`. */
import { batch, computed, effect, signal, type ReadonlySignal } from "@preact/signals";
import { parse, serialise, SHARED, within, type State } from "./url";
import type { Capture } from "../api/types";

const first = parse(globalThis.location?.search ?? "");

export const state = signal<State>(first.state);
/** Something the reader should know, shown in a bar until put away. */
export const note = signal<string | null>(first.note);
/** The captures that the server has; null until it answered. */
export const captures = signal<readonly Capture[] | null>(null);
/** Where the pointer or the keyboard is, in seconds since the capture's start: every chart draws it. */
export const cursor = signal<number | null>(null);
/** Counts up when a live capture has news: what was loaded is loaded again. */
export const revision = signal(0);

/** Name of the view: what depends on it alone is not made again for another range. */
export const viewName = computed(() => state.value.view);

/** The capture that is shown. */
export const capture = computed<Capture | null>(() => {
    const all = captures.value;
    if (all === null) return null;
    const id = state.value.capture;
    return (id === null ? all[0] : all.find((one) => one.id === id)) ?? null;
});

/** All that is kept, seconds since the capture's start: shown as long as no range is chosen. */
export const kept = computed<[number, number]>(() => {
    const shown = capture.value;
    return [shown?.keptFrom ?? 0, shown?.seconds ?? 0];
});

/** The time range that is shown, seconds since the capture's start. */
export const range = computed<[number, number]>(() => {
    const [begin, end] = kept.value;
    const { from, to } = state.value;
    const low = from ?? Math.min(begin, Math.max(0, (to ?? Infinity) - 1e-6));
    return [low, to ?? Math.max(end, low + 1e-6)];
});

/**
 * The same as the server is asked for it: the end of a range is not in it, but the capture's last packet is, unless an
 * earlier end was chosen.
 */
export const asked = computed<Pick<State, "from" | "to">>(() => {
    const { from, to } = state.value;
    return { from, to };
});

/** There is no time that could be shown: an empty capture would begin in 1970. */
export const timeless = computed(() => {
    const shown = capture.value;
    return shown === null || (!shown.seconds && Number(shown.packets) === 0);
});

export const zoomed = computed(() => state.value.from !== null || state.value.to !== null);

export interface Change {
    view?: string;
    capture?: string | null;
    from?: number | null;
    to?: number | null;
    /** Set these; an empty text removes. */
    params?: Record<string, string>;
}

/** What makes a list another one, beside the range. */
const LISTED = [...SHARED, "sort"];

/** The state after a change. Another view starts without the choices of the one before, save the shared ones. */
export function changed(before: State, change: Change): State {
    const kept: Record<string, string> = {};
    const sameView = change.view === undefined || change.view === before.view;
    const sameCapture = change.capture === undefined || change.capture === before.capture;
    for (const [name, value] of Object.entries(before.params)) {
        // A connection's id means nothing in another capture.
        if (sameCapture ? sameView || SHARED.includes(name) : sameView && !SHARED.includes(name)) kept[name] = value;
    }
    const { params = {} } = change;
    for (const [name, value] of Object.entries(params)) {
        if (value === "") delete kept[name];
        else kept[name] = value;
    }
    const from = change.from === undefined ? (sameCapture ? before.from : null) : change.from;
    const to = change.to === undefined ? (sameCapture ? before.to : null) : change.to;
    const otherList =
        !sameCapture || from !== before.from || to !== before.to || LISTED.some((n) => kept[n] !== before.params[n]);
    if (otherList) {
        // A place in the list before is none in this one. Which list is paged at all is the view's choice: 0 keeps it.
        if (kept.offset !== undefined && params.offset === undefined) kept.offset = "0";
        if (params.row === undefined) delete kept.row;
    }
    return {
        view: change.view ?? before.view,
        capture: change.capture === undefined ? before.capture : change.capture,
        from,
        to,
        params: kept,
    };
}

/**
 * Ranges follow one another while a key is held: only where it rests is a step, written when what it shows has come. A
 * browser refuses more than some 200 steps in 30 s, and each costs it as much as drawing a chart.
 */
const REST_MS = 120;
let resting: ReturnType<typeof setTimeout> | undefined;

/** The state that the address tells, too. */
const told = signal<State>(first.state);

/** The range that has no step yet gets it. */
function settleRange(): void {
    if (resting === undefined) return;
    forgetRange();
    const url = serialise(state.value);
    if (url !== location.search) history.pushState(null, "", url);
    told.value = state.value;
}

function forgetRange(): void {
    clearTimeout(resting);
    resting = undefined;
}

/** Go there. A new view or range is a step back in the browser's history; `replace` when it is only a refinement. */
export function go(change: Change, how: { replace?: boolean } = {}): void {
    const before = state.value;
    const next = changed(before, change);
    const url = serialise(next);
    if (url === serialise(before)) return;
    const onlyRange = url === serialise({ ...before, from: next.from, to: next.to });
    if (onlyRange && !how.replace) {
        clearTimeout(resting);
        resting = setTimeout(settleRange, REST_MS);
    } else {
        settleRange();
        if (how.replace) history.replaceState(null, "", url);
        else history.pushState(null, "", url);
        told.value = next;
    }
    state.value = next;
}

/**
 * The URL that a change leads to, for links that can be opened in another tab: a hundred of them are not written anew
 * before the charts of a range that is on its way.
 */
export function href(change: Change): string {
    return serialise(changed(told.value, change));
}

const params = new Map<string, ReadonlySignal<string | undefined>>();

/** Who reads it is made again when it changes, and not for another range: charts would be drawn twice. */
export function param(name: string, otherwise = ""): string {
    let one = params.get(name);
    if (!one) params.set(name, (one = computed(() => state.value.params[name])));
    return one.value ?? otherwise;
}

export function setParam(name: string, value: string, how: { replace?: boolean } = {}): void {
    go({ params: { [name]: value } }, how);
}

/** Show this range; all that is kept when it covers that. A range never gets narrower than 1 µs. */
export function zoomTo(from: number, to: number, params: Record<string, string> = {}): void {
    const [begin, end] = kept.value;
    const middle = (from + to) / 2;
    const half = Math.max(to - from, 1e-6) / 2;
    const low = Math.max(begin, middle - half);
    const high = Math.min(end, middle + half);
    if (high <= low) return;
    go({ from: low <= begin ? null : low, to: high >= end ? null : high, params });
}

/** Zoom by a factor (below 1: closer) around a time, by default the cursor or the middle. */
export function zoomBy(factor: number, around?: number): void {
    const [from, to] = range.value;
    const at =
        around ??
        (cursor.value !== null && cursor.value >= from && cursor.value <= to ? cursor.value : (from + to) / 2);
    zoomTo(at - (at - from) * factor, at + (to - at) * factor);
}

/** Move the range by a share of its width, staying inside the capture. */
export function pan(share: number): void {
    const [begin, end] = kept.value;
    const [from, to] = range.value;
    const width = to - from;
    const start = Math.min(Math.max(begin, from + share * width), Math.max(begin, end - width));
    zoomTo(start, start + width);
}

export function zoomOut(): void {
    go({ from: null, to: null });
}

// Which capture it is comes later than its link, and the browser's back button leads to links, too.
effect(() => {
    const shown = capture.value;
    if (shown?.state !== "READY") return;
    const before = { state: state.value, note: note.peek() };
    const next = within(before, shown.seconds ?? 0);
    if (next.state === before.state) return;
    history.replaceState(null, "", serialise(next.state));
    told.value = state.value = next.state;
    note.value = next.note;
});

if (typeof window !== "undefined") {
    window.addEventListener("popstate", () => {
        forgetRange();
        const back = parse(location.search);
        batch(() => {
            told.value = state.value = back.state;
            note.value = back.note;
        });
    });
}
