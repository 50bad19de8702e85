/**
 * Order of hosts in the data exchange chart: who only asks comes first, then who is asked and asks others, then who
 * only answers, so that messages between neighbouring tiers stand side by side.
 */

/** One host asks another. */
export interface Asks {
    readonly client: string;
    readonly server: string;
}

/** The hosts, first tier first; within a tier in the order of their names. */
export function tiers(pairs: readonly Asks[]): string[] {
    const asks = new Map<string, Set<string>>();
    const hosts = new Set<string>();
    for (const { client, server } of pairs) {
        hosts.add(client).add(server);
        if (client === server) continue;
        const servers = asks.get(client) ?? new Set();
        asks.set(client, servers.add(server));
    }
    // Longest way from a host that nobody asks (Kahn's order). In a circle, the host that fewest others ask goes first.
    const depth = new Map<string, number>();
    const askers = new Map([...hosts].map((host) => [host, 0]));
    for (const servers of asks.values())
        for (const server of servers) askers.set(server, (askers.get(server) ?? 0) + 1);
    const left = new Set([...hosts].sort());
    while (left.size > 0) {
        let next = "";
        for (const host of left) if (next === "" || (askers.get(host) ?? 0) < (askers.get(next) ?? 0)) next = host;
        left.delete(next);
        const own = depth.get(next) ?? 0;
        depth.set(next, own);
        for (const server of asks.get(next) ?? []) {
            if (!left.has(server)) continue;
            askers.set(server, (askers.get(server) ?? 0) - 1);
            depth.set(server, Math.max(depth.get(server) ?? 0, own + 1));
        }
    }
    const of = (host: string): number => depth.get(host) ?? 0;
    return [...hosts].sort((a, b) => of(a) - of(b) || (a < b ? -1 : 1));
}
