/** Several captures of one path: where each was taken, and what the legs between them cost and lose. */
import { json, of } from "../api/client";
import type { Capture } from "../api/types";
import { Link } from "../components/Link";
import { Loading, useLoad } from "../components/load";
import { count, duration, figure, UNKNOWN } from "../format";
import { drawPath, legWords, PATH_HEIGHT, pathLeast, tapName, type Delay, type Leg, type Tap } from "../packets/path";
import { Picture } from "../packets/Picture";
import { capture } from "../state/store";
import { colors } from "../theme";

interface Taps {
    taps: Tap[];
    legs: Leg[];
}

export default function TapsView() {
    const shown = capture.value as Capture;
    const answer = useLoad(`taps ${shown.id}`, (signal) => json<Taps>(of(shown, "/taps"), {}, signal));
    return (
        <Loading of={answer} what="Taps">
            {(data) => (data.taps.length > 0 ? <Path {...data} /> : <One name={shown.name} />)}
        </Loading>
    );
}

function One(props: { name: string }) {
    return (
        <section class="panel">
            <h2>One tap</h2>
            <p>
                {props.name} is from one place. With captures of the same path from two places or more, the legs between
                them show their delays and losses, and the pies whose time it was:
            </p>
            <p>
                <code>weir view client.pcapng server.pcapng</code>
            </p>
        </section>
    );
}

function Path(props: Taps) {
    const { taps, legs } = props;
    const nameOf = tapName(taps);
    const ends = (leg: Leg) => `${nameOf(leg.from)} → ${nameOf(leg.to)}`;
    const words = legs.map(
        (leg) =>
            `${nameOf(leg.from)} to ${nameOf(leg.to)}: forward ${legWords(leg.delayForward, leg.lostForward, leg.arrivedForward)}; backward ${legWords(leg.delayBackward, leg.lostBackward, leg.arrivedBackward)}`,
    );
    return (
        <>
            <Picture
                name="path"
                title="The path"
                about="From the clients' side to the servers'. Of each leg and direction: the median delay (smallest to 95 of 100), and how many packets entered it and did not leave it. Delays of one direction hold if the fastest packets need the same time both ways."
                words={words.join(". ")}
                least={pathLeast(legs)}
                height={() => PATH_HEIGHT}
                paint={(painter, width) => drawPath(painter, taps, legs, width, colors.value)}
            >
                <p class="note">
                    <Link to={{ view: "delays" }}>Whose time it was, as a pie</Link>
                </p>
            </Picture>
            <Figures
                title="Legs"
                names={legs.map(ends)}
                rows={LEG_ROWS.map(([label, value]) => [label, legs.map(value)])}
            />
            <Figures
                title="Taps"
                names={taps.map((tap) => nameOf(tap.file))}
                rows={TAP_ROWS.map(([label, value]) => [label, taps.map(value)])}
            />
            <section class="panel">
                <h2>What tells where the taps sit</h2>
                {legs.map((leg) => (
                    <div key={leg.from}>
                        <h3>{ends(leg)}</h3>
                        <ul>
                            {(leg.placement ?? []).map((sign) => (
                                <li key={sign}>{sign}</li>
                            ))}
                            {(leg.placement ?? []).length === 0 && <li>Nothing.</li>}
                        </ul>
                    </div>
                ))}
            </section>
        </>
    );
}

const packets = (value: string | undefined) => count(value ?? "0");
const delays = (delay: Delay | undefined) =>
    delay === undefined
        ? UNKNOWN
        : [delay.minSeconds, delay.medianSeconds, delay.p95Seconds, delay.maxSeconds].map(duration).join(" / ");

/** With half of the width of what is possible, in which the truth lies. */
function give(value: number | undefined, width: number | undefined, unit: (value: number) => string): string {
    if (value === undefined) return UNKNOWN;
    return width === undefined ? unit(value) : `${unit(value)} ± ${unit(width / 2)}`;
}

const LEG_ROWS: readonly (readonly [string, (leg: Leg) => string])[] = [
    ["Packets in both captures", (leg) => packets(leg.matched)],
    ["Only in the first, only in the second", (leg) => `${packets(leg.onlyFrom)}, ${packets(leg.onlyTo)}`],
    ["Lost on the leg, forward", (leg) => packets(leg.lostForward)],
    ["Lost on the leg, backward", (leg) => packets(leg.lostBackward)],
    [
        "Copied on the leg, forward and backward",
        (leg) => `${packets(leg.duplicatedForward)}, ${packets(leg.duplicatedBackward)}`,
    ],
    ["Lost or missed by the capture: nothing tells which", (leg) => packets(leg.undecided)],
    ["While the other capture did not run", (leg) => packets(leg.outside)],
    ["Delay forward: least / median / 95 % / most", (leg) => delays(leg.delayForward)],
    ["Delay backward: least / median / 95 % / most", (leg) => delays(leg.delayBackward)],
    ["Smallest round trip over the leg", (leg) => duration(leg.roundTripSeconds)],
    ["Clock of the second minus the first", (leg) => give(leg.offsetSeconds, leg.offsetWidthSeconds, duration)],
    ["How fast that grows", (leg) => give(leg.skewPpm, leg.skewWidthPpm, (ppm) => `${figure(ppm)} ppm`)],
    ["Pieces in which the clocks ran evenly", (leg) => count(leg.clock?.length ?? 0)],
];

const TAP_ROWS: readonly (readonly [string, (tap: Tap) => string])[] = [
    ["TCP packets", (tap) => packets(tap.packets)],
    ["Passed and not captured", (tap) => packets(tap.missedByCapture)],
    ["Connections", (tap) => packets(tap.connections)],
    ["Connections only here", (tap) => packets(tap.connectionsOnlyHere)],
    [
        "TTL from the clients', the servers' side",
        (tap) => `${tap.ttlClientSide ?? UNKNOWN}, ${tap.ttlServerSide ?? UNKNOWN}`,
    ],
    [
        "MAC on the clients', the servers' side",
        (tap) => `${tap.macClientSide || UNKNOWN}, ${tap.macServerSide || UNKNOWN}`,
    ],
    ["Given up: the captures do not cover one time", (tap) => packets(tap.givenUp)],
];

function Figures(props: {
    title: string;
    names: readonly string[];
    rows: readonly (readonly [string, readonly string[]])[];
}) {
    return (
        <section class="panel scroll" tabIndex={0} aria-label={props.title}>
            <h2>{props.title}</h2>
            <table class="sums" data-table={props.title.toLowerCase()}>
                <thead>
                    <tr>
                        <th scope="col">
                            <span class="unseen">What</span>
                        </th>
                        {props.names.map((name) => (
                            <th key={name} scope="col">
                                {name}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {props.rows.map(([label, values]) => (
                        <tr key={label}>
                            <th scope="row">{label}</th>
                            {values.map((value, at) => (
                                <td key={props.names[at]}>{value}</td>
                            ))}
                        </tr>
                    ))}
                </tbody>
            </table>
        </section>
    );
}
