import { clock, date, duration, moment } from "../format";
import { startOf } from "../chart/ChartFrame";
import { pan, range, timeless, zoomBy, zoomed, zoomOut } from "../state/store";

/** The time range that every view shows, in words, with what changes it. */
export function RangeBar() {
    const [from, to] = range.value;
    if (timeless.value) return null;
    const start = startOf();
    const width = to - from;
    const digits = width > 100 ? 0 : width > 1 ? 2 : Math.min(9, Math.ceil(-Math.log10(width)) + 3);
    return (
        <div class="range" role="group" aria-label="Time range">
            <span>
                {date(start, from, digits)} {clock(start, from, digits)} – {moment(start, to, digits, from)} UTC{" "}
                <small>({duration(width)})</small>
            </span>
            <button
                type="button"
                title="Earlier (a)"
                aria-label="Earlier"
                disabled={!zoomed.value}
                onClick={() => pan(-0.2)}
            >
                ◀
            </button>
            <button
                type="button"
                title="Later (d)"
                aria-label="Later"
                disabled={!zoomed.value}
                onClick={() => pan(0.2)}
            >
                ▶
            </button>
            <button type="button" title="Zoom in (w)" aria-label="Zoom in" onClick={() => zoomBy(0.5)}>
                +
            </button>
            <button
                type="button"
                title="Zoom out (s)"
                aria-label="Zoom out"
                disabled={!zoomed.value}
                onClick={() => zoomBy(2)}
            >
                −
            </button>
            <button type="button" title="All that is kept (0)" disabled={!zoomed.value} onClick={zoomOut}>
                Whole
            </button>
        </div>
    );
}
