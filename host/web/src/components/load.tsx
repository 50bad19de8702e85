/** Loading for views: what came, what went wrong, and whether something newer is on its way. */
import type { ComponentChildren, VNode } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { renewed, type Renewed } from "../api/renewed";
import { revision } from "../state/store";

export interface Loaded<T> {
    /** The last that came; it stays while something newer is loading. */
    data: T | null;
    error: string | null;
    loading: boolean;
    /** Nothing came yet for the key that is asked for now. */
    awaited: boolean;
}

const NOTHING = { data: null, error: null, loading: false, awaited: false };

/**
 * Load what `key` names, again when the key changes or there are `news`, by default those of a live capture. What another
 * key named is cancelled, what is on its way when news come is shown first. `key`: null loads nothing.
 */
export function useLoad<T>(
    key: string | null,
    load: (signal: AbortSignal) => Promise<T>,
    news: unknown = revision.value,
): Loaded<T> {
    const wanted = key !== null;
    const [result, setResult] = useState<Loaded<T>>({ ...NOTHING, loading: wanted, awaited: wanted });
    const latest = useRef(load);
    latest.current = load;
    const running = useRef<{ of: Renewed; news: unknown } | null>(null);
    // Asked for before what is there is drawn again: the server works meanwhile.
    useLayoutEffect(() => {
        if (!wanted) {
            setResult(NOTHING);
            return;
        }
        setResult((before) => ({ ...before, awaited: true }));
        const asking = renewed(async (signal) => {
            setResult((before) => ({ ...before, loading: true }));
            const came = await latest.current(signal).then(
                (data) => ({ data, error: null }),
                (error: unknown) => ({ error: message(error) }),
            );
            if (!signal.aborted) setResult(({ data }) => ({ data, ...came, loading: false, awaited: false }));
        });
        running.current = { of: asking, news };
        return () => {
            running.current = null;
            asking.stop();
        };
    }, [key]);
    useLayoutEffect(() => {
        const now = running.current;
        if (now === null || now.news === news) return;
        now.news = news;
        now.of.news();
    }, [news]);
    return result;
}

/** Several that are drawn as one picture of another range or filter: it is drawn once, when all of them are here. */
export function useTogether<T extends readonly unknown[]>(...all: { [K in keyof T]: Loaded<T[K]> }): Loaded<T> {
    const kept = useRef<T | null>(null);
    const some = (what: "loading" | "awaited") => all.some((one) => one[what]);
    const error = all.find((one) => one.error !== null)?.error ?? null;
    const data = all.map((one) => one.data);
    const awaited = some("awaited");
    const here = !awaited && all.every((one) => one.data !== null || one.error === null);
    if (here && !data.every((one, at) => one === kept.current?.[at])) kept.current = data as unknown as T;
    return { data: kept.current, error, loading: some("loading"), awaited };
}

export function message(error: unknown): string {
    if (error instanceof ApiError || error instanceof Error) return error.message;
    return String(error);
}

/** Shows `children` with what came; before that a waiting line, after a failure the reason above what was there. */
export function Loading<T>(props: { of: Loaded<T>; what: string; children: (data: T) => ComponentChildren }) {
    const { data, error, loading, awaited } = props.of;
    return (
        <div class={awaited && data !== null ? "loaded stale" : "loaded"} aria-busy={loading}>
            {error !== null && (
                <p class="error" role="alert">
                    <strong>{props.what}:</strong> {error}
                </p>
            )}
            {data === null
                ? error === null && <p class="waiting">Loading {props.what.toLowerCase()}…</p>
                : props.children(data)}
        </div>
    );
}

/** Renders `children` again only when one of `of` is another: thousands of marks are not drawn for what came beside. */
export function Kept(props: { of: readonly unknown[]; children: () => VNode }) {
    return useMemo(props.children, [...props.of]);
}
