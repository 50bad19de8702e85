import { expect, test } from "vitest";
import type { FindingEntry } from "../api/types";
import { explains } from "./Explained";

const entry = (kind: string): FindingEntry => ({
    key: kind,
    from: 10,
    to: 20,
    finding: { kind, severity: "WARNING", title: "", who: "10.2.1.10:8080" },
});
const attempt = { service: "10.2.1.10:8080", time: 15, outcome: "IGNORED", synAcks: 6 };

test("a setup is explained by the finding of its service and time", () => {
    expect(explains(entry("SYN_FLOOD"), attempt)).toBe(true);
    expect(explains(entry("HALF_OPEN"), attempt)).toBe(true);
    expect(explains(entry("LOSS"), attempt)).toBe(false);
    for (const other of [{ time: 9 }, { time: 21 }, { service: "10.2.1.10:80" }, { outcome: "REFUSED" }])
        expect(explains(entry("SYN_FLOOD"), { ...attempt, ...other })).toBe(false);
    // Who never got an answer is not half open; the flood may have kept him out.
    expect(explains(entry("HALF_OPEN"), { ...attempt, synAcks: 0 })).toBe(false);
    expect(explains(entry("SYN_FLOOD"), { ...attempt, synAcks: 0 })).toBe(true);
});
