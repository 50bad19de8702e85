//! TCP header and options.

use super::{Step, Stop, TCP_CAPTURED, Walk, be16, be32, ip::protocol, stop};
use crate::meta::{Class, Meta, Options};
use weir_record::{Untracked, tcp_flag};

/// Header without options (RFC 9293 3.1).
pub(super) const HEADER: u32 = 20;

/// Option kinds (IANA tcp-parameters).
mod kind {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}

impl Walk<'_> {
    #[inline]
    pub(super) fn tcp(&mut self) -> Step {
        if self.left < HEADER {
            return stop(Untracked::Malformed);
        }
        let h: &[u8; TCP_CAPTURED] = self.peek()?;
        let header = u32::from(h[12] >> 4) * 4;
        if header < HEADER || header > self.left {
            return stop(Untracked::Malformed);
        }
        self.set_key(protocol::TCP, be16(h, 0), be16(h, 2));
        self.meta.class = Class::Tcp;
        let start = self.at + HEADER as usize;
        let end = self.at + header as usize;
        segment(self.meta, h, self.left - header);
        if header > HEADER {
            let captured = self.data.get(start..end.min(self.data.len())).unwrap_or_default();
            options(captured, &mut self.meta.options);
            self.meta.options.incomplete |= end > self.data.len();
        }
        Err(Stop::Done)
    }
}

/// What a TCP header says beside ports and options.
#[inline]
pub(super) fn segment(meta: &mut Meta, h: &[u8; TCP_CAPTURED], payload: u32) {
    meta.payload = payload;
    meta.seq = be32(h, 4);
    meta.flags = h[13];
    meta.ack = if h[13] & tcp_flag::ACK != 0 { be32(h, 8) } else { 0 };
    meta.window = be16(h, 14);
}

/// Reads options into `o`, which has none. One whose length cannot be (0, 1, beyond the header) ends the reading; one whose
/// length is not that of its kind is passed over. Both mark the result incomplete. Of an option
/// that comes twice the last counts.
#[inline]
pub(super) fn options(bytes: &[u8], o: &mut Options) {
    match <&[u8; 12]>::try_from(bytes) {
        // What nearly every data segment carries (RFC 7323 appendix A): NOP, NOP, timestamps.
        Ok(h) if h[..4] == [kind::NOP, kind::NOP, kind::TIMESTAMPS, 10] => {
            o.timestamps = Some((be32(h, 4), be32(h, 8)));
        }
        _ => each_option(bytes, o),
    }
}

#[inline(never)]
fn each_option(mut rest: &[u8], o: &mut Options) {
    while let Some(&first) = rest.first() {
        match first {
            kind::END => break,
            kind::NOP => {
                rest = &rest[1..];
                continue;
            }
            _ => {}
        }
        let length = rest.get(1).map_or(0, |&l| usize::from(l));
        if length < 2 || length > rest.len() {
            o.incomplete = true;
            break;
        }
        let (option, after) = rest.split_at(length);
        one(o, first, &option[2..]);
        rest = after;
    }
}

fn one(o: &mut Options, kind: u8, value: &[u8]) {
    match (kind, value) {
        (kind::MSS, &[a, b]) => o.mss = u16::from_be_bytes([a, b]),
        (kind::SCALE, &[shift]) => o.scale = shift,
        (kind::SACK_PERMITTED, []) => o.sack_permitted = true,
        (kind::TIMESTAMPS, value) if value.len() == 8 => {
            o.timestamps = Some((word(value, 0), word(value, 4)));
        }
        (kind::SACK, value) if matches!(value.len(), 8 | 16 | 24 | 32) => {
            o.sack = [(0, 0); 4];
            o.sack_count = (value.len() / 8) as u8;
            for (block, edges) in o.sack.iter_mut().zip(value.chunks_exact(8)) {
                *block = (word(edges, 0), word(edges, 4));
            }
        }
        (kind::MSS | kind::SCALE | kind::SACK_PERMITTED | kind::TIMESTAMPS | kind::SACK, _) => {
            o.incomplete = true;
        }
        _ => {}
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u32::from_be_bytes(*b))
}
