/** Who talks to whom: clients on the left, servers on the right; how much, and how much of it was sent again. */
import { json, of } from "../api/client";
import type { Capture, Dialogue, Dialogues, DialogueSide } from "../api/types";
import type { Area } from "../chart/axes";
import { ChartFrame, type Hover } from "../chart/ChartFrame";
import { nearest } from "../chart/nearest";
import { FilterBox } from "../components/FilterBox";
import { Link } from "../components/Link";
import { Loading, useLoad } from "../components/load";
import { bytes, count, duration, percent, several, shortened } from "../format";
import { nameOf } from "../packets/connection";
import { asked, capture, go, param, type Change } from "../state/store";
import { colors, type Colors } from "../theme";
import { and, FAILED, FAILED_COLUMNS, quoted } from "./open";

/** Lines in the picture; the table has all that were asked for. */
const DRAWN = 40;

export default function DialoguesView() {
    const shown = capture.value as Capture;
    const { from, to } = asked.value;
    const filter = param("filter");
    const loaded = useLoad(`dialogues ${shown.id} ${from} ${to} ${filter}`, (signal) =>
        json<Dialogues>(of(shown, "/dialogues"), { from, to, filter, limit: 500 }, signal),
    );
    return (
        <>
            <FilterBox table="connections" example='server.address = "10.0.0.1"' />
            <Loading of={loaded} what="Dialogues">
                {(data) =>
                    data.dialogues.length === 0 ? <p class="waiting">No connection matches.</p> : <Body data={data} />
                }
            </Loading>
        </>
    );
}

/** Steps of the retransmission rate; 0.5 % is the line of Microsoft's method (docs/src/losses.md). */
const RATES: readonly { upTo: number; label: string; color: (c: Colors) => string }[] = [
    { upTo: 0.005, label: "up to 0.5 %", color: (c) => c.green },
    { upTo: 0.01, label: "up to 1 %", color: (c) => c.blue },
    { upTo: 0.05, label: "up to 5 %", color: (c) => c.orange },
    { upTo: Infinity, label: "above", color: (c) => c.red },
];

export function rateColor(rate: number | null, c: Colors): string {
    if (rate === null) return c.grey;
    return (RATES.find((step) => rate <= step.upTo) ?? (RATES.at(-1) as (typeof RATES)[number])).color(c);
}

const serverName = ({ server, port }: Dialogue) => nameOf({ address: server, port });

function toRows(dialogue: Dialogue): Change {
    const filter = and(
        param("filter"),
        `client.address = ${quoted(dialogue.client ?? "")}`,
        `server.address = ${quoted(dialogue.server ?? "")}`,
        `server.port = ${dialogue.port}`,
    );
    return { view: "connections", params: { filter } };
}

interface Line {
    dialogue: Dialogue;
    side: DialogueSide;
    towardServer: boolean;
    /** Height of its two ends, 0 to 1 from the top. */
    left: number;
    right: number;
}

/** Places of the hosts, the busiest on top, and the lines between them: two for each dialogue. */
export function arrange(dialogues: readonly Dialogue[]): { clients: string[]; servers: string[]; lines: Line[] } {
    const total = (pick: (dialogue: Dialogue) => string) => {
        const sums = new Map<string, number>();
        for (const dialogue of dialogues) {
            const name = pick(dialogue);
            sums.set(name, (sums.get(name) ?? 0) + dialogue.clientToServer.bytes + dialogue.serverToClient.bytes);
        }
        return [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
    };
    const clients = total((dialogue) => dialogue.client ?? "?");
    const servers = total(serverName);
    const place = (list: string[], name: string) => (list.indexOf(name) + 0.5) / list.length;
    const lines = dialogues.flatMap((dialogue) => {
        const left = place(clients, dialogue.client ?? "?");
        const right = place(servers, serverName(dialogue));
        return [
            { dialogue, side: dialogue.clientToServer, towardServer: true, left, right },
            { dialogue, side: dialogue.serverToClient, towardServer: false, left, right },
        ];
    });
    return { clients, servers, lines };
}

/** A letter of a host's name of this size, and what is beside the name, px. */
const SIZE = 12.5;
const LETTER = 7.2;
const BESIDE = 24;
/** In a narrower picture names are smaller, px. */
const NARROW = 420;
const SMALLER = 10.5;
/** Half of a figure on a line, px. */
const FIGURE = [24, 8] as const;
/** Above the hosts: what stands on this side, px. */
const HEAD = 20;

function Body(props: { data: Dialogues }) {
    const { data } = props;
    const drawn = data.dialogues.slice(0, DRAWN);
    const { clients, servers, lines } = arrange(drawn);
    const most = Math.max(1, ...lines.map((line) => line.side.bytes));
    const tall = Math.max(180, Math.min(900, Math.max(clients.length, servers.length) * 46 + 60));
    const c = colors.value;
    const width = (line: Line) => (line.side.packets === 0 ? 0 : 1.5 + 12 * Math.sqrt(line.side.bytes / most));
    const longest = Math.max(...clients.map((name) => name.length), ...servers.map((name) => name.length));
    const sizeIn = (area: Area) => (area.width < NARROW ? SMALLER : SIZE);
    const letterIn = (area: Area) => (LETTER * sizeIn(area)) / SIZE;
    /** Room for the names on either side, px. */
    const labels = (area: Area) =>
        Math.min(
            Math.max(60, BESIDE + letterIn(area) * (longest + 0.5)),
            area.width * (area.width < NARROW ? 0.4 : 0.36),
        );
    const height = (share: number, area: Area) => area.top + HEAD + share * (area.height - HEAD);
    // Both directions of a dialogue lie beside each other.
    const ends = (line: Line, area: Area) => {
        const shift = line.towardServer ? -7 : 7;
        return {
            x0: area.left + labels(area),
            x1: area.left + area.width - labels(area),
            y0: height(line.left, area) + shift,
            y1: height(line.right, area) + shift,
        };
    };
    /** A point of the curve, t from 0 (client) to 1. */
    const along = (line: Line, area: Area, t: number): [number, number] => {
        const { x0, x1, y0, y1 } = ends(line, area);
        const smooth = t * t * (3 - 2 * t);
        return [x0 + (x1 - x0) * (1.5 * t - 1.5 * t * t + t * t * t), y0 + (y1 - y0) * smooth];
    };
    const hoverOf = (line: Line, area: Area): Hover => {
        const { dialogue, side } = line;
        const [x, y] = along(line, area, 0.5);
        return {
            x,
            y,
            title: line.towardServer
                ? `${dialogue.client} → ${serverName(dialogue)}`
                : `${serverName(dialogue)} → ${dialogue.client}`,
            lines: [
                ["connections", `${count(dialogue.connections)} (${count(dialogue.failed)} failed)`],
                ["packets", count(side.packets)],
                ["payload", bytes(side.bytes)],
                ["data packets sent again", `${count(side.retransmittedPackets)} of ${count(side.dataPackets)}`],
                ["share of the data packets sent again", percent(side.retransmissionRate)],
                ["lost before the tap", count(side.lostBeforeTap)],
                ["lost behind the tap", count(side.lostBehindTap)],
                ["lost, place unknown", count(side.lostUnknown)],
                ["missed by the capture", count(side.missedByCapture)],
                ["least round trip, tap to receiver", duration(side.minRttSeconds)],
            ],
            open: () => go(toRows(dialogue)),
            openLabel: "Show its connections",
        };
    };
    const pairs = lines.filter((line) => line.side.packets > 0);
    return (
        <>
            <ChartFrame
                name="dialogues"
                title={several(data.total, "dialogue")}
                about={`Thickness: payload. Colour and figure: share of the data packets that were sent again, in each direction (upper line: to the server).${data.total > drawn.length ? ` The ${drawn.length} with most payload are drawn; the table has ${count(data.dialogues.length)}.` : ""}`}
                height={tall}
                bare
                left={10}
                x={{ kind: "linear", domain: [0, 1], label: "" }}
                y={{ kind: "linear", domain: [0, 1], label: "" }}
                legend={[
                    ...RATES.map((step) => ({ label: step.label, color: step.color(c) })),
                    { label: "no data", color: c.grey },
                ]}
                paint={(painter, area) => {
                    for (const line of [...pairs].sort((a, b) => b.side.bytes - a.side.bytes)) {
                        const { x0, x1, y0, y1 } = ends(line, area);
                        const middle = (x0 + x1) / 2;
                        painter.path(`M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}`, null, {
                            color: rateColor(line.side.retransmissionRate, c),
                            width: width(line),
                            opacity: 0.85,
                        });
                    }
                    const [wide, high] = FIGURE;
                    const told: [number, number][] = [];
                    for (const line of pairs) {
                        if ((line.side.retransmissionRate ?? 0) < 0.005 || pairs.length > 24) continue;
                        const [x, y] = along(line, area, line.towardServer ? 0.4 : 0.6);
                        const text = percent(line.side.retransmissionRate);
                        // Where lines are short, a figure would cover them, or another; the colour and the table tell, too.
                        const { x0, x1 } = ends(line, area);
                        const covers = ([a, b]: [number, number]) =>
                            Math.abs(a - x) < 2 * wide && Math.abs(b - y) < 2 * high;
                        if (x1 - x0 < 6 * wide || told.some(covers)) continue;
                        told.push([x, y]);
                        painter.rect(x - wide, y - high, 2 * wide, 2 * high, c.panel);
                        painter.text(text, x, y, { color: c.text, align: "center", size: 11, bold: true });
                    }
                    const room = labels(area);
                    const letters = Math.floor((room - BESIDE) / letterIn(area));
                    const sides = [
                        { names: clients, what: "clients", x: area.left + room - 12, align: "right" },
                        { names: servers, what: "servers", x: area.left + area.width - room + 12, align: "left" },
                    ] as const;
                    for (const { names, what, x, align } of sides) {
                        names.forEach((name, i) =>
                            painter.text(shortened(name, letters), x, height((i + 0.5) / names.length, area), {
                                color: c.text,
                                align,
                                size: sizeIn(area),
                            }),
                        );
                        painter.text(what, x, area.top + 6, { color: c.muted, align, size: 11 });
                    }
                }}
                pick={(x, y, area) => {
                    const steps = 24;
                    const found = nearest(pairs.length * (steps + 1), x, y, 12, (index) =>
                        along(pairs[Math.floor(index / (steps + 1))] as Line, area, (index % (steps + 1)) / steps),
                    );
                    return found < 0 ? null : hoverOf(pairs[Math.floor(found / (steps + 1))] as Line, area);
                }}
                steps={{ count: pairs.length, at: (index, area) => hoverOf(pairs[index] as Line, area) }}
            />
            <DialogueTable data={data} />
        </>
    );
}

/** Columns of each direction, and what they are. */
const HEADS = [
    ["packets", "Packets"],
    ["payload", "Payload, repeats included"],
    ["sent again", "Share of the data packets that were sent again"],
    ["lost before tap", "Segments lost between their sender and the tap"],
    ["lost behind tap", "Segments lost between the tap and their receiver"],
    ["least RTT", "Least round trip from the tap to the receiver and back"],
] as const;

function DialogueTable(props: { data: Dialogues }) {
    const { dialogues, leftOut, total } = props.data;
    const side = (one: DialogueSide) => [
        <td key="packets" class="begins">
            {count(one.packets)}
        </td>,
        <td key="bytes">{bytes(one.bytes)}</td>,
        <td key="rate">{percent(one.retransmissionRate)}</td>,
        <td key="before">{count(one.lostBeforeTap)}</td>,
        <td key="behind">{count(one.lostBehindTap)}</td>,
        <td key="rtt">{duration(one.minRttSeconds)}</td>,
    ];
    const heads = (way: string) =>
        HEADS.map(([name, title]) => (
            <th scope="col" key={way + name} title={title} class={name === HEADS[0][0] ? "begins" : undefined}>
                <span aria-hidden="true">{name}</span>
                <span class="unseen">
                    {name} {way}
                </span>
            </th>
        ));
    return (
        <section class="panel scroll long" aria-label="Dialogues as a table" tabIndex={0}>
            <table class="figures dense">
                <caption>
                    Dialogues by payload
                    {total > dialogues.length ? ` (${count(dialogues.length)} of ${count(total)})` : ""}
                </caption>
                <thead>
                    <tr>
                        <td colSpan={4} />
                        {["→ to the server", "← to the client"].map((way) => (
                            <th scope="colgroup" key={way} colSpan={HEADS.length} class="text begins">
                                {way}
                            </th>
                        ))}
                    </tr>
                    <tr>
                        <th scope="col">client</th>
                        <th scope="col" class="text">
                            server
                        </th>
                        <th scope="col">connections</th>
                        <th scope="col">failed</th>
                        {heads("to the server")}
                        {heads("to the client")}
                    </tr>
                </thead>
                <tbody>
                    {dialogues.map((dialogue) => (
                        <tr key={`${dialogue.client} ${serverName(dialogue)}`}>
                            <th scope="row">{dialogue.client}</th>
                            <th scope="row">{serverName(dialogue)}</th>
                            <td>
                                <Link to={toRows(dialogue)}>{count(dialogue.connections)}</Link>
                            </td>
                            <td>
                                {dialogue.failed === 0 ? (
                                    "0"
                                ) : (
                                    <Link
                                        to={{
                                            view: "connections",
                                            params: {
                                                filter: and(
                                                    FAILED,
                                                    `server.address = ${quoted(dialogue.server ?? "")}`,
                                                    `server.port = ${dialogue.port}`,
                                                ),
                                                columns: FAILED_COLUMNS.join(","),
                                            },
                                        }}
                                    >
                                        {count(dialogue.failed)}
                                    </Link>
                                )}
                            </td>
                            {side(dialogue.clientToServer)}
                            {side(dialogue.serverToClient)}
                        </tr>
                    ))}
                    {leftOut && (
                        <tr>
                            <th scope="row" colSpan={2}>
                                all others
                            </th>
                            <td>{count(leftOut.connections)}</td>
                            <td>{count(leftOut.failed)}</td>
                            {side(leftOut.clientToServer)}
                            {side(leftOut.serverToClient)}
                        </tr>
                    )}
                </tbody>
            </table>
        </section>
    );
}
