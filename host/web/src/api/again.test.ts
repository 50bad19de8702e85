import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { again } from "./again";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Fails so often, then succeeds. */
function server(failures: number) {
    return vi.fn(() => (failures-- > 0 ? Promise.reject(new Error("gone")) : Promise.resolve("here")));
}

test("what fails is tried again with longer and longer waits until it succeeds, and then no more", async () => {
    const attempt = server(6);
    const [done, failed] = [vi.fn(), vi.fn()];
    again(attempt, done, failed);
    await vi.advanceTimersByTimeAsync(0);
    expect([attempt.mock.calls.length, failed.mock.calls.length]).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(500 + 1000 + 2000 + 4000);
    expect(failed).toHaveBeenCalledTimes(5);
    await vi.advanceTimersByTimeAsync(60_000);
    expect([attempt.mock.calls.length, failed.mock.calls.length]).toEqual([7, 6]);
    expect(done.mock.calls).toEqual([["here"]]);
});

test("what is no longer wanted is not tried again", async () => {
    const attempt = server(Infinity);
    const failed = vi.fn();
    const stop = again(attempt, vi.fn(), failed);
    await vi.advanceTimersByTimeAsync(600);
    stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([attempt.mock.calls.length, failed.mock.calls.length]).toEqual([2, 2]);
});
