/** Every figure for each load phase that was found: the whole, and each service. */
import type { PhaseFigures, PhaseService } from "../api/types";
import { average, count, duration, nanoseconds, UNKNOWN } from "../format";
import { startOf } from "../chart/ChartFrame";
import { nameOf } from "../packets/connection";
import { zoomTo } from "../state/store";

const COLUMNS: readonly [head: string, title: string, cell: (one: PhaseService) => string][] = [
    ["connections", "Open at once, on average", (one) => average(one.concurrentConnections)],
    ["in progress", "Transactions in progress, on average", (one) => average(one.transactionsInProgress)],
    ["opened/s", "Connections opened a second", (one) => average(one.connectionsPerSecond)],
    ["responses/s", "Responses ended a second", (one) => average(one.transactionsPerSecond)],
    ["response p50", "Half of the responses ended sooner", (one) => duration(one.response?.p50Seconds)],
    ["p90", "90 % of the responses ended sooner", (one) => duration(one.response?.p90Seconds)],
    ["p99", "99 % of the responses ended sooner", (one) => duration(one.response?.p99Seconds)],
    ["max", "The slowest response", (one) => duration(one.response?.maxSeconds)],
    ["setup p50", "Half of the setups were done sooner", (one) => duration(one.setup?.p50Seconds)],
    ["p99 ", "99 % of the setups were done sooner", (one) => duration(one.setup?.p99Seconds)],
    ["lost", "Data segments that the network lost", (one) => count(one.lostSegments)],
    ["SYNs again", "SYNs and SYN-ACKs that came again", (one) => count(one.repeatedSetupPackets)],
];

export function Phases(props: { phases: readonly PhaseFigures[] }) {
    const start = startOf();
    const seconds = (time: string) => Number(nanoseconds(time) - start) / 1e9;
    return (
        <section class="panel">
            <h2>Load phases</h2>
            <p class="about">
                What each service did while the load was level. Choose a phase to see its time in every view.
            </p>
            <div class="scroll" role="region" aria-label="Load phases" tabIndex={0}>
                <table class="figures">
                    <thead>
                        <tr>
                            <th scope="col">phase</th>
                            {COLUMNS.map(([head, title]) => (
                                <th scope="col" key={head} title={title}>
                                    {head}
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {props.phases.flatMap((phase, index) => [
                            <tr key={phase.start}>
                                <th scope="row">
                                    <button
                                        type="button"
                                        class="plain"
                                        onClick={() => zoomTo(seconds(phase.start), seconds(phase.end))}
                                    >
                                        phase {index + 1}
                                    </button>
                                </th>
                                {COLUMNS.map(([head, , cell]) => (
                                    <td key={head}>{phase.whole ? cell(phase.whole) : UNKNOWN}</td>
                                ))}
                            </tr>,
                            ...(phase.services ?? []).map((service) => (
                                <tr
                                    key={`${phase.start} ${service.server?.address} ${service.server?.port}`}
                                    class="part"
                                >
                                    <th scope="row">{nameOf(service.server ?? {})}</th>
                                    {COLUMNS.map(([head, , cell]) => (
                                        <td key={head}>{cell(service)}</td>
                                    ))}
                                </tr>
                            )),
                        ])}
                    </tbody>
                </table>
            </div>
        </section>
    );
}
