//! Which of two packets was made first, as TSval and IP id tell: originals behind their repeats, and copies.

use weir_record::{Event, IdStep, what};

use super::entry::Entry;
use super::event::{has_new_id, is_asked_twice, since_data};
use super::path::Path;
use super::{Losses, MIRRORED};
use crate::seq::{Range, before};
use crate::verdict::{Cause, Class, Place, Sign, sign};

/// IP ids at most this far apart are those of one counter: of ids by chance, 1 in 128 are as near.
const NEAR_ID: u16 = 256;
/// Late segments whose repeats may still come: as many as a round trip has, mostly.
const ORIGINALS: usize = 8;

impl Losses {
    /// A segment that came after its repeat, by TSval or IP id: that repeat was not needed. Returns what tells. Where much
    /// comes twice, and the first had passed before the repeat, it is a copy.
    pub(super) fn late_original(&mut self, late: &Entry) -> Option<Sign> {
        let mirrored = self.counts.duplicates >= MIRRORED;
        let overtaken = |e: &Entry| {
            e.class == Class::Retransmission
                && !(mirrored && e.evidence.has(sign::SEEN))
                && e.range.overlap(late.range) > 0
                && is_older((late.tsval, late.ip_id), (e.tsval, e.ip_id)).is_some_and(|(older, _)| older)
        };
        let i = self.open.iter().rposition(overtaken)?;
        let repeat = self.open[i];
        let place = match repeat.place {
            place @ (Place::AckBeforeTap | Place::AckBehindTap) => place,
            _ => Place::Nowhere,
        };
        self.change(i, place, sign::ORIGINAL_CAME);
        is_older((late.tsval, late.ip_id), (repeat.tsval, repeat.ip_id)).map(|(_, sign)| sign)
    }

    /// The segment before this one brought the same bytes in sequence, and this one was made before a packet that had passed
    /// when that one came: what came in sequence was the repeat, and this is its original. Returns what tells.
    pub(super) fn follows_its_repeat(&self, e: &Event, old: Range, time: u64) -> Option<Sign> {
        let ((tsval, id), passed) = self.newest?;
        let before_that = passed < time.saturating_sub(since_data(e));
        if !before_that || e.length == 0 || old.to != e.expected || !self.follows_new(e, time) {
            return None;
        }
        let (older, sign) = is_older((e.tsval, e.ip_id), (tsval, id))?;
        older.then_some(sign)
    }

    /// The IP id is one that the sender used when this was new: counted from such an id, there is one for each segment
    /// between them and for each that was sent again meanwhile; what is sent again now gets a later one.
    pub(super) fn numbered_as_new(&self, e: &Event, path: Path) -> bool {
        let Some((seq, id)) = self
            .numbered
            .filter(|_| e.ip_id != 0 && e.length > 0 && !self.constant_id)
        else {
            return false;
        };
        let bytes = e.seq.wrapping_sub(seq) as i32;
        let segments = i64::from(path.segments(bytes.unsigned_abs())) * i64::from(bytes.signum());
        let later = e.ip_id.wrapping_sub(id) as i16;
        let meanwhile = |o: &&Entry| {
            o.class == Class::Retransmission
                && o.place != Place::Unknown
                && (1..later).contains(&(o.ip_id.wrapping_sub(id) as i16))
        };
        let again = self.open.iter().filter(meanwhile).count() as i64;
        later.unsigned_abs() <= NEAR_ID && i64::from(later) <= segments + again
    }

    /// The IP id is below one that had passed: what is sent again gets a later one. By chance one id in 256 is: not where a
    /// timer may have run out, or recovers, or something asked for it.
    pub(super) fn was_made_before(&self, e: &Event, old: Range, time: u64, path: Path) -> bool {
        let recovers = self.is_recovering(e.seq) && self.last_cause.is_some_and(Cause::is_timer);
        let waited = since_data(e) >= path.timeout() || recovers;
        let asked = self.sacked.is_hole(old) || is_asked_twice(e) || self.is_partly_acknowledged(e, time, path);
        e.id_step == IdStep::Overtaken as u8 && !self.constant_id && !waited && !asked
    }

    /// A segment came late; the sender may have sent it again meanwhile.
    pub(super) fn note_original(&mut self, late: &Entry) {
        if self.originals.len() == ORIGINALS {
            self.originals.remove(0);
        }
        self.originals.push((late.range, (late.tsval, late.ip_id)));
    }

    /// No copy: those bring nothing new, and have the id of what they are copies of.
    pub(super) fn is_made_anew(&self, e: &Event, old: Range) -> bool {
        let made_later =
            |range: Range, made, now| range.overlap(old) > 0 && is_older(made, now).is_some_and(|(older, _)| older);
        e.what & what::PARTIAL != 0
            || has_new_id(e)
            || self
                .open
                .iter()
                .any(|o| made_later(o.range, (0, o.ip_id), (0, e.ip_id)))
            || self
                .originals
                .iter()
                .any(|(range, made)| made_later(*range, *made, (e.tsval, e.ip_id)))
    }
}

/// Whether the one of two packets, as TSval and IP id, was made before the other; and what tells.
pub(super) fn is_older(one: (u32, u16), other: (u32, u16)) -> Option<(bool, Sign)> {
    let ((tsval, id), (other_tsval, other_id)) = (one, other);
    // RFC 7323 4.1: TSval never goes back at the sender; a later one was sent later.
    if tsval != 0 && other_tsval != 0 && tsval != other_tsval {
        let older = before(tsval, other_tsval);
        let sign = if older { sign::OLDER_TSVAL } else { sign::NEWER_TSVAL };
        return Some((older, sign));
    }
    // Most hosts count their packets in the id, for all or each of their peers; where they do not (RFC 6864 lets them),
    // ids are 0 or far apart.
    let step = id.wrapping_sub(other_id) as i16;
    let counted = id != 0 && other_id != 0 && step != 0 && step.unsigned_abs() <= NEAR_ID;
    let sign = if step < 0 { sign::OLDER_ID } else { sign::NEWER_ID };
    counted.then_some((step < 0, sign))
}
