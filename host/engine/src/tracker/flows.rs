//! Where contexts are.

use crate::flow::Flow;

/// Contexts in chunks that never move, so that growing does not need the memory twice.
#[derive(Debug, Default)]
pub(super) struct Flows(Vec<Vec<Flow>>);

/// Many, because the allocator leaves room between chunks, which huge pages fill.
const CHUNK: usize = 1 << 15;

impl Flows {
    #[inline]
    pub fn get(&self, index: u32) -> &Flow {
        &self.0[index as usize / CHUNK][index as usize % CHUNK]
    }

    #[inline]
    pub fn get_mut(&mut self, index: u32) -> &mut Flow {
        &mut self.0[index as usize / CHUNK][index as usize % CHUNK]
    }

    pub fn push(&mut self, flow: Flow) {
        match self.0.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(flow),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(flow);
                self.0.push(chunk);
            }
        }
    }
}
