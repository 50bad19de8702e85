/** Captures as they come, change and go: one stream of events for the whole page. */
import { capture, captures, note, revision } from "../state/store";
import type { Capture } from "./types";
import { message } from "../components/load";
import { again } from "./again";
import { listCaptures } from "./client";

/** The largest file that the server takes, bytes; null until it said so. */
export let uploadLimit: number | null = null;

export async function refreshCaptures(): Promise<void> {
    const list = await listCaptures();
    uploadLimit = Number(list.limits.uploadBytes);
    captures.value = list.captures;
}

/** About what browsers wait before they reconnect. */
const RECONNECT_MS = 4000;

/**
 * Listen. The browser reconnects by itself; when it did, the list and what is shown are asked for again: they may be
 * those of another server.
 */
export function listen(lost = false): void {
    const stream = new EventSource("/api/v1/events");
    stream.addEventListener("capture", (event) => merge(JSON.parse((event as MessageEvent<string>).data) as Capture));
    stream.addEventListener("closed", (event) => {
        const { id } = JSON.parse((event as MessageEvent<string>).data) as { id: string };
        captures.value = (captures.value ?? []).filter((one) => one.id !== id);
    });
    stream.onerror = () => {
        lost = true;
        // Browsers give up on an answer that is no stream, such as that of a proxy whose server is gone.
        if (stream.readyState === EventSource.CLOSED) setTimeout(listen, RECONNECT_MS, true);
        note.value = "The connection to the server is lost: what is shown may be old. Trying again…";
    };
    stream.onopen = () => {
        if (!lost) return;
        lost = false;
        again(
            refreshCaptures,
            () => {
                note.value = null;
                revision.value += 1;
            },
            (reason) => (note.value = message(reason)),
        );
    };
}

export function merge(news: Capture): void {
    const known = captures.value ?? [];
    const before = known.find((one) => one.id === news.id);
    captures.value = before ? known.map((one) => (one.id === news.id ? news : one)) : [...known, news];
    // Of a file that was being read nothing was loaded that could be old.
    const old = before?.state === "READY" && before.revision !== news.revision;
    if (old && capture.value?.id === news.id) bringNews();
}

/** The server's copy of a live capture is up to two seconds old: to ask more often brings nothing, and would cancel what is on its way. */
const NEWS_MS = 2000;
let due: ReturnType<typeof setTimeout> | null = null;

function bringNews(): void {
    due ??= setTimeout(() => {
        due = null;
        revision.value += 1;
    }, NEWS_MS);
}
