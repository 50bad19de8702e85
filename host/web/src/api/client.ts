/** The only place that talks to the server. Small objects are JSON, columns are Arrow. */
import { DataType, tableFromIPC, type Data, type Table } from "apache-arrow";
import type { Capture, Captures } from "./types";

const BASE = "/api/v1";

/** What the server refused, or that it did not answer. `message` is for the reader. */
export class ApiError extends Error {
    constructor(
        readonly code: number,
        readonly status: string,
        message: string,
    ) {
        super(message);
    }
}

export type Parameters = Record<string, string | number | boolean | null | undefined>;

function address(path: string, parameters: Parameters = {}): string {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
        if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
    }
    const text = query.toString();
    return `${BASE}${path}${text === "" ? "" : `?${text}`}`;
}

/** Asks, and reads what comes. */
async function ask<T>(url: string, how: RequestInit, read: (body: ArrayBuffer) => T): Promise<T> {
    let response: Response;
    let body: ArrayBuffer;
    try {
        response = await fetch(url, how);
        body = await response.arrayBuffer();
    } catch (error) {
        if (how.signal?.aborted) throw error;
        throw new ApiError(0, "UNAVAILABLE", "The server does not answer. Is weir view or weir serve still running?");
    }
    if (!response.ok) throw parseRefusal(response.status, textOf(body));
    return understood(response.status, () => read(body));
}

const textOf = (body: ArrayBuffer): string => new TextDecoder().decode(body);

/** What an answer says; not all answers at this address are Weir's. */
function understood<T>(code: number, read: () => T): T {
    try {
        return read();
    } catch (error) {
        throw strange(code, error instanceof Error ? error.message : String(error));
    }
}

function strange(code: number, why: string): ApiError {
    const text = "The answer is none of Weir's: is there a proxy between, or a page to sign in? Reload this page";
    return new ApiError(code, "UNKNOWN", `${text} (${why}).`);
}

function parseRefusal(code: number, text: string): ApiError {
    try {
        const { error } = JSON.parse(text) as { error: { status: string; message: string } };
        return new ApiError(code, error.status, error.message);
    } catch {
        // Not the tags of what was made to be drawn.
        const said = /<\w/.test(text) ? "" : text.trim();
        return strange(code, said === "" ? String(code) : `${code}: ${said}`);
    }
}

/** A small object. */
export function json<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
    return ask(address(path, parameters), signal ? { signal } : {}, (body) => JSON.parse(textOf(body)) as T);
}

/** Columns of an Arrow stream. */
export interface Columns {
    rows: number;
    /** What belongs to the whole, as text. */
    metadata: ReadonlyMap<string, string>;
    /** A numeric column as typed array; unknown values are NaN (of whole-number columns without unknowns: as they are). */
    numbers(name: string): ArrayLike<number>;
    /** A column of text; unknown is null. */
    texts(name: string): (string | null)[];
    has(name: string): boolean;
    /** Any value, by column and row: number, text, boolean or null. */
    at(name: string, row: number): number | string | boolean | null;
}

/** Columns of a route that answers in Arrow. */
export function columns(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<Columns> {
    return ask(address(path, parameters), signal ? { signal } : {}, (body) => readColumns(new Uint8Array(body)));
}

const bit = (bits: Uint8Array, at: number): number => ((bits[at >> 3] as number) >> (at & 7)) & 1;

/** Numbers and flags as they came, whatever stands where they are unknown; null for what has another form. */
function plain({ type, values, offset, length }: Data): ArrayLike<number> | null {
    if (DataType.isBool(type)) return Uint8Array.from({ length }, (_, row) => bit(values as Uint8Array, offset + row));
    if (!DataType.isInt(type) && !DataType.isFloat(type)) return null;
    const numbers: unknown = (values as Uint8Array).subarray(0, length);
    return numbers instanceof BigInt64Array || numbers instanceof BigUint64Array ? null : (numbers as Uint8Array);
}

function withoutUnknown(values: ArrayLike<number>, { nullBitmap, offset }: Data): Float64Array {
    const known = new Float64Array(values);
    for (let row = 0; row < known.length; row += 1) if (!bit(nullBitmap, offset + row)) known[row] = NaN;
    return known;
}

export function readColumns(stream: Uint8Array): Columns {
    const table: Table = tableFromIPC(stream);
    const column = (name: string) => {
        const found = table.getChild(name);
        if (found === null) throw new Error(`the server's answer has no column ${name}`);
        return found;
    };
    return {
        rows: table.numRows,
        metadata: table.schema.metadata,
        has: (name) => table.getChild(name) !== null,
        numbers(name) {
            const vector = column(name);
            // Cell by cell, as below, takes longer than all the drawing.
            const [only, ...more] = vector.data;
            const values = only && more.length === 0 ? plain(only) : null;
            if (only && values) return only.nullCount === 0 ? values : withoutUnknown(values, only);
            return Float64Array.from({ length: table.numRows }, (_, row) => {
                const value: unknown = vector.get(row);
                return value === null || value === undefined ? NaN : Number(value);
            });
        },
        texts(name) {
            const vector = column(name);
            return Array.from({ length: table.numRows }, (_, row) => {
                const value: unknown = vector.get(row);
                return value === null || value === undefined ? null : String(value);
            });
        },
        at(name, row) {
            const value: unknown = column(name).get(row);
            if (value === null || value === undefined) return null;
            return typeof value === "bigint" ? Number(value) : (value as number | string | boolean);
        },
    };
}

export const listCaptures = (signal?: AbortSignal) => json<Captures>("/captures", {}, signal);

/** Path of a route of one capture. */
export const of = (capture: Capture, route: string) => `/captures/${encodeURIComponent(capture.id)}${route}`;

export function closeCapture(id: string): Promise<void> {
    return ask(address(`/captures/${encodeURIComponent(id)}/close`), { method: "POST" }, () => undefined);
}

export interface Upload {
    /** The capture, once all bytes arrived; it is then still being read. */
    done: Promise<Capture>;
    cancel(): void;
}

/** Send a capture file. `progress` hears how many bytes left. (fetch cannot tell that.) */
export function upload(file: File, progress: (sent: number) => void): Upload {
    const request = new XMLHttpRequest();
    const done = new Promise<void>((resolve, reject) => {
        request.open("POST", address("/captures", { name: file.name }));
        request.upload.onprogress = (event) => progress(event.loaded);
        request.onload = () => resolve();
        request.onerror = () =>
            reject(new ApiError(0, "UNAVAILABLE", "The connection to the server broke while the file was being sent."));
        request.onabort = () => reject(new DOMException("cancelled", "AbortError"));
        request.send(file);
    }).then(() => {
        const { status, responseText } = request;
        if (status !== 201) throw parseRefusal(status, responseText);
        return understood(status, () => JSON.parse(responseText) as Capture);
    });
    return { done, cancel: () => request.abort() };
}
