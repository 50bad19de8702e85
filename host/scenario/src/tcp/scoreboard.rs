//! What is sent and not yet acknowledged, and what of it is believed lost (RFC 6675).

use crate::Time;
use crate::packet::{Segment, flag};
use std::collections::VecDeque;

/// RFC 6675 2: `DupThresh`.
pub(super) const DUP_THRESH: u32 = 3;

/// A segment that is not yet acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub seq: u64,
    pub len: u32,
    pub flags: u8,
    pub at: Time,
    pub transmissions: u32,
    pub sacked: bool,
    lost: bool,
    /// Lost, and sent again since.
    resent: bool,
}

impl Sent {
    fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.flags & (flag::SYN | flag::FIN) != 0)
    }

    /// Believed to be in the network (RFC 6675 4, pipe).
    fn in_pipe(&self) -> bool {
        !self.sacked && (!self.lost || self.resent)
    }

    /// Lost, and not sent again since.
    pub fn is_missing(&self) -> bool {
        self.lost && !self.resent && !self.sacked
    }
}

/// Segments that are not yet acknowledged, in order.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    sent: VecDeque<Sent>,
    /// Payload believed to be in the network, bytes.
    pipe: u64,
    any_sacked: bool,
}

impl Scoreboard {
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub fn len(&self) -> usize {
        self.sent.len()
    }

    pub fn get(&self, index: usize) -> &Sent {
        &self.sent[index]
    }

    pub fn first(&self) -> Option<&Sent> {
        self.sent.front()
    }

    /// Payload believed to be in the network, bytes.
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    pub fn clear(&mut self) {
        self.sent.clear();
        self.pipe = 0;
    }

    /// A segment is sent for the first time.
    pub fn push(&mut self, now: Time, segment: &Segment) {
        self.sent.push_back(Sent {
            seq: segment.seq,
            len: segment.len,
            flags: segment.flags,
            at: now,
            transmissions: 1,
            sacked: false,
            lost: false,
            resent: false,
        });
        self.pipe += u64::from(segment.len);
    }

    /// The segment is sent again.
    pub fn resend(&mut self, now: Time, index: usize) -> Sent {
        let sent = &mut self.sent[index];
        let in_pipe_before = sent.in_pipe();
        sent.transmissions += 1;
        sent.at = now;
        if sent.lost {
            sent.resent = true;
        }
        if !in_pipe_before && sent.in_pipe() {
            self.pipe += u64::from(sent.len);
        }
        *sent
    }

    /// All below `ack` has arrived; the oldest segment that was wholly acknowledged by it.
    pub fn acknowledge(&mut self, ack: u64) -> Option<Sent> {
        let mut oldest = None;
        while let Some(front) = self.sent.front_mut() {
            if front.end() > ack {
                if front.seq < ack {
                    let part = (ack - front.seq) as u32;
                    if front.in_pipe() {
                        self.pipe -= u64::from(part);
                    }
                    front.seq += u64::from(part);
                    front.len -= part;
                }
                break;
            }
            if front.in_pipe() {
                self.pipe -= u64::from(front.len);
            }
            oldest.get_or_insert(*front);
            self.sent.pop_front();
        }
        if self.sent.is_empty() {
            self.any_sacked = false;
        }
        oldest
    }

    /// Takes the SACK blocks of a segment; whether they told anything new.
    pub fn sack(&mut self, segment: &Segment) -> bool {
        let mut newly = false;
        for &(left, right) in segment.sacks() {
            if right <= segment.ack {
                continue; // D-SACK
            }
            for sent in &mut self.sent {
                if !sent.sacked && sent.seq >= left && sent.end() <= right {
                    if sent.in_pipe() {
                        self.pipe -= u64::from(sent.len);
                    }
                    sent.sacked = true;
                    newly = true;
                    self.any_sacked = true;
                }
            }
        }
        newly
    }

    /// RFC 6675 4 (`IsLost`, counted in segments); whether more are lost than before.
    pub fn lose_sacked_over(&mut self) -> bool {
        if !self.any_sacked {
            return false;
        }
        let mut found = false;
        let mut above = 0;
        for sent in self.sent.iter_mut().rev() {
            if sent.sacked {
                above += 1;
            } else if above >= DUP_THRESH && !sent.lost {
                sent.lost = true;
                self.pipe -= u64::from(sent.len);
                found = true;
            }
        }
        found
    }

    /// The first is lost; whether that is new.
    pub fn lose_first(&mut self) -> bool {
        match self.sent.front_mut() {
            Some(front) if !front.lost => {
                front.lost = true;
                self.pipe -= u64::from(front.len);
                true
            }
            _ => false,
        }
    }

    /// RFC 6675 5.1: the scoreboard is kept, all that is not sacked counts as lost.
    pub fn lose_all(&mut self) {
        for sent in &mut self.sent {
            sent.lost = !sent.sacked;
            sent.resent = false;
        }
        self.pipe = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(n: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for i in 0..n {
            let segment = Segment {
                seq: 100 * i,
                len: 100,
                ..Segment::default()
            };
            board.push(i, &segment);
        }
        board
    }

    fn sack(ack: u64, block: (u64, u64)) -> Segment {
        let mut segment = Segment {
            ack,
            sack_blocks: 1,
            ..Segment::default()
        };
        segment.sack[0] = block;
        segment
    }

    /// RFC 6675 4: three segments above have arrived.
    #[test]
    fn what_three_have_overtaken_is_lost() {
        let mut board = of(5);
        assert!(board.sack(&sack(0, (200, 400))));
        assert!(!board.lose_sacked_over(), "two are no proof");
        assert!(board.sack(&sack(0, (200, 500))));
        assert!(!board.sack(&sack(0, (200, 500))), "nothing new");
        assert!(board.lose_sacked_over());
        assert_eq!(board.pipe(), 0);
        assert!(board.get(0).is_missing() && board.get(1).is_missing() && !board.get(2).is_missing());
        board.resend(9, 0);
        assert_eq!((board.pipe(), board.get(0).is_missing()), (100, false));
        assert!(!board.lose_sacked_over(), "no loss is found twice");
    }

    #[test]
    fn what_came_twice_sacks_nothing() {
        assert!(!of(3).sack(&sack(200, (100, 200))));
    }

    #[test]
    fn part_of_a_segment_may_be_acknowledged() {
        let mut board = of(2);
        assert_eq!(board.acknowledge(150).map(|sent| sent.seq), Some(0));
        let rest = board.get(0);
        assert_eq!((rest.seq, rest.len, board.pipe()), (150, 50, 50));
        assert!(board.acknowledge(150).is_none());
    }

    #[test]
    fn after_a_timeout_all_but_what_was_sacked_is_missing() {
        let mut board = of(3);
        board.sack(&sack(0, (100, 200)));
        board.lose_all();
        let missing: Vec<bool> = (0..3).map(|i| board.get(i).is_missing()).collect();
        assert_eq!((missing, board.pipe()), (vec![true, false, true], 0));
    }
}
