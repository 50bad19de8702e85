/** The ceilings of a connection: a chart, sentences and a table for each direction that has some. */
import type { Area } from "../chart/axes";
import { ChartFrame, type Hover } from "../chart/ChartFrame";
import { Named } from "../components/Named";
import { bits, bytes, duration, figure, percent, UNKNOWN } from "../format";
import { colors } from "../theme";
import { axisOf, drawCeilings, rates, ROW, sentences, shareOf, type Ceilings, type Rate } from "./ceilings";
import type { One } from "./connection";
import type { LimitSeconds } from "./shares";

export function CeilingCharts(props: { one: One }) {
    const { clientToServer, serverToClient } = props.one.connection;
    const sides = [
        ["client", clientToServer],
        ["server", serverToClient],
    ] as const;
    if (sides.every(([, side]) => !side.ceilings)) {
        return (
            <p class="note">
                Ceilings are not known: each transfer was a single flight, or its acknowledgments were not seen.
            </p>
        );
    }
    return (
        <div class="pair">
            {sides.map(
                ([sender, side]) =>
                    side.ceilings && (
                        <Direction key={sender} sender={sender} of={side.ceilings} limits={side.limitSeconds} />
                    ),
            )}
        </div>
    );
}

function Direction(props: { sender: "client" | "server"; of: Ceilings; limits: LimitSeconds | undefined }) {
    const { sender, of, limits } = props;
    const c = colors.value;
    const rows = rates(of);
    const domain = axisOf(rows);
    const title = `Ceilings: data of the ${sender}`;
    const told = (
        <>
            <p class="said">{sentences(of, sender, limits).join(" ")}</p>
            <Path of={of} />
            <Table title={title} rows={rows} measured={of.measuredBitsPerSecond} />
        </>
    );
    if (domain === null) {
        return (
            <section class="panel" aria-label={title}>
                <h2>{title}</h2>
                {told}
            </section>
        );
    }
    const lowest = rows.find(({ isLowest }) => isLowest);
    const at = (row: number, area: Area): Hover => {
        const one = rows[row] as Rate;
        return {
            x: one.rate === null ? area.left + 4 : Math.max(area.left, area.x.to(one.rate)),
            y: area.y.to(row + 0.5),
            title: one.isLowest ? `${one.label}, the lowest ceiling` : one.label,
            lines: [
                ["Rate", one.told],
                ...(one.limit !== null
                    ? [["Of it measured", percent(shareOf(of.measuredBitsPerSecond, one))] as const]
                    : []),
                [one.rate === null ? "Why" : "From", one.origin],
            ],
        };
    };
    return (
        <ChartFrame
            name={`ceilings-${sender}`}
            title={title}
            about="What each limit alone would allow over the smallest round trip of the whole path, beside the rate of the transfers that are over. The lowest ceiling is filled. Half the round trip makes all but the link's twice as high. The axis is logarithmic."
            height={rows.length * ROW + 52}
            left={140}
            x={{ kind: "log", domain, label: "rate", format: bits }}
            y={{
                kind: "linear",
                plain: true,
                domain: [rows.length, 0],
                label: "",
                ticks: rows.map(({ label }, row) => ({ value: row + 0.5, label })),
            }}
            legend={[
                { label: `measured: ${rows[0]?.told}`, color: c.text, dash: [4, 3] },
                ...(lowest
                    ? [
                          {
                              label: `lowest ceiling, ${lowest.label}: ${lowest.told}`,
                              color: c[lowest.colour],
                              shape: "square" as const,
                          },
                      ]
                    : []),
            ]}
            paint={(painter, area) => drawCeilings(painter, rows, area, c)}
            pick={(_, y, area) => {
                const row = Math.floor(area.y.from(y));
                return row >= 0 && row < rows.length ? at(row, area) : null;
            }}
            steps={{ count: rows.length, at }}
            below={told}
        />
    );
}

/** The path that the ceilings are over. */
function Path(props: { of: Ceilings }) {
    const { roundTripSeconds, idealWindowBytes, lightKilometres } = props.of;
    const facts: [string, string][] = [
        ["Smallest round trip of the whole path", duration(roundTripSeconds)],
        [
            "Distance at most, by light in fibre",
            lightKilometres === undefined ? UNKNOWN : `${figure(lightKilometres)} km`,
        ],
        ["Ideal window (link × round trip)", bytes(idealWindowBytes)],
    ];
    return <Named look="facts" values={facts} />;
}

function Table(props: { title: string; rows: readonly Rate[]; measured: number | undefined }) {
    return (
        <div class="scroll" role="region" aria-label={`${props.title}, as a table`} tabIndex={0}>
            <table class="sums" data-table="ceilings">
                <thead>
                    <tr>
                        <th scope="col">What</th>
                        <th scope="col">Rate</th>
                        <th scope="col">Of it measured</th>
                        <th scope="col" class="words">
                            From what
                        </th>
                    </tr>
                </thead>
                <tbody>
                    {props.rows.map((one) => (
                        <tr key={one.label}>
                            <th scope="row">{one.isLowest ? <strong>{one.label}, lowest</strong> : one.label}</th>
                            <td>{one.told}</td>
                            <td>{one.limit !== null ? percent(shareOf(props.measured, one)) : ""}</td>
                            <td class="words origin">{one.origin}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}
