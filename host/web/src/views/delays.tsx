/** Whose time it was: client, network and server as pies, and the summary of delays as stacked bars. */
import { json, of } from "../api/client";
import type { Capture } from "../api/types";
import type { Area } from "../chart/axes";
import { ChartFrame, type Hover } from "../chart/ChartFrame";
import { Loading, useLoad } from "../components/load";
import { Select } from "../components/Select";
import { count, duration, percent, toldApart } from "../format";
import { drawPies, leastRoom, piesHeight, SLICES, words, type Pie } from "../packets/pies";
import { Picture } from "../packets/Picture";
import { pie as slices, seconds, SHARES, sum, untimed, type Known, type TimeShares } from "../packets/shares";
import { asked, capture, go, param, setParam, type Change } from "../state/store";
import { colors } from "../theme";
import { quoted } from "./open";

const BY = [
    ["server", "server"],
    ["client", "client"],
    ["signature", "kind of request"],
    ["connection", "connection"],
    ["none", "nothing: all together"],
] as const;
/** Bars that are shown. */
const SHOWN = 25;
/** Letters of a signature that have room beside its bar. */
const LETTERS = 35;

interface Group {
    name: string;
    transactions: number;
    shares: TimeShares;
}

interface Delays {
    groups: Group[];
    leftOut: number;
}

interface Measured {
    clientSeconds: number;
    networkSeconds: number;
    serverSeconds: number;
    method: string;
    uncertaintySeconds?: number;
}

interface Summary extends Known {
    delaysUncertainSeconds?: number;
}

const METHODS: Readonly<Record<string, string>> = {
    MEASURED: "between the taps at both ends",
    ARTICLE: "from deltas of frames alone",
    ONE_TAP: "as the first tap alone would say",
};

export default function DelaysView() {
    const shown = capture.value as Capture;
    const { from, to } = asked.value;
    const by = param("by", "server");
    const query = { by, filter: param("requests"), from, to, limit: SHOWN };
    const groups = useLoad(`delays ${shown.id} ${JSON.stringify(query)}`, (signal) =>
        json<Delays>(of(shown, "/delays"), query, signal),
    );
    const whole = { by: "none", filter: query.filter, from, to };
    const pies = useLoad(`pies ${shown.id} ${JSON.stringify(whole)}`, async (signal) => {
        const [all, taps, summary] = await Promise.all([
            json<Delays>(of(shown, "/delays"), whole, signal),
            json<{ pie: Measured[] }>(of(shown, "/taps"), {}, signal),
            json<Summary>(of(shown, "/summary"), {}, signal),
        ]);
        // Of a part of the capture it is not known.
        const isAll = query.filter === "" && from === null && to === null;
        return {
            all: untimed(summary) > 0 ? null : (all.groups[0]?.shares ?? null),
            untimed: untimed(summary),
            uncertain: (isAll && summary.delaysUncertainSeconds) || null,
            measured: taps.pie,
        };
    });
    return (
        <>
            <Loading of={pies} what="Pies">
                {(data) => <Pies {...data} />}
            </Loading>
            <div class="controls">
                <Select label="A bar for each" name="by" value={by} options={BY} />
                <label>
                    <input
                        type="checkbox"
                        checked={param("as") === "share"}
                        onChange={(event) => setParam("as", event.currentTarget.checked ? "share" : "")}
                    />{" "}
                    in percent
                </label>
            </div>
            <Loading of={groups} what="Delays">
                {(data) =>
                    // Without a transaction the pies say so.
                    data.groups.length > 0 && (
                        <>
                            {data.groups.some((group) => sum(group.shares) > 0) && <Bars data={data} by={by} />}
                            <Table data={data} />
                        </>
                    )
                }
            </Loading>
        </>
    );
}

interface PiesProps {
    all: TimeShares | null;
    /** Transactions of which nothing tells whose time they were, if they are most. */
    untimed: number;
    uncertain: number | null;
    measured: readonly Measured[];
}

function Pies(props: PiesProps) {
    const pies: Pie[] = [];
    if (props.all !== null) {
        pies.push({
            ...slices(props.all),
            title: "from transactions, as this tap sees them",
            uncertainty: props.uncertain,
        });
    }
    for (const one of props.measured) {
        pies.push({
            client: one.clientSeconds,
            network: one.networkSeconds,
            server: one.serverSeconds,
            title: METHODS[one.method] ?? one.method.toLowerCase(),
            uncertainty: one.uncertaintySeconds ?? null,
        });
    }
    const told = pies.map((pie) => `${pie.title}: ${SLICES.map(({ name }) => words(pie, name)).join(", ")}`).join(". ");
    if (pies.length === 0 && props.untimed > 0) {
        return (
            <p class="note">
                Whose time {count(props.untimed)} transactions were is not known, which is most of them: one direction
                is not in the capture. The bars below are of setups.
            </p>
        );
    }
    if (pies.length === 0) return <p class="note">No transaction lies in this range.</p>;
    return (
        <Picture
            name="pies"
            title="Client, network, server"
            about="Time in which the client worked, data were under way, and the server worked. Times in which the user thought (the client sent nothing for more than a second) are left out of the first; how far (±) its parts may be from the truth is known of the whole capture alone. From two captures and more, also what the taps at both ends measured; pies over the whole capture, not the range."
            words={told}
            least={leastRoom(pies)}
            height={(width) => piesHeight(pies, width)}
            paint={(painter, width) => drawPies(painter, pies, width, colors.value)}
        />
    );
}

/** Where a bar leads. */
function behind(by: string, name: string): Change | null {
    const end = /^\[?(.*?)\]?:(\d+)$/.exec(name);
    if (by === "connection") return { view: "connection", params: { connection: name } };
    if (by === "client") return { view: "connections", params: { filter: `client.address = ${quoted(name)}` } };
    if (by === "signature") return { view: "marks", params: { requests: `signature = ${quoted(name)}` } };
    if (by === "server" && end) {
        return {
            view: "connections",
            params: { filter: `server.address = ${quoted(end[1] ?? "")} AND server.port = ${end[2]}` },
        };
    }
    return null;
}

function Bars(props: { data: Delays; by: string }) {
    const { groups, leftOut } = props.data;
    const share = param("as") === "share";
    const c = colors.value;
    const rows = groups.length;
    const totals = groups.map((group) => sum(group.shares));
    const names = groups.map((group) => group.name);
    const labels =
        props.by === "signature"
            ? toldApart(
                  names.map((name) => name.replace(/^Request: /, "")),
                  LETTERS,
              )
            : names;
    const used = SHARES.filter((one) => groups.some((group) => seconds(group.shares, one) > 0));
    const value = (at: number, shareSeconds: number) => (share ? shareSeconds / (totals[at] || 1) : shareSeconds);
    const hover = (at: number, area: Area): Hover => {
        const group = groups[at] as Group;
        const to = behind(props.by, group.name);
        return {
            x: area.left + 4,
            y: area.y.to(at + 0.5),
            title: group.name,
            lines: [
                ["Transactions", count(group.transactions)],
                ["All", duration(totals[at])],
                ...used.map((one): [string, string] => {
                    const part = seconds(group.shares, one);
                    return [one.label, `${duration(part)}, ${percent(part / (totals[at] || 1))}`];
                }),
            ],
            ...(to ? { open: () => go(to), openLabel: "Show what is behind it" } : {}),
        };
    };
    return (
        <ChartFrame
            name="delays"
            title="Summary of delays"
            about={`Every instant of every transaction counts once, so that a bar is the sum of their times: ${used.map((one) => `${one.label}: ${one.meaning}`).join("; ")}.${leftOut > 0 ? ` ${count(leftOut)} more are not shown.` : ""}`}
            height={rows * 30 + 52}
            left={250}
            x={{
                kind: "linear",
                domain: [0, share ? 1 : Math.max(...totals, 1e-9) * 1.02],
                label: share ? "share of the time" : "time of all transactions",
                format: share ? percent : duration,
            }}
            y={{
                kind: "linear",
                plain: true,
                domain: [rows, 0],
                label: "",
                ticks: labels.map((label, at) => ({ value: at + 0.5, label })),
            }}
            legend={used.map((one) => ({ label: one.label, color: c[one.colour], shape: "square" }))}
            paint={(painter, area) => {
                groups.forEach((group, at) => {
                    let from = 0;
                    const y = area.y.to(at) + 5;
                    for (const one of used) {
                        const to = from + value(at, seconds(group.shares, one));
                        const [left, right] = [area.x.to(from), area.x.to(to)];
                        painter.rect(left, y, right - left, 20, c[one.colour]);
                        // A line between parts: neighbours are told apart without their colours.
                        if (from > 0 && right - left > 1) painter.line([left, left], [y, y + 20], { color: c.panel });
                        from = to;
                    }
                });
            }}
            pick={(_, y, area) => {
                const at = Math.floor(area.y.from(y));
                return at >= 0 && at < groups.length ? hover(at, area) : null;
            }}
            steps={{ count: groups.length, at: hover }}
        />
    );
}

function Table(props: { data: Delays }) {
    return (
        <section class="panel scroll" tabIndex={0} aria-label="The same in figures">
            <h2>The same in figures</h2>
            <table class="sums">
                <thead>
                    <tr>
                        <th scope="col">Of</th>
                        <th scope="col">Transactions</th>
                        <th scope="col">All</th>
                        {SHARES.map((one) => (
                            <th key={one.field} scope="col" title={one.meaning}>
                                {one.label}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {props.data.groups.map((group) => {
                        const all = sum(group.shares);
                        return (
                            <tr key={group.name}>
                                <th scope="row">{group.name}</th>
                                <td>{count(group.transactions)}</td>
                                <td>{duration(all)}</td>
                                {SHARES.map((one) => {
                                    // What is not set is not known: it stands in the other parts.
                                    const part = group.shares[one.field];
                                    return (
                                        <td key={one.field} title={percent((part ?? NaN) / (all || 1))}>
                                            {duration(part)}
                                        </td>
                                    );
                                })}
                            </tr>
                        );
                    })}
                </tbody>
            </table>
        </section>
    );
}
