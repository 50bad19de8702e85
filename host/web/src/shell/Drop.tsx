/** Opening a capture: drop a file on the page, or choose one. */
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { closeCapture, upload, type Upload } from "../api/client";
import { merge, uploadLimit } from "../api/live";
import { message } from "../components/load";
import { bytes } from "../format";
import { capture, captures, go } from "../state/store";

interface Sending {
    name: string;
    total: number;
    sent: number;
    running: Upload;
}

const sending = signal<Sending | null>(null);
const failure = signal<string | null>(null);

export function open(file: File): void {
    if (sending.value) {
        failure.value = `${sending.value.name} is still being sent: cancel it first, or wait.`;
        return;
    }
    if (uploadLimit !== null && file.size > uploadLimit) {
        failure.value = `${file.name} has ${bytes(file.size)}, the server takes up to ${bytes(uploadLimit)}. Open it with: weir view ${file.name}`;
        return;
    }
    failure.value = null;
    const running = upload(file, (sent) => {
        if (sending.value) sending.value = { ...sending.value, sent };
    });
    sending.value = { name: file.name, total: file.size, sent: 0, running };
    running.done.then(
        (capture) => {
            sending.value = null;
            merge(capture);
            go({ view: "overview", capture: capture.id });
        },
        (error: unknown) => {
            sending.value = null;
            if (!(error instanceof DOMException)) failure.value = `${file.name}: ${message(error)}`;
        },
    );
}

export function OpenButton() {
    const input = useRef<HTMLInputElement>(null);
    return (
        <>
            <button
                type="button"
                title="Open a capture file; dropping it on the page does the same"
                onClick={() => input.current?.click()}
            >
                Open…
            </button>
            <input
                ref={input}
                type="file"
                hidden
                aria-label="Capture file"
                onChange={(event) => {
                    const file = event.currentTarget.files?.[0];
                    event.currentTarget.value = "";
                    if (file) open(file);
                }}
            />
        </>
    );
}

/** Forgets the capture that is shown: the server takes only so many at once. */
export function CloseButton() {
    const shown = capture.value;
    if (shown === null || shown.kind === "LIVE" || shown.state === "READING") return null;
    return (
        <button
            type="button"
            title={`Forget ${shown.name}; the file stays where it is`}
            onClick={() =>
                void closeCapture(shown.id).then(
                    () => {
                        captures.value = (captures.value ?? []).filter((one) => one.id !== shown.id);
                        go({ view: "overview", capture: null });
                    },
                    (error: unknown) => (failure.value = `${shown.name}: ${message(error)}`),
                )
            }
        >
            Close
        </button>
    );
}

/** Progress of what is being sent or read, failures, and where to drop. */
export function Drop() {
    const [over, setOver] = useState(false);
    useEffect(() => {
        const hasFile = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
        const drag = (event: DragEvent) => {
            if (!hasFile(event)) return;
            event.preventDefault();
            setOver(true);
        };
        const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
        const drop = (event: DragEvent) => {
            if (!hasFile(event)) return;
            event.preventDefault();
            setOver(false);
            const file = event.dataTransfer?.files[0];
            if (file) open(file);
        };
        addEventListener("dragover", drag);
        addEventListener("dragleave", leave);
        addEventListener("drop", drop);
        return () => {
            removeEventListener("dragover", drag);
            removeEventListener("dragleave", leave);
            removeEventListener("drop", drop);
        };
    }, []);
    const now = sending.value;
    const reading = (captures.value ?? []).filter((one) => one.state === "READING");
    return (
        <>
            {over && <div class="drop">Drop a capture (pcap or pcapng) to open it</div>}
            {failure.value !== null && (
                <div class="bar error" role="alert">
                    {failure.value}
                    <button type="button" onClick={() => (failure.value = null)}>
                        Put away
                    </button>
                </div>
            )}
            {now && (
                <Progress
                    what={`Sending ${now.name}`}
                    done={now.sent}
                    total={now.total}
                    cancel={() => now.running.cancel()}
                />
            )}
            {reading.map((one) => (
                <Progress
                    key={one.id}
                    what={`Reading ${one.name}`}
                    done={Number(one.readBytes ?? 0)}
                    total={one.totalBytes === undefined ? null : Number(one.totalBytes)}
                    cancel={() =>
                        void closeCapture(one.id).catch(
                            (error: unknown) => (failure.value = `${one.name}: ${message(error)}`),
                        )
                    }
                />
            ))}
        </>
    );
}

function Progress(props: { what: string; done: number; total: number | null; cancel: () => void }) {
    const { what, done, total } = props;
    return (
        <div class="bar" role="status">
            <span>{what}</span>
            <progress aria-label={what} {...(total === null ? {} : { value: done, max: Math.max(total, 1) })} />
            <span>{total === null ? bytes(done) : `${bytes(done)} of ${bytes(total)}`}</span>
            <button type="button" onClick={props.cancel}>
                Cancel
            </button>
        </div>
    );
}
