//! Where something was found last.

use weir_analysis::Ends;

/// The place that a dialogue's hosts had in a table when it was asked last: whoever uses it looks whether they are
/// there still. 4 bytes a dialogue, 256 kB at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memo(Vec<u32>);

const NONE: u32 = u32::MAX;

impl Memo {
    /// The place, if one is known.
    pub fn get(&self, ends: &Ends) -> Option<usize> {
        let place = *self.0.get(ends.dialogue as usize)?;
        (place != NONE).then_some(place as usize)
    }

    /// It was found at `place`.
    pub fn set(&mut self, ends: &Ends, place: usize) {
        if ends.dialogue == Ends::OTHERS {
            return;
        }
        let at = ends.dialogue as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, NONE);
        }
        self.0[at] = place as u32;
    }
}
