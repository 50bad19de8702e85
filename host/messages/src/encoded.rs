//! Many messages, encoded until they are wanted.

use std::fmt;
use std::marker::PhantomData;

use prost::{DecodeError, Message, length_delimiter_len};

/// Bytes of a piece: one large one would be copied whenever it grows.
const PIECE: usize = 1 << 20;

/// Messages that wait in a fraction of the memory that they take with all their texts and messages within them.
pub struct Encoded<M> {
    pieces: Vec<Vec<u8>>,
    of: PhantomData<fn() -> M>,
}

impl<M: Message + Default> Encoded<M> {
    /// One more.
    pub fn push(&mut self, message: &M) {
        let length = message.encoded_len();
        let length = length_delimiter_len(length) + length;
        let has_room = |piece: &Vec<u8>| piece.capacity() - piece.len() >= length;
        if !self.pieces.last().is_some_and(has_room) {
            self.pieces.push(Vec::with_capacity(PIECE.max(length)));
        }
        if let Some(piece) = self.pieces.last_mut() {
            // It fails where there is no room alone.
            let _ = message.encode_length_delimited(piece);
        }
    }

    /// What they take.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(Vec::capacity).sum()
    }

    /// In the order in which they came; a piece's memory is free when its last one is taken.
    pub fn messages(self) -> impl Iterator<Item = Result<M, DecodeError>> {
        self.pieces.into_iter().flat_map(|piece| {
            let mut at = 0;
            std::iter::from_fn(move || {
                let mut rest = &piece[at..];
                if rest.is_empty() {
                    return None;
                }
                let message = M::decode_length_delimited(&mut rest);
                at = piece.len() - rest.len();
                Some(message)
            })
        })
    }
}

impl<M> Default for Encoded<M> {
    fn default() -> Self {
        Self {
            pieces: Vec::new(),
            of: PhantomData,
        }
    }
}

impl<M> fmt::Debug for Encoded<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: usize = self.pieces.iter().map(Vec::len).sum();
        write!(f, "Encoded({bytes} octets)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{Finding, Transaction};

    #[test]
    fn messages_come_out_as_they_went_in() {
        let transaction = |number: u64| Transaction {
            connection_id: number,
            signature: "Request: blk[127]".repeat(number as usize % 7),
            ..Transaction::default()
        };
        let mut waiting = Encoded::default();
        for number in 0..40_000 {
            waiting.push(&transaction(number));
        }
        assert!(waiting.pieces.len() > 1, "{waiting:?}");
        let messages: Result<Vec<_>, _> = waiting.messages().collect();
        assert_eq!(messages, Ok((0..40_000).map(transaction).collect()));
    }

    #[test]
    fn one_larger_than_a_piece_and_one_of_no_bytes() {
        let large = Finding {
            title: "x".repeat(3 * PIECE),
            ..Finding::default()
        };
        let mut waiting = Encoded::default();
        for message in [&Finding::default(), &large, &Finding::default()] {
            waiting.push(message);
        }
        let messages: Result<Vec<_>, _> = waiting.messages().collect();
        assert_eq!(messages, Ok(vec![Finding::default(), large, Finding::default()]));
    }
}
