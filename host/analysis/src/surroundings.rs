//! What findings about connections must know of the input that they were in.

use weir_record::Untracked;

/// Counters of a stretch of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// Frames, those that the sources say they lost, those whose time ran backwards, and those that are in no flow.
    pub frames: u64,
    pub dropped: u64,
    pub clamped: u64,
    pub untracked: [u64; Untracked::ALL.len()],
    /// Records missing by their numbers.
    pub missing: u64,
    /// What its source dropped, it did not forward.
    pub inline: bool,
}

impl Surroundings {
    /// What came after `earlier`, which began where this did.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut untracked = self.untracked;
        for (count, before) in untracked.iter_mut().zip(earlier.untracked) {
            *count = count.saturating_sub(before);
        }
        Self {
            frames: self.frames.saturating_sub(earlier.frames),
            dropped: self.dropped.saturating_sub(earlier.dropped),
            clamped: self.clamped.saturating_sub(earlier.clamped),
            untracked,
            missing: self.missing.saturating_sub(earlier.missing),
            inline: self.inline,
        }
    }
}
