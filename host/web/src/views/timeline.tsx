/** The capture over time: how much was under way, how fast, how much was lost. */
import { ratio, SeriesChart, shares } from "../chart/SeriesChart";
import { FilterBox } from "../components/FilterBox";
import { Loading } from "../components/load";
import { perSecond, useTimeline, type Timeline } from "../components/timeline";
import { bits, percent } from "../format";
import { go } from "../state/store";
import { colors } from "../theme";

const NAMES = [
    ..."connections_min connections_max connections_mean in_progress_min in_progress_max in_progress_mean".split(" "),
    ..."opened closed failed requests responses client_packets server_packets client_bytes server_bytes".split(" "),
    ..."client_retransmitted server_retransmitted client_lost server_lost syn_repeats syn_ack_repeats".split(" "),
    "missed_by_capture",
];

export default function TimeLines() {
    const loaded = useTimeline(NAMES);
    return (
        <>
            <FilterBox table="connections" example="server.port = 443" />
            <Loading of={loaded} what="Time lines">
                {(timeline) => <Charts timeline={timeline} />}
            </Loading>
        </>
    );
}

/** Segments that were sent, at least, by column: what was lost before the tap never passed it. */
export function sentAtLeast(passed: ArrayLike<number>, lost: ArrayLike<number>): Float64Array {
    return Float64Array.from({ length: passed.length }, (_, at) => Math.max(passed[at] as number, lost[at] as number));
}

function Charts(props: { timeline: Timeline }) {
    const { timeline } = props;
    const c = colors.value;
    const get = (name: string) => timeline.columns.numbers(name);
    const rate = (name: string) => perSecond(get(name), timeline.step);
    const bitsOf = (name: string) =>
        ratio(
            Float64Array.from(get(name), (value) => value * 8),
            timeline.step,
        );
    const lost = (side: string) => {
        const segments = get(`${side}_lost`);
        return shares(segments, sentAtLeast(get(`${side}_packets`), segments));
    };
    const rows = {
        open: (from: number, to: number) => go({ view: "connections", from, to }),
        openLabel: "Show the connections that begin here",
    };
    return (
        <>
            <SeriesChart
                name="concurrency"
                title="Under way at once"
                about="Connections that are open and requests whose response is still to come; the fill reaches from the smallest to the largest of each moment. Shaded: more was lost than usual."
                unit="at once"
                whole
                timeline={timeline}
                series={[
                    {
                        name: "connections",
                        color: c.blue,
                        values: get("connections_max"),
                        low: get("connections_min"),
                        mean: get("connections_mean"),
                    },
                    {
                        name: "requests in progress",
                        color: c.orange,
                        dash: [6, 3],
                        values: get("in_progress_max"),
                        low: get("in_progress_min"),
                        mean: get("in_progress_mean"),
                    },
                ]}
                {...rows}
            />
            <SeriesChart
                name="rates"
                title="Per second"
                about="Connections and requests that begin, responses that end, setups that failed; each over at least one second."
                unit="per second"
                timeline={timeline}
                series={[
                    { name: "connections opened", color: c.blue, values: rate("opened") },
                    { name: "requests", color: c.orange, values: rate("requests"), dash: [6, 3] },
                    { name: "responses", color: c.green, values: rate("responses"), dash: [2, 2] },
                    { name: "failed setups", color: c.red, values: rate("failed") },
                ]}
                {...rows}
            />
            <SeriesChart
                name="throughput"
                title="Throughput"
                about="Payload on the wire in each direction, repeats included."
                unit=""
                format={bits}
                timeline={timeline}
                series={[
                    { name: "client to server", color: c.blue, values: bitsOf("client_bytes") },
                    { name: "server to client", color: c.orange, values: bitsOf("server_bytes"), dash: [6, 3] },
                ]}
                {...rows}
            />
            <SeriesChart
                name="losses"
                title="Losses"
                about="Share of the data segments that the network lost, when they passed or should have, and of those that were sent again, in each direction. What was lost before the tap counts as sent."
                unit="share of data segments"
                format={percent}
                timeline={timeline}
                series={[
                    {
                        name: "lost, client to server",
                        color: c.blue,
                        ...lost("client"),
                    },
                    {
                        name: "lost, server to client",
                        color: c.orange,
                        dash: [6, 3],
                        ...lost("server"),
                    },
                    {
                        name: "sent again, client",
                        color: c.sky,
                        dash: [2, 2],
                        ...shares(get("client_retransmitted"), get("client_packets")),
                    },
                    {
                        name: "sent again, server",
                        color: c.purple,
                        dash: [2, 2],
                        ...shares(get("server_retransmitted"), get("server_packets")),
                    },
                ]}
                {...rows}
            />
            <SeriesChart
                name="setup-losses"
                title="Repeated SYNs and what the capture missed"
                about="SYN and SYN-ACK packets that came again, and segments that were delivered although the capture does not have them; each over at least one second."
                unit="per second"
                timeline={timeline}
                series={[
                    { name: "SYN again", color: c.red, values: rate("syn_repeats") },
                    { name: "SYN-ACK again", color: c.purple, values: rate("syn_ack_repeats"), dash: [6, 3] },
                    {
                        name: "missed by the capture",
                        color: c.grey,
                        values: rate("missed_by_capture"),
                        dash: [2, 2],
                    },
                ]}
                {...rows}
            />
        </>
    );
}
