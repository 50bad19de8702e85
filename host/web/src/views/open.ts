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
