//! How good the capture is, and what cannot be known because of it.

use weir_messages::v1;
use weir_record::Untracked;

use crate::flow::Flow;
use crate::group::{Group, finding};
use crate::numbers::{connections, count, several};
use crate::setup::Outcome;
use crate::surroundings::Surroundings;

/// Share of frames in no flow from which on that is worth telling.
const UNTRACKED_SHARE: f64 = 0.001;
/// Connections that were open at the beginning, and their share.
const MIDSTREAM: u64 = 10;
const MIDSTREAM_SHARE: f64 = 0.05;
/// Mean size of a connection's segments over the agreed size, and connections so, from which on they were not on the wire
/// like that.
const OVERSIZE: u64 = 2;
const OFFLOADED: u64 = 3;

/// ACKs that stand before the data they acknowledge, from which on that is no chance.
const EARLY: u64 = 3;

/// Reasons for which traffic of interest is not followed, and what that costs. Frames without IP and unknown ICMP are not.
/// [`Untracked::Fragment`] is apart: it counts pieces of datagrams that were put together, too.
const REASONS: [(Untracked, &str); 7] = [
    (
        Untracked::Truncated,
        "the capture cut their headers: a longer snap length is needed",
    ),
    (Untracked::Malformed, "their headers contradict themselves"),
    (Untracked::TableFull, "the flow table was full: connections are missing"),
    (
        Untracked::Oversize,
        "they are longer than the card takes: a capture behind segmentation offload",
    ),
    (Untracked::Depth, "they have more tags or tunnels than are followed"),
    (
        Untracked::Link,
        "their link type is none that is read; capinfos names it",
    ),
    (Untracked::Profile, "the card does not look into their encapsulation"),
];

/// What connections tell of the capture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quality {
    connections: u64,
    /// Segments that were delivered and not seen.
    missed: u64,
    midstream: u64,
    /// Those of them with data of which it is a guess which end is the client.
    guessed: u64,
    offloaded: u64,
    /// ACKs before the data that they acknowledge, where all of that came, and connections with them.
    early: u64,
    skewed: u64,
    /// They are there with other tags, too.
    twins: u64,
    /// Options of their SYNs were cut.
    cut: u64,
    /// Connections of any of these.
    told: Group,
}

impl Quality {
    pub fn connection(&mut self, flow: &Flow) {
        self.connections += 1;
        let missed = flow.counts(0).missed + flow.counts(1).missed;
        self.missed += missed;
        let early = flow.extras.trouble().map_or(0, |trouble| trouble.early_acks);
        let is_skewed = early > 0 && missed == 0;
        if is_skewed {
            self.early += u64::from(early);
            self.skewed += 1;
        }
        let is_midstream = flow.setup.outcome == Outcome::Midstream;
        let has_data = || flow.directions.iter().any(|direction| direction.payload > 0);
        let is_offloaded = is_offloaded(flow);
        self.midstream += u64::from(is_midstream);
        self.guessed += u64::from(is_midstream && flow.is_client_guessed() && has_data());
        self.offloaded += u64::from(is_offloaded);
        self.twins += u64::from(flow.is_twin());
        self.cut += u64::from(flow.setup.is_cut());
        if is_midstream || is_offloaded || is_skewed || flow.is_twin() || flow.setup.is_cut() {
            self.told.add(flow);
        }
    }

    pub fn finding(&self, around: &Surroundings) -> Option<v1::Finding> {
        let mut evidence = Vec::new();
        if around.clamped > 0 {
            evidence.push(format!(
                "{} had a time that ran backwards, or far ahead of both neighbours, and took that of the frame before: times around, and what came first, are not certain",
                several(around.clamped, "frame", "frames")
            ));
        }
        let mut untracked = 0;
        let of_frames = |reason: Untracked| {
            let count = around.untracked[reason as usize];
            (count, count as f64 / around.frames.max(1) as f64)
        };
        for (reason, cost) in REASONS {
            let (count, share) = of_frames(reason);
            if share >= UNTRACKED_SHARE {
                untracked += count;
                evidence.push(format!(
                    "{count} of {} frames ({:.2} %) are in no connection ({}): {cost}",
                    around.frames,
                    100.0 * share,
                    reason.name()
                ));
            }
        }
        // Where connections lack nothing, all their pieces were put together.
        let (fragments, share) = of_frames(Untracked::Fragment);
        if share >= UNTRACKED_SHARE && (self.missed > 0 || self.connections == 0) {
            evidence.push(format!(
                "{fragments} of {} frames ({:.2} %) are IP fragments ({}), of which it is not known how many could not be put together{}",
                around.frames,
                100.0 * share,
                Untracked::Fragment.name(),
                match self.missed {
                    0 => String::new(),
                    missed => format!(
                        ": {} of connections that were not seen, but acknowledged, may have been in them",
                        several(missed, "segment", "segments")
                    ),
                }
            ));
        }
        if self.early >= EARLY {
            evidence.push(format!(
                "{} of {} come before the data that they acknowledge, all of which came later: the two directions were captured with clocks or \
                 delays of their own; round trips on one side of the tap, places of losses and whose time it was are not certain",
                several(self.early, "ACK", "ACKs"),
                connections(self.skewed)
            ));
        }
        let midstream = self.midstream;
        if midstream >= MIDSTREAM && midstream as f64 >= MIDSTREAM_SHARE * self.connections as f64 {
            evidence.push(format!(
                "{} of {} open when the capture began: their setup, options and window scale are not known",
                count(midstream),
                match self.connections {
                    1 => "1 connection was".to_owned(),
                    all => format!("{} were", connections(all)),
                }
            ));
        }
        let twins = self.twins;
        if twins > 0 {
            evidence.push(format!(
                "{} there with other VLAN ids or another tunnel, too, packet by packet: the capture has both sides of a router or of a tunnel's end, and figures over all connections count them twice (weir export -f pcapng --filter vlans:ID copies one side)",
                match twins {
                    1 => "1 connection is".to_owned(),
                    all => format!("{} are", connections(all)),
                }
            ));
        }
        if self.guessed > 0 {
            evidence.push(format!(
                "which end is the client is a guess for {}: open when the capture began, and the ports do not tell; if it is the other, so are requests and responses, and whose time it was",
                connections(self.guessed)
            ));
        }
        let cut = self.cut;
        if cut > 0 {
            evidence.push(format!(
                "options of the SYNs of {} were not all captured: what is absent is not certain, and windows are not known \
                 where the window scale is not (a snap length of 96 holds all options)",
                connections(cut)
            ));
        }
        let offloaded = self.offloaded;
        if offloaded >= OFFLOADED {
            evidence.push(format!(
                "segments of {} are more than {OVERSIZE} times as large as agreed: captured on a host whose card cuts or joins them (TSO, LRO); sizes and counts of packets on the wire are not known, and checksums may look wrong there",
                connections(offloaded)
            ));
        }
        if evidence.is_empty() {
            return None;
        }
        evidence.push(
            "it may also be a stream that was cut or joined on purpose: a filter, a ring buffer, several files in one"
                .to_owned(),
        );
        if around.clamped > 0 {
            evidence.push(
                "next: where only the order in the file is wrong (one file from several interfaces or others), sort it by time first (reordercap)"
                    .to_owned(),
            );
        }
        evidence.push("next: capture on a mirror port or a tap, whole headers, from before the trouble on".to_owned());
        Some(finding(
            "CAPTURE_QUALITY",
            "INFO",
            1.0,
            "The capture limits what can be known".to_owned(),
            evidence,
            &self.told,
            &[
                ("clampedTimes", around.clamped as f64),
                ("untracked", untracked as f64),
                ("midstream", midstream as f64),
                ("offloaded", offloaded as f64),
                ("optionsCut", cut as f64),
                ("clientsGuessed", self.guessed as f64),
                ("twins", twins as f64),
                ("earlyAcks", self.early as f64),
            ],
        ))
    }
}

/// Whether a side's segments are larger than agreed, and were not on the wire like that.
fn is_offloaded(flow: &Flow) -> bool {
    let Some(mss) = flow.setup.agreed_mss() else {
        return false;
    };
    [0, 1].into_iter().any(|side: usize| {
        let d = &flow.directions[side];
        let segments = u64::from(d.data_segments);
        // Repeats are in the payload and in no segment with new data.
        segments > 0 && flow.counts(side).repeated_segments == 0 && d.payload > OVERSIZE * segments * mss
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragments(quality: &Quality) -> Option<v1::Finding> {
        let mut around = Surroundings {
            frames: 77,
            ..Surroundings::default()
        };
        around.untracked[Untracked::Fragment as usize] = 40;
        quality.finding(&around)
    }

    #[test]
    fn fragments_that_were_put_together_are_not_missing() {
        let mut quality = Quality {
            connections: 1,
            ..Quality::default()
        };
        assert_eq!(fragments(&quality), None);
        quality.missed = 3;
        let finding = fragments(&quality).expect("segments are missing");
        assert_eq!(finding.values["untracked"], 0.0.into());
        assert!(
            finding.evidence[0].contains("3 segments of connections"),
            "{finding:#?}"
        );
        // Nothing but fragments.
        assert!(fragments(&Quality::default()).is_some());
    }
}
