//! Blocks of one side of a transaction.

use weir_record::{Block, BlockEnd};

use crate::queues::Wait;
use crate::resets::Ttl;
use crate::signature::{BlockList, is_inside};

/// Block boundaries that were found before their block ended.
const SPLITS: usize = 4;

/// Blocks of one side of a transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    pub blocks: BlockList,
    pub first: u64,
    pub last: u64,
    /// Sequence number after the last block.
    pub end: u32,
    pub last_block: Last,
    /// Its sender had not acknowledged all that its peer had sent, or the other way round.
    pub overlapped: bool,
    /// It began while a transfer of its peer was under way.
    pub amid: bool,
    /// Of its blocks.
    pub ttl: Ttl,
}

/// What the last block of a side was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Last {
    #[default]
    Whole,
    /// It goes on in the next one that starts where it ends.
    Open,
    /// No segment with PSH ended it.
    Turned,
}

impl Side {
    pub fn add(&mut self, b: &Block, cause: Option<BlockEnd>, goes_on: bool, splits: Option<Splits>) {
        if self.blocks.is_empty() {
            self.first = b.first;
        }
        self.last = self.last.max(b.last);
        let continues = self.last_block == Last::Open && self.end == b.seq;
        let mut seq = b.seq;
        let end = b.seq.wrapping_add(b.bytes);
        let mut first_piece = true;
        let mut piece = |to: u32, blocks: &mut BlockList| {
            let bytes = u64::from(to.wrapping_sub(seq));
            if first_piece && continues {
                blocks.extend(bytes);
            } else {
                blocks.push(seq, bytes);
            }
            first_piece = false;
            seq = to;
        };
        if let Some(splits) = splits {
            for at in splits.within(b) {
                piece(at, &mut self.blocks);
            }
        }
        piece(end, &mut self.blocks);
        self.end = end;
        self.last_block = match cause {
            _ if goes_on => Last::Open,
            Some(BlockEnd::Idle | BlockEnd::Limit) => Last::Open,
            Some(BlockEnd::Turn) => Last::Turned,
            _ => Last::Whole,
        };
        self.ttl.add(b.ttl);
    }

    /// So many bytes behind the last block were sent before its peer went on, and not seen.
    pub fn unseen(&mut self, bytes: u32) {
        if self.last_block != Last::Whole {
            self.blocks.extend(bytes.into());
        } else {
            self.blocks.push(self.end, bytes.into());
        }
        self.end = self.end.wrapping_add(bytes);
    }
}

/// Of the server.
#[derive(Clone, Debug, Default)]
pub(super) struct Response {
    pub side: Side,
    /// The round trip behind the tap, when a queue stood.
    pub wait: Option<Wait>,
    /// What had been received of the request when it began.
    pub heard: Option<u32>,
}

/// Responses that are over, for reuse: the memory of one that was just read is near.
#[derive(Debug, Default)]
#[allow(clippy::vec_box)] // the boxes are what is kept
pub(crate) struct Responses(Vec<Box<Response>>);

/// Boxes kept at most.
const POOLED: usize = 64;

impl Responses {
    pub(super) fn take(&mut self) -> Box<Response> {
        self.0.pop().unwrap_or_default()
    }

    /// Returns the blocks.
    pub(super) fn give(&mut self, mut response: Box<Response>) -> BlockList {
        let blocks = std::mem::take(&mut *response).side.blocks;
        if self.0.len() < POOLED {
            self.0.push(response);
        }
        blocks
    }
}

/// Sequence numbers at which a PSH is known that the engine's block did not show.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Splits {
    at: [u32; SPLITS],
    len: u8,
}

impl Splits {
    pub fn push(&mut self, at: u32) {
        let n = usize::from(self.len);
        if n == SPLITS {
            self.at.rotate_left(1);
            self.at[SPLITS - 1] = at;
        } else {
            self.at[n] = at;
            self.len += 1;
        }
    }

    /// Those inside the block, ascending.
    pub fn within(&self, b: &Block) -> impl Iterator<Item = u32> {
        let mut found = [0u32; SPLITS];
        let mut n = 0;
        for &at in &self.at[..usize::from(self.len)] {
            let offset = at.wrapping_sub(b.seq);
            if is_inside(b.seq, b.bytes, at) && !found[..n].contains(&offset) {
                found[n] = offset;
                n += 1;
            }
        }
        found[..n].sort_unstable();
        let seq = b.seq;
        found.into_iter().take(n).map(move |offset| seq.wrapping_add(offset))
    }
}
