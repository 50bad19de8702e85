//! Facts for the tests of detectors: each says what its own case is about, and the rest stands here.

use weir_analysis::{Cause, Class, CloseKind, Ended, Ends, Evidence, Outcome, Place, Sent, Verdict};
use weir_record::FlowId;

/// A connection that came about and on which nothing more was seen, open until its last packet; `span`: first and last, TAI ns.
pub(crate) fn ended(id: u64, span: (u64, u64)) -> Ended {
    Ended {
        id: FlowId(id),
        ends: Ends::default(),
        span,
        until: span.1,
        setup: Some(Outcome::Ok),
        failed: false,
        syns: (1, 1),
        setup_ns: None,
        answer_ns: None,
        is_answer_late: false,
        client_clock: None,
        rested: [0; 2],
        closing: CloseKind::Open,
        sent: [Sent::default(); 2],
        answered: 0,
        has_trouble: false,
    }
}

/// A retransmission of the client by a timer, of which nothing more is known; times are TAI ns.
pub(crate) fn verdict(connection: u64, lost_at: u64, time: u64) -> Verdict {
    Verdict {
        connection: FlowId(connection),
        from_server: false,
        time,
        lost_at,
        seq: 0,
        length: 0,
        class: Class::Retransmission,
        cause: Cause::Timeout,
        place: Place::Unknown,
        evidence: Evidence::NONE,
        episode: 0,
        begins: false,
        handshake: false,
        smaller_arrived: 0,
        arrived: false,
        counted: 0,
    }
}
