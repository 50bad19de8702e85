/** All connections: sorted, filtered, with the columns that the question needs. */
import { useState } from "preact/hooks";
import { DataTable, type Chosen } from "../components/DataTable";
import { FilterBox } from "../components/FilterBox";
import { Link } from "../components/Link";
import { param, setParam } from "../state/store";
import { FAILED, FAILED_COLUMNS, quoted, toConnection } from "./open";

const ENDS = "id first_packet_time client_address client_port server_address server_port".split(" ");

const USUAL = [
    ...ENDS,
    ..."setup_outcome close_kind duration_seconds turns".split(" "),
    ..."client_to_server_packets server_to_client_packets".split(" "),
    ..."client_to_server_payload_bytes server_to_client_payload_bytes".split(" "),
    ..."client_to_server_retransmitted_packets server_to_client_retransmitted_packets".split(" "),
    ..."client_to_server_sack_blocks server_to_client_sack_blocks".split(" "),
    "client_to_server_ceilings_measured_bits_per_second",
    "server_to_client_ceilings_measured_bits_per_second",
];

const both = (names: string) =>
    names.split(" ").flatMap((name) => [`client_to_server_${name}`, `server_to_client_${name}`]);

const SETS = {
    setup: FAILED_COLUMNS,
    losses: [
        ...ENDS,
        ...both(
            "packets retransmitted_packets fast_retransmissions timeout_retransmissions spurious_retransmissions lost_upstream lost_downstream lost_unknown missed_by_capture",
        ),
    ],
    "round trips": [
        ...ENDS,
        "duration_seconds",
        ...both("rtt_min_seconds rtt_median_seconds rtt_p95_seconds rtt_samples"),
    ],
    "whose time": [
        ...ENDS,
        "shares_total_seconds",
        ..."client_processing server_processing latency bandwidth congestion protocol user_think"
            .split(" ")
            .map((part) => `shares_${part}_seconds`),
    ],
    windows: [...ENDS, ...both("max_in_flight min_window max_window zero_windows small_windows")],
};

export default function Connections() {
    const [chosen, setChosen] = useState<Chosen | null>(null);
    const filter = param("filter");
    return (
        <div class="tall">
            <FilterBox table="connections" example="setup.outcome = IGNORED OR setup.outcome = REFUSED" />
            <p class="ways">
                <button
                    type="button"
                    aria-pressed={filter === FAILED}
                    onClick={() => {
                        setParam("filter", filter === FAILED ? "" : FAILED);
                    }}
                >
                    Failed
                </button>
                <button
                    type="button"
                    aria-pressed={filter === LOSSY}
                    onClick={() => setParam("filter", filter === LOSSY ? "" : LOSSY)}
                >
                    With repeats
                </button>
                <Link to={{ view: "setups" }}>As a chart of setups</Link>
                <Link to={{ view: "timing" }}>Their packets</Link>
            </p>
            <DataTable
                table="connections"
                usual={USUAL}
                sets={SETS}
                touch="overlap"
                id="id"
                to={toConnection}
                onChoose={setChosen}
            />
            {chosen && <Detail chosen={chosen} />}
        </div>
    );
}

const LOSSY = "client_to_server.retransmitted_packets > 0 OR server_to_client.retransmitted_packets > 0";

/** What can be done with the row that was chosen. */
function Detail(props: { chosen: Chosen }) {
    const { page, row } = props.chosen;
    const value = (name: string) => (page.has(name) ? page.at(name, row) : null);
    const id = value("id");
    const client = value("client_address");
    const server = value("server_address");
    const port = value("server_port");
    const why = value("setup_explanation");
    if (id === null) return null;
    return (
        <aside class="panel detail" aria-label="The chosen connection">
            <strong>Connection {String(id)}</strong>
            {why !== null && why !== "" && <span>{String(why)}</span>}
            <span class="ways">
                <Link to={toConnection(String(id))}>Open it</Link>
                <Link to={{ view: "transactions", params: { requests: `connection_id = ${String(id)}` } }}>
                    Its transactions
                </Link>
                {client !== null && (
                    <Link to={{ params: { filter: `client.address = ${quoted(String(client))}`, row: "" } }}>
                        Only this client
                    </Link>
                )}
                {server !== null && port !== null && (
                    <Link
                        to={{
                            params: {
                                filter: `server.address = ${quoted(String(server))} AND server.port = ${String(port)}`,
                                row: "",
                            },
                        }}
                    >
                        Only this server
                    </Link>
                )}
            </span>
        </aside>
    );
}
