/** The data exchange: application messages between hosts over time, and the packets beneath. */
import { columns, of } from "../api/client";
import type { Capture } from "../api/types";
import type { Area } from "../chart/axes";
import { paintBands } from "../chart/bands";
import { ChartFrame, startOf, type Hover } from "../chart/ChartFrame";
import { nearest } from "../chart/nearest";
import { FilterBox } from "../components/FilterBox";
import { Loading, useLoad } from "../components/load";
import { showConnectionOf } from "../components/marks";
import { useTimeline, type Timeline } from "../components/timeline";
import { bytes, clock, count, duration } from "../format";
import { drawMessages, hostsOf, readMessages, type Message } from "../packets/exchange";
import { Tabs } from "../packets/Tabs";
import { capture, param, state, zoomTo } from "../state/store";
import { colors } from "../theme";
import { columnsWide, loadTiming, TimingChart } from "./timing";
import "../packets/packets.css";

/** Width of a column of arrows, px: their heads are wider. */
const ARROW_COLUMN = 4;

interface Answer {
    messages: Message[];
    /** Messages in the range. */
    total: number;
    exact: boolean;
}

export default function Exchange() {
    const shown = capture.value as Capture;
    const { from, to } = state.value;
    const connection = param("connection");
    const filter = connection === "" ? param("filter") : `id = ${connection}`;
    const width = columnsWide();
    const query = { filter, from, to };
    const key = `${shown.id} ${JSON.stringify(query)} ${width}`;
    const answer = useLoad(`exchange ${key}`, async (signal): Promise<Answer> => {
        const rows = await columns(
            of(shown, "/exchange"),
            { ...query, width: Math.ceil(width / ARROW_COLUMN) },
            signal,
        );
        const { metadata } = rows;
        return {
            messages: readMessages(rows),
            total: Number(metadata.get("rows")),
            exact: metadata.get("exact") === "true",
        };
    });
    const packets = useLoad(shown.hasPackets ? `beneath ${key}` : null, (signal) =>
        loadTiming(shown, { ...query, limit: 0, share: 1 }, width, signal),
    );
    const lossy = useTimeline([]).data?.lossy ?? [];
    // The same for both charts, so that one time stands above the other.
    const names = answer.data === null ? [] : hostsOf(answer.data.messages).hosts;
    const left = Math.max(90, Math.min(320, 24 + 6.6 * Math.max(0, ...names.map((name) => name.length))));
    return (
        <>
            {connection === "" ? <FilterBox table="connections" example="server.port = 443" /> : <Tabs />}
            <Loading of={answer} what="Messages">
                {(data) => <Messages answer={data} left={left} lossy={lossy} />}
            </Loading>
            {shown.hasPackets && (
                <Loading of={packets} what="Packets">
                    {(data) => <TimingChart answer={data} one={true} left={left} lossy={lossy} />}
                </Loading>
            )}
        </>
    );
}

function Messages(props: { answer: Answer; left: number; lossy: Timeline["lossy"] }) {
    const { messages, total, exact } = props.answer;
    const { hosts, leftOut } = hostsOf(messages);
    const c = colors.value;
    const rows = Math.max(hosts.length, 2);
    const lines = new Map(hosts.map((host, at) => [host, at + 0.5]));
    const hover = (at: number, area: Area): Hover => {
        const message = messages[at] as Message;
        const several = message.count > 1;
        return {
            x: Math.min(Math.max(area.x.to(message.time), area.left), area.left + area.width),
            y: area.y.to(lines.get(message.sender) ?? 0),
            title: `${message.sender} → ${message.receiver}`,
            lines: [
                ["Time", clock(startOf(), message.time, 6)],
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
                } else void showConnectionOf("connections", message.row, message.time, message.end);
            },
            openLabel: several ? "Zoom in on them" : "Show the connection",
        };
    };
    return (
        <>
            <ChartFrame
                name="exchange"
                title="Data exchange"
                about="Each arrow is an application message (a data block), from the line of the host that sent it to that of its receiver, from its first packet to its last; the wider the larger. Who only asks stands above, who only answers below."
                height={Math.min(620, Math.max(180, rows * 60)) + 52}
                left={props.left}
                y={{
                    kind: "linear",
                    domain: [rows, 0],
                    label: "",
                    ticks: hosts.map((host, at) => ({ value: at + 0.5, label: host })),
                }}
                legend={[
                    { label: "from a client: request", color: c.blue },
                    { label: "from a server: response", color: c.green },
                ]}
                paint={(painter, area) => {
                    paintBands(painter, area, props.lossy);
                    drawMessages(painter, messages, lines, area);
                }}
                pick={(x, y, area) => {
                    const found = nearest(messages.length, x, y, 10, (at) => {
                        const message = messages[at] as Message;
                        const [y0, y1] = [lines.get(message.sender), lines.get(message.receiver)];
                        if (y0 === undefined || y1 === undefined) return null;
                        // The place on its line at the pointer's height.
                        const part = (y - area.y.to(y0)) / (area.y.to(y1) - area.y.to(y0));
                        if (!(part >= 0 && part <= 1)) return null;
                        return [area.x.to(message.time + part * (message.end - message.time)), y];
                    });
                    return found < 0 ? null : hover(found, area);
                }}
                steps={{ count: messages.length, at: hover }}
            />
            <p class="note">
                {count(total)} messages in this range
                {exact ? ", each drawn" : `, in ${count(messages.length)} arrows; zoom in until each is drawn`}.
                {leftOut > 0 && ` ${count(leftOut)} hosts with fewer messages have no line.`}
            </p>
        </>
    );
}
