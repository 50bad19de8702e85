import { duration } from "../format";
import { go } from "../state/store";
import { chosenValues } from "./marks";

/** Says that only some durations are shown, and shows all again. */
export function AllDurations() {
    const chosen = chosenValues();
    if (chosen === null) return null;
    return (
        <button type="button" onClick={() => go({ params: { low: "", high: "" } })}>
            Only {duration(chosen[0])} to {duration(chosen[1])}: show all
        </button>
    );
}
