/** What `/connections/{id}` answers, as far as the views of a connection need it, and the time that they show. */
import { useEffect } from "preact/hooks";
import { json, of, type Columns } from "../api/client";
import type { Capture, Int64 } from "../api/types";
import { useLoad, type Loaded } from "../components/load";
import { count } from "../format";
import { go, param, state } from "../state/store";
import type { Ceilings } from "./ceilings";
import type { LimitSeconds, TimeShares } from "./shares";

export interface End {
    address: string;
    port: number;
}

export interface Side {
    packets: Int64;
    payloadBytes: Int64;
    retransmittedPackets: Int64;
    lostUpstream: Int64;
    lostDownstream: Int64;
    lostUnknown: Int64;
    missedByCapture: Int64;
    zeroWindows: Int64;
    maxInFlight: Int64;
    maxWindow?: Int64;
    rtt?: { minSeconds?: number; medianSeconds?: number; p95Seconds?: number };
    limitSeconds?: LimitSeconds;
    ceilings?: Ceilings;
}

export interface Connection {
    id: string;
    client: End;
    server: End;
    setup?: { outcome: string; description: string; explanation?: string; synAckCount?: number };
    close?: { kind: string };
    durationSeconds: number;
    turns?: number;
    clientToServer: Side;
    serverToClient: Side;
    shares?: TimeShares;
}

export interface One {
    row: number;
    /** First and last packet, seconds since the capture's start. */
    from: number;
    to: number;
    connection: Connection;
    packets: number;
}

export function useConnection(shown: Capture, id: string): Loaded<One> {
    return useLoad(id === "" ? null : `connection ${shown.id} ${id}`, (signal) =>
        json<One>(of(shown, `/connections/${encodeURIComponent(id)}`), {}, signal),
    );
}

/** The connection's own time, with a little before and behind it. */
export function span(one: One): [from: number, to: number] {
    const room = Math.max((one.to - one.from) * 0.02, 1e-6);
    return [Math.max(0, one.from - room), one.to + room];
}

/** Show the connection's own time where the page's range shows all of the capture or nothing of the connection. */
export function useSpan(one: One | null): void {
    const { from, to } = state.value;
    useEffect(() => {
        if (one === null) return;
        const apart = (from !== null && from > one.to) || (to !== null && to <= one.from);
        if (!apart && (from !== null || to !== null)) return;
        const [begin, end] = span(one);
        // The page that a link asks for is one of this range.
        go({ from: begin, to: end, params: { offset: param("offset") } }, { replace: true });
    }, [one, from, to]);
}

/** Without data there are no sequences to draw: a setup that failed is told by its few packets. */
export const carried = ({ connection: { clientToServer, serverToClient } }: One) =>
    Number(clientToServer.payloadBytes) + Number(serverToClient.payloadBytes) > 0;

/** Where the segments of one side were lost. */
export function lostOf(side: Side): string {
    const places: [Int64, string][] = [
        [side.lostUpstream, "before the tap"],
        [side.lostDownstream, "behind the tap"],
        [side.lostUnknown, "at a place unknown"],
    ];
    const words = places.filter(([lost]) => Number(lost) > 0).map(([lost, place]) => `${count(lost)} ${place}`);
    return words.join(", ") || "none";
}

interface PartlyKnown {
    address?: string | null | undefined;
    port?: number | null | undefined;
}

/** An end in words; what is not known of it is a question mark. */
export function nameOf({ address, port }: PartlyKnown): string {
    return `${address?.includes(":") ? `[${address}]` : (address ?? "?")}:${port ?? "?"}`;
}

/** Columns of connections that namesOf reads. */
export const NAME_COLUMNS = "client_address,client_port,server_address,server_port";

/** Both ends of connections, in words. */
export function namesOf(rows: Columns): string[] {
    const ends = (side: string) => {
        const port = (row: number) => rows.at(`${side}_port`, row) as number | null;
        return rows.texts(`${side}_address`).map((address, row) => nameOf({ address, port: port(row) }));
    };
    const servers = ends("server");
    return ends("client").map((client, row) => `${client} → ${servers[row]}`);
}
