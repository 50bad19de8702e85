//! Arithmetic of fields and sequence numbers.

/// One more, in a field of so many bits that stays at its largest value.
pub(super) const fn saturate_u16(value: u16, bits: u32) -> u16 {
    let max = ((1u32 << bits) - 1) as u16;
    if value >= max { max } else { value + 1 }
}

/// `a` after `b` in sequence space.
#[inline]
pub(super) const fn after(a: u32, b: u32) -> bool {
    let d = a.wrapping_sub(b);
    d != 0 && d < 1 << 31
}
