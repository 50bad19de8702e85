/** The finding that explains why a setup failed: a flood, or SYN-ACKs that nobody answers. */
import type { Capture, FindingEntry } from "../api/types";
import { capture } from "../state/store";
import { Link } from "./Link";
import { useFindings } from "./findings";

export interface Attempt {
    /** `address:port`, as findings name it. */
    service: string;
    /** First packet, seconds since the capture's start. */
    time: number;
    outcome: string;
    synAcks: number;
}

/** Setups that may be part of such a finding; REFUSED is an answer. */
const mayBe = ({ outcome }: Attempt) => outcome === "IGNORED" || outcome === "RESET_LATE";

/** Findings know times to the nanosecond, which is finer than a number of seconds. */
const CLOSE = 1e-6;

export function explains(entry: FindingEntry, attempt: Attempt): boolean {
    const { kind, who } = entry.finding;
    const fits = kind === "SYN_FLOOD" || (kind === "HALF_OPEN" && attempt.synAcks > 1);
    const { from = Infinity, to = -Infinity } = entry;
    const { service, time } = attempt;
    return fits && mayBe(attempt) && who === service && from - CLOSE <= time && time <= to + CLOSE;
}

export function Explained(props: { attempt: Attempt }) {
    const { attempt } = props;
    const shown = capture.value as Capture;
    const answer = useFindings(mayBe(attempt) ? shown : null);
    const found = answer.data?.findings.find((entry) => explains(entry, attempt));
    if (!found) return null;
    return <Link to={{ view: "overview", params: { finding: found.key } }}>{`Finding: ${found.finding.title}`}</Link>;
}
