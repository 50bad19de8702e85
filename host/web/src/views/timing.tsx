/** Packet timing: every packet a mark, of one connection or of hundreds, from minutes down to microseconds. */
import { columns, of, type Parameters } from "../api/client";
import type { Capture } from "../api/types";
import { ROOM, type Area } from "../chart/axes";
import { paintBands } from "../chart/bands";
import { ChartFrame, startOf, type Hover } from "../chart/ChartFrame";
import { Kept, Loading, useLoad, useTogether } from "../components/load";
import { useTimeline } from "../components/timeline";
import { Select } from "../components/Select";
import { bytes, count, duration, moment, several } from "../format";
import { NAME_COLUMNS, namesOf } from "../packets/connection";
import { KINDS, type Kind } from "../packets/kinds";
import { CLIENT_LINE, laneHeight, line, SERVER_LINE } from "../packets/lanes";
import { nearest } from "../packets/marks";
import { Selected } from "../packets/Selected";
import { Pages } from "../packets/Pages";
import { anomalyFrom, drawLinks, drawMarks, MOST_LINKS, readTiming, type Timing } from "../packets/timing";
import { asked, capture, cursor, go, param, range, setParam, zoomTo } from "../state/store";
import { colors } from "../theme";

/** Lanes on a page, to choose from: more are a picture too tall to move in a frame. */
const LANES = ["50", "100", "200", "500"];
const SORTS: readonly (readonly [string, string])[] = [
    ["", "first packet"],
    ["client_address,client_port", "client"],
    ["server_address,server_port", "server"],
    ["-duration_seconds", "longest first"],
    ["-client_to_server_retransmitted_packets", "most sent again by clients"],
    ["-server_to_client_retransmitted_packets", "most sent again by servers"],
];
/** Height of the one pair of lines that all connections share, px. */
const SHARED_LANE = 360;
/** Lanes that connections share when there are more than have lanes of their own. */
const SHARED = 12;
/** Room below the last lane, whose clients' marks stand almost at its foot, px. */
const FOOT = 6;
/** Smallest lane that has room for its name, px. */
const NAMED_LANE = 13;

interface Lane {
    /** Its connection; null: several share it. */
    id: string | null;
    name: string;
}

export interface Answer {
    timing: Timing;
    lanes: Lane[];
    /** Connections that match, on all pages. */
    total: number;
}

/** Width of a column, px: about that of a mark, which says from where to where its packets stand. */
const COLUMN = 2;
/** Columns that the picture has: finer ones would be moved for nothing. */
export const columnsWide = () => Math.min(4096, Math.max(256, Math.ceil((innerWidth - 300) / 64 / COLUMN) * 64));

/** `query`: with `share`, connections that have no lane of their own share some. */
export async function loadTiming(shown: Capture, query: Parameters, width: number, signal: AbortSignal) {
    const [packets, own] = await Promise.all([
        columns(of(shown, "/timing"), { ...query, width }, signal),
        query.limit === 0 ? [] : namedLanes(shown, query, signal),
    ]);
    const timing = readTiming(packets);
    const total = Number(packets.metadata.get("total"));
    const common = () =>
        Array.from({ length: timing.shared }, (_, lane) => {
            // Connection n of all stands in lane n · shared / total.
            const before = (lane: number) => Math.ceil((lane * total) / timing.shared);
            return { id: null, name: several(before(lane + 1) - before(lane), "connection") };
        });
    return { timing, lanes: timing.shared > 0 ? common() : own, total } satisfies Answer;
}

async function namedLanes(shown: Capture, query: Parameters, signal: AbortSignal): Promise<Lane[]> {
    const wanted = { touch: "overlap", columns: `id,${NAME_COLUMNS}` };
    const table = await columns(of(shown, "/connections"), { ...query, share: null, ...wanted }, signal);
    const names = namesOf(table);
    return table.texts("id").map((id, row) => ({ id, name: names[row] ?? "" }));
}

export default function TimingView() {
    return (
        <Selected table="connections" example='server.port = 443 AND setup.outcome != "OK"'>
            {(filter) => <Lanes filter={filter} />}
        </Selected>
    );
}

function Lanes(props: { filter: string }) {
    const shown = capture.value as Capture;
    const { from, to } = asked.value;
    const limit = Number(param("lanes", "200"));
    const one = param("rows") === "together";
    // Whoever chose a page of connections wants a lane for each.
    const paged = param("offset") !== "";
    const offset = Number(param("offset", "0"));
    const lanes = one ? { limit: 0, share: 1 } : { limit, offset, share: paged ? undefined : SHARED };
    const query = { filter: props.filter, sort: param("sort"), ...lanes, from, to };
    const width = columnsWide();
    const answer = useLoad(`timing ${shown.id} ${JSON.stringify(query)} ${width}`, (signal) =>
        loadTiming(shown, query, width, signal),
    );
    const picture = useTogether(answer, useTimeline([]));
    return (
        <>
            <div class="controls">
                <Select label="Order" name="sort" value={param("sort")} options={SORTS} />
                <Select
                    label="Connections"
                    name="lanes"
                    value={String(limit)}
                    options={LANES.map((value) => [value, value])}
                    resets="offset"
                />
                <label>
                    <input
                        type="checkbox"
                        checked={one}
                        onChange={(event) => setParam("rows", event.currentTarget.checked ? "together" : "")}
                    />{" "}
                    all on one pair of lines
                </label>
                {answer.data && answer.data.timing.shared === 0 && (
                    <Pages
                        what="connections"
                        offset={offset}
                        shown={answer.data.lanes.length}
                        total={answer.data.total}
                        size={limit}
                    />
                )}
                {answer.data && answer.data.timing.shared > 0 && !one && (
                    <span class="pages">
                        {several(answer.data.total, "connection")} in {answer.data.timing.shared} lanes
                        <button type="button" onClick={() => setParam("offset", "0")}>
                            One by one
                        </button>
                    </span>
                )}
                {answer.data && paged && answer.data.total > limit && !one && (
                    <button type="button" onClick={() => setParam("offset", "")}>
                        All
                    </button>
                )}
            </div>
            <Loading of={picture} what="Packets">
                {([data, { lossy }]) => (
                    <Kept of={[data, one, lossy]}>{() => <TimingChart answer={data} one={one} lossy={lossy} />}</Kept>
                )}
            </Loading>
        </>
    );
}

interface ChartProps {
    answer: Answer;
    /** All connections on one pair of lines. */
    one: boolean;
    /** Room for the names of lines, px. */
    left?: number;
    /** Where more than usual was lost: shaded. */
    lossy: readonly (readonly [number, number])[];
}

export function TimingChart(props: ChartProps) {
    const { timing, lanes, total } = props.answer;
    const { one } = props;
    const hidden = new Set(param("hide").split(",").filter(Boolean));
    const { marks } = timing;
    const lane = one ? SHARED_LANE : laneHeight(lanes.length);
    const rows = one ? 1 : lanes.length;
    const named = !one && lane >= NAMED_LANE;
    const start = startOf();
    const seen = (mark: number) => !hidden.has(KINDS[marks.kind[mark] as number]?.name ?? "");

    const hoverOf = (mark: number, area: Area): Hover => {
        const kind = KINDS[marks.kind[mark] as number] as Kind;
        const time = marks.time[mark] as number;
        const owner = lanes[marks.lane[mark] as number];
        const packets = marks.packets[mark] as number;
        const server = marks.server[mark] === 1;
        const lines: [string, string][] = [
            ["Time", moment(start, time, 9)],
            ["Sent by", server ? "server" : "client"],
            [
                "Payload",
                packets > 1
                    ? `${bytes(marks.least[mark] as number)} to ${bytes(marks.size[mark] as number)}`
                    : bytes(marks.size[mark] as number),
            ],
        ];
        if (packets > 1) {
            lines.push(["Packets", count(packets)]);
            lines.push(["Until", moment(start, marks.last[mark] as number, 9)]);
        }
        const link = marks.link[mark] as number;
        if (!Number.isNaN(link)) lines.push(["First sent", `${duration(time - link)} before`]);
        if (owner) lines.push([owner.id === null ? "Lane" : "Connection", owner.name]);
        const zoomIn = () => {
            const [from, to] = area.x.domain;
            zoomTo(time - (to - from) / 40, (marks.last[mark] as number) + (to - from) / 40);
        };
        const show = (id: string) => go({ view: "connection", params: { connection: id } });
        const behind =
            packets > 1 || owner?.id === null
                ? { open: zoomIn, openLabel: "Zoom in" }
                : owner
                  ? { open: () => show(owner.id as string), openLabel: "Show the connection" }
                  : {};
        return {
            x: area.x.to(time),
            y: area.top + line(marks.lane[mark] as number, lane, server),
            title: kind.label,
            lines,
            ...behind,
        };
    };

    const pick = (x: number, y: number, area: Area): Hover | null => {
        const reach = 14;
        const found = nearest(
            marks,
            [area.x.from(x - reach), area.x.from(x + reach)],
            [x, y],
            reach,
            (mark) => area.x.to(marks.time[mark] as number),
            (mark) =>
                seen(mark) ? area.top + line(marks.lane[mark] as number, lane, marks.server[mark] === 1) : Infinity,
        );
        return found < 0 ? null : hoverOf(found, area);
    };

    const anomaly = (from: number, step: 1 | -1) => {
        const [low, high] = range.value;
        return anomalyFrom(marks, from, cursor.value ?? (step > 0 ? low : high), step);
    };

    const present = new Set(timing.marks.kind);
    let links = 0;
    return (
        <>
            <ChartFrame
                name="timing"
                title="Packet timing"
                about={`Each mark is a packet${timing.exact ? "" : ", or all of one kind within a column, from the first to the last, and on top what was sent again, as its part of the data there"}: ${one ? "servers' above, clients' below, data as high as they are long" : timing.shared > 0 ? "connections share lanes until you zoom in; servers' above, clients' below, bars as tall as the largest payload" : "in each connection's lane the server's above, the client's below, bars as tall as the payload"}. A time in which nothing happens is a blank stripe. Shaded: more was lost than usual. n and p step to the next and previous repeat, reset or closed window${timing.exact ? "" : ", to repeated SYNs where each packet is drawn"}.`}
                height={Math.round(rows * lane) + FOOT + 52}
                left={
                    props.left ??
                    (named ? Math.min(520, 44 + 6.4 * Math.max(0, ...lanes.map((each) => each.name.length))) : ROOM)
                }
                y={{
                    kind: "linear",
                    plain: true,
                    domain: [Math.max(rows, 1) + FOOT / lane, 0],
                    // Without lanes there is no height for words.
                    label:
                        rows === 0
                            ? ""
                            : one
                              ? total === 1
                                  ? "one connection"
                                  : "all connections"
                              : `${count(timing.shared > 0 ? total : rows)} ${rows === 1 ? "connection" : "connections"}`,
                    ticks: one
                        ? [
                              { value: SERVER_LINE, label: "servers" },
                              { value: CLIENT_LINE, label: "clients" },
                          ]
                        : named
                          ? lanes.map((each, at) => ({ value: at + (SERVER_LINE + CLIENT_LINE) / 2, label: each.name }))
                          : [],
                }}
                legend={KINDS.filter((_, place) => present.has(place)).map((kind) => ({
                    label: kind.label,
                    color: colors.value[kind.colour],
                    shape: kind.shape,
                    hidden: hidden.has(kind.name),
                    toggle: () => {
                        const next = new Set(hidden);
                        if (!next.delete(kind.name)) next.add(kind.name);
                        setParam("hide", [...next].sort().join());
                    },
                }))}
                tools={
                    <button
                        type="button"
                        title="Show the time of the packets that are drawn"
                        disabled={marks.time.length === 0}
                        onClick={() => zoomTo(marks.time[0] as number, (marks.time.at(-1) as number) + 1e-6)}
                    >
                        Zoom to these
                    </button>
                }
                paint={(painter, area) => {
                    paintBands(painter, area, props.lossy);
                    drawMarks(painter, marks, area, { lane, dots: one, seen: (kind) => !hidden.has(kind.name) });
                    links = one || hidden.has("RETRANSMISSION") ? 0 : drawLinks(painter, marks, area, lane);
                }}
                pick={pick}
                steps={{
                    count: marks.time.length,
                    at: hoverOf,
                    keys: { n: (from) => anomaly(from, 1), p: (from) => anomaly(from, -1) },
                }}
            />
            {timing.shared === 0 && total > lanes.length && (
                <p class="warning">
                    {count(lanes.length)} of {count(total)} connections are drawn: what is blank here is not silence.
                    Zoom in, or filter, until all of a time are shown.
                </p>
            )}
            <p class="note">
                {several(timing.rows, "packet")} in this range
                {timing.exact
                    ? ", each drawn"
                    : `, in ${several(marks.time.length, "mark")}; zoom in until each is drawn`}
                .{links > MOST_LINKS && ` ${count(MOST_LINKS)} of ${count(links)} loops are drawn.`}
            </p>
        </>
    );
}
