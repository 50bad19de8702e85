/** What the server answers (docs/src/page-api.md). 64-bit integers come as text, times as RFC 3339 in UTC. */

export type Int64 = string;

export interface Phase {
    from: number;
    to: number;
    concurrentConnections: number;
}

export interface Capture {
    id: string;
    name: string;
    kind: "FILE" | "TAPS" | "LIVE";
    state: "READING" | "READY" | "FAILED";
    readBytes?: Int64;
    totalBytes?: Int64;
    error?: string;
    revision: Int64;
    start?: string;
    /** First packet to last. */
    seconds?: number;
    /** From here on all connections and transactions are kept: a daemon forgets the oldest. */
    keptFrom?: number;
    /** Requests that have no response yet, live; connections of those that wait longest. */
    waiting?: { count: Int64; longestSeconds: number | null; connectionIds: string[] };
    packets?: Int64;
    connections?: Int64;
    transactions?: Int64;
    segments?: Int64;
    blocks?: Int64;
    findings?: Int64;
    packetsDropped?: Int64;
    connectionsDropped?: Int64;
    transactionsDropped?: Int64;
    segmentsDropped?: Int64;
    blocksDropped?: Int64;
    hasPackets?: boolean;
    phases?: Phase[];
}

export interface Captures {
    captures: Capture[];
    limits: { captures: number; uploadBytes: Int64 };
    version: string;
}

/** One fact behind a finding. */
export interface Finding {
    kind: string;
    severity: string;
    confidence?: number;
    title: string;
    evidence?: string[];
    start?: string;
    end?: string;
    connectionIds?: string[];
    values?: Record<string, unknown>;
    [more: string]: unknown;
}

export interface FindingEntry {
    key: string;
    from?: number;
    to?: number;
    advice?: string;
    finding: Finding;
}

export interface DialogueSide {
    packets: number;
    bytes: number;
    dataPackets: number;
    retransmittedPackets: number;
    retransmissionRate: number | null;
    lostBeforeTap: number;
    lostBehindTap: number;
    lostUnknown: number;
    missedByCapture: number;
    minRttSeconds: number | null;
}

export interface Dialogue {
    client?: string;
    server?: string;
    port?: number;
    connections: number;
    failed: number;
    clientToServer: DialogueSide;
    serverToClient: DialogueSide;
}

export interface Dialogues {
    dialogues: Dialogue[];
    leftOut: Dialogue | null;
    total: number;
}

export interface Figures {
    count: number;
    min: number;
    mean: number;
    p50: number;
    p90: number;
    p95: number;
    p99: number;
    max: number;
}

export interface Group {
    name: string;
    count: number;
    losses: number;
    requestBytesMean: number | null;
    responseBytesMean: number | null;
    positions: [number, number, number, number];
    request: Figures | null;
    server: Figures | null;
    response: Figures | null;
    end: Figures | null;
}

export interface ColumnInfo {
    name: string;
    path: string;
    type: "text" | "id" | "time" | "count" | "number" | "bool";
    /** s, B, bit/s, share, km or none. */
    unit: string;
    /** What it is, in a sentence. */
    doc: string;
}

export interface Completion {
    from: number;
    to: number;
    items: { text: string; kind: "field" | "operator" | "value" | "word"; note?: string }[];
    error?: { message: string; at?: number };
}

/** A kind of marks, numbered by its place in the list. */
export interface Kind {
    name: string;
    count: number;
}

/** What of the message Summary the page reads. */
export interface Summary {
    packets: Int64;
    tcpPackets?: Int64;
    connections: Int64;
    transactions: Int64;
    captureLoss: Int64;
    retransmissionRate?: {
        total: number;
        clientToServer: number;
        serverToClient: number;
        dataPackets: Int64;
        retransmittedPackets: Int64;
    };
    phases?: PhaseFigures[];
}

export interface Percentiles {
    count: Int64;
    p50Seconds: number;
    p90Seconds: number;
    p95Seconds: number;
    p99Seconds: number;
    maxSeconds: number;
}

/** What a service (or all of them) had to do in a load phase. */
export interface PhaseService {
    server?: { address: string; port: number };
    concurrentConnections: number;
    transactionsInProgress: number;
    connections: Int64;
    transactions: Int64;
    connectionsPerSecond: number;
    transactionsPerSecond: number;
    lostSegments: Int64;
    repeatedSetupPackets: Int64;
    setup?: Percentiles;
    response?: Percentiles;
}

export interface PhaseFigures {
    start: string;
    end: string;
    concurrentConnections: number;
    whole?: PhaseService;
    services?: PhaseService[];
}
