//! What every destination was sent: packets, bytes, SYNs without ACK.

use std::collections::BTreeMap;

use weir_engine::Class;
use weir_record::tcp_flag;

use crate::Word;

/// Destinations that the kernel names for each weight.
pub const TOP: usize = 16;

/// What a destination was sent: packets, bytes on the wire, SYNs without ACK.
pub type Sent = [u64; 3];

/// All destinations, IPv4 ones mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Talkers(pub BTreeMap<[u8; 16], Sent>);

impl Talkers {
    /// Count a packet: TCP and other IP packets, whether they have a flow or not.
    pub fn add(&mut self, word: &Word) {
        let Some(class @ (Class::Tcp | Class::Other)) = word.class else {
            return;
        };
        let syn = class == Class::Tcp && word.flags & (tcp_flag::SYN | tcp_flag::ACK) == tcp_flag::SYN;
        let sent = self.0.entry(word.destination).or_default();
        sent[0] += 1;
        sent[1] += u64::from(word.wire);
        sent[2] += u64::from(syn);
    }

    /// The sum over all destinations.
    pub fn totals(&self) -> Sent {
        self.0
            .values()
            .fold([0; 3], |sum, sent| std::array::from_fn(|w| sum[w] + sent[w]))
    }

    /// The `count` destinations that were sent most of a weight (0 packets, 1 bytes, 2 SYNs), most first.
    pub fn top(&self, weight: usize, count: usize) -> Vec<([u8; 16], Sent)> {
        let mut all: Vec<_> = self.0.iter().map(|(key, sent)| (*key, *sent)).collect();
        all.retain(|(_, sent)| sent[weight] > 0);
        all.sort_by_key(|(key, sent)| (std::cmp::Reverse(sent[weight]), *key));
        all.truncate(count);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use proptest::prelude::*;

    fn packet(destination: u8, wire: u32, flags: u8) -> Word {
        Word {
            kind: Kind::Packet,
            class: Some(Class::Tcp),
            destination: [destination; 16],
            wire,
            flags,
            ..Word::default()
        }
    }

    #[test]
    fn a_syn_ack_is_no_syn() {
        let mut talkers = Talkers::default();
        for flags in [
            tcp_flag::SYN,
            tcp_flag::SYN | tcp_flag::ACK,
            tcp_flag::ACK,
            tcp_flag::SYN | tcp_flag::ECE | tcp_flag::CWR,
        ] {
            talkers.add(&packet(1, 60, flags));
        }
        talkers.add(&packet(2, 1000, tcp_flag::ACK));
        assert_eq!(talkers.totals(), [5, 1240, 2]);
        assert_eq!(talkers.top(2, 16), [([1; 16], [4, 240, 2])]);
        assert_eq!(talkers.top(1, 1), [([2; 16], [1, 1000, 0])]);
    }

    #[test]
    fn frames_without_address_do_not_count() {
        let mut talkers = Talkers::default();
        for class in [None, Some(Class::IcmpError)] {
            talkers.add(&Word {
                class,
                ..packet(1, 60, 0)
            });
        }
        assert_eq!(talkers, Talkers::default());
    }

    proptest! {
        #[test]
        fn nothing_is_lost(words in prop::collection::vec((0..20u8, 0..9000u32, any::<u8>()), 0..200)) {
            let mut talkers = Talkers::default();
            for (destination, wire, flags) in &words {
                talkers.add(&packet(*destination, *wire, *flags));
            }
            let bytes: u64 = words.iter().map(|word| u64::from(word.1)).sum();
            prop_assert_eq!(talkers.totals()[..2].to_vec(), vec![words.len() as u64, bytes]);
            for weight in 0..3 {
                let top = talkers.top(weight, usize::MAX);
                prop_assert!(top.is_sorted_by(|a, b| a.1[weight] >= b.1[weight]));
                prop_assert_eq!(top.iter().map(|(_, sent)| sent[weight]).sum::<u64>(), talkers.totals()[weight]);
            }
        }
    }
}
