//! The table of open flows.

use std::ops::Range;

use weir_record::{FlowId, Kind, Record};

use crate::flow::Flow;

/// Open flows by context index, in chunks that never move.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    chunks: Vec<Vec<Option<Flow>>>,
    /// Places in the chunks.
    places: usize,
    open: usize,
    /// Once indices are sparse; while they are dense, a flow has the place of its index.
    sparse: Option<Sparse>,
}

/// Flows stand close together wherever their indices are, because places of closed flows are used again.
#[derive(Debug, Default)]
struct Sparse {
    /// By context index: 1 + the place of the flow; 0: none.
    places: Vec<u32>,
    free: Vec<u32>,
}

impl Sparse {
    /// The place of a flow that is entered: the one that its index has, a free one, or else the `new` one.
    fn enter(&mut self, index: usize, new: usize) -> usize {
        if index >= self.places.len() {
            self.places.resize(index + 1, 0);
        }
        let place = &mut self.places[index];
        if *place == 0 {
            *place = 1 + self.free.pop().unwrap_or(new as u32);
        }
        *place as usize - 1
    }
}

/// Records whose flows are fetched together.
pub(crate) const TOGETHER: usize = 32;
/// Flows of a chunk: many, because the allocator leaves room between chunks, which huge pages fill.
const CHUNK: usize = 1 << 15;
/// Places that may stay empty.
const FEW: usize = 1 << 12;

impl Slab {
    fn place(&self, index: usize) -> Option<usize> {
        match &self.sparse {
            None => Some(index),
            Some(sparse) => (*sparse.places.get(index)? as usize).checked_sub(1),
        }
    }

    fn at(&self, place: usize) -> Option<&Flow> {
        self.chunks.get(place / CHUNK)?.get(place % CHUNK)?.as_ref()
    }

    fn at_mut(&mut self, place: usize) -> Option<&mut Option<Flow>> {
        self.chunks.get_mut(place / CHUNK)?.get_mut(place % CHUNK)
    }

    /// The flow with this id, when it is the one in its place.
    pub fn get(&self, id: FlowId) -> Option<&Flow> {
        self.at(self.place(id.index())?).filter(|flow| flow.id == id)
    }

    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        let place = self.place(id.index())?;
        self.at_mut(place)?.as_mut().filter(|flow| flow.id == id)
    }

    /// Bring the flows of records into the cache, all at once instead of one wait after the other: first all places, then
    /// all flows, then what they point to, because a look at what is not there yet, to decide whether to go on, ends what
    /// the processor asks for at once.
    pub fn warm(&self, records: &[Record]) {
        let mut places = [(0, Kind::Open); TOGETHER];
        let mut many = 0;
        for record in records.iter().take(TOGETHER).filter(|record| !record.is_continuation()) {
            let place = self.place(record.flow().index());
            places[many] = (place.unwrap_or(0), record.kind().unwrap_or(Kind::Gap));
            many += usize::from(place.is_some());
        }
        let mut flows = [None; TOGETHER];
        let mut seen = 0;
        for ((place, kind), found) in places[..many].iter().zip(&mut flows) {
            *found = self.at(*place);
            seen ^= found.map_or(0, |flow| flow.warm(*kind));
        }
        for ((_, kind), flow) in places[..many].iter().zip(flows) {
            seen ^= flow.map_or(0, |flow| flow.warm_beyond(*kind));
        }
        std::hint::black_box(seen);
    }

    /// Enter a flow; returns the one that stood in its place.
    pub fn insert(&mut self, flow: Flow) -> Option<Flow> {
        let index = flow.id.index();
        if self.sparse.is_none() && index >= self.places.max(FEW) && index > self.open + self.open / 4 {
            self.become_sparse();
        }
        let place = match &mut self.sparse {
            None => index,
            Some(sparse) => sparse.enter(index, self.places),
        };
        while self.places <= place {
            if self.places.is_multiple_of(CHUNK) {
                self.chunks.push(Vec::with_capacity(CHUNK));
            }
            self.chunks[self.places / CHUNK].push(None);
            self.places += 1;
        }
        let found = &mut self.chunks[place / CHUNK][place % CHUNK];
        if let Some(old) = found {
            return Some(std::mem::replace(old, flow));
        }
        *found = Some(flow);
        self.open += 1;
        None
    }

    /// From now on places are looked up.
    fn become_sparse(&mut self) {
        let mut sparse = Sparse::default();
        for place in 0..self.places {
            let is_open = self.at(place).is_some();
            sparse.places.push(if is_open { place as u32 + 1 } else { 0 });
            if !is_open {
                sparse.free.push(place as u32);
            }
        }
        self.sparse = Some(sparse);
    }

    /// Take a flow out.
    #[inline]
    pub fn remove(&mut self, id: FlowId) -> Option<Flow> {
        let place = self.place(id.index())?;
        let flow = self.at_mut(place)?.take_if(|flow| flow.id == id)?;
        self.open -= 1;
        if let Some(sparse) = &mut self.sparse {
            sparse.places[id.index()] = 0;
            sparse.free.push(place as u32);
        }
        Some(flow)
    }

    /// Flows in the table.
    pub const fn len(&self) -> usize {
        self.open
    }

    /// Indices that flows may have, and more.
    fn indices(&self) -> Range<usize> {
        0..self.sparse.as_ref().map_or(self.places, |sparse| sparse.places.len())
    }

    /// All flows, by index.
    pub fn iter(&self) -> impl Iterator<Item = &Flow> + Clone {
        self.iter_from(0)
    }

    /// Flows by index, from one on.
    pub fn iter_from(&self, index: usize) -> impl Iterator<Item = &Flow> + Clone {
        let indices = index..self.indices().end;
        indices.filter_map(|index| self.at(self.place(index)?))
    }

    /// Take all flows out, by index.
    pub fn drain(mut self) -> impl Iterator<Item = Flow> {
        let open = self.open;
        let flows = self.indices().filter_map(move |index| {
            let place = self.place(index)?;
            // Nothing is moved where there is none.
            self.at_mut(place)?.take_if(|_| true)
        });
        flows.take(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::Open;

    fn flow(id: FlowId) -> Flow {
        let open = Open {
            client_addr: [0; 16],
            server_addr: [0; 16],
            client_port: 1,
            server_port: 2,
            protocol: 6,
            vlans: 0,
        };
        Flow::open(id, 1, 1, &open)
    }

    #[test]
    fn sparse_indices_need_no_memory() {
        let id = |index| FlowId::new(1, 2, index);
        let mut slab = Slab::default();
        for index in [1, 0, 2] {
            assert!(slab.insert(flow(id(index))).is_none());
        }
        assert!(slab.remove(id(1)).is_some());
        for index in [1 << 23, 7, 1 << 20] {
            assert!(slab.insert(flow(id(index))).is_none());
        }
        assert!(
            slab.insert(flow(FlowId::new(1, 3, 7)))
                .is_some_and(|old| old.id == id(7))
        );
        assert!(slab.places < 8, "{}", slab.places);
        assert!(slab.get_mut(id(1)).is_none() && slab.get_mut(id(2)).is_some());
        assert!(slab.remove(id(1 << 20)).is_some() && slab.get_mut(id(1 << 20)).is_none());
        let left: Vec<usize> = slab.iter().map(|flow| flow.id.index()).collect();
        assert_eq!((left.as_slice(), slab.len()), (&[0, 2, 7, 1 << 23][..], 4));
        assert_eq!(slab.drain().count(), 4);
    }

    #[test]
    fn the_whole_id_is_checked() {
        let mut slab = Slab::default();
        let id = FlowId::new(1, 2, 77);
        assert!(slab.insert(flow(id)).is_none());
        assert!(slab.get_mut(FlowId::new(1, 3, 77)).is_none());
        assert!(slab.remove(FlowId::new(2, 2, 77)).is_none());
        assert!(slab.get_mut(id).is_some());
        assert_eq!(slab.len(), 1);
        assert!(slab.remove(id).is_some());
        assert_eq!(slab.len(), 0);
    }
}
