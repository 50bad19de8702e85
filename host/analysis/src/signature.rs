//! The signature of a transaction: block sizes under a mask (`docs/src/transactions.md`).

use std::cell::{OnceCell, RefCell};

use crate::seq::{at_or_before, before};
use crate::setup::SetupState;

/// Groups of equal blocks that a signature prints; a longer list ends in "...".
pub(crate) const PRINTED_GROUPS: usize = 7;
/// Groups that are kept: one more tells that the list goes on.
const KEPT_GROUPS: usize = PRINTED_GROUPS + 1;

/// Neighbouring blocks of the same size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Group {
    bytes: u64,
    count: u32,
    /// Sequence number of the first block's first byte.
    seq: u32,
}

/// The blocks of one side of a transaction, folded as they come: bounded however long it gets.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockList {
    /// The first group; of 0 blocks in an empty list. Most requests have no other.
    first: Group,
    rest: Option<Box<Rest>>,
}

/// What follows the first group.
#[derive(Clone, Debug, Default)]
struct Rest {
    groups: [Group; KEPT_GROUPS - 1],
    len: u8,
    /// Blocks beyond the kept groups, and their bytes.
    more: bool,
    beyond: u64,
}

impl Group {
    fn total(&self) -> u64 {
        self.bytes.saturating_mul(u64::from(self.count))
    }
}

impl BlockList {
    pub const fn is_empty(&self) -> bool {
        self.first.count == 0
    }

    /// Bytes of the only block.
    fn single(&self) -> Option<u64> {
        (self.first.count == 1 && self.rest.as_ref().is_none_or(|rest| rest.len == 0 && !rest.more))
            .then_some(self.first.bytes)
    }

    /// Sequence number of the first byte.
    pub const fn start(&self) -> u32 {
        self.first.seq
    }

    /// Bytes of all blocks.
    pub fn bytes(&self) -> u64 {
        let beyond = self.rest.as_ref().map_or(0, |rest| rest.beyond);
        self.groups().map(Group::total).fold(beyond, u64::saturating_add)
    }

    fn more(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.more)
    }

    /// The groups after the first.
    fn later(&self) -> &[Group] {
        self.rest
            .as_deref()
            .map_or(&[], |rest| &rest.groups[..usize::from(rest.len)])
    }

    fn groups(&self) -> impl Iterator<Item = &Group> {
        (!self.is_empty())
            .then_some(&self.first)
            .into_iter()
            .chain(self.later())
    }

    /// A block ended.
    pub fn push(&mut self, seq: u32, bytes: u64) {
        if let Some(last) = self.last_mut()
            && last.bytes == bytes
        {
            last.count = last.count.saturating_add(1);
            return;
        }
        self.append(Group { bytes, count: 1, seq });
    }

    /// The last block goes on: `bytes` more belong to it.
    pub fn extend(&mut self, bytes: u64) {
        if let Some(rest) = self.rest.as_mut().filter(|rest| rest.more) {
            rest.beyond = rest.beyond.saturating_add(bytes);
            return;
        }
        let Some(last) = self.last_mut() else { return };
        let grown = last.bytes.saturating_add(bytes);
        if last.count == 1 {
            last.bytes = grown;
            self.fold_last();
        } else {
            last.count -= 1;
            let skip = last.bytes.wrapping_mul(u64::from(last.count)) as u32;
            let seq = last.seq.wrapping_add(skip);
            self.append(Group {
                bytes: grown,
                count: 1,
                seq,
            });
        }
    }

    /// A block boundary was found at `at`, inside a block that is already in the list. Returns
    /// whether a block was split.
    pub fn split(&mut self, at: u32) -> bool {
        let old = self.clone();
        let inside = |g: &Group| {
            let end = g.seq.wrapping_add(g.bytes.wrapping_mul(u64::from(g.count)) as u32);
            before(g.seq, at) && before(at, end) && g.bytes > 0
        };
        let kept: Vec<Group> = old.groups().copied().collect();
        let Some(index) = kept.iter().position(inside) else {
            return false;
        };
        let group = kept[index];
        let offset = u64::from(at.wrapping_sub(group.seq));
        let (whole, rest) = (offset / group.bytes, offset % group.bytes);
        if rest == 0 {
            return false; // it is a boundary
        }
        let whole = whole as u32;
        let mut list = Self::default();
        let mut seq = group.seq;
        for g in &kept[..index] {
            list.append(*g);
        }
        for (bytes, count) in [
            (group.bytes, whole),
            (rest, 1),
            (group.bytes - rest, 1),
            (group.bytes, group.count - whole - 1),
        ] {
            if count > 0 {
                list.append(Group { bytes, count, seq });
                seq = seq.wrapping_add(bytes.wrapping_mul(u64::from(count)) as u32);
            }
        }
        for g in &kept[index + 1..] {
            list.append(*g);
        }
        if let Some(old) = old.rest.filter(|rest| rest.more) {
            let rest = list.rest.get_or_insert_default();
            rest.more = true;
            rest.beyond = rest.beyond.saturating_add(old.beyond);
        }
        *self = list;
        true
    }

    fn last_mut(&mut self) -> Option<&mut Group> {
        if self.is_empty() || self.more() {
            return None;
        }
        match &mut self.rest {
            Some(rest) if rest.len > 0 => Some(&mut rest.groups[usize::from(rest.len) - 1]),
            _ => Some(&mut self.first),
        }
    }

    fn append(&mut self, group: Group) {
        if self.is_empty() {
            self.first = group;
            return;
        }
        let rest = self.rest.get_or_insert_default();
        if rest.more || usize::from(rest.len) == rest.groups.len() {
            rest.more = true;
            rest.beyond = rest.beyond.saturating_add(group.total());
            return;
        }
        rest.groups[usize::from(rest.len)] = group;
        rest.len += 1;
        self.fold_last();
    }

    /// Join the last group with the one before when their blocks are equal.
    fn fold_last(&mut self) {
        let Some(rest) = self.rest.as_deref_mut().filter(|rest| rest.len > 0) else {
            return;
        };
        let (before, last) = rest.groups.split_at_mut(usize::from(rest.len) - 1);
        let previous = before.last_mut().unwrap_or(&mut self.first);
        if previous.bytes == last[0].bytes {
            previous.count = previous.count.saturating_add(last[0].count);
            rest.len -= 1;
        }
    }

    fn write(&self, out: &mut String, size: impl Fn(&mut String, u64)) {
        for (i, group) in self.groups().enumerate() {
            if i > 0 {
                out.push_str("; ");
            }
            if i == PRINTED_GROUPS {
                out.push_str("...");
                return;
            }
            out.push_str("blk[");
            size(out, group.bytes);
            out.push(']');
            if group.count > 1 {
                out.push_str(" (");
                decimal(out, u64::from(group.count));
                out.push(')');
            }
        }
    }
}

/// What is said of the state of the connection within a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StateNote {
    #[default]
    None,
    /// The client sent its FIN.
    HalfClosed,
    /// And sent it again.
    AlreadyHalfClosed,
}

impl StateNote {
    const fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::HalfClosed => "; conn half closed",
            Self::AlreadyHalfClosed => "; conn half closed; conn already half closed by client",
        }
    }
}

/// What the signature of a transaction is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signature {
    pub request: BlockList,
    pub note: StateNote,
    pub response: BlockList,
}

impl Signature {
    /// Appends the signature.
    pub fn write(&self, out: &mut String) {
        out.push_str("Request: ");
        self.write_request(out);
        if !self.response.is_empty() {
            out.push_str(if self.note == StateNote::None { "-" } else { "--" });
            self.response.write(out, masked);
        }
    }

    fn write_request(&self, out: &mut String) {
        self.request.write(out, decimal);
        out.push_str(self.note.text());
    }

    fn single_request(&self) -> Option<u64> {
        self.request.single().filter(|_| self.note == StateNote::None)
    }

    /// The same number for the same signature, of those that are one block for one block or none.
    fn key(&self) -> Option<u64> {
        let request = self.single_request()?;
        let response = if self.response.is_empty() {
            0
        } else {
            let bytes = self.response.single()?;
            let (first, others) = split_digits(bytes);
            (others as u64 + 1) << 4 | first
        };
        (request < 1 << KEY_BITS).then_some(request << RESPONSE_BITS | response)
    }
}

/// Bits of a key for the response's digits and for the request; those above name the state of a setup.
const RESPONSE_BITS: u32 = 9;
const KEY_BITS: u32 = 40;

/// What a transaction's text is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Described<'a> {
    Setup(&'a SetupState),
    Data(&'a Signature),
}

/// The text of a transaction, which is made when somebody asks for it.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    of: Described<'a>,
    spare: &'a Spare,
    text: OnceCell<String>,
}

/// The memory of a text that is no longer needed.
#[derive(Debug, Default)]
pub(crate) struct Spare(RefCell<String>);

impl Spare {
    pub const fn text<'a>(&'a self, of: Described<'a>) -> Text<'a> {
        Text {
            of,
            spare: self,
            text: OnceCell::new(),
        }
    }
}

impl Text<'_> {
    pub fn get(&self) -> &str {
        self.text.get_or_init(|| {
            let mut text = self.spare.0.take();
            text.clear();
            match self.of {
                Described::Setup(setup) => setup.describe(&mut text),
                Described::Data(signature) => signature.write(&mut text),
            }
            text
        })
    }

    /// See [`crate::Transaction::single_request`]; none of a setup.
    pub fn single_request(&self) -> Option<u64> {
        match self.of {
            Described::Setup(_) => None,
            Described::Data(signature) => signature.single_request(),
        }
    }

    /// Appends what the text says of the request; nothing of a setup.
    pub fn write_request(&self, out: &mut String) {
        if let Described::Data(signature) = self.of {
            signature.write_request(out);
        }
    }

    /// A number that only transactions of the same text have. There may be several for one text, or none.
    pub fn key(&self) -> Option<u64> {
        match self.of {
            Described::Setup(setup) => Some(setup.key() | 1 << 63),
            Described::Data(signature) => signature.key(),
        }
    }
}

impl Drop for Text<'_> {
    fn drop(&mut self) {
        if let Some(text) = self.text.take() {
            self.spare.0.replace(text);
        }
    }
}

/// Appends the number. Numbers are most of a signature, and the standard formatting takes several times as long.
pub(crate) fn decimal(out: &mut String, value: u64) {
    out.push_str(itoa::Buffer::new().format(value));
}

/// First digit, the others as x.
fn masked(out: &mut String, value: u64) {
    let (first, others) = split_digits(value);
    out.push(char::from(b'0' + first as u8));
    out.push_str(&"xxxxxxxxxxxxxxxxxxxx"[..others]);
}

/// First digit, and how many others there are.
fn split_digits(value: u64) -> (u64, usize) {
    let (mut first, mut others) = (value, 0);
    while first >= 10 {
        first /= 10;
        others += 1;
    }
    (first, others)
}

/// Whether `at` lies strictly inside the block.
pub(crate) fn is_inside(seq: u32, bytes: u32, at: u32) -> bool {
    before(seq, at) && !at_or_before(seq.wrapping_add(bytes), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(sizes: &[u64]) -> BlockList {
        let mut list = BlockList::default();
        let mut seq = 0xffff_ff00u32; // wraps on the way
        for size in sizes {
            list.push(seq, *size);
            seq = seq.wrapping_add(*size as u32);
        }
        list
    }

    fn response(list: &BlockList) -> String {
        let mut out = String::new();
        list.write(&mut out, masked);
        out
    }

    #[test]
    fn mask_keeps_the_first_digit() {
        assert_eq!(response(&list(&[6, 45])), "blk[6]; blk[4x]");
        assert_eq!(response(&list(&[3031])), "blk[3xxx]");
        assert_eq!(response(&list(&[133_469, 10])), "blk[1xxxxx]; blk[1x]");
    }

    #[test]
    fn only_exactly_equal_neighbours_fold() {
        assert_eq!(
            response(&list(&[17_128, 15_708, 29, 29, 29])),
            "blk[1xxxx]; blk[1xxxx]; blk[2x] (3)"
        );
    }

    #[test]
    fn an_eighth_group_is_dots() {
        let sizes = [445, 29, 31_000, 29, 17_000, 2000, 29, 37];
        assert_eq!(
            response(&list(&sizes[..7])),
            "blk[4xx]; blk[2x]; blk[3xxxx]; blk[2x]; blk[1xxxx]; blk[2xxx]; blk[2x]"
        );
        assert_eq!(
            response(&list(&sizes)),
            "blk[4xx]; blk[2x]; blk[3xxxx]; blk[2x]; blk[1xxxx]; blk[2xxx]; blk[2x]; ..."
        );
        let long: Vec<u64> = (1..1000).collect();
        assert!(response(&list(&long)).ends_with("; ..."));
        assert_eq!(list(&long).bytes(), 1000 * 999 / 2);
    }

    #[test]
    fn blocks_split_and_join() {
        let mut l = list(&[29, 29, 29]);
        assert!(!l.split(0xffff_ff00 + 29), "a boundary already");
        assert!(l.split(0xffff_ff00 + 29 + 9));
        assert_eq!(response(&l), "blk[2x]; blk[9]; blk[2x]; blk[2x]", "29, 9, 20, 29");
        assert_eq!(l.bytes(), 3 * 29);
        let mut l = list(&[29, 29]);
        l.extend(171);
        assert_eq!(response(&l), "blk[2x]; blk[2xx]");
    }

    /// What is told of a request alone is what the signature says before the dash.
    #[test]
    fn a_request_stands_before_the_dash() {
        for (request, note, single) in [
            (&[127][..], StateNote::None, Some(127)),
            (&[127, 127], StateNote::None, None),
            (&[178, 1284], StateNote::None, None),
            (&[], StateNote::None, None),
            (&[29], StateNote::HalfClosed, None),
            (&[29], StateNote::AlreadyHalfClosed, None),
        ] {
            let signature = Signature {
                request: list(request),
                note,
                response: list(&[20]),
            };
            let (mut whole, mut told) = (String::new(), String::new());
            signature.write(&mut whole);
            signature.write_request(&mut told);
            let before = whole["Request: ".len()..].split('-').next();
            assert_eq!(before, Some(told.as_str()));
            assert_eq!(signature.single_request(), single);
            if let Some(bytes) = single {
                assert_eq!(told, format!("blk[{bytes}]"));
            }
        }
    }

    #[test]
    fn request_sizes_stay() {
        let data = |request: &[u64], response: &[u64]| {
            let mut out = String::new();
            let signature = Signature {
                request: list(request),
                note: StateNote::None,
                response: list(response),
            };
            signature.write(&mut out);
            out
        };
        assert_eq!(data(&[178, 1284], &[245]), "Request: blk[178]; blk[1284]-blk[2xx]");
        assert_eq!(data(&[29], &[]), "Request: blk[29]");
        assert_eq!(data(&[], &[89]), "Request: -blk[8x]");
        let largest = format!("Request: blk[{}]", u64::MAX);
        assert_eq!(data(&[u64::MAX], &[]), largest);
    }
}
