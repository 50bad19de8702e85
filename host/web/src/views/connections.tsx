/** All connections: sorted, filtered, with the columns that the question needs. */
import { DataTable, type Value } from "../components/DataTable";
import { Explained } from "../components/Explained";
import { FilterBox } from "../components/FilterBox";
import { Link } from "../components/Link";
import { nameOf } from "../packets/connection";
import { param, setParam } from "../state/store";
import { FAILED, FAILED_COLUMNS, quoted } from "./open";

const ENDS = "id first_packet_time client_address client_port server_address server_port".split(" ");

/** Of the chosen row. */
const NEEDS = [...ENDS, "setup_outcome", "setup_syn_ack_count", "setup_explanation"];

const USUAL = [
    ...ENDS,
    ..."setup_outcome close_kind duration_seconds turns".split(" "),
    ..."client_to_server_packets server_to_client_packets".split(" "),
    ..."client_to_server_payload_bytes server_to_client_payload_bytes".split(" "),
    ..."client_to_server_retransmitted_packets server_to_client_retransmitted_packets".split(" "),
    ..."client_to_server_sack_blocks server_to_client_sack_blocks".split(" "),
    ..."client_to_server_payload_bits_per_second server_to_client_payload_bits_per_second".split(" "),
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
                needs={NEEDS}
                ways={ways}
            />
        </div>
    );
}

const LOSSY = "client_to_server.retransmitted_packets > 0 OR server_to_client.retransmitted_packets > 0";

/** What else there is of a connection, and of those like it. */
function ways(id: string, value: Value) {
    const [client, server, port] = [value("client_address"), value("server_address"), value("server_port")];
    const only = (filter: string) => ({ params: { filter, row: "" } });
    return (
        <>
            <Link to={{ view: "transactions", params: { requests: `connection_id = ${id}` } }}>Its transactions</Link>
            {client !== null && <Link to={only(`client.address = ${quoted(client)}`)}>Only this client</Link>}
            {server !== null && port !== null && (
                <Link to={only(`server.address = ${quoted(server)} AND server.port = ${port}`)}>Only this server</Link>
            )}
            {server !== null && port !== null && (
                <Explained
                    attempt={{
                        service: nameOf({ address: server, port: Number(port) }),
                        time: Number(value("first_packet_time")),
                        outcome: value("setup_outcome") ?? "",
                        synAcks: Number(value("setup_syn_ack_count")),
                    }}
                />
            )}
            <span>{value("setup_explanation")}</span>
        </>
    );
}
