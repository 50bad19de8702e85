/** The diagnosis: categories against their thresholds, what cost most, what limited the transfers, and the statistics. */
import { columns, json, of, type Columns } from "../api/client";
import type { Capture } from "../api/types";
import type { Area } from "../chart/axes";
import { ChartFrame, type Hover } from "../chart/ChartFrame";
import { Loading, useLoad } from "../components/load";
import { Select } from "../components/Select";
import { bits, bytes, count, duration, figure, percent, several, UNKNOWN } from "../format";
import { NAME_COLUMNS, namesOf } from "../packets/connection";
import { LIMITS, untimed } from "../packets/shares";
import { asked, capture, go, param } from "../state/store";
import { colors } from "../theme";

const SIDES = [
    ["server", "servers"],
    ["client", "clients"],
] as const;

interface Category {
    category: string;
    verdict: string;
    value?: number;
    potential?: number;
    bottleneck?: number;
    of?: string;
}

interface Summary {
    connections?: string;
    diagnosis?: Category[];
    bottlenecks?: { name: string; seconds?: number; share?: number; remedy?: string }[];
    untimedTransactions?: string;
    statistics?: { name: string; unit?: string; total?: number; client?: number; server?: number }[];
}

/** Mark and words of a verdict: never the colour alone. */
const VERDICTS: Readonly<Record<string, { mark: string; words: string; color: "red" | "orange" | "green" }>> = {
    BOTTLENECK: { mark: "■", words: "bottleneck", color: "red" },
    POTENTIAL_BOTTLENECK: { mark: "◆", words: "potential bottleneck", color: "orange" },
    NO_BOTTLENECK: { mark: "○", words: "no bottleneck", color: "green" },
};

const said = (name: string) => {
    const words = name
        .replaceAll("_", " ")
        .toLowerCase()
        .replace(/\btcp\b/, "TCP");
    return words.charAt(0).toUpperCase() + words.slice(1);
};

export default function Diagnosis() {
    const shown = capture.value as Capture;
    const summary = useLoad(`summary ${shown.id}`, (signal) => json<Summary>(of(shown, "/summary"), {}, signal));
    if (summary.data?.connections === "0") {
        return <p class="note">There is no TCP connection in this capture: nothing to diagnose.</p>;
    }
    return (
        <Loading of={summary} what="Diagnosis">
            {(data) => (
                <>
                    <Categories all={data.diagnosis ?? []} />
                    <Bottlenecks all={data.bottlenecks ?? []} isUnknown={untimed(data) > 0} />
                    <Limits most={limitOf(data.bottlenecks ?? [])} />
                    {(data.statistics ?? []).length > 0 && <Statistics all={data.statistics ?? []} />}
                </>
            )}
        </Loading>
    );
}

/** The limit of transfers that cost most, where one did: those that it held are looked at first. */
export function limitOf(bottlenecks: readonly { name: string }[]): string {
    const limits: Readonly<Record<string, string>> = {
        CONGESTION_WINDOW: "congestion",
        LOSS_RECOVERY: "congestion",
        RECEIVER_WINDOW: "receiver_window",
        SENDER: "sender",
        BANDWIDTH: "bandwidth",
    };
    return bottlenecks.map(({ name }) => limits[name]).find((limit) => limit !== undefined) ?? "receiver_window";
}

/** Where a value lies between 0, its two thresholds and what is above them. */
function Gauge(props: { of: Category }) {
    const { value = 0, potential = 0, bottleneck = 0 } = props.of;
    const whole = Math.max(bottleneck * 1.5, value * 1.05) || 1;
    const at = (part: number) => `${Math.min(100, (part / whole) * 100)}%`;
    const verdict = VERDICTS[props.of.verdict];
    return (
        <div class="gauge" aria-hidden="true">
            <div style={{ width: at(value), background: `var(--${verdict?.color ?? "grey"})` }} />
            <i style={{ left: at(potential) }} />
            <i class="most" style={{ left: at(bottleneck) }} />
        </div>
    );
}

function Categories(props: { all: readonly Category[] }) {
    return (
        <section class="panel scroll" tabIndex={0} aria-label="Diagnosis">
            <h2>Diagnosis</h2>
            <p class="note">
                Of the whole capture. Thin line: potential bottleneck from here on; thick line: bottleneck.
            </p>
            {props.all.length === 0 ? (
                <p>No connection carried enough to be measured.</p>
            ) : (
                <table class="sums" data-table="diagnosis">
                    <thead>
                        <tr>
                            <th scope="col">Category</th>
                            <th scope="col" class="words">
                                Verdict
                            </th>
                            <th scope="col">Value</th>
                            <th scope="col">Potential from</th>
                            <th scope="col">Bottleneck from</th>
                            <th scope="col">
                                <span class="unseen">Value against the thresholds</span>
                            </th>
                            <th scope="col" class="words">
                                The value is
                            </th>
                        </tr>
                    </thead>
                    <tbody>
                        {props.all.map((one) => {
                            const verdict = VERDICTS[one.verdict];
                            const value = one.of?.startsWith("share") ? percent : figure;
                            return (
                                <tr key={one.category}>
                                    <th scope="row">{said(one.category)}</th>
                                    <td class="words verdict">
                                        <span
                                            style={{ color: `var(--${verdict?.color ?? "grey"})` }}
                                            aria-hidden="true"
                                        >
                                            {verdict?.mark}
                                        </span>{" "}
                                        {verdict?.words ?? one.verdict}
                                    </td>
                                    <td>{value(one.value)}</td>
                                    <td>{value(one.potential)}</td>
                                    <td>{value(one.bottleneck)}</td>
                                    <td>
                                        <Gauge of={one} />
                                    </td>
                                    <td class="words">{one.of}</td>
                                </tr>
                            );
                        })}
                    </tbody>
                </table>
            )}
        </section>
    );
}

function Bottlenecks(props: { all: NonNullable<Summary["bottlenecks"]>; isUnknown: boolean }) {
    return (
        <section class="panel scroll" tabIndex={0} aria-label="What cost time">
            <h2>What cost time</h2>
            <p class="note">
                Most first. The seconds are the most that can be saved: when one limit goes, the next one holds.
            </p>
            {props.all.length === 0 ? (
                <p>
                    {props.isUnknown
                        ? "Not known: of most transactions one direction is not in the capture."
                        : "Nothing stands out."}
                </p>
            ) : (
                <table class="sums">
                    <thead>
                        <tr>
                            <th scope="col">What</th>
                            <th scope="col">Seconds</th>
                            <th scope="col">Of all time</th>
                            <th scope="col" class="words">
                                What would save it
                            </th>
                        </tr>
                    </thead>
                    <tbody>
                        {props.all.map((one) => (
                            <tr key={one.name}>
                                <th scope="row">{said(one.name)}</th>
                                <td>{duration(one.seconds)}</td>
                                <td>{percent(one.share)}</td>
                                <td class="words">{one.remedy}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            )}
        </section>
    );
}

/** A statistic, with its unit. */
export function statistic(value: number | undefined, unit = ""): string {
    switch (unit) {
        case "s":
            return duration(value);
        case "ms":
            return duration(value === undefined ? undefined : value / 1e3);
        case "bytes":
            return bytes(value);
        case "kbit/s":
            return bits(value === undefined ? undefined : value * 1e3);
    }
    const text = figure(value);
    return unit === "" || text === UNKNOWN ? text : `${text} ${unit}`;
}

function Statistics(props: { all: NonNullable<Summary["statistics"]> }) {
    return (
        <section class="panel scroll" tabIndex={0} aria-label="Statistics">
            <h2>Statistics</h2>
            <table class="sums" data-table="statistics">
                <thead>
                    <tr>
                        <th scope="col">What</th>
                        <th scope="col">All</th>
                        <th scope="col">Client</th>
                        <th scope="col">Server</th>
                    </tr>
                </thead>
                <tbody>
                    {props.all.map((one) => (
                        <tr key={one.name}>
                            <th scope="row">{one.name}</th>
                            <td>{statistic(one.total, one.unit)}</td>
                            <td>{statistic(one.client, one.unit)}</td>
                            <td>{statistic(one.server, one.unit)}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </section>
    );
}

/** Connections whose limits are shown. */
const SHOWN = 25;

interface Limited {
    id: string;
    name: string;
    /** Seconds by limit; NaN is unknown. */
    seconds: number[];
}

/** Whether anything was sent that could be limited. */
export const limitedAtAll = (all: readonly Pick<Limited, "seconds">[]) =>
    all.some((one) => one.seconds.some((part) => part > 0));

function readLimits(answer: Columns, columnOf: (limit: string) => string): Limited[] {
    const parts = LIMITS.map((limit) => answer.numbers(columnOf(limit.column)));
    const names = namesOf(answer);
    return answer.texts("id").map((id, row) => ({
        id: id ?? "",
        name: names[row] ?? "",
        seconds: parts.map((part) => part[row] as number),
    }));
}

function Limits(props: { most: string }) {
    const shown = capture.value as Capture;
    const { from, to } = asked.value;
    const chosen = param("side");
    const by = param("by", props.most);
    const query = { filter: param("filter"), from, to, touch: "overlap", limit: SHOWN };
    const load = async (side: string, signal: AbortSignal) => {
        const direction = side === "client" ? "client_to_server" : "server_to_client";
        const columnOf = (limit: string) => `${direction}_limit_${limit}_seconds`;
        const names = LIMITS.map((limit) => columnOf(limit.column));
        const wanted = {
            ...query,
            sort: `-${columnOf(by)}`,
            columns: [`id,${NAME_COLUMNS}`, ...names].join(),
        };
        const answer = await columns(of(shown, "/connections"), wanted, signal);
        return { side, all: readLimits(answer, columnOf), total: Number(answer.metadata.get("total")) };
    };
    const answer = useLoad(`limits ${shown.id} ${JSON.stringify(query)} ${chosen} ${by}`, async (signal) => {
        if (chosen !== "") return load(chosen, signal);
        // Of uploads the servers' side is empty.
        const servers = await load("server", signal);
        if (limitedAtAll(servers.all)) return servers;
        const clients = await load("client", signal);
        return limitedAtAll(clients.all) ? clients : servers;
    });
    const side = answer.data?.side ?? "server";
    return (
        <>
            <div class="controls">
                <Select label="Data of" name="side" value={chosen || side} options={SIDES} />
                <Select
                    label="limited most by"
                    name="by"
                    value={by}
                    options={LIMITS.map(({ column, label }) => [column, label])}
                />
            </div>
            <Loading of={answer} what="Limits">
                {(data) => <LimitBars {...data} />}
            </Loading>
        </>
    );
}

function LimitBars(props: { side: string; all: readonly Limited[]; total: number }) {
    const { side, all, total } = props;
    const c = colors.value;
    const rows = Math.max(all.length, 1);
    const known = (seconds: number) => (Number.isNaN(seconds) ? 0 : seconds);
    const totals = all.map((one) => one.seconds.reduce((sum, part) => sum + known(part), 0));
    const hover = (at: number, area: Area): Hover => {
        const one = all[at] as Limited;
        return {
            x: area.left + 4,
            y: area.y.to(at + 0.5),
            title: one.name,
            lines: LIMITS.map((limit, part) => [limit.label, duration(one.seconds[part])]),
            open: () => go({ view: "connection", params: { connection: one.id } }),
            openLabel: "Show the connection",
        };
    };
    return (
        <ChartFrame
            name="limits"
            title={`What limited the transfers${total > all.length ? ` of ${count(all.length)} of ${several(total, "connection")}` : ""}`}
            about={`Each bar is a connection's data in one direction: every instant of its transfers is charged once to what limited it then.${total > all.length ? " The sums are those of the bars." : ""}`}
            height={rows * 24 + 52}
            left={290}
            x={{
                kind: "linear",
                domain: [0, limitedAtAll(all) ? Math.max(...totals) * 1.02 : 1],
                label: "time of the transfers",
                format: duration,
            }}
            y={{
                kind: "linear",
                plain: true,
                domain: [rows, 0],
                label: "",
                ticks: all.map((one, at) => ({ value: at + 0.5, label: one.name })),
            }}
            legend={LIMITS.map((limit, part) => ({
                label: `${limit.label}: ${duration(all.reduce((sum, one) => sum + known(one.seconds[part] as number), 0))}`,
                color: c[limit.colour],
                shape: "square" as const,
            }))}
            paint={(painter, area) => {
                all.forEach((one, at) => {
                    let from = 0;
                    const y = area.y.to(at) + 4;
                    one.seconds.forEach((part, which) => {
                        const to = from + known(part);
                        const [left, right] = [area.x.to(from), area.x.to(to)];
                        painter.rect(left, y, right - left, 16, c[LIMITS[which]?.colour ?? "grey"]);
                        if (from > 0 && right - left > 1) painter.line([left, left], [y, y + 16], { color: c.panel });
                        from = to;
                    });
                });
                if (limitedAtAll(all)) return;
                const none = all.length === 0 ? "0 connections in this range" : `Of the ${side}s no transfer is known`;
                painter.text(none, area.left + 10, area.top + 14, { color: c.muted });
            }}
            pick={(_, y, area) => {
                const at = Math.floor(area.y.from(y));
                return at >= 0 && at < all.length ? hover(at, area) : null;
            }}
            steps={{ count: all.length, at: hover }}
        />
    );
}
