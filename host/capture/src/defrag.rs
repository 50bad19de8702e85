//! IP fragments put together (RFC 791 3.2, RFC 8200 4.5), within bounds.
//!
//! Only the pieces' captured bytes are kept, for the transport header; lengths come from the IP
//! headers, so that sliced captures work. Overlapping pieces are refused (RFC 5722).

use std::collections::HashMap;

use weir_engine::Fragment;
use weir_engine::parse::{Context, FragmentKey};

/// Datagrams in progress at a time.
pub const MAX_DATAGRAMS: usize = 4096;
/// Pieces of one datagram.
const MAX_PIECES: usize = 512;
/// How long a datagram may take, ns (RFC 791 suggests 15 s, RFC 8200 says 60 s).
const TIMEOUT: u64 = 30_000_000_000;
/// Bytes of the payload's start that are kept for the headers inside of it.
const KEEP: usize = 2048;

/// One piece, in bytes of the payload.
#[derive(Clone, Copy)]
struct Piece {
    offset: u32,
    length: u32,
    /// Bytes of it that were captured and kept.
    kept: u32,
}

#[derive(Default)]
struct Datagram {
    number: u64,
    begun: u64,
    /// The pieces that are there.
    pieces: Vec<Piece>,
    /// Payload length, once the last piece is there.
    total: Option<u32>,
    /// The first bytes of the payload; holes are 0.
    start: Vec<u8>,
    refused: bool,
    /// The headers before the first piece.
    context: Option<Context>,
}

/// Datagrams in progress.
#[derive(Default)]
pub(crate) struct Defrag {
    datagrams: HashMap<FragmentKey, Datagram>,
    /// How many there were.
    begun: u64,
    /// Number of the one that the last piece is of.
    last: Option<u64>,
    oldest_check: u64,
}

/// A whole datagram.
pub(crate) struct Whole {
    /// The first bytes of its payload, as far as they were captured without a hole.
    pub start: Vec<u8>,
    /// Length of its payload.
    pub length: u32,
    /// The headers before its first piece.
    pub context: Context,
}

impl Defrag {
    /// Take a piece; the whole datagram if it was the last one missing. `payload`: the piece's
    /// captured payload.
    pub fn piece(&mut self, fragment: &Fragment, payload: &[u8], time: u64) -> Option<Whole> {
        self.expire(time);
        self.last = None;
        let id = fragment.key;
        if self.datagrams.len() >= MAX_DATAGRAMS && !self.datagrams.contains_key(&id) {
            return None;
        }
        let datagram = self.datagrams.entry(id).or_insert_with(|| {
            self.begun += 1;
            Datagram {
                number: self.begun,
                begun: time,
                ..Datagram::default()
            }
        });
        self.last = Some(datagram.number);
        let end = fragment.offset.saturating_add(fragment.length);
        let same = datagram
            .pieces
            .iter()
            .any(|p| (p.offset, p.length) == (fragment.offset, fragment.length));
        let overlap = datagram
            .pieces
            .iter()
            .any(|p| fragment.offset < p.offset + p.length && p.offset < end);
        if same {
            return None; // a copy of a piece
        }
        datagram.refused |= overlap || datagram.pieces.len() >= MAX_PIECES || end > 0x1_0000;
        if datagram.refused {
            return None;
        }
        if !fragment.more {
            datagram.total = Some(end);
        }
        if fragment.offset == 0 {
            datagram.context = Some(fragment.context.clone());
        }
        let at = fragment.offset as usize;
        let mut kept = 0;
        if at < KEEP {
            let payload = &payload[..payload.len().min(fragment.length as usize).min(KEEP - at)];
            if datagram.start.len() < at + payload.len() {
                datagram.start.resize(at + payload.len(), 0);
            }
            datagram.start[at..at + payload.len()].copy_from_slice(payload);
            kept = payload.len() as u32;
        }
        datagram.pieces.push(Piece {
            offset: fragment.offset,
            length: fragment.length,
            kept,
        });
        let have: u64 = datagram.pieces.iter().map(|p| u64::from(p.length)).sum();
        if datagram.total.map(u64::from) != Some(have) {
            return None;
        }
        let Datagram {
            mut start,
            mut pieces,
            total,
            context,
            ..
        } = self.datagrams.remove(&id)?;
        pieces.sort_unstable_by_key(|p| p.offset);
        // A piece cut by the snap length ends what can be read as headers.
        let mut whole_to = 0;
        for piece in pieces {
            if piece.offset != whole_to {
                break;
            }
            whole_to += piece.kept;
        }
        start.truncate(whole_to as usize);
        Some(Whole {
            start,
            length: total?,
            context: context?,
        })
    }

    /// Number of the datagram that the last piece is of: datagrams count up from 1 as they begin.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    fn expire(&mut self, time: u64) {
        if time.saturating_sub(self.oldest_check) >= TIMEOUT {
            self.oldest_check = time;
            self.datagrams
                .retain(|_, datagram| time.saturating_sub(datagram.begun) < TIMEOUT);
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_engine::{LinkType, Meta, Parsed, Parser};

    use super::*;

    fn fragment(offset: u32, length: u32, more: bool) -> Fragment {
        let mut ip = vec![0x45, 0, 0, 0, 0, 7, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        ip[2..4].copy_from_slice(&(20 + length as u16).to_be_bytes());
        ip[6..8].copy_from_slice(&((offset / 8) as u16 | u16::from(more) << 13).to_be_bytes());
        ip.resize(20 + length as usize, 0);
        match Parser::default().parse(LinkType::RawIp, &ip, ip.len() as u32, &mut Meta::default()) {
            Parsed::Fragment(fragment) => *fragment,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pieces_in_any_order_make_the_datagram_once() {
        let mut defrag = Defrag::default();
        assert!(defrag.piece(&fragment(16, 4, false), &[3; 4], 0).is_none());
        assert!(defrag.piece(&fragment(8, 8, true), &[2; 8], 0).is_none());
        assert!(defrag.piece(&fragment(8, 8, true), &[2; 8], 0).is_none(), "a copy");
        let whole = defrag
            .piece(&fragment(0, 8, true), &[1; 8], 0)
            .map(|w| (w.start, w.length));
        assert_eq!(whole, Some(([[1; 8].as_slice(), &[2; 8], &[3; 4]].concat(), 20)));
        assert!(defrag.datagrams.is_empty());
    }

    #[test]
    fn a_hole_in_what_was_captured_ends_the_start() {
        let mut defrag = Defrag::default();
        assert!(defrag.piece(&fragment(8, 8, false), &[2; 8], 0).is_none());
        let whole = defrag
            .piece(&fragment(0, 8, true), &[1; 5], 0)
            .map(|w| (w.start, w.length));
        assert_eq!(whole, Some((vec![1; 5], 16)), "a cut first piece");
    }

    #[test]
    fn overlap_is_refused_and_old_pieces_go() {
        let mut defrag = Defrag::default();
        assert!(defrag.piece(&fragment(0, 16, true), &[1; 16], 0).is_none());
        assert!(defrag.piece(&fragment(8, 16, false), &[1; 16], 0).is_none());
        assert!(defrag.piece(&fragment(16, 8, false), &[1; 8], 0).is_none());
        defrag.expire(TIMEOUT);
        assert!(defrag.datagrams.is_empty());
    }
}
