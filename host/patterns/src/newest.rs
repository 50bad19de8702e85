//! The newest of many.

/// Entries of a piece.
const PIECE: usize = 1024;

/// The newest `MOST` (a multiple of 1,024), in pieces, so that nothing moves when there are more.
#[derive(Clone, Debug)]
pub(crate) struct Newest<T, const MOST: usize> {
    pieces: Vec<Vec<T>>,
    /// Place of the oldest.
    oldest: usize,
}

impl<T, const MOST: usize> Default for Newest<T, MOST> {
    fn default() -> Self {
        const { assert!(MOST.is_multiple_of(PIECE)) };
        Self {
            pieces: Vec::new(),
            oldest: 0,
        }
    }
}

impl<T, const MOST: usize> Newest<T, MOST> {
    /// Keep one more; the oldest goes if there are too many.
    #[inline]
    pub fn push(&mut self, one: T) {
        match self.pieces.last_mut() {
            Some(last) if last.len() < PIECE => last.push(one),
            _ => self.begin_piece(one),
        }
    }

    /// All pieces are full.
    #[cold]
    #[inline(never)]
    fn begin_piece(&mut self, one: T) {
        if self.pieces.len() < MOST / PIECE {
            let mut piece = Vec::with_capacity(PIECE);
            piece.push(one);
            self.pieces.push(piece);
        } else {
            self.pieces[self.oldest / PIECE][self.oldest % PIECE] = one;
            self.oldest = (self.oldest + 1) % MOST;
        }
    }

    /// All, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        let all = self.pieces.iter().flatten();
        all.clone().skip(self.oldest).chain(all.take(self.oldest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay_in_their_order() {
        let mut newest = Newest::<usize, { 2 * PIECE }>::default();
        for i in 0..7 * PIECE + 5 {
            let first = i.saturating_sub(2 * PIECE);
            if i % 97 == 0 {
                assert!(newest.iter().copied().eq(first..i));
            }
            newest.push(i);
        }
    }
}
