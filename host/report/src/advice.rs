//! What to do about a finding, and the chart that shows it, by kind. A finding that says itself what comes next needs
//! nothing here; a kind that is not here is reported without advice.

/// What is known of a kind.
pub struct Advice {
    /// Its kind.
    pub kind: &'static str,
    /// The chart or table that shows it.
    pub shown_in: &'static str,
    /// What to do next.
    pub next: &'static str,
}

const fn advice(kind: &'static str, shown_in: &'static str, next: &'static str) -> Advice {
    Advice { kind, shown_in, next }
}

/// Of this kind.
pub fn of(kind: &str) -> Option<&'static Advice> {
    ALL.iter().find(|advice| advice.kind == kind)
}

const ALL: &[Advice] = &[
    advice(
        "FAILED_CONNECTIONS",
        "fig-setups",
        "Find where SYN and SYN-ACK get lost: capture on the other side of every device between the tap and the server (load balancer, firewall, switch), and at the server. Compare its listen queue and limits with the number of connections at those times.",
    ),
    advice(
        "RETRANSMISSION_RATE",
        "fig-dialogues",
        "Find and mend the source of the losses: the pair and the side of the tap are in the dialogues. Candidates there: load balancer, firewall, switch ports (duplex, errors), cables, network cards, limits within the host.",
    ),
    advice(
        "LOSS",
        "fig-losses",
        "Look for the device that drops on the side of the tap that is named: its port counters (errors, discards) at those times; a capture behind it proves or clears it.",
    ),
    advice(
        "PERIODIC_LOSS",
        "fig-losses",
        "Look for what runs with this period in the devices on that side of the tap: a scheduler, a failing link of a pair, a policer's refill, a health check. Capture on both sides of each of them.",
    ),
    advice(
        "SYN_LOSS_BURST",
        "fig-losses",
        "Look at what limits new connections when load grows: listen backlog and SYN cookies of the server, connection tables and rate limits of firewall and load balancer.",
    ),
    advice(
        "SLOW_SETUP_IN_LOSS",
        "fig-setups",
        "What slows setups down and what loses packets come and go together: look for one device that does both.",
    ),
    advice(
        "APPLICATION_SLEEP",
        "fig-transactions",
        "Find what stops the applications while their TCP goes on: garbage collection, a shared lock or disk, the hypervisor (steal time, snapshots). When several hosts stop at once, look at what they share.",
    ),
    advice(
        "CAPACITY_CEILING",
        "fig-load",
        "Look for the limit in the server: worker threads, connection pool, processors, a lock. Raise it and test again: more load will only queue.",
    ),
    advice(
        "SLOW_RAMP",
        "fig-load",
        "Let the pool open connections sooner, or keep a minimum of them open: requests wait while it grows.",
    ),
    advice(
        "FRONTEND_QUEUEING",
        "fig-transactions",
        "Give the front end as many connections to the back end as it takes requests at once, from the start.",
    ),
    advice(
        "PORT_RECYCLING",
        "tab-services",
        "Widen the range of ephemeral ports, or keep connections open for several requests: a port that comes back while the server still waits in TIME-WAIT (up to 240 s) can fail.",
    ),
    advice(
        "PORT_EXHAUSTION",
        "fig-setups",
        "Widen the range of ephemeral ports, add addresses, or keep connections open.",
    ),
    advice(
        "TINY_SEGMENTS",
        "tab-signatures",
        "Look at the output buffering of the application: many small writes (or a flush after each) make many small packets.",
    ),
    advice(
        "RESPONSE_BANDS",
        "fig-transactions",
        "Times that repeat exactly are timers, not work: look for polling intervals, retries and timeouts of that length in the server and what it calls.",
    ),
    advice(
        "DELAYED_ACK",
        "fig-transactions",
        "Switch Nagle's algorithm off (TCP_NODELAY) or write each message at once: a sender waits for an ACK that the receiver delays.",
    ),
    advice(
        "CONNECTION_PER_TRANSACTION",
        "tab-services",
        "Keep connections open for more than one request (keep-alive, a pool), or use session resumption: each of them pays for handshakes first.",
    ),
    advice(
        "ABORTIVE_CLOSE",
        "tab-connections",
        "Harmless if the application closes so on purpose; else data under way is lost: look at who sends the RST and why.",
    ),
    advice(
        "ZERO_WINDOW",
        "tab-connections",
        "Look at the receiver's application: it did not read what had arrived (processor, disk, a lock, a slow consumer behind it).",
    ),
    advice(
        "SMALL_WINDOW",
        "tab-connections",
        "As for a closed window: the receiver's application reads too slowly, or its buffer is smaller than a segment or two.",
    ),
    advice(
        "WINDOW_SCALE_MISHAP",
        "tab-connections",
        "Find the box that takes out or ignores the window scale option (firewall, load balancer, old router): compare the SYNs on both sides of it.",
    ),
    advice(
        "SENDER_LIMITED",
        "tab-connections",
        "Raise the sender's buffer (SO_SNDBUF or its autotuning limit) to the rate wanted times the round trip.",
    ),
    advice(
        "RECEIVER_LIMITED",
        "tab-connections",
        "Raise the receiver's buffer (SO_RCVBUF or its autotuning limit) to the rate wanted times the round trip.",
    ),
    advice(
        "BANDWIDTH_LIMITED",
        "fig-load",
        "The link is full: a faster one, less data (compression, caching), or other times for bulk transfers.",
    ),
    advice(
        "LATENCY_BOUND",
        "tab-diagnosis",
        "Fewer turns, larger requests or several at once; or a shorter path. A faster link changes nothing.",
    ),
    advice(
        "ONE_BYTE_APPLICATION",
        "tab-signatures",
        "Let the application ask for more at a time.",
    ),
    advice(
        "CAPTURE_LOSS",
        "quality",
        "Repeat the capture with a larger buffer, a snap length or at a tap in place of a mirror port before trusting rates to the last digit.",
    ),
    advice(
        "MIRROR_DUPLICATES",
        "quality",
        "Mirror each packet once: one direction of the port, or one port of the path.",
    ),
    advice(
        "MTU_BLACK_HOLE",
        "tab-connections",
        "Let ICMP \"fragmentation needed\" (\"packet too big\") pass, or clamp the MSS on the path.",
    ),
    advice(
        "SYN_FLOOD",
        "fig-setups",
        "Block or rate-limit the sources; switch SYN cookies on.",
    ),
    advice(
        "KEEP_ALIVE_STORM",
        "tab-connections",
        "Lengthen the keep-alive interval of the side that sends them.",
    ),
    advice(
        "RTT_SHIFT",
        "fig-transactions",
        "Ask what changed on the path at that time: a route, a tunnel, a queue that stays full.",
    ),
    advice(
        "ROUTE_CHANGE",
        "fig-transactions",
        "Compare with the routing log of that time; a changed TTL counts hops.",
    ),
    advice(
        "ONE_SIDED",
        "quality",
        "Capture both directions: add the other port or path to the mirror.",
    ),
    advice(
        "SLOWING_RESPONSES",
        "fig-transactions",
        "Look for what fills up at the server as load grows or time passes: queue, pool, memory, table without an index.",
    ),
];
