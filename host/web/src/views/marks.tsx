/**
 * Every transaction as a mark, coloured by what it is; how long they took as a histogram beside it on the same axis; and
 * the figures of each group beneath.
 */
import { columns, json, of } from "../api/client";
import type { Capture, Group } from "../api/types";
import type { Area } from "../chart/axes";
import { ChartFrame, Sample, startOf, type Hover } from "../chart/ChartFrame";
import { nearest } from "../chart/nearest";
import type { Look, Shape } from "../chart/painter";
import { paintBehind } from "../chart/SeriesChart";
import { extent } from "../chart/scale";
import { AllDurations } from "../components/AllDurations";
import { FilterBox } from "../components/FilterBox";
import { GroupTable, timeColumns } from "../components/GroupTable";
import { Kept, Loading, useLoad, useTogether } from "../components/load";
import {
    CELLS,
    openMark,
    paintMarks,
    readMarks,
    shownMarks,
    unmarked,
    valueDomain,
    zoomBox,
    type Marks,
} from "../components/marks";
import { columnAt, useTimeline, type Timeline } from "../components/timeline";
import { Select } from "../components/Select";
import { bytes, count, duration, moment, several, toldApart } from "../format";
import { asked, capture, go, param, range, setParam, zoomTo } from "../state/store";
import { colors, series } from "../theme";
import { and, quoted } from "./open";

const VALUES = {
    end: "response's end",
    server: "server (first byte)",
    request: "request",
    response: "response",
} as const;
type Value = keyof typeof VALUES;
const BY = [
    ["signature", "signature"],
    ["position", "place in the connection"],
    ["server", "server"],
    ["client", "client"],
    ["loss", "losses"],
] as const;

const SHAPES: readonly Shape[] = ["circle", "square", "triangle", "diamond", "plus", "cross", "star"];

/** Look of a kind by its number, which stays the same at any zoom. */
export function lookOf(kind: number, name: string): Pick<Look, "color" | "shape"> {
    if (name === "other") return { color: colors.value.grey, shape: "ring" };
    const all = series.value;
    return { color: all[kind % all.length] as string, shape: SHAPES[kind % SHAPES.length] as Shape };
}

/** Kinds whose bars have a colour of their own: bars have no shape to tell those apart that share one. The last is of all others. */
export const COLOURED = 7;

/** Colour of a kind's part of a bar. */
export function barColour(kind: number, name: string): string {
    return kind < COLOURED ? lookOf(kind, name).color : colors.value.grey;
}

interface Histogram {
    kinds: ArrayLike<number>;
    lows: ArrayLike<number>;
    highs: ArrayLike<number>;
    counts: ArrayLike<number>;
    bins: number;
}

/** Cells across, fewer than elsewhere: the histogram stands beside. */
const WIDTH = 320;

export default function TransactionMarks() {
    const shown = capture.value as Capture;
    const { from, to } = asked.value;
    const [begin, end] = range.value;
    const filter = param("requests");
    const value = param("value", "end") as Value;
    const by = param("by", "signature");
    const key = `${shown.id} ${from} ${to} ${filter} ${value} ${by}`;
    const ask = { from, to, filter, value, by };
    const marks = useLoad(`marks ${key}`, async (signal) =>
        readMarks(await columns(of(shown, "/marks"), { ...ask, ...CELLS, width: WIDTH, scale: "log" }, signal)),
    );
    const histogram = useLoad(`histogram ${key}`, async (signal): Promise<Histogram> => {
        const data = await columns(of(shown, "/histogram"), { ...ask, bins: 60 }, signal);
        return {
            kinds: data.numbers("kind"),
            lows: data.numbers("low"),
            highs: data.numbers("high"),
            counts: data.numbers("count"),
            bins: data.rows,
        };
    });
    const groups = useLoad(`statistics ${shown.id} ${from} ${to} ${filter} ${by}`, (signal) =>
        json<{ groups: Group[]; leftOut: number }>(
            of(shown, "/statistics"),
            { from, to, filter, by, limit: 100 },
            signal,
        ),
    );
    const pictures = useTogether(marks, useTimeline(["in_progress_max"]), histogram);
    const phases = shown.phases ?? [];
    return (
        <>
            <FilterBox table="transactions" example="signature = *blk[127]*" />
            <div class="ways controls">
                <Select label="time of the" name="value" value={value} options={Object.entries(VALUES)} />
                <Select label="coloured by" name="by" value={by} options={BY} />
                {phases.length > 1 &&
                    phases.map((phase, index) => (
                        <button
                            key={phase.from}
                            type="button"
                            aria-pressed={
                                Math.abs(begin - Math.max(0, phase.from)) < 1e-6 && Math.abs(end - phase.to) < 1e-6
                            }
                            onClick={() => zoomTo(phase.from, phase.to)}
                        >
                            Phase {index + 1} ({count(Math.round(phase.concurrentConnections))} connections)
                        </button>
                    ))}
            </div>
            <Loading of={pictures} what="Transactions">
                {([data, load, bins]) => (
                    <Kept of={[data, load, bins, value]}>
                        {() => (
                            <>
                                <div class="beside">
                                    <Chart marks={data} timeline={load} value={value} />
                                    <HistogramChart marks={data} histogram={bins} value={value} />
                                </div>
                                <Unmarked marks={data} value={value} />
                            </>
                        )}
                    </Kept>
                )}
            </Loading>
            <Loading of={groups} what="Statistics">
                {(data) => (
                    <Kept of={[data, value, by, marks.data]}>
                        {() => (
                            <Statistics
                                groups={data.groups}
                                leftOut={data.leftOut}
                                value={value}
                                by={by}
                                marks={marks.data}
                            />
                        )}
                    </Kept>
                )}
            </Loading>
        </>
    );
}

function Unmarked(props: { marks: Marks; value: Value }) {
    const rest = unmarked(props.marks, `time to the ${VALUES[props.value]}`);
    return rest === null ? null : <p class="waiting">{rest}</p>;
}

/** Hidden kinds, in the URL. */
function useOff() {
    const off = param("off").split("|");
    return {
        hidden: (name: string) => off.includes(name),
        toggle: (name: string) =>
            setParam(
                "off",
                (off.includes(name) ? off.filter((one) => one !== name) : [...off, name]).filter(Boolean).join("|"),
                {
                    replace: true,
                },
            ),
    };
}

const HEIGHT = 430;
/** Letters of a name in a legend. */
const LETTERS = 46;

/** Names of the kinds as a legend has room for them. */
function legendNames(marks: Marks): string[] {
    const names = marks.names.map(({ name }) => name.replace(/^Request: /, ""));
    return toldApart(names, LETTERS);
}

function Chart(props: { marks: Marks; timeline: Timeline; value: Value }) {
    const { marks, timeline, value } = props;
    const c = colors.value;
    const { hidden, toggle } = useOff();
    const nameOf = (index: number) => marks.names[marks.kinds[index] as number]?.name ?? "?";
    const start = startOf();
    const busy = timeline.columns.numbers("in_progress_max");
    const most = extent(busy)?.[1] ?? 0;
    const hoverOf = (index: number, area: Area): Hover => {
        const time = marks.times[index] as number;
        const taken = marks.values[index] as number;
        const rows = marks.counts[index] as number;
        return {
            x: area.x.to(time),
            y: area.y.to(taken),
            title: `${nameOf(index)}${rows > 1 ? ` (${count(rows)} transactions)` : ""}`,
            lines: [
                ["request", moment(start, time, 6)],
                ["took", rows > 1 ? `${duration(marks.mins[index])} to ${duration(taken)}` : duration(taken)],
                ["with losses", count(marks.losses[index])],
                ["in progress", count(busy[columnAt(timeline.times, time)])],
            ],
            open: () => openMark("transactions", marks, index, range.value),
            openLabel: rows > 1 ? "Zoom in" : "Show the connection",
        };
    };
    const order = shownMarks(marks, hidden);
    const ringed = marks.exact && order.length <= 5000;
    const short = legendNames(marks);
    return (
        <ChartFrame
            name="transactions"
            title={several(marks.inRange, "transaction")}
            about={`Each mark is a transaction${marks.exact ? "" : " (or several close together: zoom in)"}: when its request began against how long it took to the ${VALUES[value]}. Setups are left out unless the filter names a kind. ${ringed ? "Ringed: with losses." : "Colour by losses, or zoom in, to see which had some."} The line counts requests in progress (right). Shaded: more was lost than usual.`}
            height={HEIGHT}
            y={{ kind: "log", domain: valueDomain(marks), label: `time to the ${VALUES[value]}`, format: duration }}
            y2={{
                kind: "linear",
                whole: true,
                domain: [0, Math.max(1, most) * 1.06],
                label: "requests in progress",
                format: count,
            }}
            legend={[
                ...marks.names
                    .map((kind, number) => ({ ...kind, number }))
                    .filter((kind) => kind.count > 0)
                    .map(({ name, count: rows, number }) => ({
                        label: `${short[number]} (${count(rows)})`,
                        title: name,
                        ...lookOf(number, name),
                        hidden: hidden(name),
                        toggle: () => toggle(name),
                    })),
                { label: "requests in progress", color: c.text },
            ]}
            tools={
                <>
                    <AllDurations />
                    <button type="button" onClick={() => go({ view: "transactions" })}>
                        Rows
                    </button>
                </>
            }
            paint={(painter, area) => {
                paintBehind(painter, area, timeline, busy, { color: c.text, width: 1.2 });
                const looks = marks.names.map(({ name }, kind) => ({ ...lookOf(kind, name), size: ringed ? 6 : 4 }));
                paintMarks(painter, area, marks, order, looks);
                if (!ringed) return;
                for (const index of order.filter((one) => (marks.losses[one] as number) > 0)) {
                    const x = area.x.to(marks.times[index] as number);
                    painter.mark("ring", x, area.y.to(marks.values[index] as number), 10, c.red);
                }
            }}
            pick={(x, y, area) => {
                const found = nearest(marks.count, x, y, 12, (index) =>
                    hidden(nameOf(index))
                        ? null
                        : [area.x.to(marks.times[index] as number), area.y.to(marks.values[index] as number)],
                );
                return found < 0 ? null : hoverOf(found, area);
            }}
            onBox={zoomBox}
            steps={{ count: order.length, at: (index, area) => hoverOf(order[index] as number, area) }}
        />
    );
}

function HistogramChart(props: { marks: Marks; histogram: Histogram; value: Value }) {
    const { histogram, marks, value } = props;
    const { hidden } = useOff();
    const nameOf = (kind: number) => marks.names[kind]?.name ?? "?";
    const short = legendNames(marks);
    // Bars of one bin lie side by side in the order of their kinds.
    const bins = new Map<
        number,
        { low: number; high: number; parts: { kind: number; count: number }[]; total: number }
    >();
    for (let index = 0; index < histogram.bins; index += 1) {
        const kind = histogram.kinds[index] as number;
        if (hidden(nameOf(kind))) continue;
        const low = histogram.lows[index] as number;
        const bin = bins.get(low) ?? { low, high: histogram.highs[index] as number, parts: [], total: 0 };
        bin.parts.push({ kind, count: histogram.counts[index] as number });
        bin.total += histogram.counts[index] as number;
        bins.set(low, bin);
    }
    const sorted = [...bins.values()].sort((a, b) => a.low - b.low);
    for (const bin of sorted) bin.parts.sort((a, b) => a.kind - b.kind);
    const most = Math.max(1, ...sorted.map((bin) => bin.total));
    const hoverOf = (bin: (typeof sorted)[number], area: Area): Hover => ({
        x: area.x.to(bin.total),
        y: (area.y.to(bin.low) + area.y.to(bin.high)) / 2,
        title: `${duration(bin.low)} to ${duration(bin.high)}: ${count(bin.total)}`,
        lines: bin.parts.map((part) => [short[part.kind] ?? "?", count(part.count)] as const),
        open: () =>
            go({
                view: "transactions",
                params: {
                    requests: and(
                        param("requests"),
                        `${value}_seconds >= ${bin.low}`,
                        `${value}_seconds <= ${bin.high}`,
                    ),
                    sort: `${value}_seconds`,
                },
            }),
        openLabel: "Show these transactions",
    });
    return (
        <ChartFrame
            name="histogram"
            title="How many took how long"
            about={`Transactions of the range, on the same axis of time as the chart beside.${marks.names.length > COLOURED + 1 ? ` The first ${COLOURED} of its legend have their colours here, all others are grey; a bar that is pointed at names them.` : ""}`}
            height={HEIGHT}
            x={{ kind: "linear", whole: true, domain: [0, most * 1.05], label: "transactions", format: count }}
            y={{ kind: "log", domain: valueDomain(marks), label: "", format: duration }}
            onBrush={(_, [low, high]) =>
                go({
                    view: "transactions",
                    params: {
                        requests: and(param("requests"), `${value}_seconds >= ${low}`, `${value}_seconds <= ${high}`),
                        sort: `${value}_seconds`,
                    },
                })
            }
            paint={(painter, area) => {
                for (const bin of sorted) {
                    let at = 0;
                    const top = area.y.to(bin.high);
                    const tall = Math.max(1, area.y.to(bin.low) - top - 1);
                    for (const part of bin.parts) {
                        const x = area.x.to(at);
                        at += part.count;
                        painter.rect(
                            x,
                            top,
                            Math.max(1, area.x.to(at) - x),
                            tall,
                            barColour(part.kind, nameOf(part.kind)),
                        );
                    }
                }
            }}
            pick={(_, y, area) => {
                const at = area.y.from(y);
                const found = sorted.find((bin) => at >= bin.low && at <= bin.high);
                return found ? hoverOf(found, area) : null;
            }}
            steps={{
                count: sorted.length,
                at: (index, area) => hoverOf(sorted[index] as (typeof sorted)[number], area),
            }}
        />
    );
}

function Statistics(props: {
    groups: readonly Group[];
    leftOut: number;
    value: Value;
    by: string;
    marks: Marks | null;
}) {
    const { groups, value, by, marks } = props;
    const { hidden, toggle } = useOff();
    const more = props.leftOut > 0 ? ` (${count(props.leftOut)} groups more are left out)` : "";
    return (
        <GroupTable
            label="Statistics"
            caption={`Time to the ${VALUES[value]}, by ${by}: figures over all transactions that begin in the range, setups too${more}`}
            head={by}
            groups={groups}
            columns={[
                { head: "count", cell: (group) => count(group.count) },
                { head: "losses", cell: (group) => count(group.losses) },
                { head: "request bytes", title: "On average", cell: (group) => bytes(group.requestBytesMean) },
                { head: "response bytes", title: "On average", cell: (group) => bytes(group.responseBytesMean) },
                ...timeColumns((group) => group[value]),
                {
                    head: "1st / 2nd / 3rd / later",
                    title: "How many were the first, second, third and later of their connection",
                    cell: (group) => group.positions.map((one) => count(one)).join(" / "),
                },
            ]}
            hidden={(group) => hidden(group.name)}
            lead={({ name }) => {
                const number = marks?.names.findIndex((kind) => kind.name === name) ?? -1;
                if (number < 0) return <span class="swatch" />;
                return (
                    <button
                        type="button"
                        class="swatch"
                        aria-pressed={!hidden(name)}
                        aria-label={`Draw ${name}`}
                        onClick={() => toggle(name)}
                    >
                        <Sample {...lookOf(number, name)} />
                    </button>
                );
            }}
            // The filter language has no words for the other groups.
            to={({ name }) =>
                by === "signature"
                    ? {
                          view: "transactions",
                          params: { requests: and(param("requests"), `signature = ${quoted(name)}`) },
                      }
                    : null
            }
        />
    );
}
