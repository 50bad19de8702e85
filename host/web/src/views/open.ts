/** Where clicks lead: the ways from one view to the rows and packets behind what it shows. */
import { go, type Change } from "../state/store";

/** One connection, from wherever it was met. */
export const toConnection = (id: string): Change => ({ view: "connection", params: { connection: id } });

export function openConnection(id: string): void {
    go(toConnection(id));
}

/** A filter that holds for these connections. The language takes 200 comparisons: more are cut, and the caller says so. */
export const IDS_IN_FILTER = 200;

export function idsFilter(ids: readonly string[]): string {
    return ids
        .slice(0, IDS_IN_FILTER)
        .map((id) => `id = ${id}`)
        .join(" OR ");
}

/** A value as the filter language wants it. */
export function quoted(value: string): string {
    return `"${value.replace(/[\\"*]/g, (char) => `\\${char}`)}"`;
}

/** Both filters hold. */
export function and(...filters: string[]): string {
    const set = filters.filter((one) => one !== "");
    return set.map((one) => (set.length > 1 && / OR /.test(one) ? `(${one})` : one)).join(" AND ");
}

/** Connections whose setup failed: not those that their client reset at once. */
export const FAILED =
    "setup.outcome = IGNORED OR setup.outcome = RESET_LATE OR (setup.outcome = REFUSED AND close.kind != CLIENT_RST)";

/** Which failed, when, and why. */
export const FAILED_COLUMNS = [
    ..."id first_packet_time client_address client_port server_address server_port setup_outcome".split(" "),
    ..."setup_explanation setup_syn_count setup_syn_ack_count setup_end_seconds setup_description".split(" "),
];
