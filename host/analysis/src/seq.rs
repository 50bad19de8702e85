//! Sequence numbers: 32 bits, wrapping, ordered over half the space (RFC 9293 3.4).

/// `a` comes before `b` in the order of sequence numbers (RFC 9293 3.4).
#[inline]
pub const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// `a` is `b` or comes before it.
#[inline]
pub(crate) const fn at_or_before(a: u32, b: u32) -> bool {
    !before(b, a)
}

/// Bytes between two, in whichever order.
#[inline]
pub(crate) const fn distance(a: u32, b: u32) -> u32 {
    (a.wrapping_sub(b) as i32).unsigned_abs()
}

/// The later of two.
#[inline]
pub(crate) const fn later(a: u32, b: u32) -> u32 {
    if before(a, b) { b } else { a }
}

/// The earlier of two.
#[inline]
pub(crate) const fn earlier(a: u32, b: u32) -> u32 {
    if before(a, b) { a } else { b }
}

/// Half-open range of sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub from: u32,
    pub to: u32,
}

impl Range {
    /// Bytes in the range; 0 when it is turned around.
    #[inline]
    pub const fn len(self) -> u32 {
        if before(self.from, self.to) {
            self.to.wrapping_sub(self.from)
        } else {
            0
        }
    }

    /// Bytes that both have.
    #[inline]
    pub const fn overlap(self, other: Self) -> u32 {
        Self {
            from: later(self.from, other.from),
            to: earlier(self.to, other.to),
        }
        .len()
    }

    /// What is left of it on both sides of `other`; either may be empty.
    pub const fn without(self, other: Self) -> [Self; 2] {
        [
            Self {
                from: self.from,
                to: earlier(self.to, other.from),
            },
            Self {
                from: later(self.from, other.to),
                to: self.to,
            },
        ]
    }

    /// Whether all of `other` is in it.
    #[inline]
    pub const fn covers(self, other: Self) -> bool {
        at_or_before(self.from, other.from) && at_or_before(other.to, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_wraps() {
        assert!(before(0xffff_fff0, 16));
        assert!(!before(16, 0xffff_fff0));
        assert!(at_or_before(5, 5));
        let around = Range {
            from: 0xffff_fff0,
            to: 16,
        };
        assert_eq!(around.len(), 32);
        assert_eq!(around.overlap(Range { from: 0, to: 100 }), 16);
        assert!(around.covers(Range { from: 0, to: 16 }));
        assert_eq!(Range { from: 9, to: 3 }.len(), 0);
    }
}
