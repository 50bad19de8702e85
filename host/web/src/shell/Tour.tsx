/** First steps, for who sees the page for the first time: what is where, and the keys. Never in the way of anything. */
import { signal } from "@preact/signals";
import { remember, remembered } from "../state/remembered";

const KEY = "weir-tour";

/** Until it is put away once; kept in this browser. The list of keys brings it back. */
export const tourShown = signal(remembered(KEY) !== "seen");

export function putAway(): void {
    tourShown.value = false;
    remember(KEY, "seen");
}

const Key = (props: { children: string }) => <kbd>{props.children}</kbd>;

export function Tour() {
    if (!tourShown.value) return null;
    return (
        <section class="panel tour" aria-labelledby="tour-title">
            <header>
                <h2 id="tour-title">First steps</h2>
                <button type="button" onClick={putAway}>
                    Put away
                </button>
            </header>
            <ol>
                <li>
                    <strong>What is wrong</strong> stands below, the worst first, each with its evidence and a link to
                    the connections behind it.
                </li>
                <li>
                    <strong>Views</strong> are on the left, from answers to packets: <Key>g</Key> and a letter (
                    <Key>?</Key> lists them).
                </li>
                <li>
                    <strong>Time</strong> is one for all views: drag across a chart to zoom, or <Key>w</Key>{" "}
                    <Key>s</Key> closer and back, <Key>a</Key> <Key>d</Key> earlier and later, <Key>0</Key> for all of
                    it.
                </li>
                <li>
                    <strong>Behind every mark</strong> are its rows and packets: click it, or step with <Key>←</Key>{" "}
                    <Key>→</Key> and press <Key>Enter</Key>.
                </li>
                <li>
                    <strong>Filters</strong> are completed as you write (<Key>/</Key>), and the address keeps what you
                    see: copy it to show somebody.
                </li>
            </ol>
        </section>
    );
}
