/** Where everyone starts: the findings, worst first, and the capture over time. */
import { json, of } from "../api/client";
import type { Capture, FindingEntry } from "../api/types";
import { Loading, useLoad } from "../components/load";
import { capture } from "../state/store";

export default function Overview() {
    const shown = capture.value as Capture;
    const findings = useLoad(`findings ${shown.id}`, (signal) =>
        json<{ findings: FindingEntry[] }>(of(shown, "/findings"), {}, signal),
    );
    return (
        <Loading of={findings} what="Findings">
            {(data) => (
                <ol>
                    {data.findings.map((entry) => (
                        <li key={entry.key}>{entry.finding.title}</li>
                    ))}
                </ol>
            )}
        </Loading>
    );
}
