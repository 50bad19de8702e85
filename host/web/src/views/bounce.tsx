/** The bounce diagram of a connection: an arrow for each packet between client and server. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { fit, startOf } from "../chart/ChartFrame";
import { save } from "../chart/export";
import { CanvasPainter, SvgPainter, type Painter } from "../chart/painter";
import { json, of } from "../api/client";
import type { Capture } from "../api/types";
import { Loading, useLoad } from "../components/load";
import { clock, count, duration } from "../format";
import {
    drawBounce,
    linesOf,
    otherTap,
    reachOf,
    rows as place,
    rowsBetween,
    SIZES,
    type Spacing,
    type TwoTaps,
} from "../packets/bounce";
import { nameOf, type One } from "../packets/connection";
import { OfConnection } from "../packets/OfConnection";
import { Pages } from "../packets/Pages";
import type { Tap } from "../packets/path";
import { content, PAGE, passageWords, remarks, rowFrom, usePage, type Page, type Row } from "../packets/rows";
import { capture, go, param, setParam } from "../state/store";
import { colors } from "../theme";

/** Height that the time of a page takes to scale, px, and that of the largest picture that is exported. */
const SCALED = 4000;
const MOST_EXPORT = 12_000;

export default function Bounce() {
    return <OfConnection>{(one) => <Shown one={one} />}</OfConnection>;
}

/** Names of the tap nearest to the client and of that nearest to the server; null: there is one. */
type Names = readonly [string, string] | null;

function Shown(props: { one: One }) {
    const shown = capture.value as Capture;
    const several = shown.kind === "TAPS";
    const answer = usePage(props.one.connection.id, several);
    const taps = useLoad(several ? `taps ${shown.id}` : null, (signal) =>
        json<{ taps: Tap[] }>(of(shown, "/taps"), {}, signal),
    );
    const files = taps.data?.taps.map(({ file }) => file.replace(/.*\//, "")) ?? [];
    const [first, last] = [files[0], files[files.length - 1]];
    const names: Names = first === undefined || last === undefined ? null : [first, last];
    if (several && names === null)
        return (
            <Loading of={taps} what="Taps">
                {() => null}
            </Loading>
        );
    return (
        <Loading of={answer} what="Packets">
            {(page) => <Diagram one={props.one} page={page} names={names} />}
        </Loading>
    );
}

function Diagram(props: { one: One; page: Page; names: Names }) {
    const { one, page, names } = props;
    const all = page.rows;
    const spacing: Spacing = param("spacing") === "time" ? "time" : "even";
    const { tops, whole, perSecond } = place(
        all.map((row) => row.time),
        spacing,
        SCALED,
    );
    const two: TwoTaps | null = names === null ? null : { names, perSecond };
    const scroller = useRef<HTMLDivElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const [top, setTop] = useState(0);
    const [[width, tall], setSize] = useState<[number, number]>([0, 0]);
    const palette = colors.value;
    const start = startOf();
    const at = param("at");
    const chosen = at === "" || all.length === 0 ? -1 : rowFrom(all, Number(at));
    const [client, server] = [nameOf(one.connection.client), nameOf(one.connection.server)];

    useEffect(() => {
        if (!scroller.current) return;
        const watch = new ResizeObserver(
            ([entry]) => entry && setSize([Math.floor(entry.contentRect.width), Math.floor(entry.contentRect.height)]),
        );
        watch.observe(scroller.current);
        return () => watch.disconnect();
    }, []);
    useEffect(() => {
        if (scroller.current) scroller.current.scrollTop = chosen < 0 ? 0 : Math.max(0, (tops[chosen] as number) - 80);
    }, [page, spacing]);

    const paint = (painter: Painter, from: number, height: number, wide: number) => {
        const [first, end] = rowsBetween(tops, from, from + height, reachOf(two));
        drawBounce(
            painter,
            all,
            { tops, first, end, above: from, width: wide, height },
            { colors: palette, start, chosen, two },
        );
    };
    useLayoutEffect(() => {
        if (!canvas.current || width === 0) return;
        const context = fit(canvas.current, width, tall);
        if (context) paint(new CanvasPainter(context), top, tall, width);
    });

    const choose = (to: number) => {
        const index = Math.min(Math.max(to, 0), all.length - 1);
        const row = all[index];
        const box = scroller.current;
        if (!row || !box) return;
        setParam("at", row.time.toFixed(9), { replace: true });
        const y = tops[index] as number;
        if (y < box.scrollTop) box.scrollTop = y;
        else if (y + 40 > box.scrollTop + tall) box.scrollTop = y + 40 - tall;
    };
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const keys: Record<string, () => void> = {
            ArrowDown: () => choose(chosen + 1),
            ArrowUp: () => choose(chosen - 1),
            PageDown: () => choose(chosen + 20),
            PageUp: () => choose(chosen - 20),
            Home: () => choose(0),
            End: () => choose(all.length - 1),
            Enter: () => chosen >= 0 && go({ view: "packets" }),
        };
        const act = keys[event.key];
        if (!act) return;
        event.preventDefault();
        event.stopPropagation();
        act();
    };
    const rowAt = (event: MouseEvent): number => {
        const box = scroller.current as HTMLDivElement;
        const y = event.clientY - box.getBoundingClientRect().top + box.scrollTop;
        const [, end] = rowsBetween(tops, y, y);
        return end - 1;
    };
    const exportAs = (kind: "png" | "svg") => {
        const wide = Math.max(width, 900);
        const height = Math.min(Math.ceil(whole), MOST_EXPORT);
        const file = `${capture.value?.name ?? "weir"}-bounce-${one.connection.id}`.replace(/[^\w.-]+/g, "_");
        const decorate = (painter: Painter) => {
            painter.rect(0, 0, wide, height + 30, palette.panel);
            painter.text(`${client} → ${server}`, 12, 16, { color: palette.text, size: 14, bold: true });
        };
        if (kind === "svg") {
            const painter = new SvgPainter();
            decorate(painter);
            painter.shift(0, 30, () => paint(painter, 0, height, wide));
            save(
                `${file}.svg`,
                new Blob([painter.finish(wide, height + 30, "Bounce diagram")], { type: "image/svg+xml" }),
            );
            return;
        }
        const picture = document.createElement("canvas");
        const context = fit(picture, wide, height + 30, 1);
        if (!context) return;
        const painter = new CanvasPainter(context);
        decorate(painter);
        context.translate(0, 30);
        paint(painter, 0, height, wide);
        picture.toBlob((blob) => blob && save(`${file}.png`, blob), "image/png");
    };
    const row = all[chosen];
    return (
        <section class="chart" aria-label="Bounce diagram" data-chart="bounce">
            <header>
                <h2>
                    {client} → {server}
                </h2>
                <div class="tools">
                    <Pages what="packets" offset={page.offset} shown={all.length} total={page.total} size={PAGE} />
                    <button
                        type="button"
                        aria-pressed={spacing === "time"}
                        onClick={() => setParam("spacing", spacing === "time" ? "" : "time")}
                    >
                        To scale
                    </button>
                    <button type="button" title="Save this page as a PNG picture" onClick={() => exportAs("png")}>
                        PNG
                    </button>
                    <button type="button" title="Save this page as an SVG drawing" onClick={() => exportAs("svg")}>
                        SVG
                    </button>
                </div>
            </header>
            <p class="about">
                {names === null
                    ? "Each arrow is a packet on its way, as the tap saw it pass; its colour tells the payload, dashes that it was sent again. Left: time of day and time since the packet before."
                    : `Each arrow is a packet on its way, with a dot where ${names[0]} and ${names[1]} saw it, and a cross where it was lost between them; its colour tells the payload, dashes that it was sent again. Left: time of day at each tap, by the clock of the first, and time since the packet before. What an arrow's label says last is its time from tap to tap.`}{" "}
                ↑ and ↓ move, Enter shows the row in the table.
            </p>
            <ul class="legend">
                {SIZES.map((size) => (
                    <li key={size.label}>
                        <i class="swatch" style={{ background: palette[size.colour] }} /> {size.label}
                    </li>
                ))}
            </ul>
            {names === null ? (
                <div class="sides" aria-hidden="true">
                    <span>client {client}</span>
                    <span>server {server}</span>
                </div>
            ) : (
                <div class="sides of-two" aria-hidden="true">
                    {heads(width, names, [client, server]).map(({ text, at, align }) => (
                        <span key={text} class={align} style={{ left: `${at}px` }}>
                            {text}
                        </span>
                    ))}
                </div>
            )}
            <div
                ref={scroller}
                class="bounce"
                role="group"
                aria-label={`Bounce diagram of ${count(all.length)} packets`}
                tabIndex={0}
                onScroll={(event) => setTop(event.currentTarget.scrollTop)}
                onKeyDown={onKeyDown}
                onClick={(event) => choose(rowAt(event))}
                onDblClick={() => go({ view: "packets" })}
            >
                <div style={{ height: `${Math.max(whole, 1)}px` }}>
                    <canvas ref={canvas} aria-hidden="true" />
                </div>
            </div>
            <div class="unseen" aria-live="polite">
                {row &&
                    `${clock(start, row.time, 6)}, ${duration(row.delta)} after the one before: ${row.server ? "server" : "client"} sends ${content(row)}. ${two === null ? "" : `${atTaps(row, two)}. `}${remarks(row)}`}
            </div>
        </section>
    );
}

/** Where a packet was seen, in words. */
function atTaps(row: Row, two: TwoTaps): string {
    if (row.passage !== "BOTH" || row.far === null) return passageWords(row, otherTap(row, two));
    return `From tap to tap ${duration(Math.abs(row.far - row.time))}, at ${two.names[1]} ${clock(startOf(), row.far, 6)}`;
}

/** What stands above the columns of times and above the lines. */
function heads(width: number, [first, last]: readonly [string, string], [client, server]: readonly [string, string]) {
    const lines = linesOf(width, true);
    const [near = 0, far = 0] = lines.taps;
    return [
        { text: "at the first tap", at: 12, align: "left" },
        { text: "at the last", at: 122, align: "left" },
        { text: client, at: lines.client, align: "right" },
        { text: first, at: near, align: "left" },
        { text: last, at: far, align: "right" },
        { text: server, at: lines.server, align: "left" },
    ];
}
