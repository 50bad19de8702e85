/** The findings of a capture. */
import { json, of } from "../api/client";
import type { Capture, FindingEntry } from "../api/types";
import { useLoad } from "./load";

/** Null: not asked for. */
export const useFindings = (shown: Capture | null) =>
    useLoad(shown && `findings ${shown.id}`, (signal) =>
        json<{ findings: FindingEntry[] }>(of(shown as Capture, "/findings"), {}, signal),
    );
