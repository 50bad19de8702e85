/** Asking again by itself, for as long as the server does not answer. */

/** Waits between tries, ms; the last for all that follow: a server that was gone for long is shown within seconds. */
const WAITS_MS = [500, 1000, 2000, 4000];

/** Try until it succeeds; `failed` hears of each time that it did not. What is returned ends the tries. */
export function again<T>(
    attempt: () => Promise<T>,
    done: (value: T) => void,
    failed: (reason: unknown) => void,
): () => void {
    let wanted = true;
    let tries = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const go = (): void => {
        attempt().then(
            (value) => wanted && done(value),
            (reason: unknown) => {
                if (!wanted) return;
                failed(reason);
                timer = setTimeout(go, WAITS_MS[Math.min(tries, WAITS_MS.length - 1)]);
                tries += 1;
            },
        );
    };
    go();
    return () => {
        wanted = false;
        clearTimeout(timer);
    };
}
