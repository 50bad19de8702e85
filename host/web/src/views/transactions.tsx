/** All transactions: sorted, filtered, with the columns that the question needs. */
import { DataTable, type Value } from "../components/DataTable";
import { FilterBox } from "../components/FilterBox";
import { Link } from "../components/Link";
import { duration } from "../format";
import { quoted } from "./open";

const START = "connection_id index request_time".split(" ");

// The signature last: it may be long, and times beside it would be out of sight.
const USUAL = [
    ...START,
    ..."kind request_bytes response_bytes request_seconds server_seconds response_seconds end_seconds losses signature".split(
        " ",
    ),
];

const SETS = {
    "whose time": [
        ...START,
        "signature",
        "shares_total_seconds",
        ..."client_processing server_processing latency bandwidth congestion protocol user_think"
            .split(" ")
            .map((part) => `shares_${part}_seconds`),
        "client_uncertain_seconds",
        "server_uncertain_seconds",
    ],
};

export default function Transactions() {
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
                needs={["signature", "server_uncertain_seconds", "client_uncertain_seconds"]}
                ways={ways}
            />
        </div>
    );
}

/** What else there is of a transaction, and of those like it. */
function ways(id: string, value: Value) {
    const only = (requests: string) => ({ params: { requests, row: "" } });
    const signature = value("signature");
    const uncertain = value("server_uncertain_seconds");
    const client = value("client_uncertain_seconds");
    return (
        <>
            <Link to={{ view: "waterfall", params: { connection: id } }}>Its waterfall</Link>
            <Link to={only(`connection_id = ${id}`)}>Only this connection</Link>
            {signature !== null && <Link to={only(`signature = ${quoted(signature)}`)}>Only this signature</Link>}
            {uncertain !== null && (
                <span>
                    The server’s share may be off by {duration(Number(uncertain))}: a queue stood, others went before it
                    on a slow link, or the capture missed something
                </span>
            )}
            {client !== null && (
                <span>
                    The client’s share may be off by {duration(Number(client))}: the response before may have waited for
                    a slow link
                </span>
            )}
        </>
    );
}
