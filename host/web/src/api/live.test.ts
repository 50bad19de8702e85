import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { captures, revision } from "../state/store";
import { merge } from "./live";
import type { Capture } from "./types";

const capture = (id: string, revision: string): Capture => ({ id, name: id, kind: "LIVE", state: "READY", revision });

beforeEach(() => {
    vi.useFakeTimers();
    captures.value = [capture("shown", "1"), capture("other", "1")];
});
afterEach(() => {
    vi.useRealTimers();
});

test("news of the capture that is shown load it again, at most every two seconds", () => {
    const before = revision.value;
    for (let news = 2; news < 10; news += 1) {
        merge(capture("shown", String(news)));
        vi.advanceTimersByTime(250);
    }
    expect(revision.value).toBe(before + 1);
    vi.advanceTimersByTime(2000);
    expect(revision.value).toBe(before + 1);
    merge(capture("shown", "10"));
    vi.advanceTimersByTime(2000);
    expect(revision.value).toBe(before + 2);
});

test("news of another capture load nothing; a new one joins the list", () => {
    const before = revision.value;
    merge(capture("other", "2"));
    merge(capture("new", "1"));
    vi.advanceTimersByTime(5000);
    expect(revision.value).toBe(before);
    expect(captures.value?.map(({ id }) => id)).toEqual(["shown", "other", "new"]);
});

test("a file that was read is loaded once", () => {
    const before = revision.value;
    captures.value = [{ ...capture("shown", "0"), state: "READING" }];
    merge(capture("shown", "1"));
    vi.advanceTimersByTime(5000);
    expect(revision.value).toBe(before);
});
