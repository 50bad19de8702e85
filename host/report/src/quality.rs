//! How good the capture is, how the figures came about and what they cannot tell.

use weir_analysis::several;
use weir_messages::v1;

use crate::document::Text;
use crate::format::{count, length, seconds, untracked};

/// What there is to know about the capture itself.
pub fn quality(summary: &v1::Summary) -> Vec<Text> {
    let mut out = Vec::new();
    let mut say = |text: String| out.push(Text::from(text));
    say(format!(
        "{} ({} TCP){}{}.",
        several(summary.packets, "packet", "packets"),
        count(summary.tcp_packets),
        length(summary),
        summary.start.map_or_else(String::new, |t| format!(", from {t}"))
    ));
    if summary.capture_loss > 0 {
        say(several(
            summary.capture_loss,
            "packet was delivered by the network but is not in the capture, or its source says that it dropped it; it does not \
             count as loss of the network.",
            "packets were delivered by the network but are not in the capture, or its source says that it dropped them; none of \
             them counts as loss of the network.",
        ));
    } else {
        say("Nothing shows that the capture itself missed packets.".to_owned());
    }
    if summary.cut_packets > 0 {
        say(format!(
            "{} captured shorter than on the wire; lengths come from the headers.",
            several(summary.cut_packets, "packet was", "packets were")
        ));
    }
    if summary.clamped_times > 0 {
        say(format!(
            "The time ran backwards at {} got the time of the packet before.",
            several(summary.clamped_times, "packet; it", "packets; they")
        ));
    }
    if summary.other_flows > 0 {
        say(several(
            summary.other_flows,
            "flow that is not TCP is counted only.",
            "flows that are not TCP are counted only.",
        ));
    }
    if let Some(list) = untracked(summary) {
        say(format!("Frames in no connection, by reason: {list}."));
    }
    if summary.unbalanced_seconds > 0.0 {
        say(format!(
            "Times of {} did not add up, because records are missing, and were made to.",
            seconds(summary.unbalanced_seconds)
        ));
    }
    out
}

/// Method and limits.
pub fn method(taps: usize) -> Vec<Text> {
    let mut out = vec![
        "Everything is told from headers: times, sizes, sequence and acknowledgment numbers, options. Payload is not looked at, so \
         sanitised, cut and encrypted captures say the same.",
        "A transaction is a change of direction: all that a client sends before the server answers is one request. Pipelined or \
         multiplexed requests (HTTP/2) on one connection look like fewer, longer ones.",
        "Transactions are named by the sizes of their blocks with the last digits masked; times are measured at the tap, so the \
         way between tap and server is part of the server's time unless round trips tell it apart.",
        "A loss is seen through its repeat, the ACKs and the gaps: whether the packet was lost before or behind the tap is known \
         if it was seen there; a SYN that came again may have been lost itself or its answer may have been.",
        "Load, losses and times that come together are stated as coming together; which caused which is for a test to tell.",
    ];
    if taps < 2 {
        out.push(
            "One tap sees one point of the path: it tells its two sides apart, not the devices on one side. A capture at the other \
             end, or behind each device, does.",
        );
    }
    out.into_iter().map(Text::from).collect()
}
