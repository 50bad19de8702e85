/** Keys that work everywhere. Charts and tables have their own, on top, while they have the focus. */
import { signal } from "@preact/signals";
import { go, note, pan, zoomBy, zoomOut } from "../state/store";
import { choice, isDark } from "../theme";
import { VIEWS } from "../views";

export const helpShown = signal(false);

/** What `?` lists. */
export const KEYS: readonly { where: string; keys: readonly (readonly [string, string])[] }[] = [
    {
        where: "Everywhere",
        keys: [
            ["?", "This list"],
            ["g, then a letter", "Go to a view (letters below)"],
            ["/", "Write a filter, where the view has one"],
            ["w or +", "Zoom in on time"],
            ["s or -", "Zoom out"],
            ["a", "Move to earlier"],
            ["d", "Move to later"],
            ["0", "The whole capture"],
            ["t", "Light or dark"],
            ["Esc", "Close this list, put a notice away"],
        ],
    },
    {
        where: "In a chart",
        keys: [
            ["← →", "Step through the marks, or move the cursor"],
            ["Page up, Page down", "The same, in larger steps"],
            ["Shift ← →", "Brush a range; Enter zooms into it"],
            ["Enter", "Show what is behind the mark"],
            ["Shift + drag", "Zoom into a box: time and durations"],
            ["n, p", "Next, previous repeat or reset (packet timing)"],
            ["Ctrl + wheel", "Zoom at the pointer"],
            ["Double click", "The whole capture"],
        ],
    },
    {
        where: "In a table",
        keys: [
            ["↑ ↓", "Previous, next row"],
            ["Page up, Page down, Home, End", "Further"],
            ["Enter", "Show the row's connection"],
            ["n, p", "Next, previous repeat or reset (packets)"],
        ],
    },
];

/** Whether keys belong to what has the focus. */
function typing(target: EventTarget | null): boolean {
    return (
        target instanceof HTMLElement && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable)
    );
}

let going = false;

export function onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (helpShown.value) {
        // What lies behind the list stays as it is.
        if (event.key === "Escape" || event.key === "?") helpShown.value = false;
        return;
    }
    if (going) {
        going = false;
        const view = VIEWS.find((one) => one.key === event.key);
        if (view) {
            event.preventDefault();
            go({ view: view.name });
            return;
        }
    }
    const keys: Record<string, () => void> = {
        "?": () => (helpShown.value = true),
        g: () => (going = true),
        "/": () => document.querySelector<HTMLElement>("[data-filter]")?.focus(),
        w: () => zoomBy(0.5),
        "+": () => zoomBy(0.5),
        s: () => zoomBy(2),
        "-": () => zoomBy(2),
        a: () => pan(-0.2),
        d: () => pan(0.2),
        "0": zoomOut,
        Escape: () => (note.value = null),
        t: () => (choice.value = isDark.value ? "light" : "dark"),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
}
