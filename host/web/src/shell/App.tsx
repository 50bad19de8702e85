/** The page around the views: which capture, which view, which time; what is wrong, what is being read. */
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useErrorBoundary, useRef, useState } from "preact/hooks";
import { again } from "../api/again";
import type { Capture } from "../api/types";
import { Link } from "../components/Link";
import { message } from "../components/load";
import { count } from "../format";
import { capture, captures, go, note, param, setParam, state, viewName } from "../state/store";
import { choice, isDark } from "../theme";
import { START, VIEWS, type View } from "../views";
import { CloseButton, Drop, OpenButton } from "./Drop";
import { Help } from "./Help";
import { helpShown, onKey } from "./keys";
import { RangeBar } from "./RangeBar";
import { Tour } from "./Tour";

export function App() {
    useEffect(() => {
        document.addEventListener("keydown", onKey);
        return () => document.removeEventListener("keydown", onKey);
    }, []);
    const view = VIEWS.find((one) => one.name === viewName.value);
    // Who came by keyboard goes on in the new view, not at the top of the page.
    const first = useRef(true);
    useEffect(() => {
        if (!first.current) document.getElementById("main")?.focus();
        first.current = false;
    }, [view]);
    useEffect(() => {
        document.title = `${view?.title ?? "?"} · ${capture.value?.name ?? "no capture"} · Weir`;
    }, [view, capture.value?.name]);
    return (
        <>
            <a class="skip" href="#main">
                Skip to the view
            </a>
            <header class="top">
                <Link class="brand" to={{ view: START }}>
                    Weir
                </Link>
                <CapturePicker />
                <OpenButton />
                <CloseButton />
                {capture.value?.state === "READY" && <RangeBar />}
                <span class="space" />
                <button
                    type="button"
                    title="Light or dark (t)"
                    onClick={() => (choice.value = isDark.value ? "light" : "dark")}
                >
                    {isDark.value ? "Light" : "Dark"}
                </button>
                <button type="button" title="Keys (?)" aria-label="Help: keys" onClick={() => (helpShown.value = true)}>
                    ?
                </button>
            </header>
            {note.value !== null && (
                <div class="bar" role="status">
                    {note.value}
                    <button type="button" onClick={() => (note.value = null)}>
                        Put away
                    </button>
                </div>
            )}
            <Drop />
            <div class="body">
                <Navigation />
                <main id="main" tabIndex={-1}>
                    {view ? <Shown view={view} /> : <Unknown name={viewName.value} />}
                </main>
            </div>
            <Help />
        </>
    );
}

function CapturePicker() {
    const all = captures.value;
    if (all === null || all.length === 0) return null;
    return (
        <div class="capture">
            <select
                aria-label="Capture"
                title={capture.value?.name}
                value={capture.value?.id ?? ""}
                onChange={(event) => go({ capture: event.currentTarget.value })}
            >
                {capture.value === null && <option value="">(choose a capture)</option>}
                {all.map((one) => (
                    <option key={one.id} value={one.id}>
                        {one.name}
                        {one.kind === "LIVE" ? " (live)" : one.state === "READY" ? "" : ` (${one.state.toLowerCase()})`}
                    </option>
                ))}
            </select>
        </div>
    );
}

function Navigation() {
    const groups = [...new Set(VIEWS.map((view) => view.group))];
    const list = useRef<HTMLElement>(null);
    const shown = viewName.value;
    // On a narrow page the list is a row of which a part is in sight.
    useEffect(() => {
        const box = list.current;
        const link = box?.querySelector<HTMLElement>("[aria-current]");
        if (box && link) box.scrollLeft = link.offsetLeft - (box.clientWidth - link.offsetWidth) / 2;
    }, [shown]);
    return (
        <nav aria-label="Views" ref={list}>
            {groups.map((group) => (
                <section key={group}>
                    <h2>{group}</h2>
                    <ul>
                        {VIEWS.filter((view) => view.group === group).map((view) => (
                            <li key={view.name}>
                                <Link
                                    to={{ view: view.name }}
                                    title={`${view.about} (g ${view.key})`}
                                    current={view.name === shown}
                                >
                                    {view.title}
                                </Link>
                            </li>
                        ))}
                    </ul>
                </section>
            ))}
        </nav>
    );
}

function Unknown(props: { name: string }) {
    return <p class="error">There is no view called “{props.name}”: choose one of the list.</p>;
}

function Shown(props: { view: View }) {
    const { view } = props;
    const [module, setModule] = useState<{ name: string; Body: ComponentType } | null>(null);
    const [missing, setMissing] = useState(false);
    useEffect(() => {
        setMissing(false);
        return again(
            () => view.load(),
            (loaded) => {
                setMissing(false);
                setModule({ name: view.name, Body: loaded.default });
            },
            () => setMissing(true),
        );
    }, [view]);
    const shown = capture.value;
    if (captures.value === null) return <p class="waiting">Asking the server…</p>;
    if (shown === null) return <NoCapture />;
    if (shown.state === "FAILED") return <p class="error">{failureOf(shown)}</p>;
    if (shown.state === "READING") return <p class="waiting">{shown.name} is being read…</p>;
    if (view.packets && !shown.hasPackets) {
        return (
            <p class="waiting">
                {view.title} needs the packets, and of {shown.name} none are kept:{" "}
                {shown.kind === "LIVE" ? (
                    <>
                        start the daemon with <code>--digests</code>, or have the card send them that it listens to
                    </>
                ) : (
                    "open the capture file with weir view"
                )}
                .
            </p>
        );
    }
    const connection = view.one ? param("connection") : "";
    return (
        <>
            <div class="viewhead">
                <h1>{view.title}</h1>
                {connection !== "" && (
                    <span class="chip">
                        connection {connection}
                        <button
                            type="button"
                            aria-label={`Forget connection ${connection}`}
                            onClick={() => {
                                setParam("connection", "");
                                // The button goes; who came by keyboard goes on in the view.
                                document.getElementById("main")?.focus();
                            }}
                        >
                            ×
                        </button>
                    </span>
                )}
            </div>
            {view.name === START && <Tour />}
            <Losses />
            {shown.error !== undefined && (
                <p class="warning" role="alert">
                    {shown.error}
                </p>
            )}
            {missing && (
                <p class="error" role="alert">
                    The part of the page that draws {view.title} was not loaded yet, and the server does not send it.
                    Trying again… If the server was updated meanwhile, reload the page.
                </p>
            )}
            {module?.name === view.name ? (
                <Guarded key={`${shown.id} ${view.name}`}>
                    <module.Body />
                </Guarded>
            ) : (
                !missing && <p class="waiting">Loading…</p>
            )}
        </>
    );
}

/** Why a capture cannot be read; the reason mostly names the file. */
export function failureOf({ name, error }: Pick<Capture, "name" | "error">): string {
    if (error?.includes(name)) return error;
    return `${name}: ${error ?? "cannot be read"}`;
}

/** A view that cannot be drawn leaves the rest of the page as it is, and is tried again with the next state. */
function Guarded(props: { children: ComponentChildren }) {
    const [error, again] = useErrorBoundary();
    useEffect(again, [state.value]);
    if (error === undefined) return <>{props.children}</>;
    return (
        <p class="error" role="alert">
            This view cannot be drawn: {message(error)}
        </p>
    );
}

/** What is not shown because it did not fit the memory. */
function Losses() {
    const shown = capture.value;
    if (shown === null) return null;
    const parts = (["packets", "connections", "transactions", "segments", "blocks"] as const)
        .map((what) => [what, Number(shown[`${what}Dropped`] ?? 0)] as const)
        .filter(([, dropped]) => dropped > 0);
    if (parts.length === 0) return null;
    const text = parts.map(([what, dropped]) => `${count(dropped)} ${what}`).join(", ");
    return (
        <p class="warning">
            Not kept, to stay within the memory: {text} ({shown.kind === "LIVE" ? "the oldest" : "the last of the file"}
            ).
        </p>
    );
}

function NoCapture() {
    const wanted = state.value.capture;
    return (
        <div class="empty">
            <h1>{wanted === null ? "No capture is open" : "That capture is no longer open"}</h1>
            <p>
                Drop a capture file (pcap or pcapng) anywhere on this page, or start <code>weir view FILE</code>.
            </p>
            <OpenButton />
        </div>
    );
}
