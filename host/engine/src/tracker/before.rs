//! What EVENT tells of the time before its packet.

use weir_record::IdStep;

use crate::flow::{ShortTime, Side, side};
use crate::meta::Meta;

/// Ids that a packet which was overtaken is below the newest, at most (4.5).
const MOST_OVERTAKEN: u16 = 256;

/// The sender as it was before the packet, as far as EVENT tells of it.
pub(super) struct Before {
    pub next: u32,
    pub block_last: ShortTime,
    pub ip_id: u16,
    pub flags: u16,
}

impl Before {
    #[inline]
    pub const fn of(sender: &Side) -> Self {
        Self {
            next: sender.next,
            block_last: sender.block_last,
            ip_id: sender.ip_id,
            flags: sender.flags,
        }
    }

    #[inline]
    pub const fn idle(&self) -> bool {
        self.flags & side::IDLE != 0
    }

    /// By how much the packet's id is above the newest; 0 if there is none.
    #[inline]
    pub const fn id_step(&self, meta: &Meta) -> u16 {
        if meta.ip_id == 0 || self.ip_id == 0 {
            0
        } else {
            meta.ip_id.wrapping_sub(self.ip_id)
        }
    }

    pub fn since_data(&self, time: u64) -> u32 {
        if self.idle() {
            u32::MAX
        } else {
            u32::try_from((self.block_last.age(time)) >> 6).unwrap_or(u32::MAX)
        }
    }
}

/// Whether the packet was made before the one with the newest id (4.5).
pub(super) const fn is_overtaken(id_step: u16) -> bool {
    let back = id_step.wrapping_neg();
    back >= 1 && back <= MOST_OVERTAKEN
}

/// `id_step` as EVENT has it (4.10).
pub(super) fn told(id_step: u16) -> u8 {
    let step = u8::try_from(id_step)
        .ok()
        .filter(|step| *step < IdStep::Overtaken as u8);
    let other = if is_overtaken(id_step) {
        IdStep::Overtaken
    } else {
        IdStep::Far
    };
    step.unwrap_or(other as u8)
}
