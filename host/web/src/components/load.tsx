/** Loading for views: what came, what went wrong, and whether something newer is on its way. */
import type { ComponentChildren, VNode } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { revision } from "../state/store";
import { ApiError } from "../api/client";

export interface Loaded<T> {
    /** The last that came; it stays while something newer is loading. */
    data: T | null;
    error: string | null;
    loading: boolean;
}

/**
 * Load what `key` names, again when the key or a live capture changes. What is no longer wanted is cancelled.
 * `key`: null loads nothing.
 */
export function useLoad<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
    const [result, setResult] = useState<Loaded<T>>({ data: null, error: null, loading: key !== null });
    const latest = useRef(load);
    latest.current = load;
    const news = revision.value;
    // Asked for before what is there is drawn again: the server works meanwhile.
    useLayoutEffect(() => {
        if (key === null) {
            setResult({ data: null, error: null, loading: false });
            return;
        }
        const abort = new AbortController();
        setResult((before) => ({ ...before, loading: true }));
        latest.current(abort.signal).then(
            (data) => !abort.signal.aborted && setResult({ data, error: null, loading: false }),
            (error: unknown) =>
                !abort.signal.aborted &&
                setResult((before) => ({ data: before.data, error: message(error), loading: false })),
        );
        return () => abort.abort();
    }, [key, news]);
    return result;
}

/** Several that are drawn as one picture: they are new when all of them are, so that it is drawn once. */
export function useTogether<T extends readonly unknown[]>(...all: { [K in keyof T]: Loaded<T[K]> }): Loaded<T> {
    const kept = useRef<T | null>(null);
    const loading = all.some((one) => one.loading);
    const error = all.find((one) => one.error !== null)?.error ?? null;
    const data = all.map((one) => one.data);
    const here = !loading && all.every((one) => one.data !== null || one.error === null);
    if (here && !data.every((one, at) => one === kept.current?.[at])) kept.current = data as unknown as T;
    return { data: kept.current, error, loading };
}

export function message(error: unknown): string {
    if (error instanceof ApiError || error instanceof Error) return error.message;
    return String(error);
}

/** Shows `children` with what came; before that a waiting line, after a failure the reason above what was there. */
export function Loading<T>(props: { of: Loaded<T>; what: string; children: (data: T) => ComponentChildren }) {
    const { data, error, loading } = props.of;
    return (
        <div class={loading && data !== null ? "loaded stale" : "loaded"} aria-busy={loading}>
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
