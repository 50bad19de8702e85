//! What a receiver has got: in order, and apart from that (RFC 2018, RFC 2883).

/// Ranges of the peer's sequence numbers.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// All below has come.
    next: u64,
    /// Out of order, sorted, apart from each other; the newest is named first in SACK.
    islands: Vec<(u64, u64)>,
    newest: u64,
    /// What came twice, not yet told.
    twice: Option<(u64, u64)>,
}

impl Arrivals {
    /// All below has come.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Something came out of order, and what is before it is missing.
    pub fn has_islands(&self) -> bool {
        !self.islands.is_empty()
    }

    /// The peer's SYN has come.
    pub fn begin(&mut self) {
        self.next = 1;
    }

    /// The peer's FIN has come, in order.
    pub fn end(&mut self) {
        self.next += 1;
    }

    /// Came again; `None` is of something without payload.
    pub fn again(&mut self, range: Option<(u64, u64)>) {
        self.twice = range;
    }

    /// Came out of order.
    pub fn ahead(&mut self, mut start: u64, mut end: u64) {
        self.islands.retain(|&(left, right)| {
            let touches = left <= end && right >= start;
            if touches {
                start = start.min(left);
                end = end.max(right);
            }
            !touches
        });
        let place = self.islands.partition_point(|&(left, _)| left < start);
        self.islands.insert(place, (start, end));
        self.newest = start;
    }

    /// Came in order up to `end`; the bytes that are in order by that.
    pub fn in_order(&mut self, end: u64) -> u64 {
        let before = self.next;
        self.next = self.next.max(end);
        while let Some(&(left, right)) = self.islands.first() {
            if left > self.next {
                break;
            }
            self.next = self.next.max(right);
            self.islands.remove(0);
        }
        self.next - before
    }

    /// RFC 2018 4: the block of the newest segment first; RFC 2883: a D-SACK before all, once.
    pub fn blocks(&mut self) -> impl Iterator<Item = (u64, u64)> {
        let has_newest = |island: &&(u64, u64)| (island.0..island.1).contains(&self.newest);
        let first = self.islands.iter().find(has_newest);
        let others = self.islands.iter().filter(move |island| Some(*island) != first);
        let twice = self.twice.take().into_iter();
        twice.chain(first.copied()).chain(others.copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_comes_first_and_a_copy_before_it_once() {
        let mut arrivals = Arrivals::default();
        arrivals.begin();
        arrivals.ahead(100, 200);
        arrivals.ahead(300, 400);
        arrivals.ahead(200, 250);
        arrivals.again(Some((300, 400)));
        assert_eq!(
            arrivals.blocks().collect::<Vec<_>>(),
            [(300, 400), (100, 250), (300, 400)]
        );
        assert_eq!(arrivals.blocks().collect::<Vec<_>>(), [(100, 250), (300, 400)]);
        assert_eq!(arrivals.in_order(100), 249);
        assert!(arrivals.has_islands());
        assert_eq!((arrivals.in_order(300), arrivals.next()), (150, 400));
        assert!(!arrivals.has_islands());
    }
}
