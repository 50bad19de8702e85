import { expect, test } from "vitest";
import { renewed } from "./renewed";

/** Questions in the order in which they were asked, answered when the test says so. */
function server() {
    const asked: { signal: AbortSignal; answer: () => void }[] = [];
    const ask = (signal: AbortSignal) => new Promise<void>((answer) => asked.push({ signal, answer }));
    return { asked, ask };
}

/** Whatever follows an answer has happened. */
const after = () => new Promise((done) => setTimeout(done));

test("an answer that takes longer than it is to the next news is waited for, and asked for once more", async () => {
    const { asked, ask } = server();
    const one = renewed(ask);
    for (let news = 0; news < 5; news += 1) one.news();
    expect(asked).toHaveLength(1);
    expect(asked[0]?.signal.aborted).toBe(false);
    asked[0]?.answer();
    await after();
    expect(asked).toHaveLength(2);
    asked[1]?.answer();
    await after();
    expect(asked).toHaveLength(2);
    one.news();
    expect(asked).toHaveLength(3);
});

test("what is no longer wanted is cancelled and not asked for again", async () => {
    const { asked, ask } = server();
    const one = renewed(ask);
    one.news();
    one.stop();
    expect(asked[0]?.signal.aborted).toBe(true);
    asked[0]?.answer();
    await after();
    expect(asked).toHaveLength(1);
});
