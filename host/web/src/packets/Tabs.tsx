/** The views of one connection, beside one another. */
import { Link } from "../components/Link";
import { state } from "../state/store";

const VIEWS = [
    ["connection", "Sequence and windows"],
    ["packets", "Packets"],
    ["bounce", "Bounce diagram"],
    ["waterfall", "Waterfall"],
    ["exchange", "Data exchange"],
    ["timing", "Packet timing"],
] as const;

export function Tabs() {
    return (
        <div class="tabs" role="group" aria-label="Views of this connection">
            {VIEWS.map(([view, label]) => (
                <Link key={view} to={{ view }} current={state.value.view === view}>
                    {label}
                </Link>
            ))}
        </div>
    );
}
