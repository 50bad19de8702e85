/** Where everyone starts: the findings, worst first, with what is behind each; the capture's figures and its time. */
import { useEffect, useRef, useState } from "preact/hooks";
import { columns, json, of } from "../api/client";
import type { Capture, FindingEntry, Summary } from "../api/types";
import { SeriesChart } from "../chart/SeriesChart";
import { Link } from "../components/Link";
import { useFindings } from "../components/findings";
import { Loading, useLoad } from "../components/load";
import { Phases } from "../components/Phases";
import { useTimeline } from "../components/timeline";
import { bytes, count, duration, figure, moment, percent, several } from "../format";
import { capture, go, param, zoomTo, type Change } from "../state/store";
import { startOf } from "../chart/ChartFrame";
import { colors } from "../theme";
import { FAILED, FAILED_COLUMNS, idsFilter, IDS_IN_FILTER } from "./open";

export default function Overview() {
    const shown = capture.value as Capture;
    const summary = useLoad(`summary ${shown.id}`, (signal) => json<Summary>(of(shown, "/summary"), {}, signal));
    const findings = useFindings(shown);
    return (
        <div class="overview">
            <section aria-labelledby="findings-title">
                <h2 id="findings-title">Findings, worst first</h2>
                <Loading of={findings} what="Findings">
                    {(data) => <Findings entries={data.findings} noTcp={summary.data?.connections === "0"} />}
                </Loading>
            </section>
            <div>
                <Loading of={summary} what="Summary">
                    {(data) => <FigureTiles summary={data} />}
                </Loading>
                <OverTime />
                {(summary.data?.phases?.length ?? 0) > 0 && <Phases phases={summary.data?.phases ?? []} />}
            </div>
        </div>
    );
}

function OverTime() {
    const names = [
        "connections_min",
        "connections_max",
        "connections_mean",
        "in_progress_max",
        "in_progress_mean",
        "failed",
    ];
    const loaded = useTimeline(names);
    const c = colors.value;
    return (
        <Loading of={loaded} what="Time line">
            {(timeline) => (
                <SeriesChart
                    name="overview"
                    title="Over time"
                    about="Connections and requests under way. Shaded: more was lost than usual. Brush to zoom every view."
                    unit="at once"
                    whole
                    timeline={timeline}
                    table={false}
                    height={200}
                    series={[
                        {
                            name: "connections",
                            color: c.blue,
                            values: timeline.columns.numbers("connections_max"),
                            low: timeline.columns.numbers("connections_min"),
                        },
                        {
                            name: "requests in progress",
                            color: c.orange,
                            dash: [6, 3],
                            values: timeline.columns.numbers("in_progress_max"),
                        },
                        { name: "failed setups", color: c.red, values: timeline.columns.numbers("failed") },
                    ]}
                    open={(from, to) => go({ view: "connections", from, to })}
                    openLabel="Show the connections that begin here"
                />
            )}
        </Loading>
    );
}

/** How many packets there are; of what is mostly something else, how many of them tell anything here. */
export function packetsTold({ packets, tcpPackets = "0" }: Pick<Summary, "packets" | "tcpPackets">): string {
    const all = several(packets, "packet");
    return Number(tcpPackets) * 2 < Number(packets) ? `${all}, ${count(tcpPackets)} of them TCP` : all;
}

function FigureTiles(props: { summary: Summary }) {
    const { summary } = props;
    const shown = capture.value as Capture;
    const rate = summary.retransmissionRate;
    const tiles: { name: string; value: string; detail?: string; to?: Change }[] = [
        { name: "Length", value: duration(shown.seconds), detail: packetsTold(summary) },
        { name: "Connections", value: count(summary.connections), to: { view: "connections" } },
        { name: "Transactions", value: count(summary.transactions), to: { view: "transactions" } },
        {
            name: "Sent again",
            value: rate?.dataPackets === "0" ? percent(null) : percent(rate?.total),
            ...(rate
                ? { detail: `${count(rate.retransmittedPackets)} of ${count(rate.dataPackets)} data packets` }
                : {}),
            to: { view: "timeline" },
        },
        { name: "Missed by the capture", value: count(summary.captureLoss), detail: "never blamed on the network" },
    ];
    return (
        <dl class="tiles">
            {tiles.map((tile) => (
                <div key={tile.name} class="panel">
                    <dt>{tile.to ? <Link to={tile.to}>{tile.name}</Link> : tile.name}</dt>
                    <dd>
                        {tile.value}
                        {tile.detail && <small>{tile.detail}</small>}
                    </dd>
                </div>
            ))}
        </dl>
    );
}

/** No finding; setups that nobody answered yet are none, for the capture ended too early to tell. */
function Nothing() {
    const shown = capture.value as Capture;
    const waiting = useLoad(`unanswered ${shown.id}`, async (signal) => {
        const query = { filter: UNANSWERED, limit: 1, columns: "id" };
        return Number((await columns(of(shown, "/connections"), query, signal)).metadata.get("total"));
    });
    const open = waiting.data ?? 0;
    return (
        <div class="panel">
            <p>
                Nothing stands out in this capture. What was looked for is in the documentation, under “Findings”; the
                other views show everything that was measured.
            </p>
            {open > 0 && (
                <p>
                    <Link
                        to={{ view: "connections", params: { filter: UNANSWERED, columns: FAILED_COLUMNS.join(",") } }}
                    >
                        {several(open, "connection")}
                    </Link>{" "}
                    had no answer yet when the capture ended: a longer one tells whether any came.
                </p>
            )}
        </div>
    );
}

const UNANSWERED = "setup.outcome = IGNORED";

function Findings(props: { entries: readonly FindingEntry[]; noTcp: boolean }) {
    if (props.entries.length === 0 && props.noTcp) {
        return <p class="panel">There is no TCP connection in this capture: nothing could be looked for.</p>;
    }
    if (props.entries.length === 0) return <Nothing />;
    return (
        <ol class="findings">
            {props.entries.map((entry, index) => (
                <FindingCard key={entry.key} entry={entry} first={index === 0} />
            ))}
        </ol>
    );
}

/** Connections that a finding names at most (docs/src/findings.md). */
const NAMED_IDS = 1000;

/** Where the rows behind a finding are. */
export function behind(entry: FindingEntry): { label: string; to: Change } | null {
    const ids = entry.finding.connectionIds ?? [];
    if (ids.length === 0) return null;
    const whole = { from: null, to: null };
    if (entry.finding.kind === "FAILED_CONNECTIONS") {
        const filter = ids.length > IDS_IN_FILTER ? FAILED : idsFilter(ids);
        // The filter finds those that the finding does not name, too.
        const { connections } = entry.finding.values ?? {};
        return {
            label: `Which, when and why (${count(typeof connections === "number" ? connections : ids.length)})`,
            // With the first chosen, its reason stands there in full.
            to: { view: "connections", ...whole, params: { filter, columns: FAILED_COLUMNS.join(","), row: "0" } },
        };
    }
    // Of how many is not known where as many are named as a finding can name.
    const of = ids.length < NAMED_IDS ? ` of ${count(ids.length)}` : "";
    const cut = ids.length > IDS_IN_FILTER ? `first ${IDS_IN_FILTER}${of}` : count(ids.length);
    return {
        label: `Its connections (${cut})`,
        to: { view: "connections", ...whole, params: { filter: idsFilter(ids) } },
    };
}

/** What a finding costs, where its evidence holds it (docs/src/findings.md). */
function cost(values: Record<string, unknown>): string | null {
    const seconds = values.costSeconds;
    return typeof seconds === "number" && seconds > 0 ? `${duration(seconds)} of waiting in all` : null;
}

/** Findings end with what else they may be and what to do next (docs/src/findings.md): these, apart from what was seen. */
export function told(evidence: readonly string[]): { facts: string[]; alternatives: string[]; next: string[] } {
    const after = (start: RegExp) =>
        evidence.filter((sentence) => start.test(sentence)).map((sentence) => sentence.replace(start, ""));
    return {
        facts: evidence.filter((sentence) => !ALSO.test(sentence) && !NEXT.test(sentence)),
        alternatives: after(ALSO),
        next: after(NEXT),
    };
}

const ALSO = /^it may also be:? /;
const NEXT = /^next: /;

/** Figures that are shares of something, of 1 at most. */
const SHARE = /(share|rate|loss)$|^(rate(In|Out)side|clientToServer|serverToClient|line|slower)$/i;

/** A figure of a finding, with the unit that its name tells. */
export function valueText(name: string, value: unknown): string {
    if (Array.isArray(value)) return value.map((one) => valueText(name, one)).join(", ");
    if (typeof value !== "number") return String(value);
    if (/seconds$/i.test(name)) return duration(value);
    if (SHARE.test(name) && value <= 1) return percent(value);
    if (/bytes$/i.test(name)) return bytes(value);
    return figure(value);
}

/** Its name in words: what is a time says so by its unit. */
export function valueName(name: string): string {
    return name.replace(/(?<=.)Seconds$/, "").replace(/(?<=[a-z\d])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function FindingCard(props: { entry: FindingEntry; first: boolean }) {
    const { entry } = props;
    const { finding } = entry;
    // A link leads to it.
    const chosen = param("finding") === entry.key;
    const [open, setOpen] = useState(props.first || chosen);
    const card = useRef<HTMLLIElement>(null);
    useEffect(() => {
        if (chosen) card.current?.focus();
    }, [chosen]);
    const { facts, alternatives, next } = told(finding.evidence ?? []);
    const advice = next.length > 0 ? next : entry.advice === undefined ? [] : [entry.advice];
    const rows = behind(entry);
    const start = startOf();
    const waits = cost(finding.values ?? {});
    const from = entry.from;
    const to = entry.to;
    return (
        <li ref={card} tabIndex={-1} class={`panel finding ${finding.severity.toLowerCase()}`}>
            <h3>
                <span class="severity">{finding.severity.toLowerCase()}</span> {finding.title}
            </h3>
            <dl class="facts">
                {finding.who && (
                    <div>
                        <dt>who</dt>
                        <dd>{finding.who}</dd>
                    </div>
                )}
                {from !== undefined && to !== undefined && (
                    <div>
                        <dt>when</dt>
                        <dd>
                            {moment(start, from, 1)} – {moment(start, to, 1)}
                        </dd>
                    </div>
                )}
                {waits !== null && (
                    <div>
                        <dt>cost</dt>
                        <dd>{waits}</dd>
                    </div>
                )}
                {finding.confidence !== undefined && (
                    <div>
                        <dt>confidence</dt>
                        <dd>{percent(finding.confidence)}</dd>
                    </div>
                )}
            </dl>
            <p class="ways">
                {rows && <Link to={rows.to}>{rows.label}</Link>}
                {from !== undefined && to !== undefined && to > from && (
                    <button type="button" onClick={() => zoomTo(from - (to - from) * 0.05, to + (to - from) * 0.05)}>
                        Show this time
                    </button>
                )}
                {facts.length > 0 && (
                    <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
                        Evidence
                    </button>
                )}
            </p>
            {open && (
                <>
                    <ul class="evidence">
                        {facts.map((sentence) => (
                            <li key={sentence}>{sentence}</li>
                        ))}
                    </ul>
                    {Object.keys(finding.values ?? {}).length > 0 && (
                        <dl class="facts small">
                            {Object.entries(finding.values ?? {}).map(([name, value]) => (
                                <div key={name}>
                                    <dt>{valueName(name)}</dt>
                                    <dd>{valueText(name, value)}</dd>
                                </div>
                            ))}
                        </dl>
                    )}
                </>
            )}
            {alternatives.length > 0 && (
                <p class="advice">
                    <strong>May also be:</strong> {alternatives.join("; ")}
                </p>
            )}
            {advice.length > 0 && (
                <p class="advice">
                    <strong>Next:</strong> {advice.join("; ")}
                </p>
            )}
        </li>
    );
}
