//! What the receiver says: ACKs, SACK blocks and D-SACKs, and which verdicts they change.

use weir_record::{Event, EventMore, tcp_flag, what};

use super::entry::Entry;
use super::path::Path;
use super::{Blocks, Losses, MIRRORED};
use crate::echo::{is_near, is_older};
use crate::limits::DELAYED_ACK_MOST;
use crate::seq::{Range, at_or_before, before, distance, earlier};
use crate::verdict::{Class, Place, sign};

impl Losses {
    /// The receiver's EVENT: SACK blocks and duplicate ACKs about this direction.
    pub fn heard(&mut self, e: &Event, more: Option<&EventMore>, time: u64, path: Path) {
        self.last_heard = time;
        let unused = what::WILD_ACK | what::SYN_OTHER;
        if e.what & unused != 0 || e.tcp_flags & tcp_flag::RST != 0 {
            return;
        }
        let more = more.filter(|_| e.what & what::SACK != 0);
        if let Some(more) = more {
            let is_near = more
                .sack()
                .all(|(from, to)| [from, to].iter().all(|edge| distance(*edge, e.ack) <= path.reach));
            // A device that shifts sequence numbers does so from the first on.
            if self.blocks == Blocks::Nothing {
                self.blocks = if is_near { Blocks::Data } else { Blocks::Elsewhere };
            }
        }
        let more = more.filter(|_| self.blocks == Blocks::Data);
        // A D-SACK alone asks for nothing.
        let asks = more.is_some_and(|more| says_hole(e, more));
        if asks || e.what & (what::DUP_ACK | what::DSACK) == what::DUP_ACK {
            self.evidence = time;
            self.hole = Some(e.ack);
        }
        if e.tcp_flags & tcp_flag::ACK != 0 {
            self.newly_acknowledged(e.ack).for_each(|entry| entry.tell(time));
        }
        if let Some(more) = more {
            self.note_standing_holes(e.ack, path);
            self.sack(e, more, time, path);
        }
        if e.tcp_flags & tcp_flag::ACK != 0 {
            if e.what & what::ACKS_MORE == 0 {
                self.acknowledge(e.ack, time, path);
            } else {
                self.acknowledged(e.ack, e.echo(), time, path);
            }
            if self.acked == Some(e.ack) {
                self.acked_time = time;
            }
        }
    }

    /// The same as [`Self::acknowledge`], by the first ACK that goes so far, which passed at `time` and echoes the TSval `echo`.
    pub fn acknowledged(&mut self, ack: u32, echo: Option<u32>, time: u64, path: Path) {
        self.enter_ack(ack, echo, time, true, path);
    }

    /// The receiver acknowledged everything before `ack`, at `time` at the latest.
    pub fn acknowledge(&mut self, ack: u32, time: u64, path: Path) {
        self.enter_ack(ack, None, time, false, path);
    }

    fn enter_ack(&mut self, ack: u32, echo: Option<u32>, time: u64, is_first: bool, path: Path) {
        let path = self.with_sack(path);
        if self.acked.is_some_and(|known| at_or_before(ack, known)) {
            return;
        }
        self.note_standing_holes(ack, path);
        self.rest_arrived(ack, path);
        let before_this = self.acked.replace(ack);
        self.acked_first = is_first.then_some(time);
        self.sacked.acknowledge(ack);
        // First: what is in doubt then may have been needless.
        let known = before_this.unwrap_or(ack);
        // A timer of the receiver may have let two segments wait (RFC 9293 3.8.6.3).
        let hole = self.hole.take_if(|hole| before(*hole, ack));
        self.fills_hole = is_first && hole.is_some_and(|hole| distance(hole, ack) > 2 * path.segment);
        self.acknowledged_beyond(known, ack);
        let answers_older = echo.is_some_and(|echo| self.answers_older(echo, known, ack, time, path));
        if self.acknowledged_too_soon(before_this, ack, echo, time, path) || answers_older {
            self.end_from_scratch(known);
        }
        self.stops_at(ack);
        for i in (0..self.gaps.len()).rev() {
            let arrived = Range {
                from: self.gaps[i].range.from,
                to: ack,
            };
            if before(arrived.from, ack) {
                self.gap_arrived(i, arrived, self.acked_first, path);
            }
        }
    }

    /// The ACK of a first copy comes while the repeat is still on its way (the Eifel detection of
    /// RFC 3522 by time instead of timestamps; Jaiswal et al. 2003): nothing was lost. (Where an ACK had stopped before it, the
    /// receiver had no first copy, and the round trip is shorter than any that was seen: a queue that is always there shrank; but hardly to half.)
    /// What echoes the repeat's TSval, or a later one, answers what was sent no sooner.
    fn acknowledged_too_soon(
        &mut self,
        before_this: Option<u32>,
        ack: u32,
        echo: Option<u32>,
        time: u64,
        path: Path,
    ) -> bool {
        let Some(soonest) = path.soonest() else { return false };
        let mut found = false;
        for i in 0..self.open.len() {
            let entry = self.open[i];
            let is_repeat = entry.class == Class::Retransmission && entry.evidence.has(sign::SEEN);
            let is_new = before_this.is_none_or(|known| before(known, entry.range.to));
            // The echo is of a segment that begins no later than the ACK before ended (RFC 7323 4.3).
            let is_echoed = entry.tsval != 0
                && before_this.is_some_and(|known| at_or_before(entry.range.from, known))
                && echo.is_some_and(|echo| is_near(echo, entry.tsval) && !is_older(echo, entry.tsval));
            let least = if entry.evidence.has(sign::PARTIAL_ACK) {
                path.soonest_by_far(&entry)
            } else {
                Some(soonest)
            };
            if is_repeat
                && is_new
                && !is_echoed
                && !entry.place.is_spurious()
                && at_or_before(entry.range.to, ack)
                && least.is_some_and(|least| time.saturating_sub(entry.time) < least)
            {
                self.change(i, Place::Nowhere, sign::ACKED_TOO_SOON);
                found = true;
            }
        }
        found
    }

    /// The first ACK that can answer what came again echoes an older TSval (the Eifel detection, RFC 3522): it answers the first copy. That is so
    /// of what begins no later than the ACK before, `known`, ended: an echo is the TSval of the newest segment that does (RFC 7323 4.3); then also
    /// of what was sent behind that. Otherwise an ACK that waited may answer both, the segment with the older TSval and this: unless it takes in
    /// more and came sooner than any answer before.
    fn answers_older(&mut self, echo: u32, known: u32, ack: u32, time: u64, path: Path) -> bool {
        // A receiver acknowledges every second segment (RFC 9293 3.8.6.3).
        let more = distance(known, ack) > 2 * path.segment;
        let least = path.far.or(path.others).filter(|_| more);
        let mut is_first = false;
        let mut found = false;
        for i in 0..self.open.len() {
            let entry = self.open[i];
            let is_news = before(known, entry.range.to) && at_or_before(entry.range.to, ack);
            let is_repeat = |e: &Entry| e.class == Class::Retransmission && e.tsval != 0;
            if !is_repeat(&entry) || !is_news || !is_older(echo, entry.tsval) {
                continue;
            }
            // What the receiver said that it lacks filled the hole, or a D-SACK tells, of one that sends them: but of the last of several
            // repeats alone.
            let filled = |e: &Entry| {
                is_repeat(e) && e.time < entry.time && e.range.covers(entry.range) && !is_older(echo, e.tsval)
            };
            let is_exact = at_or_before(entry.range.from, known);
            let is_told = is_exact && !self.tells_twice || self.open.iter().any(filled);
            if entry.evidence.has(sign::SACK_HOLE) && !is_told {
                continue;
            }
            is_first |= is_exact;
            let is_seen = entry.evidence.has(sign::SEEN) && !entry.evidence.has(sign::PARTIAL_ACK);
            let is_on_its_way = is_seen && least.is_some_and(|least| time.saturating_sub(entry.time) < least);
            if (is_first || is_on_its_way) && !entry.place.is_spurious() {
                // The receiver got a first copy that never passed the tap.
                let is_missed = entry.evidence.has(sign::UNSEEN);
                self.change(
                    i,
                    if is_missed { Place::Capture } else { Place::Nowhere },
                    sign::OLDER_ECHO,
                );
                found = true;
            }
        }
        found
    }

    /// An ACK goes beyond a repeat, and the one before it stood for most of the time that the answer to that repeat took.
    fn note_standing_holes(&mut self, ack: u32, path: Path) {
        let Some(far) = path.far else { return };
        let acked_time = self.acked_time;
        for entry in self.newly_acknowledged(ack) {
            entry.hole_stood |= acked_time.saturating_sub(entry.time) > far - far / 4;
        }
    }

    /// A timer ran out, nothing had been heard of a flight, and now an ACK takes in more of it than was sent again: the rest had arrived, and
    /// what the receiver said of it was lost before the tap. A receiver acknowledges every second segment (RFC 9293 3.8.6.3), and at once what comes
    /// behind a hole (RFC 5681 4.2): so no segment needs to have been lost as well.
    fn rest_arrived(&mut self, ack: u32, path: Path) {
        // Without SACK, what duplicate ACKs told of is not known.
        let Some(known) = self.acked.filter(|_| path.sack) else {
            return;
        };
        let in_doubt = |e: &Entry| {
            let asked = [sign::SACK_HOLE, sign::DUPLICATE_ACKS, sign::PARTIAL_ACK, sign::BATCH];
            let unheard = e.cause.is_timer() && !asked.iter().any(|s| e.evidence.has(*s));
            let is_repeat = e.class == Class::Retransmission && e.evidence.has(sign::SEEN);
            let in_doubt = matches!(e.place, Place::Unknown | Place::BehindTap) || e.told_step.is_some();
            is_repeat && in_doubt && unheard && at_or_before(known, e.range.from) && at_or_before(e.range.to, ack)
        };
        let ran_out = |e: &&Entry| in_doubt(e) && e.evidence.has(sign::TIMER);
        let Some(timer) = self.open.iter().find(ran_out) else {
            return;
        };
        let flight = Range {
            from: known,
            to: earlier(timer.expected, ack),
        };
        let again = self.open.iter().filter(|e| e.class == Class::Retransmission);
        let again: u32 = again.map(|e| e.range.overlap(flight)).sum();
        if flight.len().saturating_sub(again) < 2 * path.segment {
            return;
        }
        for i in 0..self.open.len() {
            if in_doubt(&self.open[i]) {
                self.change(i, Place::AckBeforeTap, sign::REST_ARRIVED);
            }
        }
    }

    /// Repeats that no ACK before this one went beyond.
    fn newly_acknowledged(&mut self, ack: u32) -> impl Iterator<Item = &mut Entry> {
        let known = self.acked;
        let is_news = move |e: &&mut Entry| {
            known.is_some_and(|known| at_or_before(known, e.range.from)) && at_or_before(e.range.to, ack)
        };
        self.open.iter_mut().filter(is_news)
    }

    /// The ACK that a fill brought stops where a later repeat begins: the receiver had nothing of it (RFC 6582 3.2).
    /// Of a mirror's copy, ACKs say nothing.
    fn stops_at(&mut self, ack: u32) {
        let stopped = |e: &Entry| {
            e.class == Class::Retransmission
                && e.place == Place::Unknown
                && e.range.from == ack
                && self.counts.mirror_copies < MIRRORED
        };
        if let Some(i) = self.open.iter().position(stopped) {
            self.change(i, Place::BehindTap, sign::PARTIAL_ACK);
        }
    }

    fn sack(&mut self, e: &Event, more: &EventMore, time: u64, path: Path) {
        let mut new = more.sack().map(|(from, to)| Range { from, to });
        if e.what & what::DSACK != 0 {
            // RFC 2883 4: the first block names a segment that arrived twice.
            self.tells_twice = true;
            if let Some(twice) = new.next() {
                self.arrived_twice(twice, e, time, path);
            }
        }
        for range in new {
            if range.len() == 0 || !before(e.ack, range.to) {
                continue;
            }
            self.arrived(range, time, path);
            for i in (0..self.gaps.len()).rev() {
                self.gap_arrived(i, range, Some(time), path);
            }
            self.sacked.add(range);
            self.left_out(e.ack, range);
        }
        for gap in &mut self.gaps {
            let is_above = at_or_before(e.ack, gap.range.from);
            if gap.delivered.is_none() && is_above && self.sacked.is_open_hole(gap.range) {
                gap.lacked = Some(time);
            }
        }
    }

    /// A SACK block covers what was sent again and was not covered before (RFC 2018 4: the block
    /// tells of data received): the first copy was lost.
    fn arrived(&mut self, range: Range, time: u64, path: Path) {
        if self.sacked.covers(range) {
            return;
        }
        let (due, soonest) = (path.answer(), path.soonest());
        for i in 0..self.open.len() {
            let entry = self.open[i];
            let is_repeat = entry.class == Class::Retransmission && entry.evidence.has(sign::SEEN);
            let is_news = range.covers(entry.range) && !self.sacked.overlaps(entry.range);
            if is_news {
                self.open[i].tell(time);
            }
            let doubtful = entry.evidence.has(sign::NOBODY_ASKED);
            if is_repeat
                && is_news
                && !doubtful
                && !entry.place.is_spurious()
                && !entry.evidence.has(sign::SACKED_AFTER)
            {
                // Sooner it may be of the first copy; then a D-SACK follows, which may be lost.
                let after = time.saturating_sub(entry.time);
                let is_timers = entry.cause.is_timer() && !entry.evidence.has(sign::BATCH);
                if due.is_some_and(|due| after >= due) {
                    self.change(i, Place::BehindTap, sign::SACKED_AFTER);
                } else if is_timers && soonest.is_some_and(|soonest| after < soonest) {
                    self.change(i, Place::Nowhere, sign::ACKED_TOO_SOON);
                }
            }
        }
    }

    /// A SACK block above what was sent again leaves it out still: what was sent behind the first copy has come before it.
    /// If that comes yet, a D-SACK tells of the repeat.
    fn left_out(&mut self, ack: u32, beyond: Range) {
        for i in 0..self.open.len() {
            let entry = &self.open[i];
            let is_repeat = entry.class == Class::Retransmission && entry.evidence.has(sign::SEEN);
            let is_hole = at_or_before(ack, entry.range.from) && at_or_before(entry.range.to, beyond.from);
            if is_repeat
                && is_hole
                && entry.length > 0
                && entry.place == Place::Unknown
                && entry.told_at == 0
                && !entry.evidence.has(sign::NOBODY_ASKED)
                && !self.sacked.overlaps(entry.range)
            {
                self.change(i, Place::BehindTap, sign::SACK_HOLE);
            }
        }
    }

    /// D-SACK overrides every other evidence: a repeat was unnecessary (RFC 3708). But what filled a hole in SACK can
    /// come twice, too, where the network makes copies: its own copy, or copies of what was sent once, show it.
    fn arrived_twice(&mut self, twice: Range, e: &Event, time: u64, path: Path) {
        // Linux joins what came twice, with what lies between, into one block (`tcp_dsack_extend`).
        let only_filled =
            |e: &Entry| e.evidence.has(sign::UNSEEN) && e.evidence.has(sign::SACK_HOLE) && !e.range.covers(twice);
        let named = |e: &Entry| !e.evidence.has(sign::DSACKED) && e.range.overlap(twice) > 0 && !only_filled(e);
        // The last one of several is what came too much; a copy only if nothing was sent again.
        let found = |class| self.open.iter().rposition(|e| e.class == class && named(e));
        let (repeat, copy) = (found(Class::Retransmission), found(Class::Copy));
        // A sender joins segments that it sends again: where one of them had been lost, the D-SACK names the others.
        let is_whole = |e: &Entry| e.range.overlap(twice) >= e.range.len().min(e.length).max(1);
        if repeat.is_some_and(|i| !is_whole(&self.open[i])) {
            return;
        }
        let filled = |i: usize| {
            let evidence = self.open[i].evidence;
            evidence.has(sign::SACK_HOLE) && !evidence.has(sign::ACKED_TOO_SOON)
        };
        // A first copy that the capture missed would have been later than the repeat, or hardly before it.
        let was_lost = |i: usize| {
            let entry = &self.open[i];
            let just_told = entry.told_at > 0 && (1..=path.reordering()).contains(&time.saturating_sub(entry.told_at));
            let was_due = path
                .far
                .and(path.soonest())
                .is_some_and(|soonest| entry.told_at.saturating_sub(entry.time) >= soonest);
            entry.evidence.has(sign::UNSEEN) && (entry.hole_stood || just_told && was_due)
        };
        let copy_of_repeat = |i| copy > Some(i) && self.counts.mirror_copies < MIRRORED;
        self.fills_twice += u32::from(repeat.is_some_and(|i| filled(i) && !was_lost(i)));
        // A network copies what is sent once far more often than what is sent again.
        let copies = self.network_copies > 2 * self.fills_twice;
        let of_network = |i: usize| filled(i) && (copies || copy_of_repeat(i) || was_lost(i));
        match (repeat.filter(|&i| !of_network(i)), copy) {
            (Some(i), _) => {
                let entry = self.open[i];
                let place = if entry.place.is_spurious() {
                    entry.place
                } else if entry.evidence.has(sign::UNSEEN) {
                    // The receiver got a first copy that never passed the tap.
                    Place::Capture
                } else {
                    Place::Nowhere
                };
                self.change(i, place, sign::DSACKED);
                if entry.cause.is_timer() && !entry.place.is_spurious() && place == Place::Nowhere {
                    self.late_or_lost(i, e);
                }
            }
            (None, Some(i)) => self.change(i, Place::Nowhere, sign::DSACKED),
            // One byte is a probe's.
            (None, None) => self.network_copies += u32::from(twice.len() > 1),
        }
    }

    /// The receiver had a first copy of what a timer sent again, and `e` tells of both: whether an ACK before it was lost,
    /// or there was none yet.
    fn late_or_lost(&mut self, i: usize, e: &Event) {
        let entry = self.open[i];
        let again = |other: &&Entry| other.time != entry.time && other.range.overlap(entry.range) > 0;
        if e.what & what::ACKS_MORE == 0 {
            // An ACK had taken it in, and came late: that of the first copy. Or it answered another repeat, of which the same is true.
            let other = self.open.iter().filter(again).find_map(|o| o.told_step);
            let lost = self.open.iter().filter(again).any(|o| o.place == Place::AckBeforeTap);
            self.open[i].told_step = other;
            if lost {
                self.change(i, Place::AckBeforeTap, sign::DSACKED);
            }
        } else if e.id_step == 1 {
            // Whatever the host counts: nothing was sent between this ACK and the one before.
            self.change(i, Place::Nowhere, sign::NO_ID_MISSING);
        } else if entry.time.saturating_sub(entry.lost_at) >= DELAYED_ACK_MOST {
            // RFC 1122 4.2.3.2: no ACK waits longer.
            self.change(i, Place::AckBeforeTap, sign::DSACKED);
        } else {
            self.open[i].told_step = Some(e.id_step);
        }
    }
}

/// A SACK block above the ACK leaves a hole.
fn says_hole(e: &Event, more: &EventMore) -> bool {
    let skipped = usize::from(e.what & what::DSACK != 0);
    more.sack().skip(skipped).any(|(_, right)| before(e.ack, right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Counting;
    use crate::losses::tests::{PATH, SOON, again, event, places_each};

    /// A SACK option of one block.
    const fn one_block(left: u32, right: u32) -> EventMore {
        EventMore {
            left0: left,
            right0: right,
            left1: 0,
            right1: 0,
            left2: 0,
            right2: 0,
            left3: 0,
            right3: 0,
            sack_count: 1,
            scale: 0,
            mss: 0,
            sack_permitted: 0,
            timestamps: 0,
        }
    }

    /// Blocks of a device that shifts sequence numbers and not them: no hole, no D-SACK, and that none comes says nothing.
    #[test]
    fn blocks_far_from_all_that_was_sent_are_no_evidence() {
        for (shift, sack) in [(0, true), (1 << 21, false), (0u32.wrapping_sub(1 << 21), false)] {
            let mut losses = Losses::default();
            let e = Event {
                what: what::SACK,
                ack: 1000,
                ..event(0, 0, 0, 0)
            };
            let edge = |edge: u32| edge.wrapping_add(shift);
            let more = one_block(edge(2000), edge(3000));
            losses.heard(&e, Some(&more), 1, PATH);
            assert_eq!(losses.with_sack(PATH).sack, sack);
            let range = Range { from: 1000, to: 2000 };
            assert_eq!(losses.sacked.is_hole(range), sack);
        }
    }

    /// Such a device shifts them from the first on.
    #[test]
    fn a_far_block_behind_near_ones_leaves_them_evidence() {
        let mut losses = Losses::default();
        let e = Event {
            what: what::SACK,
            ack: 1000,
            ..event(0, 0, 0, 0)
        };
        for to in [3000, 1 << 21] {
            losses.heard(&e, Some(&one_block(2000, to)), 1, PATH);
        }
        assert!(losses.with_sack(PATH).sack);
    }

    /// Through a queue an answer takes ten times the smallest round trip, and when that is gone less than it.
    #[test]
    fn what_an_ack_stops_at_was_lost_however_long_that_took() {
        let holes = [again(0, 0, 5, 20, SOON), again(7, 7, 0, 22, SOON)];
        assert_eq!(places_each(&holes, 8, 120_000_000), [Place::BehindTap; 2]);
        assert_eq!(places_each(&holes, 8, 4_000_000)[1], Place::BehindTap);
        assert_eq!(
            places_each(&holes, 8, 2_000_000)[1],
            Place::Nowhere,
            "less than half of it"
        );
        let stamped = holes.map(|e| Event { tsval: 5, ..e });
        assert_eq!(places_each(&stamped, 8, 2_000_000)[1], Place::BehindTap);
        let elsewhere = [again(0, 0, 5, 20, SOON), again(9, 7, 0, 22, SOON)];
        assert_ne!(places_each(&elsewhere, 10, 120_000_000)[1], Place::BehindTap);
    }

    /// The first of ten segments comes again when nothing was heard of them for 300 ms; `acked` of them are acknowledged then.
    #[test]
    fn what_arrived_behind_it_tells_that_the_acks_were_lost() {
        let place = |acked: u32, sack: bool| {
            let path = Path {
                segment: 1000,
                rtt: Some(10_000_000),
                sack,
                ..PATH
            };
            let timer = again(0, 0, 0, 10, 300_000_000);
            let mut losses = Losses::default();
            losses.sent(&timer, 1_000_000_000, path);
            losses.acknowledge(acked * 1000, 1_010_000_000, path);
            losses.close(None, 2_000_000_000, path);
            losses.done[0].place
        };
        assert_eq!(place(10, true), Place::AckBeforeTap);
        assert_eq!(place(3, true), Place::AckBeforeTap);
        assert_eq!(place(2, true), Place::BehindTap, "its ACK may have waited for the next");
        assert_eq!(place(1, true), Place::BehindTap);
        // Duplicate ACKs may have told of them.
        assert_eq!(place(10, false), Place::BehindTap);
    }

    /// Segments of 1,000 bytes at 100 ms and later, one a ms, of which the first is not acknowledged or, with `from`, a later one; each comes again 300 ms
    /// later, and an ACK of the first `acked` comes 10.2 ms after the first repeat, where an answer takes 10, and echoes `echo`.
    fn echoed(from: u32, acked: u32, echo: u32, count: u32) -> Vec<(Place, bool)> {
        let path = Path {
            segment: 1000,
            rtt: Some(20_000_000),
            far: Some(10_000_000),
            sack: false,
            ..PATH
        };
        let mut losses = Losses::default();
        losses.acknowledge(0, 50_000_000, path);
        for i in 0..count {
            let repeat = Event {
                tsval: 400 + i,
                ..again(from + i, 0, 0, from + count, 300_000_000)
            };
            losses.sent(&repeat, (400 + u64::from(i)) * 1_000_000, path);
        }
        let ack = Event {
            what: what::ACKS_MORE | what::ACKS_REPEAT,
            ack: acked * 1000,
            tsval: echo,
            ..event(0, 0, 0, 0)
        };
        losses.heard(&ack, None, 410_200_000, path);
        losses.close(None, 2_000_000_000, path);
        losses
            .done
            .iter()
            .map(|e| (e.place, e.evidence.has(sign::OLDER_ECHO)))
            .collect()
    }

    /// RFC 3522. An ACK that waited echoes the older of two segments (RFC 7323 4.3).
    #[test]
    fn an_ack_that_echoes_what_was_sent_before_the_repeat_answers_the_first_copy() {
        let (needless, open) = ((Place::Nowhere, true), (Place::Unknown, false));
        assert_eq!(echoed(0, 1, 100, 1), [needless]);
        assert_eq!(echoed(0, 1, 0, 1), [open], "no timestamps");
        assert_eq!(echoed(0, 1, 400, 1), [open], "the repeat's own");
        assert_eq!(
            echoed(0, 1, 400u32.wrapping_sub(1 << 21), 1),
            [open],
            "of another clock"
        );
        // The segment before it had come, and its ACK waited.
        assert_eq!(echoed(1, 2, 100, 1), [open]);
        // The first filled the hole, and the others, which can not have arrived yet, had been there.
        assert_eq!(
            echoed(0, 4, 400, 4),
            [(Place::BehindTap, false), needless, needless, needless]
        );
        // None of them did.
        assert_eq!(echoed(0, 2, 100, 2), [needless; 2]);
    }

    /// What SACK left out comes again, and the ACK that takes it in echoes `echo`: with the hole at the ACK before or above it, of a receiver
    /// that has sent a D-SACK or none.
    #[test]
    fn what_an_older_echo_takes_in_filled_its_hole_where_no_d_sack_tells() {
        let place = |echo: u32, from: u32, tells: bool| {
            let mut losses = Losses::default();
            losses.acknowledge(0, 50_000_000, PATH);
            let told = |left: u32, what: u32| Event {
                what: what | what::SACK,
                ack: left * 1000,
                ..event(0, 0, 0, 0)
            };
            if tells {
                losses.heard(
                    &told(0, what::DSACK),
                    Some(&one_block(0u32.wrapping_sub(1000), 0)),
                    60_000_000,
                    PATH,
                );
            }
            losses.heard(&told(0, 0), Some(&one_block(2000, 3000)), 350_000_000, PATH);
            let repeat = Event {
                tsval: 400,
                ..again(from, 0, 0, 3, SOON)
            };
            losses.sent(&repeat, 400_000_000, PATH);
            let ack = Event {
                what: what::ACKS_MORE | what::ACKS_REPEAT,
                ack: 3000,
                tsval: echo,
                ..event(0, 0, 0, 0)
            };
            losses.heard(&ack, None, 420_000_000, PATH);
            losses.close(None, 2_000_000_000, PATH);
            losses.done[0].place
        };
        assert_eq!(place(100, 0, false), Place::Nowhere);
        assert_eq!(place(400, 0, false), Place::BehindTap, "its own");
        assert_eq!(
            place(100, 1, false),
            Place::BehindTap,
            "an ACK may echo what is below it"
        );
        assert_eq!(place(100, 0, true), Place::BehindTap, "none came for it");
    }

    /// What SACK left out comes again three times, at 400, 700 and 1,000 ms, and the ACK that takes it in names it as come twice and echoes `echo`.
    #[test]
    fn of_several_repeats_of_a_hole_the_echo_tells_which_filled_it() {
        let placed = |echo: u32| {
            let mut losses = Losses::default();
            losses.acknowledge(0, 50_000_000, PATH);
            let hole = Event {
                what: what::SACK,
                ..event(0, 0, 0, 0)
            };
            losses.heard(&hole, Some(&one_block(1000, 3000)), 350_000_000, PATH);
            for time in [400, 700, 1000] {
                let repeat = Event {
                    tsval: time,
                    ..again(0, 0, 1, 3, 300_000_000)
                };
                losses.sent(&repeat, u64::from(time) * 1_000_000, PATH);
            }
            let ack = Event {
                what: what::SACK | what::DSACK | what::ACKS_MORE | what::ACKS_REPEAT,
                ack: 3000,
                tsval: echo,
                ..event(0, 0, 0, 0)
            };
            losses.heard(&ack, Some(&one_block(0, 1000)), 1_020_000_000, PATH);
            losses.close(None, 2_000_000_000, PATH);
            losses.done.iter().map(|e| e.place.is_spurious()).collect::<Vec<_>>()
        };
        assert_eq!(placed(400), [false, true, true]);
        assert_eq!(placed(700), [false, false, true]);
        assert_eq!(
            placed(0),
            [false, false, true],
            "no timestamps: the D-SACK is of the last"
        );
    }

    /// The second half of a segment comes again, then all of it, and a D-SACK names what begins at `left`.
    #[test]
    fn a_d_sack_of_a_part_of_a_repeat_is_not_of_the_rest() {
        let placed = |left: u32| {
            let mut losses = Losses::default();
            let all = again(0, 0, 0, 1, 300_000_000);
            let half = Event {
                seq: 500,
                length: 500,
                ..all
            };
            losses.sent(&half, 700_000_000, PATH);
            losses.sent(&all, 1_000_000_000, PATH);
            let e = Event {
                what: what::SACK | what::DSACK | what::ACKS_MORE,
                ack: 1000,
                ..event(0, 0, 0, 0)
            };
            losses.heard(&e, Some(&one_block(left, 1000)), 1_020_000_000, PATH);
            losses.close(None, 2_000_000_000, PATH);
            losses.done.iter().map(|e| e.place.is_spurious()).collect::<Vec<_>>()
        };
        assert!(placed(0)[1]);
        assert_eq!(placed(500), [false, false]);
    }

    /// A timer's repeat that a D-SACK names, so many ms after the first copy: with the first ACK that takes it in, or behind one.
    #[test]
    fn an_ack_before_the_d_sack_was_late_and_not_lost() {
        let place = |acks_more: bool, after: u64, id_step: u8, by_connection: bool| {
            let path = Path {
                segment: 1000,
                rtt: Some(10_000_000),
                ..PATH
            };
            let mut losses = Losses::default();
            losses.sent(&again(0, 0, 0, 1, after * 1_000_000), 1_000_000_000, path);
            let e = Event {
                what: what::SACK | what::DSACK | if acks_more { what::ACKS_MORE } else { 0 },
                ack: 1000,
                id_step,
                ..event(0, 0, 0, 0)
            };
            let more = one_block(0, 1000);
            losses.heard(&e, Some(&more), 1_020_000_000, path);
            losses.settle_ids(Counting::Unknown, by_connection, true, path);
            losses.close(None, 2_000_000_000, path);
            (losses.done[0].place, losses.counts.lost_acks)
        };
        let (late, lost) = ((Place::Nowhere, 0), (Place::AckBeforeTap, 1));
        assert_eq!(place(false, 300, 2, true), late);
        assert_eq!(place(true, 300, 1, true), late, "the receiver had sent none");
        assert_eq!(place(true, 300, 2, true), lost, "its id is missing");
        // Of others, too.
        assert_eq!(place(true, 300, 2, false), late);
        assert_eq!(place(true, 300, 0, false), late);
        // No ACK waits so long.
        assert_eq!(place(true, 500, 0, false), lost);
        assert_eq!(place(true, 500, 1, false), late, "the first copy itself was late");
    }
}
