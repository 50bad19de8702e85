/**
 * The data exchange: application messages between hosts over time, what each host waited for between them, and the
 * packets beneath.
 */
import { columns, of } from "../api/client";
import type { Capture } from "../api/types";
import type { Area } from "../chart/axes";
import { paintBands } from "../chart/bands";
import { ChartFrame, startOf, type Hover } from "../chart/ChartFrame";
import { nearest } from "../chart/nearest";
import { Kept, Loading, useLoad, useTogether } from "../components/load";
import { showConnectionOf } from "../components/marks";
import { useTimeline, type Timeline } from "../components/timeline";
import { bytes, count, duration, moment, several } from "../format";
import { arrowsAre, drawMessages, hostsOf, readMessages, type Message } from "../packets/exchange";
import { Selected } from "../packets/Selected";
import { drawWaits, offsetOf, placesOf, readWaits, WHYS, type Wait, type Waits } from "../packets/waits";
import { asked, capture, go, param, setParam, zoomTo } from "../state/store";
import { colors } from "../theme";
import { columnsWide, loadTiming, TimingChart } from "./timing";

/** Width of a column of arrows, px: their heads are wider. */
const ARROW_COLUMN = 4;

interface Answer {
    messages: Message[];
    /** Messages in the range. */
    total: number;
    exact: boolean;
    /** Null: not asked for. */
    waits: Waits | null;
}

export default function Exchange() {
    return (
        <Selected table="connections" example="server.port = 443">
            {(filter) => <Charts filter={filter} />}
        </Selected>
    );
}

function Charts(props: { filter: string }) {
    const shown = capture.value as Capture;
    const { from, to } = asked.value;
    const width = columnsWide();
    const query = { filter: props.filter, from, to };
    const dependencies = param("dependencies") === "1";
    const key = `${shown.id} ${JSON.stringify(query)} ${width}`;
    const answer = useLoad(`exchange ${key} ${dependencies}`, async (signal): Promise<Answer> => {
        const wide = { ...query, width: Math.ceil(width / ARROW_COLUMN) };
        const [rows, waits] = await Promise.all([
            columns(of(shown, "/exchange"), { ...wide, calls: dependencies || null }, signal),
            dependencies ? columns(of(shown, "/waits"), wide, signal) : null,
        ]);
        const { metadata } = rows;
        return {
            messages: readMessages(rows),
            total: Number(metadata.get("rows")),
            exact: metadata.get("exact") === "true",
            waits: waits === null ? null : readWaits(waits),
        };
    });
    const packets = useLoad(shown.hasPackets ? `beneath ${key}` : null, (signal) =>
        loadTiming(shown, { ...query, limit: 0, share: 1 }, width, signal),
    );
    // Each is drawn when it has come: both at once would take longer than a frame.
    const timeline = useTimeline([]);
    const above = useTogether(answer, timeline);
    const beneath = useTogether(packets, timeline);
    // The same for both charts, so that one time stands above the other.
    const names = above.data === null ? [] : hostsOf(above.data[0].messages).hosts;
    const left = Math.max(90, Math.min(320, 24 + 6.6 * Math.max(0, ...names.map((name) => name.length))));
    return (
        <>
            <Loading of={above} what="Messages">
                {([data, { lossy }]) => (
                    <Kept of={[data, left, lossy]}>{() => <Messages answer={data} left={left} lossy={lossy} />}</Kept>
                )}
            </Loading>
            {shown.hasPackets && (
                <Loading of={beneath} what="Packets">
                    {([data, { lossy }]) => (
                        <Kept of={[data, left, lossy]}>
                            {() => <TimingChart answer={data} one={true} left={left} lossy={lossy} />}
                        </Kept>
                    )}
                </Loading>
            )}
        </>
    );
}

/** Something that the chart shows, in the order of time. */
type Shown = { message: Message } | { wait: Wait; place: number };

function Messages(props: { answer: Answer; left: number; lossy: Timeline["lossy"] }) {
    const { messages, total, exact, waits } = props.answer;
    const { hosts, leftOut } = hostsOf(messages);
    const c = colors.value;
    const rows = Math.max(hosts.length, 2);
    const lines = new Map(hosts.map((host, at) => [host, at + 0.5]));
    const drawn = messages.filter(({ sender, receiver }) => lines.has(sender) && lines.has(receiver)).length;
    const places = placesOf(waits?.all ?? []);
    const items: Shown[] = [
        ...messages.map((message) => ({ message })),
        ...(waits?.all ?? []).map((wait, at) => ({ wait, place: places[at] as number })),
    ].sort((a, b) => timeOf(a) - timeOf(b));
    const within = (x: number, area: Area) => Math.min(Math.max(x, area.left), area.left + area.width);
    const hover = (at: number, area: Area): Hover => {
        const item = items[at] as Shown;
        return "message" in item
            ? hoverMessage(item.message, lines, area, within)
            : hoverWait(item.wait, within(area.x.to(item.wait.time), area), heightOf(item, lines, area));
    };
    return (
        <>
            <ChartFrame
                name="exchange"
                title="Data exchange"
                about={`${arrowsAre(exact)}; the wider the larger. Who only asks stands above, who only answers below.${waits === null ? "" : " A bar on a host's line says what it waited for between its messages, a triangle that the network took its message."}`}
                height={Math.min(620, Math.max(180, rows * (waits === null ? 60 : 90))) + 52}
                left={props.left}
                y={{
                    kind: "linear",
                    domain: [rows, 0],
                    label: "",
                    ticks: hosts.map((host, at) => ({ value: at + 0.5, label: host })),
                }}
                tools={
                    <button
                        type="button"
                        aria-pressed={waits !== null}
                        title="What each host waited for, and which calls to the tier behind were made for which request"
                        onClick={() => setParam("dependencies", waits === null ? "1" : "")}
                    >
                        Dependencies
                    </button>
                }
                legend={[
                    { label: "from a client: request", color: c.blue },
                    { label: "from a server: response", color: c.green },
                    ...WHYS.filter(({ name }) => (waits?.sums.get(name)?.count ?? 0) > 0).map(
                        ({ name, label, colour }) => ({
                            label: `${label}: ${duration(waits?.sums.get(name)?.seconds)}`,
                            color: c[colour],
                            shape: "square" as const,
                        }),
                    ),
                ]}
                paint={(painter, area) => {
                    paintBands(painter, area, props.lossy);
                    drawMessages(painter, messages, lines, area);
                    if (waits !== null) drawWaits(painter, waits.all, places, lines, area);
                }}
                pick={(x, y, area) => {
                    const found = nearest(items.length, x, y, 10, (at) => {
                        const item = items[at] as Shown;
                        if ("wait" in item) {
                            const [from, to] = [area.x.to(item.wait.time), area.x.to(item.wait.end)];
                            return [Math.min(Math.max(x, from), to), heightOf(item, lines, area)];
                        }
                        const { message } = item;
                        const [y0, y1] = [lines.get(message.sender), lines.get(message.receiver)];
                        if (y0 === undefined || y1 === undefined) return null;
                        // The place on its line at the pointer's height.
                        const part = (y - area.y.to(y0)) / (area.y.to(y1) - area.y.to(y0));
                        if (!(part >= 0 && part <= 1)) return null;
                        return [area.x.to(message.time + part * (message.end - message.time)), y];
                    });
                    return found < 0 ? null : hover(found, area);
                }}
                steps={{ count: items.length, at: hover }}
            />
            <p class="note">
                {several(total, "message")} in this range
                {exact && drawn === messages.length
                    ? ", each drawn"
                    : `, ${several(drawn, "arrow")} drawn${exact ? "" : "; zoom in until each message is one"}`}
                .
                {leftOut > 0 &&
                    ` ${several(leftOut, "host")} with fewer messages: without a line, their messages are not drawn.`}
            </p>
            {waits !== null && (
                <p class="note">
                    {several(waits.total, "wait")} in this range
                    {waits.exact ? ", each drawn" : `, in ${several(waits.all.length, "bar")}`}.{" "}
                    {waits.decided + waits.ambiguous + waits.alone > 0 &&
                        `Of all calls to tiers behind, ${count(waits.decided)} fit one request by their times, ${count(waits.ambiguous)} fit several, ${count(waits.alone)} none.`}
                </p>
            )}
        </>
    );
}

const timeOf = (item: Shown): number => ("message" in item ? item.message.time : item.wait.time);

function heightOf(item: { wait: Wait; place: number }, lines: ReadonlyMap<string, number>, area: Area): number {
    return area.y.to(lines.get(item.wait.host) ?? -1) + offsetOf(item.place);
}

function hoverMessage(
    message: Message,
    lines: ReadonlyMap<string, number>,
    area: Area,
    within: (x: number, area: Area) => number,
): Hover {
    const several = message.count > 1;
    return {
        x: within(area.x.to(message.time), area),
        y: area.y.to(lines.get(message.sender) ?? 0),
        title: `${message.sender} → ${message.receiver}`,
        lines: [
            ["Time", moment(startOf(), message.time, 6)],
            ["From first to last packet", duration(message.end - message.time)],
            ["What", `${message.server ? "response" : "request"}, port ${message.port}`],
            ["Payload", bytes(message.bytes)],
            ["Packets", count(message.packets)],
            ...(several ? [["Messages", count(message.count)] as [string, string]] : []),
        ],
        open: () => {
            if (several) {
                const [from, to] = area.x.domain;
                zoomTo(message.time - (to - from) / 20, message.end + (to - from) / 20);
            } else showConnectionOf("connections", message.row, message.time, message.end);
        },
        openLabel: several ? "Zoom in on them" : "Show the connection",
    };
}

function hoverWait(wait: Wait, x: number, y: number): Hover {
    const { forConnection } = wait;
    const lines: [string, string][] = [
        ["Time", moment(startOf(), wait.time, 6)],
        ["How long", duration(wait.seconds)],
    ];
    if (wait.count > 1) {
        lines.push(["Waits", count(wait.count)]);
        return {
            x,
            y,
            title: `${wait.host}: ${wait.why.label}`,
            lines,
            open: () => zoomTo(wait.time, wait.end),
            openLabel: "Zoom in on them",
        };
    }
    lines.push(["Request", `${wait.client} → ${wait.server}`]);
    if (wait.behind !== null) lines.push(["Call", `${wait.call} of ${wait.calls}, to ${wait.behind}`]);
    else if (wait.calls > 0) lines.push(["Calls for this request", count(wait.calls)]);
    if (forConnection !== null)
        lines.push(["Itself a call for", `connection ${forConnection}, ${moment(startOf(), wait.forTime, 6)}`]);
    // Up to the request in front, or along its connection.
    const next = forConnection ?? (param("connection") === wait.connection ? wait.callConnection : wait.connection);
    return {
        x,
        y,
        title: `${wait.host}: ${wait.why.label}`,
        lines,
        ...(next === null
            ? {}
            : { open: () => go({ params: { connection: next } }), openLabel: "Show that connection and its calls" }),
    };
}
