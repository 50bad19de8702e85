/** One connection: its time-sequence graph, what was under way against the windows, and what each limit would allow. */
import { columns, of } from "../api/client";
import type { Capture } from "../api/types";
import type { Area } from "../chart/axes";
import { ChartFrame, startOf, type Hover } from "../chart/ChartFrame";
import { Explained } from "../components/Explained";
import { Loading, useLoad } from "../components/load";
import { Named } from "../components/Named";
import { bits, bytes, count, duration, moment, UNKNOWN } from "../format";
import { CeilingCharts } from "../packets/CeilingCharts";
import { carried, lostOf, nameOf, span, type One, type Side } from "../packets/connection";
import { drawFlight, drawSequence } from "../packets/draw";
import { OfConnection } from "../packets/OfConnection";
import {
    flightTop,
    readMarks,
    readSequence,
    rowAt,
    rowsWithin,
    valuesBetween,
    type Mark,
    type Sequence,
} from "../packets/sequence";
import { extent } from "../packets/steps";
import { capture, go, param, range, setParam } from "../state/store";
import { colors } from "../theme";
import { PacketTable } from "./packets";

/** Repeats and SACKs that are marked, at most; the lines show all packets. */
const MOST_MARKS = 20_000;

export default function ConnectionView() {
    return (
        <OfConnection>
            {(one) => (
                <>
                    <Facts one={one} />
                    {carried(one) ? (
                        <>
                            <Charts one={one} />
                            <CeilingCharts one={one} />
                        </>
                    ) : (
                        <PacketTable one={one} />
                    )}
                </>
            )}
        </OfConnection>
    );
}

function Facts(props: { one: One }) {
    const { connection, packets } = props.one;
    const [client, server] = [connection.clientToServer, connection.serverToClient];
    const both = (value: (side: Side) => string) => `${value(client)} / ${value(server)}`;
    const facts: [string, string][] = [
        ["Client", nameOf(connection.client)],
        ["Server", nameOf(connection.server)],
        ["Setup", connection.setup ? `${connection.setup.outcome}: ${connection.setup.description}` : UNKNOWN],
        ["Closed by", connection.close?.kind ?? UNKNOWN],
        ["Duration", duration(connection.durationSeconds)],
        ["Packets", count(packets)],
        ["Payload, client / server", both((side) => bytes(Number(side.payloadBytes)))],
        ["Transfer rate, client / server", both((side) => bits(side.ceilings?.measuredBitsPerSecond))],
        ["Packets sent again", both((side) => count(side.retransmittedPackets))],
        ["Segments lost, client / server", both(lostOf)],
        [
            "Smallest round trip from the tap",
            `to server ${duration(client.rtt?.minSeconds)}, to client ${duration(server.rtt?.minSeconds)}`,
        ],
    ];
    return (
        <section class="panel" aria-label="Connection in figures">
            <Named look="attributes" values={facts} />
            {connection.setup?.explanation && (
                <p class="note">
                    {connection.setup.explanation}{" "}
                    <Explained
                        attempt={{
                            service: nameOf(connection.server),
                            time: props.one.from,
                            outcome: connection.setup.outcome,
                            synAcks: connection.setup.synAckCount ?? 0,
                        }}
                    />
                </p>
            )}
        </section>
    );
}

interface Answer {
    sequence: Sequence;
    marks: Mark[];
    /** Of the marks that there are. */
    total: number;
}

async function load(
    shown: Capture,
    id: string,
    query: { side: string; from: number; to: number },
    width: number,
    signal: AbortSignal,
) {
    const route = of(shown, `/connections/${encodeURIComponent(id)}`);
    const { side, from, to } = query;
    const [lines, packets] = await Promise.all([
        columns(`${route}/sequence`, { side, from, to, width }, signal),
        columns(`${route}/packets`, { from, to, kinds: "RETRANSMISSION,DSACK,SACK", limit: MOST_MARKS }, signal),
    ]);
    const sequence = readSequence(lines);
    return {
        sequence,
        marks: readMarks(packets, sequence.side),
        total: Number(packets.metadata.get("total")),
    } satisfies Answer;
}

function Charts(props: { one: One }) {
    const { one } = props;
    const shown = capture.value as Capture;
    // A view's width before and half of one behind: what held when the view begins is known, and there is something to move into.
    const [from, to] = range.value;
    const wide = to - from;
    const query = { side: param("side"), from: Math.max(0, from - wide), to: to + wide / 2 };
    const width = Math.min(4096, Math.max(256, Math.ceil((innerWidth - 300) / 64) * 64 * 2.5));
    const answer = useLoad(`sequence ${shown.id} ${one.connection.id} ${JSON.stringify(query)} ${width}`, (signal) =>
        load(shown, one.connection.id, query, width, signal),
    );
    return (
        <Loading of={answer} what="Packets">
            {(data) => (
                <>
                    <SequenceChart one={one} {...data} />
                    {data.total > MOST_MARKS && (
                        <p class="note">
                            {count(MOST_MARKS)} of {count(data.total)} repeats and SACKs are marked; zoom in for the
                            others.
                        </p>
                    )}
                    <FlightChart sequence={data.sequence} />
                </>
            )}
        </Loading>
    );
}

/** To the packets around a time. */
const toPackets = (at: number) => go({ view: "packets", params: { at: at.toFixed(9) } });

function figures(of: Sequence, row: number): [string, string][] {
    const start = startOf();
    const range = (low: number, high: number) =>
        Number.isNaN(low) ? UNKNOWN : low === high ? count(high) : `${count(low)} to ${count(high)}`;
    const at = (steps: { low: Float64Array; high: Float64Array }) =>
        range(steps.low[row] as number, steps.high[row] as number);
    const lines: [string, string][] = [
        ["Time", moment(start, of.time[row] as number, 9)],
        ["Sent (first to last byte)", at(of.sent)],
        ["Acknowledged", at(of.acknowledged)],
        ["In flight", at(of.inFlight)],
        ["Window", at(of.window)],
    ];
    const packets = of.packets[row] as number;
    if (packets > 1) lines.push(["Data packets", count(packets)]);
    const again = of.retransmitted[row] as number;
    if (again > 0) lines.push(["Sent again", count(again)]);
    return lines;
}

function hover(of: Sequence, row: number, area: Area, y: number | undefined): Hover {
    const time = of.time[row] as number;
    return {
        x: area.x.to(time),
        ...(y === undefined ? {} : { y }),
        title: of.exact ? "Packet" : "Packets of this column",
        lines: figures(of, row),
        open: () => toPackets(time),
        openLabel: "Show the packets",
    };
}

function SequenceChart(props: { one: One; sequence: Sequence; marks: Mark[] }) {
    const { one, sequence, marks } = props;
    const [from, to] = range.value;
    const c = colors.value;
    const sender = sequence.side;
    const receiver = sender === "client" ? "server" : "client";
    const values = valuesBetween(sequence, from, to);
    const visited = rowsWithin(sequence, sequence.inFlight, from, to);
    const edge = extent(sequence.edge, from, to);
    const above = edge === null ? ", not known" : edge[1] > values[1] ? ", above the picture" : "";
    const pick = (x: number, y: number, area: Area): Hover | null => {
        // A mark first, where one is near.
        let best: Mark | null = null;
        let least = 8;
        for (const mark of marks) {
            const distance = Math.hypot(area.x.to(mark.time) - x, y - area.y.to((mark.low + mark.high) / 2));
            if (distance < least) [best, least] = [mark, distance];
        }
        if (best !== null) {
            const { time, low, high, what } = best;
            return {
                x: area.x.to(time),
                y: area.y.to((low + high) / 2),
                title: { again: "Sent again", sack: "Selectively acknowledged", dsack: "Came twice (D-SACK)" }[what],
                lines: [
                    ["Time", moment(startOf(), time, 9)],
                    ["Bytes", `${count(low)} to ${count(high)}`],
                    ["Length", bytes(high - low)],
                ],
                open: () => toPackets(time),
                openLabel: "Show the packets",
            };
        }
        const row = rowAt(sequence, area.x.from(x));
        if (row < 0) return null;
        const high = sequence.sent.high[row] as number;
        return hover(sequence, row, area, Number.isNaN(high) ? undefined : area.y.to(high));
    };
    return (
        <ChartFrame
            name="sequence"
            title={`Time and sequence: data of the ${sender}`}
            about={`Bars are data from their first to their last byte. Below them the line of what the ${receiver} acknowledged; above, how far its window let the ${sender} go. Level data with acknowledgments coming: the application waits; data along the upper line: the window limits; red: sent again.`}
            height={430}
            left={96}
            y={{
                kind: "linear",
                whole: true,
                domain: valuesBetween(sequence, from, to),
                label: "bytes since the first",
                format: (value) => count(Math.round(value)),
            }}
            legend={[
                { label: `data of the ${sender}`, color: c.text },
                { label: "acknowledged", color: c.green },
                { label: `window of the ${receiver}${above}`, color: c.purple, dash: [5, 3] },
                ...(marks.some((mark) => mark.what === "again")
                    ? [{ label: "sent again", color: c.red, shape: "square" as const }]
                    : []),
                ...(marks.some((mark) => mark.what === "sack")
                    ? [{ label: "selectively acknowledged", color: c.blue, shape: "plus" as const }]
                    : []),
                ...(marks.some((mark) => mark.what === "dsack")
                    ? [{ label: "came twice (D-SACK)", color: c.orange, shape: "plus" as const }]
                    : []),
            ]}
            tools={
                <>
                    {(["client", "server"] as const).map((side) => (
                        <button
                            key={side}
                            type="button"
                            aria-pressed={sender === side}
                            onClick={() => setParam("side", side)}
                        >
                            Data of the {side}
                        </button>
                    ))}
                    <button
                        type="button"
                        onClick={() => {
                            const [begin, end] = span(one);
                            go({ from: begin, to: end });
                        }}
                    >
                        Connection
                    </button>
                </>
            }
            paint={(painter, area) => drawSequence(painter, sequence, marks, area, c)}
            pick={pick}
            steps={{
                count: visited.length,
                at: (step, area) => {
                    const row = visited[step] as number;
                    const high = sequence.sent.high[row] as number;
                    return hover(sequence, row, area, Number.isNaN(high) ? undefined : area.y.to(high));
                },
            }}
        />
    );
}

function FlightChart(props: { sequence: Sequence }) {
    const { sequence } = props;
    const c = colors.value;
    const [from, to] = range.value;
    const top = flightTop(sequence, from, to);
    const visited = rowsWithin(sequence, sequence.inFlight, from, to);
    const receiver = sequence.side === "client" ? "server" : "client";
    const at = (row: number, area: Area) =>
        hover(sequence, row, area, area.y.to(sequence.inFlight.high[row] as number));
    return (
        <ChartFrame
            name="in-flight"
            title={`In flight: data of the ${sequence.side}`}
            about={`What the tap saw sent and not yet acknowledged, against the window of the ${receiver}${sequence.ideal === null ? "" : " and the window that would fill the path (rate × round trip)"}. Touching the window: the receiver limits; flat below it: the sender; growing until packets are sent again: the path.`}
            height={260}
            left={96}
            y={{ kind: "linear", domain: [0, top.value], label: "bytes", format: (value) => bytes(value) }}
            legend={[
                { label: "in flight", color: c.blue },
                {
                    label: `window of the ${receiver}${top.cut ? ", above the picture" : ""}`,
                    color: c.purple,
                    dash: [5, 3],
                },
                ...(sequence.ideal === null
                    ? []
                    : [{ label: `ideal window, ${bytes(sequence.ideal)}`, color: c.orange, dash: [2, 3] }]),
            ]}
            paint={(painter, area) => drawFlight(painter, sequence, area, c)}
            pick={(x, _, area) => {
                const row = rowAt(sequence, area.x.from(x));
                return row < 0 ? null : at(row, area);
            }}
            steps={{ count: visited.length, at: (step, area) => at(visited[step] as number, area) }}
        />
    );
}
