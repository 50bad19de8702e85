//! The chart or table that shows a finding, by kind. A kind that is not here is reported without a link.

use std::collections::HashSet;

/// The anchor of the first that is `there`.
pub fn of(kind: &str, there: &HashSet<String>) -> Option<&'static str> {
    SHOWN_IN
        .iter()
        .find(|(known, shown_in)| *known == kind && there.contains(*shown_in))
        .map(|(_, shown_in)| *shown_in)
}

const SHOWN_IN: &[(&str, &str)] = &[
    ("FAILED_CONNECTIONS", "fig-setups"),
    ("ICMP_ERRORS", "tab-connections"),
    ("RETRANSMISSION_RATE", "fig-dialogues"),
    ("NEEDLESS_REPEATS", "fig-dialogues"),
    ("REORDERING", "fig-dialogues"),
    ("RETRANSMISSION_TIMES", "fig-losses"),
    ("LOSS", "fig-losses"),
    ("ACCEPT_QUEUE", "fig-losses"),
    ("PERIODIC_LOSS", "fig-losses"),
    ("SYN_LOSS", "fig-setups"),
    ("SYN_LOSS_BURST", "fig-losses"),
    ("SLOW_SETUP_IN_LOSS", "fig-setups"),
    ("APPLICATION_SLEEP", "fig-timing"),
    ("APPLICATION_SLEEP", "fig-transactions"),
    ("CAPACITY_CEILING", "fig-load"),
    ("SLOW_RAMP", "fig-load"),
    ("FRONTEND_QUEUEING", "fig-transactions"),
    ("PORT_RECYCLING", "fig-setups"),
    ("PORT_EXHAUSTION", "fig-setups"),
    ("PORT_COLLISION", "fig-setups"),
    ("TINY_SEGMENTS", "tab-signatures"),
    ("RESPONSE_BANDS", "fig-transactions"),
    ("DELAYED_ACK", "fig-transactions"),
    ("REQUEST_PAUSES", "fig-transactions"),
    ("CONNECTION_PER_TRANSACTION", "fig-durations"),
    ("ABORTIVE_CLOSE", "fig-durations"),
    ("FOREIGN_RST", "fig-durations"),
    ("CLOSED_BEFORE_REQUEST", "fig-durations"),
    ("CLOSED_DURING_REQUEST", "fig-durations"),
    ("UNANSWERED_REQUESTS", "tab-signatures"),
    ("ZERO_WINDOW", "tab-connections"),
    ("SMALL_WINDOW", "tab-connections"),
    ("SILLY_WINDOW", "tab-connections"),
    ("WINDOW_SCALE_MISHAP", "tab-connections"),
    ("SENDER_LIMITED", "tab-connections"),
    ("RECEIVER_LIMITED", "tab-connections"),
    ("BANDWIDTH_LIMITED", "fig-load"),
    ("ECN_MARKS", "tab-connections"),
    ("LATENCY_BOUND", "tab-diagnosis"),
    ("ONE_BYTE_APPLICATION", "tab-signatures"),
    ("CAPTURE_LOSS", "quality"),
    ("CAPTURE_QUALITY", "quality"),
    ("MIRROR_DUPLICATES", "quality"),
    ("MTU_BLACK_HOLE", "tab-connections"),
    ("DEAD_CONNECTIONS", "tab-connections"),
    ("SYN_FLOOD", "fig-setups"),
    ("PORT_SCAN", "fig-setups"),
    ("HALF_OPEN", "fig-setups"),
    ("KEEP_ALIVE_STORM", "tab-connections"),
    ("RTT_SHIFT", "fig-transactions"),
    ("ROUTE_CHANGE", "fig-transactions"),
    ("ONE_SIDED", "quality"),
    ("SLOWING_RESPONSES", "fig-transactions"),
];
