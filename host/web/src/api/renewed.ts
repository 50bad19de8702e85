/** Asking anew for news, one question after the other. */

export interface Renewed {
    /** What was asked for may have changed. */
    news(): void;
    /** Nothing of it is wanted any more. */
    stop(): void;
}

/**
 * Ask, and again for news. What is on its way is waited for: were it cancelled for news, an answer that takes longer than
 * it is to the next would never be seen. `ask` tells of failures itself.
 */
export function renewed(ask: (signal: AbortSignal) => Promise<void>): Renewed {
    const abort = new AbortController();
    let asking = false;
    let old = false;
    const go = async (): Promise<void> => {
        asking = true;
        do {
            old = false;
            await ask(abort.signal);
        } while (old && !abort.signal.aborted);
        asking = false;
    };
    const news = (): void => {
        old = true;
        if (!asking) void go();
    };
    news();
    return { news, stop: () => abort.abort() };
}
