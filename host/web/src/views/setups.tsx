/** Every connection setup as a mark: when it began, how long it took, how it ended; with the load and the losses behind. */
import { columns, json, of } from "../api/client";
import type { Capture, Group } from "../api/types";
import { ChartFrame, startOf, type Hover } from "../chart/ChartFrame";
import { nearest } from "../chart/nearest";
import type { Look } from "../chart/painter";
import { paintBehind } from "../chart/SeriesChart";
import { extent } from "../chart/scale";
import type { Area } from "../chart/axes";
import { FilterBox } from "../components/FilterBox";
import { AllDurations } from "../components/AllDurations";
import { Link } from "../components/Link";
import { GroupTable, timeColumns } from "../components/GroupTable";
import { Kept, Loading, useLoad, useTogether } from "../components/load";
import {
    CELLS,
    chosenValues,
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
import { count, duration, moment, several } from "../format";
import { asked, capture, go, param, range, setParam } from "../state/store";
import { colors, type Colors } from "../theme";
import { and, FAILED, FAILED_COLUMNS, quoted } from "./open";

/** In words, and how it is drawn. */
const OUTCOMES: Record<string, { label: string; look: (c: Colors) => Pick<Look, "color" | "shape"> }> = {
    OK: { label: "done at once", look: (c) => ({ color: c.blue, shape: "circle" }) },
    RETRANSMITTED: { label: "done after a repeat", look: (c) => ({ color: c.orange, shape: "triangle" }) },
    REFUSED: { label: "refused", look: (c) => ({ color: c.purple, shape: "square" }) },
    IGNORED: { label: "ignored", look: (c) => ({ color: c.red, shape: "cross" }) },
    RESET_LATE: { label: "reset late", look: (c) => ({ color: c.red, shape: "star" }) },
    RESET_BY_CLIENT: { label: "reset by the client", look: (c) => ({ color: c.grey, shape: "square" }) },
};

const lookOf = (name: string, c: Colors) => OUTCOMES[name]?.look(c) ?? ({ color: c.grey, shape: "ring" } as const);

export default function Setups() {
    const shown = capture.value as Capture;
    const { from, to } = asked.value;
    const filter = param("filter");
    const kind = param("scale", "log");
    const marks = useLoad(`setups ${shown.id} ${from} ${to} ${filter} ${kind}`, async (signal) =>
        readMarks(await columns(of(shown, "/setups"), { from, to, ...CELLS, filter, scale: kind }, signal)),
    );
    const picture = useTogether(marks, useTimeline(["connections_min", "connections_max"]));
    const groups = useLoad(`setup statistics ${shown.id} ${from} ${to}`, (signal) =>
        json<{ groups: Group[]; leftOut: number }>(
            of(shown, "/statistics"),
            { from, to, filter: "kind = SETUP", by: "signature", limit: 200 },
            signal,
        ),
    );
    return (
        <>
            <FilterBox table="connections" example="setup.end_seconds > 1s" />
            <Loading of={picture} what="Setups">
                {([data, load]) => <Kept of={[data, load]}>{() => <Chart marks={data} timeline={load} />}</Kept>}
            </Loading>
            <Loading of={groups} what="Statistics">
                {(data) => (
                    <Kept of={[data, filter]}>
                        {() => <Descriptions groups={data.groups} leftOut={data.leftOut} filtered={filter !== ""} />}
                    </Kept>
                )}
            </Loading>
        </>
    );
}

function Chart(props: { marks: Marks; timeline: Timeline }) {
    const { marks, timeline } = props;
    const c = colors.value;
    const off = param("off").split(",");
    const hidden = (name: string) => off.includes(name);
    const toggle = (name: string) =>
        setParam("off", (hidden(name) ? off.filter((one) => one !== name) : [...off, name]).filter(Boolean).join(","), {
            replace: true,
        });
    const open = timeline.columns.numbers("connections_max");
    const most = extent(open)?.[1] ?? 0;
    const log = param("scale", "log") === "log";
    const domain = valueDomain(marks);
    const start = startOf();
    // Setups that their client reset are rare: where there are none, nothing is said of them.
    const told = marks.names.filter(({ name, count }) => name !== "RESET_BY_CLIENT" || count > 0);
    const failed = marks.names
        .filter(({ name }) => name === "REFUSED" || name === "IGNORED" || name === "RESET_LATE")
        .reduce((sum, one) => sum + one.count, 0);

    const hoverOf = (index: number, area: Area): Hover => {
        const time = marks.times[index] as number;
        const value = marks.values[index] as number;
        const rows = marks.counts[index] as number;
        const outcome = marks.names[marks.kinds[index] as number]?.name ?? "?";
        const at = columnAt(timeline.times, time);
        return {
            x: area.x.to(time),
            y: area.y.to(value),
            title: `${OUTCOMES[outcome]?.label ?? outcome}${rows > 1 ? ` (${count(rows)} setups)` : ""}`,
            lines: [
                ["first SYN", moment(start, time, 6)],
                ["took", rows > 1 ? `${duration(marks.mins[index])} to ${duration(value)}` : duration(value)],
                ["with repeats", count(marks.losses[index])],
                ["connections open", count(open[at])],
            ],
            open: () => openMark("connections", marks, index, range.value),
            openLabel: rows > 1 ? "Zoom in" : "Show the connection",
        };
    };
    // The arrow keys visit what went wrong; where nothing did, everything.
    const order = shownMarks(marks, hidden);
    const isWrong = (index: number) => marks.names[marks.kinds[index] as number]?.name !== "OK";
    const wrong = order.filter(isWrong);
    const stepped = wrong.length > 0 ? wrong : order;
    const rest = unmarked(marks, "setup time");
    return (
        <>
            <ChartFrame
                name="setups"
                title={`${several(marks.inRange, "connection setup")}, ${count(failed)} failed`}
                about={`Each mark is a setup${marks.exact ? "" : " (or several close together: zoom in)"}: its first SYN against the time until it was done or given up. The line counts connections open at once (right). Shaded: more was lost than usual. The arrow keys visit setups that went wrong.`}
                height={430}
                y={{
                    kind: log ? "log" : "linear",
                    domain: log || chosenValues() ? domain : [0, domain[1]],
                    label: "duration of the setup",
                    format: duration,
                }}
                y2={{
                    kind: "linear",
                    whole: true,
                    domain: [0, Math.max(1, most) * 1.06],
                    label: "connections open",
                    format: count,
                }}
                legend={[
                    ...told.map(({ name, count: rows }) => ({
                        label: `${OUTCOMES[name]?.label ?? name} (${count(rows)})`,
                        ...lookOf(name, c),
                        hidden: hidden(name),
                        toggle: () => toggle(name),
                    })),
                    { label: "connections open", color: c.green },
                ]}
                tools={
                    <>
                        <AllDurations />
                        <button type="button" aria-pressed={log} onClick={() => setParam("scale", log ? "linear" : "")}>
                            Logarithmic
                        </button>
                        <button type="button" onClick={() => go({ view: "connections" })}>
                            Rows
                        </button>
                    </>
                }
                paint={(painter, area) => {
                    paintBehind(painter, area, timeline, open, { color: c.green, width: 1.5 });
                    // What went wrong lies on top of the many that did not.
                    const looks = marks.names.map(({ name }) => ({
                        ...lookOf(name, c),
                        size: name !== "OK" ? 9 : order.length > 5000 ? 4 : 7,
                    }));
                    paintMarks(painter, area, marks, [...order.filter((one) => !isWrong(one)), ...wrong], looks);
                }}
                pick={(x, y, area) => {
                    const found = nearest(marks.count, x, y, 12, (index) =>
                        !hidden(marks.names[marks.kinds[index] as number]?.name ?? "")
                            ? [area.x.to(marks.times[index] as number), area.y.to(marks.values[index] as number)]
                            : null,
                    );
                    return found < 0 ? null : hoverOf(found, area);
                }}
                onBox={zoomBox}
                steps={{ count: stepped.length, at: (index, area) => hoverOf(stepped[index] as number, area) }}
            />
            {rest !== null && <p class="waiting">{rest}</p>}
            <p class="ways">
                {failed > 0 && (
                    <Link
                        to={{
                            view: "connections",
                            params: { filter: and(FAILED, "setup.end_seconds:*"), columns: FAILED_COLUMNS.join(",") },
                        }}
                    >
                        Which failed, when and why ({count(failed)})
                    </Link>
                )}
            </p>
        </>
    );
}

/** How setups went, in the words of their options: each description with its count and times. */
function Descriptions(props: { groups: readonly Group[]; leftOut: number; filtered: boolean }) {
    const which = props.filtered ? "all connections, whatever the filter" : "all connections";
    const more = props.leftOut > 0 ? ` (${count(props.leftOut)} descriptions more are left out)` : "";
    return (
        <GroupTable
            label="Setup statistics"
            caption={`Setups that begin in the range, of ${which}, by their description: times to the server's answer and to the end${more}`}
            head="description"
            groups={props.groups}
            columns={[
                { head: "count", cell: (group) => count(group.count) },
                { head: "repeats", title: "SYNs and SYN-ACKs that came again", cell: (group) => count(group.losses) },
                {
                    head: "answer min",
                    title: "Last SYN to the server's answer",
                    cell: (group) => duration(group.server?.min),
                },
                { head: "answer mean", cell: (group) => duration(group.server?.mean) },
                { head: "answer max", cell: (group) => duration(group.server?.max) },
                ...timeColumns((group) => group.end).map((column) => ({ ...column, head: `end ${column.head}` })),
            ]}
            to={({ name }) => ({
                view: "connections",
                params: { filter: `setup.description = ${quoted(name)}`, columns: FAILED_COLUMNS.join(",") },
            })}
        />
    );
}
