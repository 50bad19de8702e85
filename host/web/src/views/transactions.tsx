/** All transactions: sorted, filtered, with the columns that the question needs. */
import { useState } from "preact/hooks";
import { DataTable, type Chosen } from "../components/DataTable";
import { FilterBox } from "../components/FilterBox";
import { Link } from "../components/Link";
import { quoted, toConnection } from "./open";

const START = "connection_id index request_time signature".split(" ");

const USUAL = [
    ...START,
    ..."kind request_bytes response_bytes request_seconds server_seconds response_seconds end_seconds losses".split(
        " ",
    ),
];

const SETS = {
    "whose time": [
        ...START,
        "shares_total_seconds",
        ..."client_processing server_processing latency bandwidth congestion protocol user_think"
            .split(" ")
            .map((part) => `shares_${part}_seconds`),
    ],
};

export default function Transactions() {
    const [chosen, setChosen] = useState<Chosen | null>(null);
    return (
        <div class="tall">
            <FilterBox table="transactions" example="end_seconds > 300ms AND losses = 0" />
            <p class="ways">
                <Link to={{ view: "marks" }}>As a chart</Link>
            </p>
            <DataTable
                table="transactions"
                usual={USUAL}
                sets={SETS}
                touch="overlap"
                id="connection_id"
                to={toConnection}
                onChoose={setChosen}
            />
            {chosen && <Detail chosen={chosen} />}
        </div>
    );
}

function Detail(props: { chosen: Chosen }) {
    const { page, row } = props.chosen;
    const value = (name: string) => (page.has(name) ? page.at(name, row) : null);
    const id = value("connection_id");
    const signature = value("signature");
    if (id === null) return null;
    return (
        <aside class="panel detail" aria-label="The chosen transaction">
            <strong>Connection {String(id)}</strong>
            <span class="ways">
                <Link to={toConnection(String(id))}>Open it</Link>
                <Link to={{ view: "waterfall", params: { connection: String(id) } }}>Its waterfall</Link>
                <Link to={{ params: { requests: `connection_id = ${String(id)}`, row: "" } }}>
                    Only this connection
                </Link>
                {signature !== null && (
                    <Link to={{ params: { requests: `signature = ${quoted(String(signature))}`, row: "" } }}>
                        Only this signature
                    </Link>
                )}
            </span>
        </aside>
    );
}
