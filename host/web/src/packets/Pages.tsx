/** Which of many rows are shown, and the ways to the others. */
import { useEffect } from "preact/hooks";
import { count, several } from "../format";
import { setParam } from "../state/store";

/** The page to show of a list that has `total` rows now: a link may ask for one behind its end. */
export function pageWithin(offset: number, total: number, size: number): number {
    return offset < total ? offset : Math.max(0, Math.floor((total - 1) / size) * size);
}

export function Pages(props: { what: string; offset: number; shown: number; total: number; size: number }) {
    const { what, offset, shown, total, size } = props;
    // 0 is written out: without an offset a view looks for the place that it is asked for.
    const to = (next: number) => setParam("offset", String(Math.max(0, next)));
    const within = pageWithin(offset, total, size);
    useEffect(() => {
        if (within !== offset) setParam("offset", String(within), { replace: true });
    }, [within, offset]);
    if (within !== offset) return null;
    const all = offset === 0 && shown === total;
    return (
        <span class="pages">
            {all
                ? several(total, what.replace(/s$/, ""))
                : `${what} ${count(offset + 1)} to ${count(offset + shown)} of ${count(total)}`}
            {!all && (
                <>
                    <button type="button" disabled={offset === 0} onClick={() => to(offset - size)}>
                        Previous
                    </button>
                    <button type="button" disabled={offset + shown >= total} onClick={() => to(offset + size)}>
                        Next
                    </button>
                </>
            )}
        </span>
    );
}
