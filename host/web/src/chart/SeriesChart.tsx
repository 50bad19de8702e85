/** Quantities over time on one axis: the chart, its figures under the cursor, and a table of them beneath. */
import type { ComponentChildren } from "preact";
import { average, duration, figure, moment } from "../format";
import type { Timeline } from "../components/timeline";
import { columnAt } from "../components/timeline";
import { capture, param, setParam } from "../state/store";
import { plotHeight, type Area } from "./axes";
import { ChartFrame, startOf } from "./ChartFrame";
import { paintBands, paintPhases, topOf } from "./bands";
import type { Painter, Stroke } from "./painter";
import { extent } from "./scale";

export interface Series {
    name: string;
    color: string;
    dash?: readonly number[];
    /** One for each column of time; NaN: unknown. Where columns hold several values: the largest. */
    values: ArrayLike<number>;
    /** The smallest, where columns hold several values: the space between is filled. */
    low?: ArrayLike<number>;
    /** The mean, for the table's average. */
    mean?: ArrayLike<number>;
    /** The average of all time shown, where it is not that of the columns: of shares, which have different wholes. */
    average?: number;
}

export interface Statistics {
    min: number;
    max: number;
    last: number;
    average: number;
    p95: number;
}

/** The sum of all. */
function sum(values: ArrayLike<number>): number {
    return Array.from(values).reduce((all, value) => all + value, 0);
}

/** Each column's amount as a share of another, and the same of all columns together. */
export function shares(amounts: ArrayLike<number>, of: ArrayLike<number>): Pick<Series, "values" | "average"> {
    return { values: ratio(amounts, of), average: sum(amounts) / sum(of) };
}

/** Each column's amount by something of the column: a second, or another amount. NaN where that is 0 or unknown. */
export function ratio(amounts: ArrayLike<number>, by: ArrayLike<number> | number): Float64Array {
    return Float64Array.from({ length: amounts.length }, (_, i) => {
        const divisor = typeof by === "number" ? by : (by[i] as number);
        return divisor > 0 ? (amounts[i] as number) / divisor : NaN;
    });
}

/** Over the columns of what is known; null when nothing is. */
export function statistics(series: Pick<Series, "values" | "low" | "mean" | "average">): Statistics | null {
    const known = Array.from(series.values).filter((value) => !Number.isNaN(value));
    if (known.length === 0) return null;
    const means = series.mean ? Array.from(series.mean).filter((value) => !Number.isNaN(value)) : known;
    const sorted = [...known].sort((a, b) => a - b);
    return {
        min: extent(series.low ?? known)?.[0] ?? NaN,
        max: sorted.at(-1) as number,
        last: known.at(-1) as number,
        average: series.average ?? sum(means) / means.length,
        p95: sorted[Math.ceil(0.95 * sorted.length) - 1] as number,
    };
}

/** A line that stays level within each column, as the counts do. */
export function stairs(timeline: Timeline, values: ArrayLike<number>): { xs: Float64Array; ys: Float64Array } {
    const n = values.length;
    const xs = new Float64Array(2 * n);
    const ys = new Float64Array(2 * n);
    for (let i = 0; i < n; i += 1) {
        xs[2 * i] = timeline.times[i] as number;
        xs[2 * i + 1] = (timeline.times[i] as number) + timeline.step;
        ys[2 * i] = ys[2 * i + 1] = values[i] as number;
    }
    return { xs, ys };
}

/** What lies behind marks: lossy bands, load phases, and a count over time on the second axis. */
export function paintBehind(
    painter: Painter,
    area: Area,
    timeline: Timeline,
    counts: ArrayLike<number>,
    stroke: Stroke,
): void {
    paintBands(painter, area, timeline.lossy);
    paintPhases(painter, area, capture.value?.phases ?? []);
    const { xs, ys } = stairs(timeline, counts);
    painter.line(
        xs.map((x) => area.x.to(x)),
        ys.map((y) => area.y2?.to(y) ?? NaN),
        stroke,
    );
}

interface Props {
    name: string;
    title: string;
    about: string;
    unit: string;
    /** Counts things. */
    whole?: boolean;
    format?: (value: number) => string;
    timeline: Timeline;
    series: readonly Series[];
    height?: number;
    tools?: ComponentChildren;
    /** What a click does, at a time. */
    open?: (from: number, to: number) => void;
    openLabel?: string;
    table?: boolean;
}

export function SeriesChart(props: Props) {
    const { timeline } = props;
    const write = props.format ?? average;
    const off = param("off").split(",");
    const shown = props.series.filter((series) => !off.includes(`${props.name}:${series.name}`));
    const toggle = (name: string) => {
        const key = `${props.name}:${name}`;
        setParam(
            "off",
            (off.includes(key) ? off.filter((one) => one !== key) : [...off, key]).filter(Boolean).join(","),
            {
                replace: true,
            },
        );
    };
    const top = Math.max(0, ...shown.map((series) => extent(series.values)?.[1] ?? 0));
    const start = startOf();
    const height = props.height ?? 210;
    const phases = capture.value?.phases ?? [];
    return (
        <ChartFrame
            name={props.name}
            title={props.title}
            about={props.about}
            y={{
                kind: "linear",
                domain: [0, top > 0 ? topOf(top, plotHeight(height), phases.length) : 1],
                label: props.unit,
                format: props.format ?? figure,
                whole: props.whole ?? false,
            }}
            height={height}
            tools={props.tools}
            below={props.table !== false && <StatisticsTable series={shown} write={write} title={props.title} />}
            legend={props.series.map((series) => ({
                label: series.name,
                color: series.color,
                hidden: !shown.includes(series),
                toggle: () => toggle(series.name),
                ...(series.dash ? { dash: series.dash } : {}),
            }))}
            paint={(painter, area) => {
                paintBands(painter, area, timeline.lossy);
                paintPhases(painter, area, phases);
                for (const series of shown) {
                    const { xs, ys } = stairs(timeline, series.values);
                    const px = xs.map((x) => area.x.to(x));
                    if (series.low) {
                        const low = stairs(timeline, series.low).ys;
                        const known = (at: number) => !Number.isNaN(ys[at]) && !Number.isNaN(low[at]);
                        const places = Array.from(px.keys()).filter(known);
                        painter.area(
                            [
                                ...places.map((at) => px[at] as number),
                                ...places.toReversed().map((at) => px[at] as number),
                            ],
                            [
                                ...places.map((at) => area.y.to(ys[at] as number)),
                                ...places.toReversed().map((at) => area.y.to(low[at] as number)),
                            ],
                            `${series.color}40`,
                        );
                    }
                    painter.line(
                        px,
                        ys.map((y) => area.y.to(y)),
                        { color: series.color, width: 1.6, ...(series.dash ? { dash: series.dash } : {}) },
                    );
                }
            }}
            pick={(x, _, area) => {
                const column = columnAt(timeline.times, area.x.from(x));
                const from = timeline.times[column];
                if (from === undefined) return null;
                return {
                    x,
                    title: `${moment(start, from, 3)} for ${duration(timeline.step)}`,
                    lines: shown.map((series) => {
                        const value = series.values[column] as number;
                        const low = series.low?.[column];
                        const text = write(value);
                        return [
                            series.name,
                            low !== undefined && low !== value ? `${write(low)} to ${text}` : text,
                        ] as const;
                    }),
                    ...(props.open ? { open: () => props.open?.(from, from + timeline.step) } : {}),
                    ...(props.openLabel ? { openLabel: props.openLabel } : {}),
                };
            }}
        />
    );
}

function StatisticsTable(props: { series: readonly Series[]; write: (value: number) => string; title: string }) {
    const { write } = props;
    return (
        <table class="figures">
            <caption class="unseen">{props.title}: figures over the range shown</caption>
            <thead>
                <tr>
                    <th scope="col">over the range</th>
                    {["min", "average", "p95", "max", "last"].map((name) => (
                        <th scope="col" key={name}>
                            {name}
                        </th>
                    ))}
                </tr>
            </thead>
            <tbody>
                {props.series.map((series) => {
                    const found = statistics(series);
                    return (
                        <tr key={series.name}>
                            <th scope="row">{series.name}</th>
                            {found === null ? (
                                <td colSpan={5}>not known</td>
                            ) : (
                                [found.min, found.average, found.p95, found.max, found.last].map((value, index) => (
                                    <td key={index}>{write(value)}</td>
                                ))
                            )}
                        </tr>
                    );
                })}
            </tbody>
        </table>
    );
}
