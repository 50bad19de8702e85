/** The bounce diagram of a connection: an arrow for each packet between client and server. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { fit, startOf } from "../chart/ChartFrame";
import { save } from "../chart/export";
import { CanvasPainter, SvgPainter, type Painter } from "../chart/painter";
import { Loading } from "../components/load";
import { clock, count, duration } from "../format";
import { drawBounce, rows as place, rowsBetween, SIZES, type Spacing } from "../packets/bounce";
import { nameOf, type One } from "../packets/connection";
import { OfConnection } from "../packets/OfConnection";
import { Pages } from "../packets/Pages";
import { content, PAGE, remarks, rowFrom, usePage, type Page } from "../packets/rows";
import { capture, go, param, setParam } from "../state/store";
import { colors } from "../theme";

/** Height that the time of a page takes to scale, px, and that of the largest picture that is exported. */
const SCALED = 4000;
const MOST_EXPORT = 12_000;

export default function Bounce() {
    return <OfConnection>{(one) => <Shown one={one} />}</OfConnection>;
}

function Shown(props: { one: One }) {
    const answer = usePage(props.one.connection.id);
    return (
        <Loading of={answer} what="Packets">
            {(page) => <Diagram one={props.one} page={page} />}
        </Loading>
    );
}

function Diagram(props: { one: One; page: Page }) {
    const { one, page } = props;
    const all = page.rows;
    const spacing: Spacing = param("spacing") === "time" ? "time" : "even";
    const { tops, whole } = place(
        all.map((row) => row.time),
        spacing,
        SCALED,
    );
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
        const [first, end] = rowsBetween(tops, from, from + height);
        drawBounce(
            painter,
            all,
            { tops, first, end, above: from, width: wide, height },
            { colors: palette, start, chosen },
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
                Each arrow is a packet on its way, as the tap saw it pass; its colour tells the payload, dashes that it
                was sent again. Left: time of day and time since the packet before. ↑ and ↓ move, Enter shows the row in
                the table.
            </p>
            <ul class="legend">
                {SIZES.map((size) => (
                    <li key={size.label}>
                        <i class="swatch" style={{ background: palette[size.colour] }} /> {size.label}
                    </li>
                ))}
            </ul>
            <div class="sides" aria-hidden="true">
                <span>client {client}</span>
                <span>server {server}</span>
            </div>
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
                    `${clock(start, row.time, 6)}, ${duration(row.delta)} after the one before: ${row.server ? "server" : "client"} sends ${content(row)}. ${remarks(row)}`}
            </div>
        </section>
    );
}
