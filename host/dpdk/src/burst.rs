//! Bursts of frames: the only holders of packet buffers.
//!
//! Frame data can be read, never written, once a burst has it: that is what lets two bursts share buffers
//! (see [`Burst::share`]) while a device sends them.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

use crate::pool::Mempool;
use crate::sys;

/// Most frames of one burst.
pub const BURST: usize = 32;

/// How a driver's receive stamp is found in a buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StampField {
    /// Byte offset in `rte_mbuf`.
    pub(crate) offset: usize,
    /// Bit of `ol_flags` that says that the stamp is there.
    pub(crate) flag: u64,
    /// Nanoseconds of one unit.
    pub(crate) unit_ns: u64,
}

/// Up to [`BURST`] frames. It lives no longer than the port or pool that its frames come from;
/// frames that are still in it are given back when it is dropped.
#[derive(Debug)]
pub struct Burst<'p> {
    frames: [*mut sys::rte_mbuf; BURST],
    /// Frames `first..end` are held.
    first: usize,
    end: usize,
    stamp: Option<StampField>,
    _source: PhantomData<&'p ()>,
}

// SAFETY: a burst owns one reference to each of its buffers; buffers may be freed by any thread,
// and their data is only read.
unsafe impl Send for Burst<'_> {}

impl Default for Burst<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'p> Burst<'p> {
    /// An empty burst.
    pub fn new() -> Self {
        Self {
            frames: [std::ptr::null_mut(); BURST],
            first: 0,
            end: 0,
            stamp: None,
            _source: PhantomData,
        }
    }

    /// Frames held.
    pub fn len(&self) -> usize {
        self.end - self.first
    }

    /// Whether no frame is held.
    pub fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// The frames, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame<'_>> {
        let stamp = self.stamp;
        self.held().iter().map(move |&mbuf| Frame {
            mbuf,
            stamp,
            _burst: PhantomData,
        })
    }

    /// Adds a frame with a copy of `data`. `false` when the burst is full, the pool is empty or the data
    /// does not fit one buffer.
    pub fn push_copy(&mut self, pool: &'p Mempool, data: &[u8]) -> bool {
        let fits = u16::try_from(data.len()).is_ok_and(|length| length <= pool.data_bytes());
        if self.end == BURST || !fits {
            return false;
        }
        // SAFETY: the pool is valid; null comes back when it is empty.
        let Some(mbuf) = NonNull::new(unsafe { sys::rte_pktmbuf_alloc(pool.as_ptr()) }) else {
            return false;
        };
        self.frames[self.end] = mbuf.as_ptr();
        self.end += 1;
        // SAFETY: a fresh buffer with room for `data_bytes`, checked above: append returns the start of
        // `data.len()` writable bytes, or null, which is checked.
        unsafe {
            let start = sys::rte_pktmbuf_append(mbuf.as_ptr(), data.len() as u16);
            if start.is_null() {
                self.end -= 1;
                sys::rte_pktmbuf_free_bulk([mbuf.as_ptr()].as_mut_ptr(), 1);
                return false;
            }
            std::ptr::copy_nonoverlapping(data.as_ptr(), start.cast::<u8>(), data.len());
        }
        true
    }

    /// A second burst over the same buffers: what one of them sends the other can still read.
    pub fn share(&self) -> Burst<'p> {
        for &mbuf in self.held() {
            // SAFETY: the buffer is held by this burst; the count is atomic and each segment's is raised.
            unsafe { sys::rte_pktmbuf_refcnt_update(mbuf, 1) };
        }
        Burst {
            frames: self.frames,
            first: self.first,
            end: self.end,
            stamp: self.stamp,
            _source: PhantomData,
        }
    }

    /// Gives all frames back.
    pub fn clear(&mut self) {
        let held = self.len();
        if held > 0 {
            // SAFETY: `first..end` are buffers this burst holds a reference to; it forgets them below.
            unsafe { sys::rte_pktmbuf_free_bulk(self.frames[self.first..].as_mut_ptr(), held as u32) };
        }
        self.first = 0;
        self.end = 0;
    }

    /// Gives back the frames for which `keep` is false and returns how many; the order stays.
    pub fn retain(&mut self, mut keep: impl FnMut(&Frame<'_>) -> bool) -> usize {
        let mut kept = self.first;
        let mut gone: [*mut sys::rte_mbuf; BURST] = [std::ptr::null_mut(); BURST];
        let mut dropped = 0;
        for place in self.first..self.end {
            let mbuf = self.frames[place];
            if keep(&Frame {
                mbuf,
                stamp: self.stamp,
                _burst: PhantomData,
            }) {
                self.frames.swap(kept, place);
                kept += 1;
            } else {
                gone[dropped] = mbuf;
                dropped += 1;
            }
        }
        self.end = kept;
        if dropped > 0 {
            // SAFETY: these buffers were held by this burst and are outside `first..end` now.
            unsafe { sys::rte_pktmbuf_free_bulk(gone.as_mut_ptr(), dropped as u32) };
        }
        dropped
    }

    fn held(&self) -> &[*mut sys::rte_mbuf] {
        &self.frames[self.first..self.end]
    }

    /// The whole array, empty, for a driver to fill.
    pub(crate) fn refill(&mut self, stamp: Option<StampField>) -> &mut [*mut sys::rte_mbuf; BURST] {
        self.clear();
        self.stamp = stamp;
        &mut self.frames
    }

    /// Takes over the first `count` places after a driver filled them.
    ///
    /// # Safety
    /// The driver has put `count <= BURST` valid buffers there and given them up.
    pub(crate) unsafe fn filled(&mut self, count: usize) {
        self.first = 0;
        self.end = count;
    }

    /// The held buffers, for a driver to take from the front.
    pub(crate) fn offer(&mut self) -> &mut [*mut sys::rte_mbuf] {
        &mut self.frames[self.first..self.end]
    }

    /// Forgets the first `count` buffers after a driver took them.
    ///
    /// # Safety
    /// The driver has taken over `count <= len()` buffers from the front.
    pub(crate) unsafe fn taken(&mut self, count: usize) {
        self.first += count;
    }
}

impl Drop for Burst<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A frame in a burst.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'b> {
    /// Held by the burst that `'b` borrows, so valid.
    mbuf: *const sys::rte_mbuf,
    stamp: Option<StampField>,
    _burst: PhantomData<&'b ()>,
}

impl<'b> Frame<'b> {
    /// Length in bytes over all segments.
    pub fn length(&self) -> u32 {
        // SAFETY: see the field.
        unsafe { (*self.mbuf).pkt_len }
    }

    /// Segments: more than one when the frame is larger than a buffer.
    pub fn segment_count(&self) -> u16 {
        // SAFETY: see the field.
        unsafe { (*self.mbuf).nb_segs }
    }

    /// The data, piece by piece.
    pub fn segments(&self) -> Segments<'b> {
        Segments {
            next: self.mbuf,
            left: self.segment_count(),
            _burst: PhantomData,
        }
    }

    /// The data in one piece: in place when the frame is in one buffer, put together in `scratch` otherwise.
    pub fn contiguous<'s>(&self, scratch: &'s mut Vec<u8>) -> &'s [u8]
    where
        'b: 's,
    {
        if self.segment_count() == 1 {
            return self.segments().next().unwrap_or_default();
        }
        scratch.clear();
        for segment in self.segments() {
            scratch.extend_from_slice(segment);
        }
        scratch
    }

    /// Receive time in UTC nanoseconds since 1970 when the driver gives one.
    pub fn driver_time_ns(&self) -> Option<u64> {
        let stamp = self.stamp?;
        // SAFETY: DPDK gave the offset of a 64-bit field inside rte_mbuf for the life of the process;
        // an unaligned read asks nothing more.
        unsafe {
            if (*self.mbuf).ol_flags & stamp.flag == 0 {
                return None;
            }
            let field = self.mbuf.cast::<u8>().add(stamp.offset).cast::<u64>();
            Some(field.read_unaligned().saturating_mul(stamp.unit_ns))
        }
    }
}

/// The pieces of a frame's data.
#[derive(Debug)]
pub struct Segments<'b> {
    next: *const sys::rte_mbuf,
    left: u16,
    _burst: PhantomData<&'b ()>,
}

impl<'b> Iterator for Segments<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        if self.left == 0 || self.next.is_null() {
            return None;
        }
        self.left -= 1;
        let segment = self.next;
        // SAFETY: the segments of a held frame are held with it for 'b; data_off and data_len
        // describe bytes inside the segment's buffer, which nobody writes. Fields are read through the
        // pointer: a reference would claim that the reference count stays as it is.
        unsafe {
            self.next = (*segment).next;
            let start = (*segment).buf_addr.cast::<u8>().add(usize::from((*segment).data_off));
            Some(slice::from_raw_parts(start, usize::from((*segment).data_len)))
        }
    }
}
