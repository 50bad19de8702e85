/** What the views of one connection show while none is chosen. */
import { columns, of } from "../api/client";
import type { Capture } from "../api/types";
import { Link } from "../components/Link";
import { Loading, useLoad } from "../components/load";
import { count, duration } from "../format";
import { NAME_COLUMNS, namesOf } from "./connection";
import { asked, capture, param } from "../state/store";

const SHOWN = 25;

export function Choose() {
    const shown = capture.value as Capture;
    const { from, to } = asked.value;
    const filter = param("filter");
    const query = {
        filter,
        from,
        to,
        touch: "overlap",
        sort: "-duration_seconds",
        limit: SHOWN,
        columns: `id,${NAME_COLUMNS},setup_outcome,duration_seconds`,
    };
    const answer = useLoad(`choose ${shown.id} ${JSON.stringify(query)}`, async (signal) => {
        const data = await columns(of(shown, "/connections"), query, signal);
        return { data, names: namesOf(data) };
    });
    return (
        <section class="panel">
            <h2>Which connection?</h2>
            <Loading of={answer} what="Connections">
                {({ data, names }) => (
                    <>
                        <p class="note">
                            {data.rows === 0
                                ? "No connection lies in this range."
                                : `${count(data.rows)} of ${count(data.metadata.get("total"))}, longest first; all are in the table of connections.`}
                        </p>
                        <ul class="choose">
                            {data.texts("id").map((id, row) => (
                                <li key={id}>
                                    <Link to={{ params: { connection: id ?? "" } }}>{names[row]}</Link>{" "}
                                    {String(data.at("setup_outcome", row) ?? "").toLowerCase()},{" "}
                                    {duration(data.at("duration_seconds", row) as number | null)}
                                </li>
                            ))}
                        </ul>
                    </>
                )}
            </Loading>
        </section>
    );
}
