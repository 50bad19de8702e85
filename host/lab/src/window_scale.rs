//! A box that changes the window scale option of the SYNs that pass it (RFC 7323 2), as some firewalls and load
//! balancers do: the two ends then disagree on what a window means.

use crate::checksum;
use crate::frame::{OPTION_NOTHING, TcpSummary, find_option};
use serde::{Deserialize, Serialize};

/// Kind of the option; its length is 3.
const OPTION_WINDOW_SCALE: u8 = 3;
/// RFC 7323 2.3.
pub(crate) const LARGEST: u8 = 14;
const TCP_CHECKSUM: usize = 16;

/// What the box does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowScale {
    /// Puts no-operations in the option's place.
    Remove,
    /// Puts another shift into it.
    Set(u8),
}

impl WindowScale {
    /// Changes a SYN or SYN-ACK that has the option; whether it is another one now.
    pub(crate) fn rewrite(self, frame: &mut [u8]) -> bool {
        let is_syn = TcpSummary::parse(frame).is_some_and(|tcp| tcp.is_syn());
        let Some((tcp_at, option)) = find_option(frame, OPTION_WINDOW_SCALE).filter(|_| is_syn) else {
            return false;
        };
        let Ok([kind, len, shift]) = <[u8; 3]>::try_from(&frame[option.clone()]) else {
            return false;
        };
        let new = match self {
            Self::Remove => [OPTION_NOTHING; 3],
            Self::Set(to) => [kind, len, to],
        };
        for (at, value) in option.zip(new) {
            checksum::replace(frame, tcp_at, tcp_at + TCP_CHECKSUM, at, value);
        }
        new != [kind, len, shift]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::tests::{checked_frame, is_right};
    use crate::rng::Rng;
    use weir_record::tcp_flag;

    const MSS: [u8; 4] = [2, 4, 5, 180];

    /// Options of a SYN with the scale at any place, even and odd, and where the list keeps it.
    fn syn(rng: &mut Rng, flags: u8) -> (Vec<u8>, usize) {
        let mut list: Vec<Vec<u8>> = vec![MSS.to_vec(), vec![4, 2], vec![1], vec![3, 3, 7]];
        for i in (1..list.len()).rev() {
            list.swap(i, rng.between(0, i as u64) as usize);
        }
        let at: usize = list.iter().take_while(|o| o[0] != 3).map(Vec::len).sum();
        let mut options = list.concat();
        options.resize(12, 1);
        (checked_frame(rng, flags, &options), 54 + at)
    }

    #[test]
    fn the_option_changes_and_nothing_else_and_the_checksums_are_right() {
        for seed in 0..5000 {
            let mut rng = Rng::new(seed, 0);
            let flags = tcp_flag::SYN | if seed % 2 == 0 { tcp_flag::ACK } else { 0 };
            let (frame, at) = syn(&mut rng, flags);
            let to = rng.between(0, 14) as u8;
            for (what, option) in [(WindowScale::Remove, [1, 1, 1]), (WindowScale::Set(to), [3, 3, to])] {
                let mut changed = frame.clone();
                assert_eq!(what.rewrite(&mut changed), option != [3, 3, 7], "seed {seed}");
                assert!(is_right(&changed), "seed {seed}");
                assert_eq!(changed[at..at + 3], option);
                changed[at..at + 3].copy_from_slice(&frame[at..at + 3]);
                changed[50..52].copy_from_slice(&frame[50..52]);
                assert_eq!(changed, frame, "seed {seed}");
            }
        }
    }

    #[test]
    fn other_segments_and_syns_without_it_stay() {
        let mut rng = Rng::new(1, 0);
        let (data, _) = syn(&mut rng, 0x10);
        let without = checked_frame(&mut rng, tcp_flag::SYN, &MSS);
        let cut = checked_frame(&mut rng, tcp_flag::SYN, &[1, 1, 1, 3]);
        for frame in [data, without, cut] {
            let mut changed = frame.clone();
            assert!(!WindowScale::Remove.rewrite(&mut changed));
            assert_eq!(changed, frame);
        }
    }
}
