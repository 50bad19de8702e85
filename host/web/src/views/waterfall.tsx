/** The waterfall: each transaction a bar, split into client, request, wait and response. */
import { columns, of } from "../api/client";
import type { Capture } from "../api/types";
import { ROOM, type Area } from "../chart/axes";
import { paintBands } from "../chart/bands";
import { ChartFrame, startOf, type Hover } from "../chart/ChartFrame";
import { Kept, Loading, useLoad, useTogether } from "../components/load";
import { useTimeline, type Timeline } from "../components/timeline";
import { Select } from "../components/Select";
import { bytes, count, duration, moment, percent, several } from "../format";
import { Selected } from "../packets/Selected";
import { Pages } from "../packets/Pages";
import {
    bars,
    COLUMNS,
    endOf,
    PARTS,
    readTransactions,
    totals,
    type Part,
    type Transaction,
} from "../packets/waterfall";
import { asked, capture, go, param, range, zoomTo } from "../state/store";
import { colors } from "../theme";

const SORTS = [
    ["request_time", "time"],
    ["-end_seconds", "longest first"],
] as const;
/** Bars on a page: the axis of time stands not far below the first. */
const PAGE = 100;
/** Share of the range below which bars are too short to be read. */
const FEW = 0.2;

export default function Waterfall() {
    return (
        <Selected table="transactions" example="end_seconds > 1">
            {(filter) => <Shown filter={filter} />}
        </Selected>
    );
}

function Shown(props: { filter: string }) {
    const shown = capture.value as Capture;
    const { from, to } = asked.value;
    const offset = Number(param("offset", "0"));
    const sort = param("sort", "request_time");
    const query = { filter: props.filter, from, to, touch: "overlap", sort, offset, limit: PAGE, columns: COLUMNS };
    const answer = useLoad(`waterfall ${shown.id} ${JSON.stringify(query)}`, async (signal) => {
        const rows = await columns(of(shown, "/transactions"), query, signal);
        return { all: readTransactions(rows), total: Number(rows.metadata.get("total")) };
    });
    const picture = useTogether(answer, useTimeline([]));
    return (
        <>
            <div class="controls">
                <Select label="Order" name="sort" value={sort} options={SORTS} />
                {answer.data && (
                    <Pages
                        what="transactions"
                        offset={offset}
                        shown={answer.data.all.length}
                        total={answer.data.total}
                        size={PAGE}
                    />
                )}
            </div>
            <Loading of={picture} what="Transactions">
                {([data, { lossy }]) => <Kept of={[data, lossy]}>{() => <Chart all={data.all} lossy={lossy} />}</Kept>}
            </Loading>
        </>
    );
}

function Chart(props: { all: readonly Transaction[]; lossy: Timeline["lossy"] }) {
    const { all, lossy } = props;
    const of = bars(all);
    const sums = totals(of);
    const whole = Object.values(sums).reduce((sum, seconds) => sum + seconds, 0);
    const rows = Math.max(all.length, 1);
    const height = Math.min(26, 620 / rows);
    const named = height >= 12;
    const [begin, end] = [Math.min(...all.map((each) => each.start)), Math.max(...all.map(endOf))];
    const [from, to] = range.value;
    const narrow = all.length > 0 && end - begin < FEW * (to - from);
    const one = param("connection") !== "";
    const c = colors.value;
    const color = (name: Part["name"]) => c[PARTS.find((part) => part.name === name)?.colour ?? "grey"];
    const hover = (at: number, area: Area): Hover => {
        const each = all[at] as Transaction;
        const parts = of[at] ?? [];
        const start = startOf();
        const lines: [string, string][] = [["Request", moment(start, each.start, 6)]];
        const sum = parts.reduce((seconds, part) => seconds + part.to - part.from, 0);
        for (const part of parts) {
            const label = PARTS.find((known) => known.name === part.name)?.label ?? part.name;
            lines.push([label, `${duration(part.to - part.from)} (${percent((part.to - part.from) / sum)})`]);
        }
        if (each.own !== null) {
            const give = each.uncertain === null ? "" : ` ± ${duration(each.uncertain)}`;
            lines.push(["The server’s own", `${duration(each.own)}${give}`]);
        }
        lines.push(["Request, response", `${bytes(each.requestBytes)}, ${bytes(each.responseBytes)}`]);
        if (each.losses > 0) lines.push(["Losses", count(each.losses)]);
        return {
            x: Math.min(Math.max(area.x.to(each.start), area.left), area.left + area.width),
            y: area.y.to(at + 0.5),
            title: each.signature,
            lines,
            open: () => {
                if (!one) go({ params: { connection: each.connection } });
                else go({ view: "packets", params: { at: each.start.toFixed(9) } });
            },
            openLabel: one ? "Show its packets" : "Show the connection",
        };
    };
    return (
        <ChartFrame
            name="waterfall"
            title="Waterfall"
            about={`Each bar is a transaction, from the end of the one before it in its connection: the client's time, the request, the wait for the response, the response, as their packets passed, with repeats of what was lost among them. How much of a wait was the server's own, the bar says when pointed at, and Whose time for all. A cross marks losses. The legend says how all time shown is divided.${narrow ? ` These take ${duration(end - begin)} of ${duration(to - from)}: zoom to them to tell their parts.` : ""}`}
            height={Math.round(rows * height) + 52}
            left={named ? 230 : ROOM}
            y={{
                kind: "linear",
                plain: true,
                domain: [rows, 0],
                label: named ? "" : several(all.length, "transaction"),
                ticks: named ? all.map((each, at) => ({ value: at + 0.5, label: short(each.signature) })) : [],
            }}
            legend={PARTS.filter((part) => sums[part.name] > 0).map((part) => ({
                label: `${part.label}: ${duration(sums[part.name])}, ${percent(sums[part.name] / whole)}`,
                color: c[part.colour],
                shape: "square",
            }))}
            tools={
                <button
                    type="button"
                    title="Show the time of these transactions"
                    disabled={all.length === 0}
                    onClick={() => zoomTo(begin, end)}
                >
                    Zoom to these
                </button>
            }
            paint={(painter, area) => {
                paintBands(painter, area, lossy);
                of.forEach((parts, at) => {
                    const y = area.y.to(at) + height * 0.12;
                    for (const part of parts) {
                        const x = Math.max(area.x.to(part.from), area.left - 1);
                        const end = Math.min(area.x.to(part.to), area.left + area.width + 1);
                        const thin = part.name === "client" ? 0.3 : 0.76;
                        if (end > x)
                            painter.rect(
                                x,
                                y + height * (0.38 - thin / 2),
                                Math.max(end - x, 1),
                                height * thin,
                                color(part.name),
                            );
                    }
                    if ((all[at] as Transaction).losses > 0) {
                        const x = area.x.to(endOf(all[at] as Transaction)) + 7;
                        painter.mark("cross", x, y + height * 0.38, Math.min(8, height), c.red);
                    }
                });
            }}
            pick={(_, y, area) => {
                const at = Math.floor(area.y.from(y));
                return at >= 0 && at < all.length ? hover(at, area) : null;
            }}
            steps={{ count: all.length, at: hover }}
        />
    );
}

/** What tells one signature from another, in the room there is: of setups the options do not. */
function short(signature: string): string {
    const text = signature.replace(/^Request: /, "").replace(/^Open Conn: .*/, "setup");
    return text.length <= 32 ? text : `${text.slice(0, 31)}…`;
}
