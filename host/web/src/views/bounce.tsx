/** The bounce diagram of a connection: an arrow for each packet between client and server. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { fit, startOf, Tip, type Hover } from "../chart/ChartFrame";
import { save } from "../chart/export";
import { CanvasPainter, SvgPainter, type Painter } from "../chart/painter";
import { json, of } from "../api/client";
import type { Capture } from "../api/types";
import { Loading, useLoad } from "../components/load";
import { clock, count, duration, moment, UNKNOWN } from "../format";
import {
    BESIDE,
    drawBounce,
    FALL,
    legTimes,
    leastWidth,
    linesOf,
    reachOf,
    ROW,
    rows as place,
    rowsBetween,
    shortNames,
    SIZES,
    type Spacing,
    type Taps,
} from "../packets/bounce";
import { nameOf, type One } from "../packets/connection";
import { OfConnection } from "../packets/OfConnection";
import { Pages } from "../packets/Pages";
import type { Tap } from "../packets/path";
import { content, PAGE, passageWords, remarks, rowFrom, usePage, type Page, type Row } from "../packets/rows";
import { capture, cursor, go, param, setParam, zoomTo } from "../state/store";
import { colors } from "../theme";

/** Height that the time of a page takes to scale, px, and that of the largest picture that is exported. */
const SCALED = 4000;
const MOST_EXPORT = 12_000;

export default function Bounce() {
    return <OfConnection>{(one) => <Shown one={one} />}</OfConnection>;
}

/** Names of the taps, that nearest to the client first; null: there is one. */
type Names = readonly string[] | null;

function Shown(props: { one: One }) {
    const shown = capture.value as Capture;
    const several = shown.kind === "TAPS";
    const answer = usePage(props.one.connection.id, several);
    const taps = useLoad(several ? `taps ${shown.id}` : null, (signal) =>
        json<{ taps: Tap[] }>(of(shown, "/taps"), {}, signal),
    );
    const names: Names = taps.data === null ? null : shortNames(taps.data.taps.map(({ file }) => file));
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
    const placed = place(
        all.map((row) => row.time),
        spacing,
        SCALED,
    );
    const { tops } = placed;
    const several: Taps | null = names === null ? null : { names, at: placed.at };
    const reach = reachOf(all, tops, several);
    // The last may be at the other tap below all rows.
    const last = all.reduce((latest, { time, far }) => Math.max(latest, time, far ?? time), 0);
    const whole = Math.max(placed.whole, several?.at ? several.at(last) + ROW + FALL : 0);
    const scroller = useRef<HTMLDivElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const [top, setTop] = useState(0);
    const [pointed, setPointed] = useState<{ x: number; y: number } | null>(null);
    /** Where a button went down, px from the top. */
    const pressed = useRef<number | null>(null);
    const [brush, setBrush] = useState<[number, number] | null>(null);
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
        const [first, end] = rowsBetween(tops, from, from + height, reach);
        drawBounce(
            painter,
            all,
            { tops, first, end, above: from, width: wide, height },
            { colors: palette, start, chosen, several },
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
    const placeOf = (event: MouseEvent): [x: number, y: number] => {
        const frame = (scroller.current as HTMLDivElement).getBoundingClientRect();
        return [event.clientX - frame.left, event.clientY - frame.top];
    };
    const rowAt = (y: number): number => {
        const [, end] = rowsBetween(tops, y + top, y + top);
        return end - 1;
    };
    const onPointerDown = (event: PointerEvent) => {
        // The scroll bar lies beside what is drawn.
        const [x, y] = placeOf(event);
        if (event.button !== 0 || x > width) return;
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        pressed.current = y;
    };
    const onPointerMove = (event: PointerEvent) => {
        const [x, y] = placeOf(event);
        if (pressed.current !== null) setBrush([pressed.current, y]);
        setPointed({ x, y });
        cursor.value = all[rowAt(y)]?.time ?? null;
    };
    const onPointerUp = (event: PointerEvent) => {
        if (pressed.current === null) return;
        const [, y] = placeOf(event);
        const edges = [pressed.current, y].sort((a, b) => a - b) as [number, number];
        pressed.current = null;
        setBrush(null);
        const [from, to] = [rowAt(edges[0]), rowAt(edges[1])];
        const [first, last] = [all[Math.max(from, 0)], all[to]];
        if (from === to || edges[1] - edges[0] < ROW / 2) choose(to);
        // The end of a range is not in it; links are written to the nanosecond.
        else if (first && last) zoomTo(first.time, last.time + 2e-9);
    };
    const onPointerLeave = () => {
        setPointed(null);
        cursor.value = null;
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
    const under = pointed === null ? undefined : all[rowAt(pointed.y)];
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
                    : `Each arrow is a packet on its way, with a dot where ${listed(names)} saw it, and a cross where it was lost between them; its colour tells the payload, dashes that it was sent again. Left: time of day at ${names.length > 2 ? "the first and the last tap (in brackets where only one between saw it)" : "each tap"}, by the clock of the first, and time since the packet before. What an arrow's label says last is its time from tap to tap.`}{" "}
                ↑ and ↓ move, Enter shows the row in the table; drag along the rows to zoom to their time.
            </p>
            <ul class="legend">
                {SIZES.map((size) => (
                    <li key={size.label}>
                        <i class="dash" style={{ background: palette[size.colour] }} /> {size.label}
                    </li>
                ))}
            </ul>
            <div class="broad">
                <div style={{ minWidth: `${leastWidth(names?.length ?? 1)}px` }}>
                    <div class="sides" aria-hidden="true">
                        {heads(width, names, [client, server]).map(({ text, at, align, most }) => (
                            <span
                                key={at}
                                class={align}
                                style={{ left: `${at}px`, maxWidth: `${most}px` }}
                                title={text}
                            >
                                {text}
                            </span>
                        ))}
                    </div>
                    <div class="pointed">
                        <div
                            ref={scroller}
                            class="bounce"
                            role="group"
                            aria-label={`Bounce diagram of ${count(all.length)} packets`}
                            tabIndex={0}
                            onScroll={(event) => setTop(event.currentTarget.scrollTop)}
                            onKeyDown={onKeyDown}
                            onPointerDown={onPointerDown}
                            onPointerMove={onPointerMove}
                            onPointerUp={onPointerUp}
                            onPointerLeave={onPointerLeave}
                            onDblClick={() => go({ view: "packets" })}
                        >
                            <div style={{ height: `${Math.max(whole, 1)}px` }}>
                                <canvas ref={canvas} aria-hidden="true" />
                            </div>
                        </div>
                        {brush && (
                            <div
                                class="brush"
                                style={{
                                    top: `${Math.min(...brush)}px`,
                                    height: `${Math.abs(brush[1] - brush[0])}px`,
                                    background: palette.brush,
                                }}
                            />
                        )}
                        {pointed && under && !brush && (
                            <Tip hover={{ ...pointed, ...figuresOf(under, several) }} width={width} height={tall} />
                        )}
                    </div>
                </div>
            </div>
            <div class="unseen" aria-live="polite">
                {row &&
                    `${clock(start, row.time, 6)}, ${duration(row.delta)} after the one before: ${row.server ? "server" : "client"} sends ${content(row)}. ${several === null ? "" : `${atTaps(row, several)}. `}${remarks(row)}`}
            </div>
        </section>
    );
}

/** What is known of the packet under the pointer. */
function figuresOf(row: Row, several: Taps | null): Pick<Hover, "title" | "lines"> {
    const lines: [string, string][] = [
        ["Time", moment(startOf(), row.time, 9)],
        ["After the one before", duration(row.delta)],
        ["Seq, ack", `${count(row.seq)}, ${row.ack === null ? UNKNOWN : count(row.ack)}`],
        ["Window", `${count(row.window)}${row.scaled ? "" : " (as on the wire)"}`],
        ["Frame, IP id, TTL", `${count(row.number)}, ${row.ipId}, ${row.ttl}`],
    ];
    if (several !== null) lines.push(["Taps", atTaps(row, several)]);
    if (remarks(row) !== "") lines.push(["Remarks", remarks(row)]);
    return { title: `${row.server ? "server" : "client"} sends ${content(row)}`, lines };
}

function listed(names: readonly string[]): string {
    return `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

/** Where a packet was seen, in words. */
function atTaps(row: Row, { names }: Taps): string {
    if (row.passage !== "BOTH" || row.far === null) return passageWords(row, names);
    return `From tap to tap ${legTimes(row)}, at ${names[names.length - 1]} ${clock(startOf(), row.far, 6)}`;
}

/** What stands above the columns of times and above the lines; `most`: how wide. */
function heads(width: number, names: Names, [client, server]: readonly [string, string]) {
    const lines = linesOf(width, names?.length ?? 1);
    if (names === null)
        return [
            { text: `client ${client}`, at: lines.client, align: "right", most: lines.client },
            { text: `server ${server}`, at: lines.server, align: "left", most: 300 },
        ];
    const apart = ((lines.taps[1] ?? 0) - (lines.taps[0] ?? 0)) / (names.length > 2 ? 1 : 2);
    return [
        { text: "at the first tap", at: 12, align: "left", most: 110 },
        { text: "at the last", at: 122, align: "left", most: 110 },
        { text: client, at: lines.client, align: "right", most: 130 },
        ...names.map((text, tap) => ({
            text,
            at: lines.taps[tap] ?? 0,
            align: "middle",
            most: Math.min(apart, 2 * BESIDE) - 4,
        })),
        { text: server, at: lines.server, align: "left", most: 300 },
    ];
}
