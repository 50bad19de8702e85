//! Table `connections`: each TCP connection, when it is over.

use weir_messages::v1::{Connection, Direction};

use super::column::{Cell, Column, nanos, text};
use super::shares::shares;
use super::{Row, Table};

/// The columns of one direction, whose names begin with its name.
macro_rules! direction {
    ($prefix:literal, $side:ident) => {
        [
            Column::known(
                concat!($prefix, "_packets"),
                Cell::U64(|c: &Connection| Some($side(c)?.packets)),
                "Packets.",
            ),
            Column::known(
                concat!($prefix, "_payload_bytes"),
                Cell::U64(|c| Some($side(c)?.payload_bytes)),
                "TCP payload in bytes, repeats included.",
            ),
            Column::known(
                concat!($prefix, "_payload_bits_per_second"),
                Cell::F64(|c| $side(c)?.payload_bits_per_second),
                "Payload in a second, from the connection's first packet to its last.",
            ),
            Column::known(
                concat!($prefix, "_data_packets"),
                Cell::U64(|c| Some($side(c)?.data_packets)),
                "Packets with data, repeats included; what the capture alone made is left out.",
            ),
            Column::known(
                concat!($prefix, "_retransmitted_packets"),
                Cell::U64(|c| Some($side(c)?.retransmitted_packets)),
                "Retransmissions, SYNs, SYN-ACKs and FINs among them.",
            ),
            Column::known(
                concat!($prefix, "_retransmitted_data_packets"),
                Cell::U64(|c| Some($side(c)?.retransmitted_data_packets)),
                "Of the data packets, retransmissions.",
            ),
            Column::known(
                concat!($prefix, "_retransmitted_bytes"),
                Cell::U64(|c| Some($side(c)?.retransmitted_bytes)),
                "Their payload in bytes.",
            ),
            Column::known(
                concat!($prefix, "_fast_retransmissions"),
                Cell::U64(|c| Some($side(c)?.fast_retransmissions)),
                "Retransmissions that duplicate ACKs or SACK asked for.",
            ),
            Column::known(
                concat!($prefix, "_timeout_retransmissions"),
                Cell::U64(|c| Some($side(c)?.timeout_retransmissions)),
                "Retransmissions by the retransmission timer.",
            ),
            Column::known(
                concat!($prefix, "_tail_loss_probes"),
                Cell::U64(|c| Some($side(c)?.tail_loss_probes)),
                "Retransmissions of the last segment after a probe timeout (RFC 8985 7).",
            ),
            Column::known(
                concat!($prefix, "_unknown_retransmissions"),
                Cell::U64(|c| Some($side(c)?.unknown_retransmissions)),
                "Retransmissions whose cause is not known.",
            ),
            Column::known(
                concat!($prefix, "_spurious_retransmissions"),
                Cell::U64(|c| Some($side(c)?.spurious_retransmissions)),
                "Retransmissions of data that had arrived.",
            ),
            Column::known(
                concat!($prefix, "_retransmission_episodes"),
                Cell::U64(|c| Some($side(c)?.retransmission_episodes)),
                "Recoveries: retransmissions that belong together count once.",
            ),
            Column::known(
                concat!($prefix, "_lost_acks"),
                Cell::U64(|c| Some($side(c)?.lost_acks)),
                "Repeats that only the loss of their ACKs explains; they are spurious, too.",
            ),
            Column::known(
                concat!($prefix, "_out_of_order"),
                Cell::U64(|c| Some($side(c)?.out_of_order)),
                "Segments that later ones overtook.",
            ),
            Column::known(
                concat!($prefix, "_network_duplicates"),
                Cell::U64(|c| Some($side(c)?.network_duplicates)),
                "Copies of packets, made by the network or the capture.",
            ),
            Column::known(
                concat!($prefix, "_mirror_copies"),
                Cell::U64(|c| Some($side(c)?.mirror_copies)),
                "Of these copies, those that the receiver did not get: made by the capture.",
            ),
            Column::known(
                concat!($prefix, "_lost_upstream"),
                Cell::U64(|c| Some($side(c)?.lost_upstream)),
                "Segments lost between the sender and the tap.",
            ),
            Column::known(
                concat!($prefix, "_lost_downstream"),
                Cell::U64(|c| Some($side(c)?.lost_downstream)),
                "Segments lost between the tap and the receiver.",
            ),
            Column::known(
                concat!($prefix, "_lost_unknown"),
                Cell::U64(|c| Some($side(c)?.lost_unknown)),
                "Segments lost, on which side of the tap is not known.",
            ),
            Column::known(
                concat!($prefix, "_missed_by_capture"),
                Cell::U64(|c| Some($side(c)?.missed_by_capture)),
                "Segments that were delivered but did not reach the analysis.",
            ),
            Column::known(
                concat!($prefix, "_duplicate_acks"),
                Cell::U64(|c| Some($side(c)?.duplicate_acks)),
                "Duplicate ACKs that this side sent.",
            ),
            Column::known(
                concat!($prefix, "_sack_blocks"),
                Cell::U64(|c| Some($side(c)?.sack_blocks)),
                "ACKs of this side that brought a new SACK state.",
            ),
            Column::known(
                concat!($prefix, "_zero_windows"),
                Cell::U64(|c| Some($side(c)?.zero_windows)),
                "Times that this side's window closed.",
            ),
            Column::known(
                concat!($prefix, "_small_windows"),
                Cell::U64(|c| Some($side(c)?.small_windows)),
                "Packets of this side with a window below a segment.",
            ),
            Column::known(
                concat!($prefix, "_silly_windows"),
                Cell::U64(|c| Some($side(c)?.silly_windows)),
                "Openings of this side's window by less than a segment that held data back (RFC 1122 4.2.3.3).",
            ),
            Column::known(
                concat!($prefix, "_silly_window_seconds"),
                Cell::F64(|c| Some($side(c)?.silly_window_seconds)),
                "Time of these openings.",
            ),
            Column::known(
                concat!($prefix, "_frozen_windows"),
                Cell::U64(|c| Some($side(c)?.frozen_windows)),
                "Whole windows of the peer's data that went under a window of this side that did not change and held it back.",
            ),
            Column::known(
                concat!($prefix, "_frozen_window_seconds"),
                Cell::F64(|c| Some($side(c)?.frozen_window_seconds)),
                "Time of these windows.",
            ),
            Column::known(
                concat!($prefix, "_silly_pieces"),
                Cell::U64(|c| Some($side(c)?.silly_pieces)),
                "Pieces below a segment that this side sent into a small window while more waited (RFC 1122 4.2.3.4).",
            ),
            Column::known(
                concat!($prefix, "_keep_alives"),
                Cell::U64(|c| Some($side(c)?.keep_alives)),
                "Keep-alives that this side sent.",
            ),
            Column::known(
                concat!($prefix, "_max_in_flight"),
                Cell::U64(|c| Some($side(c)?.max_in_flight)),
                "Most bytes in flight.",
            ),
            Column::known(
                concat!($prefix, "_min_window"),
                Cell::U64(|c| $side(c)?.min_window),
                "Smallest window of this side in bytes, scaled when the scale is known.",
            ),
            Column::known(
                concat!($prefix, "_max_window"),
                Cell::U64(|c| $side(c)?.max_window),
                "Largest.",
            ),
            Column::known(
                concat!($prefix, "_inferred_window_scale"),
                Cell::U32(|c| $side(c)?.inferred_window_scale),
                "Shift of this side's windows that its peer's data shows, when the handshake does not tell it.",
            ),
            Column::known(
                concat!($prefix, "_rtt_min_seconds"),
                Cell::F64(|c| $side(c)?.rtt.as_ref()?.min_seconds),
                "Round trip from the tap to the receiver of this direction's data and back, from a segment to its ACK: smallest. Where all ACKs came with responses, the time of these is in it.",
            ),
            Column::known(
                concat!($prefix, "_rtt_median_seconds"),
                Cell::F64(|c| $side(c)?.rtt.as_ref()?.median_seconds),
                "Median of these round trips.",
            ),
            Column::known(
                concat!($prefix, "_rtt_p95_seconds"),
                Cell::F64(|c| $side(c)?.rtt.as_ref()?.p95_seconds),
                "95 % of them are not above it.",
            ),
            Column::known(
                concat!($prefix, "_rtt_samples"),
                Cell::U64(|c| Some($side(c)?.rtt.as_ref()?.samples)),
                "How many they are.",
            ),
            Column::known(
                concat!($prefix, "_rtt_delayed_ack_share"),
                Cell::F64(|c| $side(c)?.rtt.as_ref()?.delayed_ack_share),
                "Share of the samples of longer transfers whose ACK was delayed by its sender.",
            ),
            Column::known(
                concat!($prefix, "_rtt_marked_ack_share"),
                Cell::F64(|c| $side(c)?.rtt.as_ref()?.marked_ack_share),
                "Share of these whose ACK echoes an ECN mark, where both sides agreed on ECN.",
            ),
            Column::known(
                concat!($prefix, "_limit_application_seconds"),
                Cell::F64(|c| Some($side(c)?.limit_seconds.as_ref()?.application)),
                "Time in which the application had nothing to send. This and the next five add up.",
            ),
            Column::known(
                concat!($prefix, "_limit_sender_seconds"),
                Cell::F64(|c| Some($side(c)?.limit_seconds.as_ref()?.sender)),
                "Time in which the sender itself held data back.",
            ),
            Column::known(
                concat!($prefix, "_limit_receiver_window_seconds"),
                Cell::F64(|c| Some($side(c)?.limit_seconds.as_ref()?.receiver_window)),
                "Time in which the receiver's window held data back.",
            ),
            Column::known(
                concat!($prefix, "_limit_congestion_seconds"),
                Cell::F64(|c| Some($side(c)?.limit_seconds.as_ref()?.congestion)),
                "Time in which the congestion window held data back.",
            ),
            Column::known(
                concat!($prefix, "_limit_bandwidth_seconds"),
                Cell::F64(|c| Some($side(c)?.limit_seconds.as_ref()?.bandwidth)),
                "Time that the link needed.",
            ),
            Column::known(
                concat!($prefix, "_limit_unknown_seconds"),
                Cell::F64(|c| Some($side(c)?.limit_seconds.as_ref()?.unknown)),
                "Time of transfers whose limit is not known.",
            ),
            Column::known(
                concat!($prefix, "_limit_nagle_seconds"),
                Cell::F64(|c| Some($side(c)?.limit_seconds.as_ref()?.nagle)),
                "Of sender: Nagle's algorithm waited for an ACK.",
            ),
            Column::known(
                concat!($prefix, "_limit_small_window_seconds"),
                Cell::F64(|c| Some($side(c)?.limit_seconds.as_ref()?.small_window)),
                "Of receiver window: below one segment.",
            ),
            Column::known(
                concat!($prefix, "_limit_zero_window_seconds"),
                Cell::F64(|c| Some($side(c)?.limit_seconds.as_ref()?.zero_window)),
                "Of receiver window: closed.",
            ),
            Column::known(
                concat!($prefix, "_limit_slow_start_seconds"),
                Cell::F64(|c| Some($side(c)?.limit_seconds.as_ref()?.slow_start)),
                "Of congestion: before the first loss.",
            ),
            Column::known(
                concat!($prefix, "_limit_recovery_seconds"),
                Cell::F64(|c| Some($side(c)?.limit_seconds.as_ref()?.recovery)),
                "Of congestion: while a lost segment was being recovered.",
            ),
            Column::known(
                concat!($prefix, "_ceiling_measured_bits_per_second"),
                Cell::F64(|c| $side(c)?.ceilings.as_ref()?.measured_bits_per_second),
                "New bytes of transfers that are over, from the first packet of each to the ACK of its last, at the sender; NULL where the application had nothing to send for most of it.",
            ),
            Column::known(
                concat!($prefix, "_ceiling_receiver_window_bits_per_second"),
                Cell::F64(|c| $side(c)?.ceilings.as_ref()?.receiver_window_bits_per_second),
                "What the receiver's largest window would allow.",
            ),
            Column::known(
                concat!($prefix, "_ceiling_sender_bits_per_second"),
                Cell::F64(|c| $side(c)?.ceilings.as_ref()?.sender_bits_per_second),
                "What the sender's buffer would allow.",
            ),
            Column::known(
                concat!($prefix, "_ceiling_loss_bits_per_second"),
                Cell::F64(|c| $side(c)?.ceilings.as_ref()?.loss_bits_per_second),
                "What this rate of loss would allow (Mathis et al. 1997).",
            ),
            Column::known(
                concat!($prefix, "_ceiling_link_bits_per_second"),
                Cell::F64(|c| $side(c)?.ceilings.as_ref()?.link_bits_per_second),
                "What the link would allow: the given bandwidth, or the best rate while a queue stood.",
            ),
            Column::known(
                concat!($prefix, "_ceiling_round_trip_seconds"),
                Cell::F64(|c| $side(c)?.ceilings.as_ref()?.round_trip_seconds),
                "Smallest round trip of the whole path.",
            ),
            Column::known(
                concat!($prefix, "_ceiling_ideal_window_bytes"),
                Cell::F64(|c| $side(c)?.ceilings.as_ref()?.ideal_window_bytes),
                "Window that would fill the link: its rate times the round trip.",
            ),
        ]
    };
}

/// The columns of the options of a SYN or SYN-ACK.
macro_rules! options {
    ($prefix:literal, $field:ident, $packet:literal) => {
        [
            Column::known(
                concat!("setup_", $prefix, "_mss"),
                Cell::U32(|c: &Connection| c.setup.as_ref()?.$field.as_ref()?.mss),
                concat!(
                    "MSS in the ",
                    $packet,
                    "; NULL: not offered, or the packet was not seen."
                ),
            ),
            Column::known(
                concat!("setup_", $prefix, "_window_scale"),
                Cell::U32(|c| c.setup.as_ref()?.$field.as_ref()?.window_scale),
                concat!("Window scale in the ", $packet, "; NULL as before."),
            ),
            Column::known(
                concat!("setup_", $prefix, "_sack_permitted"),
                Cell::Bool(|c| Some(c.setup.as_ref()?.$field.as_ref()?.sack_permitted)),
                concat!("The ", $packet, " permits SACK."),
            ),
            Column::known(
                concat!("setup_", $prefix, "_timestamps"),
                Cell::Bool(|c| Some(c.setup.as_ref()?.$field.as_ref()?.timestamps)),
                concat!("The ", $packet, " has the timestamps option."),
            ),
            Column::known(
                concat!("setup_", $prefix, "_ecn"),
                Cell::Bool(|c| Some(c.setup.as_ref()?.$field.as_ref()?.ecn)),
                concat!("The ", $packet, " offers ECN."),
            ),
            Column::known(
                concat!("setup_", $prefix, "_window"),
                Cell::U32(|c| Some(c.setup.as_ref()?.$field.as_ref()?.window)),
                concat!("Window in the ", $packet, " in bytes."),
            ),
        ]
    };
}

const fn to_server(c: &Connection) -> Option<&Direction> {
    c.client_to_server.as_ref()
}

const fn to_client(c: &Connection) -> Option<&Direction> {
    c.server_to_client.as_ref()
}

impl Row for Connection {
    const TABLE: Table = Table::Connections;

    fn columns() -> Vec<Column<Self>> {
        let mut columns = vec![
            Column::always(
                "id",
                Cell::U64(|c: &Self| Some(c.id)),
                "Id of the connection: unique in its tap; other tables call it connection_id.",
            ),
            Column::known(
                "client_address",
                Cell::Text(|c| text(&c.client.as_ref()?.address)),
                "Address of the client, IPv4 or IPv6.",
            ),
            Column::known(
                "client_port",
                Cell::U16(|c| u16::try_from(c.client.as_ref()?.port).ok()),
                "Port of the client.",
            ),
            Column::known(
                "server_address",
                Cell::Text(|c| text(&c.server.as_ref()?.address)),
                "Address of the server.",
            ),
            Column::known(
                "server_port",
                Cell::U16(|c| u16::try_from(c.server.as_ref()?.port).ok()),
                "Port of the server.",
            ),
            Column::always(
                "first_packet_time",
                Cell::Time(|c| nanos(c.first_packet_time)),
                "When its first packet passed.",
            ),
            Column::always(
                "duration_seconds",
                Cell::F64(|c| Some(c.duration_seconds)),
                "First to last packet.",
            ),
            Column::always(
                "turns",
                Cell::U32(|c| Some(c.turns)),
                "Answered requests: changes of the data's direction from client to server and back.",
            ),
            Column::known(
                "client_known_by",
                Cell::Name(|c| text(&c.client_known_by)),
                "How the client side is known: SYN, SYN_ACK, SERVER, PORT or FIRST.",
            ),
            Column::known(
                "outer_vlan",
                Cell::U16(|c| c.vlans.first().and_then(|id| u16::try_from(*id).ok())),
                "Outermost VLAN id.",
            ),
            Column::known(
                "inner_vlan",
                Cell::U16(|c| c.vlans.get(1).and_then(|id| u16::try_from(*id).ok())),
                "Second VLAN id.",
            ),
            Column::known(
                "tunnel",
                Cell::Name(|c| text(&c.tunnel)),
                "NONE, IP_IN_IP, GRE, VXLAN, GENEVE, ERSPAN, GTP_U or PPPOE.",
            ),
            Column::known(
                "tunnel_id",
                Cell::U32(|c| (c.tunnel != "NONE").then_some(c.tunnel_id)),
                "Id of the tunnel; NULL without one.",
            ),
            Column::known(
                "setup_outcome",
                Cell::Name(|c| text(&c.setup.as_ref()?.outcome)),
                "OK, RETRANSMITTED, REFUSED, IGNORED, RESET_LATE or MIDSTREAM; NULL: nothing is known of a setup.",
            ),
            Column::known(
                "setup_description",
                Cell::Text(|c| text(&c.setup.as_ref()?.description)),
                "The handshake with its options in one line.",
            ),
            Column::known(
                "setup_syn_count",
                Cell::U32(|c| Some(c.setup.as_ref()?.syn_count)),
                "SYNs seen.",
            ),
            Column::known(
                "setup_syn_ack_count",
                Cell::U32(|c| Some(c.setup.as_ref()?.syn_ack_count)),
                "SYN-ACKs seen.",
            ),
            Column::known(
                "setup_response_seconds",
                Cell::F64(|c| c.setup.as_ref()?.response_seconds),
                "Last SYN before the answer to the answer (SYN-ACK, data or RST).",
            ),
            Column::known(
                "setup_end_seconds",
                Cell::F64(|c| c.setup.as_ref()?.end_seconds),
                "First SYN to the end of the setup.",
            ),
            Column::known(
                "setup_missing",
                Cell::Texts(|c| {
                    let missing = c.setup.as_ref().map(|setup| setup.missing.as_slice());
                    missing
                        .unwrap_or_default()
                        .iter()
                        .map(|word| word.as_str().into())
                        .collect()
                }),
                "What the handshake lacks, in words.",
            ),
            Column::known(
                "setup_explanation",
                Cell::Text(|c| text(&c.setup.as_ref()?.explanation)),
                "What was lost when a SYN or SYN-ACK came again, and how a setup failed, in words.",
            ),
        ];
        columns.extend(options!("client", client_options, "client's first SYN"));
        columns.extend(options!("server", server_options, "server's first SYN-ACK"));
        columns.extend([
            Column::known(
                "close_kind",
                Cell::Name(|c: &Self| text(&c.close.as_ref()?.kind)),
                "CLIENT_FIN, SERVER_FIN, CLIENT_RST, SERVER_RST, REFUSED, HALF_CLOSED, IGNORED, OPEN or TIMEOUT.",
            ),
            Column::known(
                "close_time",
                Cell::Time(|c| nanos(c.close.as_ref()?.time)),
                "When it was closed; NULL while open, or not known.",
            ),
        ]);
        columns.extend(shares!());
        columns.extend(direction!("client_to_server", to_server));
        columns.extend(direction!("server_to_client", to_client));
        columns
    }
}
