/**
 * Where the packets of connections stand: a lane for each connection with its server's packets above and its client's
 * below, or all connections on one such pair of lines.
 */

/** Where in a lane, from its top, the lines stand on which the packets of server and client stand. */
export const SERVER_LINE = 0.44;
/** See SERVER_LINE. */
export const CLIENT_LINE = 0.92;
/** Smallest lane, px: two lines, one above the other. */
const LEAST_LANE = 3;
/** Largest: taller bars say no more. */
const MOST_LANE = 150;
/** Height that the lanes take if they can, px. */
const PREFERRED = 560;
/** Payload that is drawn full height, bytes. */
const FULL_SIZE = 1460;

/** Height of a lane when there are so many, px. */
export function laneHeight(lanes: number): number {
    return Math.min(MOST_LANE, Math.max(LEAST_LANE, PREFERRED / Math.max(lanes, 1)));
}

/** Height of a full packet in a lane, px. */
export function rise(lane: number): number {
    return Math.max(2, lane * 0.36);
}

/** Size of symbols in a lane: 1 where there is room. */
export function symbols(lane: number): number {
    return Math.min(1, Math.max(0.35, lane / 28));
}

/** Line on which a side's packets stand, px below the top of the first lane. */
export function line(lane: number, height: number, server: boolean): number {
    return (lane + (server ? SERVER_LINE : CLIENT_LINE)) * height;
}

/** Share of the full height for payload of this size; a bar without any (a SYN that came again) still shows. */
export function share(bytes: number): number {
    return 0.15 + 0.85 * Math.min(1, bytes / FULL_SIZE);
}
