//! The capture has the same packets twice. Memory: a group of connections.

use weir_analysis::{Class, Ended, Ends, Group, Place, Verdict, count, decimal, finding};
use weir_messages::v1::Finding;

use crate::detector::Detector;
use crate::routes::Route;
use crate::timeline::Timeline;

/// Copies from which on there is a pattern, and their share of all packets. A mirror port that copies twice does so for a
/// third or more of what it sees; single copies are made by networks, too.
const LEAST: u64 = 20;
const SHARE: f64 = 0.01;

/// Packets and their copies, by who sent them (0: the clients).
#[derive(Debug, Default)]
pub(crate) struct MirrorDuplicates {
    packets: [u64; 2],
    /// Recognised: of an ACK only when it follows at once, of data always.
    copies: [u64; 2],
    /// With what came again; without copies.
    data: [u64; 2],
    data_copies: [u64; 2],
    group: Group,
}

impl MirrorDuplicates {
    /// Copies of a side's packets, if of its ACKs as many came twice as of its data.
    fn estimate(&self, side: usize) -> f64 {
        let share = self.data_copies[side] as f64 / self.data[side].max(1) as f64;
        let originals = self.packets[side] as f64 / (1.0 + share);
        (share * originals).max(self.copies[side] as f64)
    }
}

impl Detector for MirrorDuplicates {
    fn connection(&mut self, connection: &Ended, _: &mut Route) {
        let mut own = 0;
        for side in 0..2 {
            let sent = connection.sent[side];
            self.packets[side] += sent.packets;
            self.copies[side] += u64::from(sent.mirror_copies);
            self.data[side] += u64::from(sent.data_packets);
            own += u64::from(sent.mirror_copies);
        }
        if own > 0 {
            let (first, last) = connection.span;
            self.group.include(connection.id, first, last);
        }
    }

    fn segment(&mut self, verdict: &Verdict, _: &Ends, _: &mut Route) {
        let is_copy = verdict.class == Class::Copy && verdict.place == Place::Capture && verdict.length > 0;
        self.data_copies[usize::from(verdict.from_server)] += u64::from(is_copy);
    }

    fn findings(&self, _: &Timeline, out: &mut Vec<Finding>) {
        let counted = self.copies[0] + self.copies[1];
        let packets = self.packets[0] + self.packets[1];
        let copies = (self.estimate(0) + self.estimate(1)).round();
        let share = copies / packets.max(1) as f64;
        if counted < LEAST || share < SHARE {
            return;
        }
        let of = |side: usize| [self.data_copies[side], self.data[side]].map(count);
        let ([of_clients, clients], [of_servers, servers]) = (of(0), of(1));
        out.push(finding(
            "MIRROR_DUPLICATES",
            "WARNING",
            0.95,
            format!(
                "The capture has about {} copies of packets, {:.1} % of all",
                decimal(copies, 0),
                100.0 * share
            ),
            vec![
                format!(
                    "data segments that came again with the same IP id, sequence number and ACK, though nobody asked for them: {of_clients} beside the {clients} that the clients sent, {of_servers} beside the {servers} of the servers"
                ),
                format!(
                    "{} of {} packets are recognised as copies; those of ACKs are not when other packets come between, so that the total is estimated from the data",
                    count(counted),
                    count(packets)
                ),
                "they are no retransmissions and are left out of losses, rates of retransmission and transactions; packet counts have them".to_owned(),
                "no receiver said by D-SACK that it got these twice".to_owned(),
                "it may also be: a loop or a bond in the network that delivers twice, to receivers that do not tell (no SACK)".to_owned(),
                "next: mirror each packet once (one direction of the ports, or one of the two ports it passes)".to_owned(),
            ],
            &self.group,
            &[("packets", copies), ("counted", counted as f64), ("share", share)],
        ));
    }
}
