/** What a daemon measures now: the last seconds, and findings as they open, change and close. */
import { useEffect, useRef, useState } from "preact/hooks";
import { columns, of } from "../api/client";
import type { Capture, Finding } from "../api/types";
import { ChartFrame, startOf } from "../chart/ChartFrame";
import { paintBands } from "../chart/bands";
import { extent } from "../chart/scale";
import { stairs } from "../chart/SeriesChart";
import { Link } from "../components/Link";
import { Loading, useLoad } from "../components/load";
import { columnAt, type Timeline } from "../components/timeline";
import { Select } from "../components/Select";
import { bits, clock, count, duration, figure, nanoseconds } from "../format";
import { capture, param } from "../state/store";
import { colors, type Colors } from "../theme";
import { idsFilter } from "./open";

/** Seconds that are shown, to choose from. */
const WINDOWS = ["30", "60", "300", "900"];
const USUAL = "60";
const WIDTH = 300;
/** How long the last response of a connection is on its way at least, s: until its end is told of. */
const SETTLING = 5;
/** Changes of findings that are listed. */
const LISTED = 50;

interface Line {
    column: string;
    label: string;
    color: keyof Colors;
    /** Of a column's value: a second's worth. */
    rate?: boolean;
    /** Of bytes: bits. */
    bits?: boolean;
    dash?: readonly number[];
}

const CHARTS: readonly { name: string; title: string; about: string; unit: string; lines: readonly Line[] }[] = [
    {
        name: "live-open",
        title: "Under way",
        about: "The most connections that were open, and requests that waited for their response or its end, in each moment.",
        unit: "at once",
        lines: [
            { column: "connections_max", label: "connections", color: "blue" },
            { column: "in_progress_max", label: "requests in progress", color: "orange", dash: [6, 3] },
        ],
    },
    {
        name: "live-rates",
        title: "Rates",
        about: "Connections that began, setups that failed, and responses that ended.",
        unit: "a second",
        lines: [
            { column: "opened", label: "connections opened", color: "blue", rate: true },
            { column: "responses", label: "responses", color: "green", rate: true, dash: [6, 3] },
            { column: "failed", label: "failed setups", color: "red", rate: true, dash: [2, 3] },
        ],
    },
    {
        name: "live-throughput",
        title: "Throughput",
        about: "Payload, by who sent it.",
        unit: "bit/s",
        lines: [
            { column: "client_bytes", label: "from clients", color: "sky", rate: true, bits: true },
            { column: "server_bytes", label: "from servers", color: "purple", rate: true, bits: true, dash: [6, 3] },
        ],
    },
    {
        name: "live-losses",
        title: "Losses",
        about: "Data segments that the network lost, and SYNs that came again.",
        unit: "a second",
        lines: [
            { column: "client_lost", label: "of clients", color: "orange", rate: true },
            { column: "server_lost", label: "of servers", color: "red", rate: true, dash: [6, 3] },
            { column: "syn_repeats", label: "SYNs again", color: "grey", rate: true, dash: [2, 3] },
        ],
    },
];

export default function Live() {
    const shown = capture.value as Capture;
    if (shown.kind !== "LIVE") {
        return (
            <section class="panel">
                <h2>{shown.name} is not live</h2>
                <p>
                    A daemon shows what it measures: <code>weir serve --port PORT --page 127.0.0.1:8970</code>
                </p>
            </section>
        );
    }
    return (
        <>
            <Counters of={shown} />
            <Now of={shown} />
            <Changes id={shown.id} />
        </>
    );
}

function Counters(props: { of: Capture }) {
    const { of: shown } = props;
    const kept: [string, string | undefined, string | undefined][] = [
        ["Packets kept", shown.packets, shown.packetsDropped],
        ["Connections", shown.connections, shown.connectionsDropped],
        ["Transactions", shown.transactions, shown.transactionsDropped],
        ["Findings", shown.findings, undefined],
    ];
    const waiting = shown.waiting;
    return (
        <section class="panel" aria-label="What is kept">
            <dl class="attributes">
                {kept.map(([name, value, dropped]) => (
                    <div key={name}>
                        <dt>{name}</dt>
                        <dd>
                            {count(value)}
                            {Number(dropped ?? 0) > 0 && ` (${count(dropped)} older ones are no longer kept)`}
                        </dd>
                    </div>
                ))}
                {waiting && (
                    <div>
                        <dt>Requests without a response</dt>
                        <dd>
                            {waiting.count === "0" ? (
                                "0"
                            ) : (
                                <Link
                                    to={{
                                        view: "connections",
                                        from: null,
                                        to: null,
                                        params: { filter: idsFilter(waiting.connectionIds) },
                                    }}
                                >
                                    {count(waiting.count)}, the longest for {duration(waiting.longestSeconds)}
                                </Link>
                            )}
                        </dd>
                    </div>
                )}
            </dl>
        </section>
    );
}

function Now(props: { of: Capture }) {
    const { of: shown } = props;
    const [paused, setPaused] = useState(false);
    const held = useRef(0);
    if (!paused) held.current = shown.seconds ?? 0;
    // A link may say anything.
    const width = [param("window"), USUAL].map(Number).find((length) => length > 0) as number;
    const to = held.current;
    const from = Math.max(0, to - width);
    const wanted = ["time", ...CHARTS.flatMap((chart) => chart.lines.map((line) => line.column))].join();
    const load = async (signal: AbortSignal): Promise<Timeline> => {
        // Rates of a second: of less, one event would read as dozens.
        const count = Math.min(WIDTH, Math.ceil(to - from));
        const data = await columns(of(shown, "/timeline"), { from, to, width: count, columns: wanted }, signal);
        return { from, to, step: (to - from) / count, times: data.numbers("time"), columns: data, lossy: [] };
    };
    const answer = useLoad(to > from ? `live ${shown.id} ${width}` : null, load, to);
    return (
        <>
            <div class="controls">
                <Select
                    label="The last"
                    name="window"
                    value={String(width)}
                    options={WINDOWS.map((length) => [length, `${length} seconds`])}
                />
                <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
                    {paused ? "Go on" : "Hold"}
                </button>
                <Link to={{ view: "timeline" }}>All of it</Link>
            </div>
            {to > from ? (
                <Loading of={answer} what="The last seconds">
                    {(timeline) => (
                        <>
                            <p class="note">
                                Shaded: still to come in. A response counts when what follows tells that it was over, a
                                loss when nothing can change the verdict any more: some seconds later, or many.
                            </p>
                            <div class="pair">
                                {CHARTS.map((chart) => (
                                    <LiveChart key={chart.name} timeline={timeline} of={chart} />
                                ))}
                            </div>
                        </>
                    )}
                </Loading>
            ) : (
                <p class="note">Nothing was measured yet.</p>
            )}
        </>
    );
}

function LiveChart(props: { timeline: Timeline; of: (typeof CHARTS)[number] }) {
    const { timeline, of: chart } = props;
    const c = colors.value;
    const lines = chart.lines.map((line) => {
        const by = (line.rate ? timeline.step : 1) / (line.bits ? 8 : 1);
        return { line, values: Float64Array.from(timeline.columns.numbers(line.column), (value) => value / by) };
    });
    const most = Math.max(0, ...lines.map(({ values }) => extent(values)?.[1] ?? 0));
    const format = chart.unit === "bit/s" ? bits : figure;
    return (
        <ChartFrame
            name={chart.name}
            title={chart.title}
            about={chart.about}
            height={200}
            x={{ kind: "time", domain: [timeline.from, timeline.to], label: "time of day (UTC)" }}
            y={{ kind: "linear", domain: [0, most > 0 ? most * 1.1 : 1], label: chart.unit, format }}
            legend={chart.lines.map((line) => ({ label: line.label, color: c[line.color], dash: line.dash ?? [] }))}
            paint={(painter, area) => {
                paintBands(painter, area, [[timeline.to - SETTLING, timeline.to]], `${c.muted}30`);
                for (const { line, values } of lines) {
                    const { xs, ys } = stairs(timeline, values);
                    const stroke = { color: c[line.color], width: 1.6, dash: line.dash ?? [] };
                    painter.line(xs.map(area.x.to), ys.map(area.y.to), stroke);
                }
            }}
            pick={(x, _, area) => {
                if (timeline.times.length === 0) return null;
                const at = columnAt(timeline.times, area.x.from(x));
                return {
                    x,
                    title: clock(startOf(), timeline.times[at] as number, 2),
                    lines: lines.map(({ line, values }) => [line.label, format(values[at])]),
                };
            }}
        />
    );
}

interface Change {
    id: string;
    kind: string;
    time?: string;
    finding?: Finding;
}

const KINDS: Readonly<Record<string, string>> = {
    KIND_OPENED: "opened",
    KIND_UPDATED: "changed",
    KIND_CLOSED: "closed",
};

/** Findings as the daemon tells of them; those before the page was opened are in the overview. */
function Changes(props: { id: string }) {
    const [changes, setChanges] = useState<readonly Change[]>([]);
    useEffect(() => {
        const stream = new EventSource("/api/v1/events");
        stream.addEventListener("finding", (event) => {
            const news = JSON.parse((event as MessageEvent<string>).data) as { id: string; change: Change };
            if (news.id === props.id) setChanges((before) => [news.change, ...before].slice(0, LISTED));
        });
        return () => stream.close();
    }, [props.id]);
    return (
        <section class="panel scroll" tabIndex={0} aria-label="Findings as they come">
            <h2>Findings as they come</h2>
            {changes.length === 0 ? (
                <p class="note">
                    None since this view was opened. <Link to={{ view: "overview" }}>All that are open</Link>
                </p>
            ) : (
                <table class="sums">
                    <thead>
                        <tr>
                            <th scope="col">Time (UTC)</th>
                            <th scope="col" class="words">
                                What
                            </th>
                            <th scope="col" class="words">
                                Severity
                            </th>
                            <th scope="col" class="words">
                                Finding
                            </th>
                        </tr>
                    </thead>
                    <tbody aria-live="polite">
                        {changes.map((change, at) => (
                            <tr key={`${change.id} ${changes.length - at}`}>
                                <td>{change.time ? clock(nanoseconds(change.time), 0, 3) : ""}</td>
                                <td class="words">{KINDS[change.kind] ?? change.kind.toLowerCase()}</td>
                                <td class="words">{change.finding?.severity.toLowerCase()}</td>
                                <td class="words">{change.finding?.title}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            )}
        </section>
    );
}
