/**
 * The frame around every chart: axes, brush to zoom, the cursor that all charts share, figures under the pointer, click
 * through, keyboard, PNG and SVG. A view says what is drawn (`paint`) and what lies at a place (`pick`).
 */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { nanoseconds } from "../format";
import { capture, cursor, kept, pan, range, timeless, zoomBy, zoomOut, zoomTo } from "../state/store";
import { colors } from "../theme";
import { drawAxes, layout, type Area, type AxisSpec } from "./axes";
import { save } from "./export";
import { CanvasPainter, SvgPainter, type Painter, type Shape } from "./painter";
import { placeOf, spoken } from "./place";

/** What lies under the pointer. */
export interface Hover {
    /** Pixel that is marked. */
    x: number;
    y?: number;
    title: string;
    /** Figures: name and value. */
    lines: readonly (readonly [string, string])[];
    /** What a click or Enter does: go to the rows or packets behind it. */
    open?: () => void;
    /** What that does, in words: "Show the connection". */
    openLabel?: string;
}

/** Marks that the arrow keys step through, in the order of time. */
export interface Steps {
    count: number;
    at(index: number, area: Area): Hover;
    /** Keys of the chart's own: the mark that they go to from the one (-1: none) where the last step led, or -1. */
    keys?: Readonly<Record<string, (from: number) => number>>;
}

export interface LegendItem {
    label: string;
    /** The whole of it, where the label is cut. */
    title?: string;
    color: string;
    shape?: Shape;
    dash?: readonly number[];
    /** Hidden ones are drawn through. */
    hidden?: boolean;
    toggle?: () => void;
}

export interface ChartProps {
    /** Name of exported files, and of the chart in the page. */
    name: string;
    title: string;
    /** What it shows and how to read it, one or two sentences; for everyone, and for screen readers. */
    about: string;
    /** Default: the page's time range. */
    x?: AxisSpec;
    y: AxisSpec;
    y2?: AxisSpec | null;
    /** CSS pixels. */
    height?: number;
    /** A picture without axes (a graph): nothing to brush. */
    bare?: boolean;
    /** Room for the labels of the vertical axis, CSS pixels. */
    left?: number;
    legend?: readonly LegendItem[];
    /** Controls of the view's own, beside the chart's. */
    tools?: ComponentChildren;
    /** Beneath the plot, in the same frame. */
    below?: ComponentChildren;
    paint(painter: Painter, area: Area): void;
    pick?(x: number, y: number, area: Area): Hover | null;
    steps?: Steps;
    /** Brushed an area; default: zoom time. Both pairs are values, low before high. */
    onBrush?(x: [number, number], y: [number, number]): void;
    /** Brushed with Shift held: both directions count. */
    onBox?(x: [number, number], y: [number, number]): void;
}

/** The page's time range as an axis; without a packet there is no time, not that of 1970. */
export function timeAxis(): AxisSpec {
    const axis = { kind: "time", domain: range.value } as const;
    if (timeless.value) return { ...axis, label: "no packets, no time", ticks: [] };
    return { ...axis, label: "time of day (UTC)" };
}

export function startOf(): bigint {
    const start = capture.value?.start;
    return start === undefined ? 0n : nanoseconds(start);
}

const LEGEND_ROW = 20;

/** Half of a mark, px: so far one at the first or last instant reaches beside the plot. */
const REACH = 6;

/** Room for that left and right of the plot, px: only where what is kept ends, elsewhere other times would be seen there. */
export function reach(
    [from, to]: readonly [number, number],
    [begin, end]: readonly [number, number],
): [left: number, right: number] {
    return [from <= begin ? REACH : 0, to >= end ? REACH : 0];
}

/** What was painted last: from what, and for which domain of the horizontal axis. */
interface Painted {
    of: readonly unknown[];
    domain: readonly [number, number];
}

export function ChartFrame(props: ChartProps) {
    const box = useRef<HTMLDivElement>(null);
    /** Axes, and within them what is drawn. */
    const frame = useRef<HTMLCanvasElement>(null);
    const inner = useRef<HTMLCanvasElement>(null);
    const [width, setWidth] = useState(0);
    const [hover, setHover] = useState<Hover | null>(null);
    const [brush, setBrush] = useState<Brush | null>(null);
    const step = useRef(-1);
    /** Where the pointer rests, as long as the figures are of what lies there. */
    const pointer = useRef<[number, number] | null>(null);
    /** Where a button went down. */
    const pressed = useRef<[number, number] | null>(null);
    const about = useId();
    const height = props.height ?? 300;
    const palette = colors.value;
    const axes = { x: props.x ?? timeAxis(), y: props.y, y2: props.y2 ?? null };
    const area = layout(axes, Math.max(width, 200), height, palette, props.left);
    const start = startOf();
    const onTime = axes.x.kind === "time";
    const [before, behind] = onTime ? reach(area.x.domain, capture.value ? kept.value : [0, Infinity]) : [0, 0];
    const plot = { ...area, left: area.left - before, width: area.width + before + behind };
    // Where a range says nothing, there is none to brush.
    const brushes = !props.bare && (onTime || props.onBrush !== undefined || props.onBox !== undefined);

    useEffect(() => {
        if (!box.current) return;
        const watch = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
        watch.observe(box.current);
        return () => watch.disconnect();
    }, []);

    const draw = (painter: Painter) => {
        if (!props.bare) drawAxes(painter, area, axes, start);
        painter.clip(plot.left, plot.top, plot.width, plot.height, () => props.paint(painter, area));
    };

    // A moving pointer changes only what lies on top: thousands of marks are not drawn again for it. Nor for another time
    // before its marks have come: until then what is there is moved, by the browser's compositor.
    const painted = useRef<Painted | null>(null);
    useLayoutEffect(() => {
        if (width === 0 || !frame.current || !inner.current) return;
        const axesOn = fit(frame.current, width, height);
        if (axesOn && !props.bare) drawAxes(new CanvasPainter(axesOn), area, axes, start);
        const { style } = inner.current;
        const of = [props, width, height, palette];
        const last = painted.current;
        if (last?.of.every((one, at) => one === of[at])) {
            const [from, to] = [area.x.to(last.domain[0]) - area.left, area.x.to(last.domain[1]) - area.left];
            const scale = (to - from) / area.width;
            style.transform = `translateX(${from + REACH * (1 - scale)}px) scaleX(${scale})`;
            return;
        }
        painted.current = { of, domain: area.x.domain };
        style.transform = "";
        const context = fit(inner.current, area.width + 2 * REACH, area.height);
        context?.translate(REACH - area.left, -area.top);
        if (context) props.paint(new CanvasPainter(context), area);
    }, [props, width, height, palette, area.x.domain[0], area.x.domain[1]]);

    const place = (event: PointerEvent | MouseEvent): [number, number] => {
        const { left, top } = (box.current as HTMLElement).getBoundingClientRect();
        return [event.clientX - left, event.clientY - top];
    };
    const inside = (x: number, y: number) =>
        x >= area.left && x <= area.left + area.width && y >= area.top && y <= area.top + area.height;
    const clampX = (x: number) => Math.min(Math.max(x, area.left), area.left + area.width);
    const clampY = (y: number) => Math.min(Math.max(y, area.top), area.top + area.height);

    const finishBrush = () => {
        if (!brush) return;
        const xs = [area.x.from(brush.x0), area.x.from(brush.x1)].sort((a, b) => a - b) as [number, number];
        const ys = [area.y.from(brush.y0), area.y.from(brush.y1)].sort((a, b) => a - b) as [number, number];
        setBrush(null);
        setHover(null);
        if (brush.box && props.onBox) props.onBox(xs, ys);
        else if (props.onBrush) props.onBrush(xs, ys);
        else if (onTime) zoomTo(...xs);
    };

    const onPointerDown = (event: PointerEvent) => {
        const [x, y] = place(event);
        if (event.button !== 0 || !inside(x, y)) return;
        pressed.current = [x, y];
        if (!brushes) return;
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        setBrush({ x0: x, y0: y, x1: x, y1: y, box: event.shiftKey && props.onBox !== undefined });
    };
    const onPointerMove = (event: PointerEvent) => {
        const [x, y] = place(event);
        if (brush) {
            setBrush({ ...brush, x1: clampX(x), y1: clampY(y) });
            return;
        }
        if (!inside(x, y)) {
            setHover(null);
            return;
        }
        if (onTime) cursor.value = area.x.from(x);
        step.current = -1;
        pointer.current = [x, y];
        setHover(props.pick?.(x, y, area) ?? null);
    };
    const onPointerUp = (event: PointerEvent) => {
        if (pressed.current === null) return;
        const [x, y] = place(event);
        const still = Math.abs(x - pressed.current[0]) <= 4 && (brushes || Math.abs(y - pressed.current[1]) <= 4);
        pressed.current = null;
        setBrush(null);
        if (still) props.pick?.(x, y, area)?.open?.();
        else if (brushes) finishBrush();
    };
    const onPointerLeave = () => {
        setHover(null);
        if (onTime) cursor.value = null;
    };
    const onWheel = (event: WheelEvent) => {
        if (!onTime || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        zoomBy(event.deltaY > 0 ? 1.25 : 0.8, area.x.from(clampX(place(event)[0])));
    };

    const goTo = (steps: Steps, index: number) => {
        step.current = index;
        pointer.current = null;
        const found = steps.at(index, area);
        setHover(found);
        if (onTime) cursor.value = area.x.from(found.x);
    };

    const moveCursor = (by: number, extend: boolean) => {
        if (!extend && props.steps && props.steps.count > 0) {
            const size = Math.abs(by) > 1 ? Math.max(1, Math.round(props.steps.count / 20)) : 1;
            const next = step.current < 0 ? (by > 0 ? 0 : props.steps.count - 1) : step.current + Math.sign(by) * size;
            goTo(props.steps, Math.min(Math.max(next, 0), props.steps.count - 1));
            return;
        }
        const [low, high] = axes.x.domain;
        const before = onTime ? cursor.value : null;
        const from = area.x.to(
            before !== null && before >= low && before <= high ? before : area.x.from(area.left + area.width / 2),
        );
        const x = clampX((hover && !onTime ? hover.x : from) + by * (area.width / 100));
        if (onTime) cursor.value = area.x.from(x);
        pointer.current = null;
        setHover(props.pick?.(x, area.top + area.height / 2, area) ?? null);
        if (extend && brushes) {
            const whole = { y0: area.top + area.height, y1: area.top };
            setBrush(brush ? { ...brush, x1: x } : { x0: from, x1: x, ...whole });
        }
    };

    // Where something else is drawn, or the same elsewhere, the figures are of what lies there now.
    useLayoutEffect(() => {
        if (hover === null) return;
        const { steps, pick } = props;
        const atCursor = area.x.to(onTime ? (cursor.value ?? NaN) : NaN);
        if (steps && step.current >= 0) {
            const at = (index: number) => steps.at(index, area);
            const same = step.current < steps.count && spoken(at(step.current)) === spoken(hover);
            const place = same ? step.current : placeOf(steps.count, at, atCursor, spoken(hover));
            // The next step leads to the mark behind it.
            step.current = place < 0 ? -2 - place : place;
            setHover(place < 0 ? null : at(place));
        } else {
            const [x, y] = pointer.current ?? [atCursor, area.top + area.height / 2];
            setHover((inside(x, y) && pick?.(x, y, area)) || null);
        }
    }, [props, width, area.x.domain[0], area.x.domain[1]]);

    const onKeyDown = (event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const keys: Record<string, () => void> = {
            ArrowLeft: () => moveCursor(-1, event.shiftKey),
            ArrowRight: () => moveCursor(1, event.shiftKey),
            PageUp: () => moveCursor(-5, event.shiftKey),
            PageDown: () => moveCursor(5, event.shiftKey),
            Enter: () => (brush ? finishBrush() : hover?.open?.()),
            Escape: () => {
                setBrush(null);
                setHover(null);
            },
        };
        if (onTime) {
            Object.assign(keys, {
                w: () => zoomBy(0.5),
                s: () => zoomBy(2),
                a: () => pan(-0.2),
                d: () => pan(0.2),
                "0": zoomOut,
            });
        }
        const { steps } = props;
        for (const [key, next] of Object.entries(steps?.keys ?? {})) {
            keys[key] = () => {
                const found = next(step.current);
                if (steps && found >= 0) goTo(steps, found);
            };
        }
        const act = keys[event.key];
        if (!act) return;
        event.preventDefault();
        event.stopPropagation();
        act();
    };

    const exportAs = (kind: "png" | "svg") => {
        const rows = legendRows(props.legend ?? [], width);
        const head = 34 + rows.length * LEGEND_ROW;
        const decorate = (painter: Painter) => {
            painter.rect(0, 0, width, height + head, palette.panel);
            painter.text(props.title, 12, 18, { color: palette.text, size: 15, bold: true });
            rows.forEach((row, index) => {
                for (const { item, x } of row) {
                    const y = 40 + index * LEGEND_ROW;
                    if (item.shape) painter.mark(item.shape, x + 6, y, 8, item.color);
                    else painter.line([x, x + 12], [y, y], { color: item.color, width: 2, dash: item.dash ?? [] });
                    painter.text(item.label, x + 18, y, { color: palette.text, size: 11 });
                }
            });
        };
        const file = `${capture.value?.name ?? "weir"}-${props.name}`.replace(/[^\w.-]+/g, "_");
        if (kind === "svg") {
            const painter = new SvgPainter();
            decorate(painter);
            painter.shift(0, head, () => draw(painter));
            save(
                `${file}.svg`,
                new Blob([painter.finish(width, height + head, props.title)], { type: "image/svg+xml" }),
            );
            return;
        }
        const canvas = document.createElement("canvas");
        const context = fit(canvas, width, height + head, 2);
        if (!context) return;
        decorate(new CanvasPainter(context));
        context.translate(0, head);
        draw(new CanvasPainter(context));
        canvas.toBlob((blob) => blob && save(`${file}.png`, blob), "image/png");
    };

    return (
        <section class="chart" aria-labelledby={`${about}-title`} data-chart={props.name}>
            <header>
                <h2 id={`${about}-title`}>{props.title}</h2>
                <div class="tools">
                    {props.tools}
                    {onTime && (
                        <button type="button" title="Show the whole capture (0)" onClick={zoomOut}>
                            Whole
                        </button>
                    )}
                    <button type="button" title="Save this chart as a PNG picture" onClick={() => exportAs("png")}>
                        PNG
                    </button>
                    <button type="button" title="Save this chart as an SVG drawing" onClick={() => exportAs("svg")}>
                        SVG
                    </button>
                </div>
            </header>
            <p class="about" id={about}>
                {props.about}
            </p>
            {props.legend && props.legend.length > 0 && <Legend items={props.legend} />}
            <div
                ref={box}
                class={hover?.open ? "plot clickable" : "plot"}
                style={{ height: `${height}px` }}
                role="group"
                aria-roledescription="chart"
                aria-label={props.title}
                aria-describedby={about}
                tabIndex={0}
                onPointerDown={onPointerDown}
                onPointerMove={onPointerMove}
                onPointerUp={onPointerUp}
                onPointerLeave={onPointerLeave}
                onWheel={onWheel}
                onDblClick={onTime ? zoomOut : undefined}
                onKeyDown={onKeyDown}
            >
                <canvas ref={frame} aria-hidden="true" />
                <div class="inside" style={within(plot)}>
                    <canvas ref={inner} style={{ left: `${before - REACH}px` }} aria-hidden="true" />
                </div>
                {onTime && <Cursor area={area} />}
                {brush && <div class="brush" style={brushed(brush, area, props.onBrush !== undefined)} />}
                {hover?.y !== undefined && <div class="ring" style={{ left: `${hover.x}px`, top: `${hover.y}px` }} />}
                {hover && <Tip hover={hover} width={width} height={height} />}
                <div class="unseen" aria-live="polite">
                    {hover ? spoken(hover) : ""}
                </div>
            </div>
            {props.below}
        </section>
    );
}

/** Where the plot lies, as a style. */
const within = ({ left, top, width, height }: Pick<Area, "left" | "top" | "width" | "height">) => ({
    left: `${left}px`,
    top: `${top}px`,
    width: `${width}px`,
    height: `${height}px`,
});

interface Brush {
    x0: number;
    y0: number;
    x1: number;
    y1: number;
    /** Both directions count. */
    box?: boolean;
}

function brushed({ x0, y0, x1, y1, box }: Brush, area: Area, values: boolean) {
    const [left, width] = [Math.min(x0, x1), Math.abs(x1 - x0)];
    if (!box && !values) return within({ ...area, left, width });
    return within({ left, top: Math.min(y0, y1), width, height: Math.abs(y1 - y0) });
}

/** The time under the pointer of any chart: it moves without the chart. */
function Cursor(props: { area: Area }) {
    const { top, height, x } = props.area;
    const at = cursor.value;
    if (at === null || at < x.domain[0] || at > x.domain[1]) return null;
    return <div class="cursor" style={within({ left: x.to(at), top, width: 0, height })} />;
}

export function Tip(props: { hover: Hover; width: number; height: number }) {
    const { hover, width, height } = props;
    const y = hover.y ?? 20;
    const style: Record<string, string> = {};
    if (hover.x > width / 2) style.right = `${width - hover.x + 14}px`;
    else style.left = `${hover.x + 14}px`;
    if (y > height / 2) style.bottom = `${height - y + 8}px`;
    else style.top = `${y + 8}px`;
    return (
        <div class="tip" style={style} aria-hidden="true">
            <strong>{hover.title}</strong>
            <dl>
                {hover.lines.map(([name, value]) => (
                    <div key={name}>
                        <dt>{name}</dt>
                        <dd>{value}</dd>
                    </div>
                ))}
            </dl>
            {hover.open && <em>{hover.openLabel ?? "Show what is behind it"}: click or Enter</em>}
        </div>
    );
}

function Legend(props: { items: readonly LegendItem[] }) {
    return (
        <ul class="legend">
            {props.items.map((item, index) => (
                // Not by its label, which holds figures: its mark would be drawn anew for each.
                <li key={index} title={item.title}>
                    {item.toggle ? (
                        <button type="button" aria-pressed={!item.hidden} onClick={item.toggle}>
                            <Sample
                                color={item.color}
                                {...(item.shape ? { shape: item.shape } : {})}
                                {...(item.dash ? { dash: item.dash } : {})}
                            />{" "}
                            <span class={item.hidden ? "off" : undefined}>{item.label}</span>
                        </button>
                    ) : (
                        <span>
                            <Sample
                                color={item.color}
                                {...(item.shape ? { shape: item.shape } : {})}
                                {...(item.dash ? { dash: item.dash } : {})}
                            />{" "}
                            {item.label}
                        </span>
                    )}
                </li>
            ))}
        </ul>
    );
}

/** The legend's mark, drawn by the same painter as the chart's. */
export function Sample(props: Pick<LegendItem, "color" | "shape" | "dash">) {
    const ref = useRef<HTMLCanvasElement>(null);
    const { color, shape, dash } = props;
    useLayoutEffect(() => {
        if (!ref.current) return;
        const context = fit(ref.current, 16, 14);
        if (!context) return;
        const painter = new CanvasPainter(context);
        if (shape) painter.mark(shape, 8, 7, 8, color);
        else painter.line([1, 15], [7, 7], { color, width: 2.5, dash: dash ?? [] });
    }, [color, shape, dash]);
    return <canvas ref={ref} class="sample" aria-hidden="true" />;
}

/** Places of a legend in an exported picture. */
function legendRows(items: readonly LegendItem[], width: number): { item: LegendItem; x: number }[][] {
    const rows: { item: LegendItem; x: number }[][] = [];
    let x = Infinity;
    for (const item of items.filter((one) => !one.hidden)) {
        const wide = 34 + item.label.length * 6.2;
        if (x + wide > width) {
            rows.push([]);
            x = 12;
        }
        rows.at(-1)?.push({ item, x });
        x += wide;
    }
    return rows;
}

/** Size a canvas for its CSS pixels, empty, in CSS coordinates. */
export function fit(
    canvas: HTMLCanvasElement,
    width: number,
    height: number,
    ratio = devicePixelRatio,
): CanvasRenderingContext2D | null {
    const wide = Math.round(width * ratio);
    const tall = Math.round(height * ratio);
    if (canvas.width !== wide) canvas.width = wide;
    if (canvas.height !== tall) canvas.height = tall;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context?.setTransform(ratio, 0, 0, ratio, 0, 0);
    context?.clearRect(0, 0, width, height);
    return context;
}
