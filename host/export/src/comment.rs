//! What Weir thinks of a packet, in words. `docs/src/losses.md` explains classes, places and signs.

use std::fmt::Write as _;

use weir_analysis::{Cause, Class, Place, Verdict};
use weir_record::what;

/// Every comment begins with it, so that filters find them.
const PREFIX: &str = "weir: ";

/// Conditions that say what a packet is to anybody; the others are what verdicts are made from.
const SHOWN: u32 = what::ZERO_WINDOW
    | what::SMALL_WINDOW
    | what::WINDOW_OPEN
    | what::WINDOW_FULL
    | what::ACK_UNSEEN
    | what::DSACK
    | what::DUP_ACK;

/// On the first packet of a connection in the copy: its first of all, or a later one.
pub fn connection(id: u64, begins: bool) -> String {
    let how = if begins { "begins" } else { "goes on" };
    format!("{PREFIX}connection {id} {how}")
}

/// On an ICMP error that quotes a packet of a connection: it comes from elsewhere.
pub fn icmp_error(id: u64) -> String {
    format!("{PREFIX}ICMP error about connection {id}")
}

/// What became of a segment.
pub fn verdict(verdict: &Verdict) -> String {
    let class = match verdict.class {
        Class::Copy => "copy of the packet before it",
        Class::WindowProbe => "window probe",
        Class::KeepAlive => "keep-alive",
        Class::CaptureOrder => "out of order in the capture, not on the wire",
        Class::Reordered => "overtaken by later ones",
        Class::Retransmission => "retransmission",
        Class::Missed => "shows bytes that were delivered and are not in the capture",
        Class::Lost => "shows bytes that never came",
    };
    let mut text = format!("{PREFIX}{class}");
    if matches!(verdict.class, Class::Missed | Class::Lost) {
        let (length, seq) = (verdict.length, verdict.seq);
        let sender = if verdict.from_server { "server" } else { "client" };
        let _ = write!(text, " ({length} of the {sender} from seq {seq})");
    }
    match verdict.cause {
        Cause::Fast => text.push_str(", asked for by the receiver"),
        Cause::Timeout => text.push_str(", timeout"),
        Cause::TailProbe => text.push_str(", probe of the last segment"),
        Cause::Unknown => {}
    }
    let place = match verdict.place {
        Place::BeforeTap => Some("lost upstream: between its sender and the tap"),
        Place::BehindTap => Some("lost downstream: between the tap and its receiver"),
        Place::AckBeforeTap => Some("spurious: the ACK was lost before the tap"),
        Place::AckBehindTap => Some("spurious: the ACK was lost behind the tap"),
        Place::Capture => Some("missed by the capture alone"),
        Place::Nowhere => (verdict.class == Class::Retransmission).then_some("spurious: nothing was lost"),
        Place::Unknown => Some("where is not known"),
    };
    if let Some(place) = place {
        let _ = write!(text, "; {place}");
    }
    let signs: Vec<_> = verdict.evidence.signs().map(|sign| sign.name).collect();
    if !signs.is_empty() {
        let _ = write!(text, " (confidence {:.2}: {})", verdict.confidence(), signs.join(" "));
    }
    text
}

/// Conditions of a packet by the bits of its EVENT, if any of them is worth saying.
pub fn conditions(bits: u32) -> Option<String> {
    let names = what::NAMES.iter().filter(|(bit, _)| bits & SHOWN & bit != 0);
    let names: Vec<_> = names.map(|(_, name)| name.to_lowercase().replace('_', " ")).collect();
    (!names.is_empty()).then(|| format!("{PREFIX}{}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use weir_analysis::{Evidence, sign};
    use weir_record::FlowId;

    use super::*;

    #[test]
    fn a_verdict_says_what_why_where_and_on_what_evidence() {
        let told = Verdict {
            connection: FlowId(1),
            from_server: true,
            time: 0,
            lost_at: 0,
            seq: 1000,
            length: 1460,
            class: Class::Retransmission,
            cause: Cause::Timeout,
            place: Place::BehindTap,
            evidence: Evidence::NONE.with(sign::TIMER).with(sign::NO_ACK),
            episode: 1,
            begins: true,
            handshake: false,
            smaller_arrived: 0,
            arrived: false,
            counted: 0,
        };
        assert_eq!(
            verdict(&told),
            "weir: retransmission, timeout; lost downstream: between the tap and its receiver \
             (confidence 0.80: TIMER NO_ACK)"
        );
        let missed = Verdict {
            class: Class::Missed,
            cause: Cause::Unknown,
            place: Place::Capture,
            evidence: Evidence::NONE,
            ..told
        };
        assert_eq!(
            verdict(&missed),
            "weir: shows bytes that were delivered and are not in the capture (1460 of the server from seq 1000); \
             missed by the capture alone"
        );
    }

    #[test]
    fn only_what_says_something_is_a_condition() {
        assert_eq!(conditions(what::PUSH | what::IDLE_BEFORE), None);
        assert_eq!(
            conditions(what::ZERO_WINDOW | what::PUSH).as_deref(),
            Some("weir: zero window")
        );
    }
}
