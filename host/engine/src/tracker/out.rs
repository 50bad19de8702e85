//! Where records go.

use weir_record::{FlowId, Header, Record, flag};

use crate::config::Config;

/// Where records go: numbers them and fills in the header.
pub(super) struct Out<'a> {
    pub records: &'a mut Vec<Record>,
    pub sequence: &'a mut u32,
    pub lane: u8,
    pub flow: FlowId,
    pub time: u64,
}

impl<'a> Out<'a> {
    /// For records of a flow.
    #[inline]
    pub fn of(
        records: &'a mut Vec<Record>,
        sequence: &'a mut u32,
        config: &Config,
        generation: u32,
        index: u32,
        time: u64,
    ) -> Self {
        let flow = FlowId::new(config.epoch, generation, index);
        Self {
            records,
            sequence,
            lane: config.lane,
            flow,
            time,
        }
    }

    #[inline]
    pub fn header(&mut self, flags: u8, arg: u8) -> Header {
        let header = Header {
            flags,
            lane: self.lane,
            arg,
            sequence: *self.sequence,
            flow: self.flow,
            time: self.time,
        };
        *self.sequence = self.sequence.wrapping_add(1);
        header
    }
}

pub(super) const fn direction(side: usize) -> u8 {
    if side == 1 { flag::SERVER_TO_CLIENT } else { 0 }
}
