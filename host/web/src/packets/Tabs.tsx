/** The views of one connection, beside one another. */
import { follow } from "../shell/App";
import { go, href, state } from "../state/store";

const VIEWS = [
    ["connection", "Sequence and windows"],
    ["packets", "Packets"],
    ["bounce", "Bounce diagram"],
    ["waterfall", "Waterfall"],
    ["timing", "Packet timing"],
] as const;

export function Tabs() {
    return (
        <div class="tabs" role="group" aria-label="Views of this connection">
            {VIEWS.map(([view, label]) => (
                <a
                    key={view}
                    href={href({ view })}
                    aria-current={state.value.view === view ? "page" : undefined}
                    onClick={follow(() => go({ view }))}
                >
                    {label}
                </a>
            ))}
        </div>
    );
}
