//! Packet buffers.
//!
//! A pool's memory is never given back while the environment lives: buffers may sit in a device's queue
//! after the port that received them is closed. A pool without a user goes to a shelf and the next one
//! of the same shape takes it from there, so opening and closing ports does not grow the memory.

use std::ffi::{CString, c_uint};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};

use crate::eal::{Eal, EalShared};
use crate::error::{Error, ErrorKind, Result, last_code};
use crate::sys;

/// Buffers a thread keeps for itself before it goes to the shared ring.
const CACHE: c_uint = 256;

/// The largest frame data a single buffer can be made for: the size is 16 bits wide, headroom included.
pub const LARGEST_BUFFER: u16 = u16::MAX - sys::RTE_PKTMBUF_HEADROOM as u16;

/// A pool of packet buffers of one size.
#[derive(Debug)]
pub struct Mempool {
    raw: RawPool,
    eal: Arc<EalShared>,
}

/// Pools without a user.
#[derive(Debug, Default)]
pub(crate) struct PoolShelf {
    pools: Vec<RawPool>,
}

#[derive(Debug, Clone, Copy)]
struct RawPool {
    pool: NonNull<sys::rte_mempool>,
    buffers: u32,
    data_bytes: u16,
}

// SAFETY: an rte_mempool is made for use by many threads; the pointer is valid while the EAL lives.
unsafe impl Send for RawPool {}
// SAFETY: as above.
unsafe impl Sync for RawPool {}

static NEXT_NAME: AtomicU32 = AtomicU32::new(0);

impl Mempool {
    /// A pool of `buffers` buffers, each for `data_bytes` bytes of frame data.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] when the memory given to [`Eal::init`] is used up.
    pub fn new(eal: &Eal, buffers: u32, data_bytes: u16) -> Result<Arc<Self>> {
        Self::with_shared(eal.shared(), buffers, data_bytes)
    }

    pub(crate) fn with_shared(eal: &Arc<EalShared>, buffers: u32, data_bytes: u16) -> Result<Arc<Self>> {
        if buffers < 2 * CACHE || data_bytes == 0 || data_bytes > LARGEST_BUFFER {
            return Err(Error::new(
                ErrorKind::Argument,
                format!(
                    "a pool of {buffers} buffers of {data_bytes} bytes cannot be made; \
                     give at least {} buffers of 1 to {LARGEST_BUFFER} bytes",
                    2 * CACHE
                ),
            ));
        }
        let raw = match take_from_shelf(eal, buffers, data_bytes) {
            Some(raw) => raw,
            None => create(buffers, data_bytes)?,
        };
        Ok(Arc::new(Self {
            raw,
            eal: Arc::clone(eal),
        }))
    }

    /// Buffers not in use now.
    pub fn available(&self) -> u32 {
        available(&self.raw)
    }

    /// Buffers in all.
    pub fn buffers(&self) -> u32 {
        self.raw.buffers
    }

    /// Frame data a buffer takes, in bytes.
    pub fn data_bytes(&self) -> u16 {
        self.raw.data_bytes
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::rte_mempool {
        self.raw.pool.as_ptr()
    }
}

impl Drop for Mempool {
    fn drop(&mut self) {
        let mut shelf = self.eal.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.pools.push(self.raw);
    }
}

fn take_from_shelf(eal: &EalShared, buffers: u32, data_bytes: u16) -> Option<RawPool> {
    let mut shelf = eal.shelf.lock().unwrap_or_else(PoisonError::into_inner);
    // Only a pool with all its buffers at home: what a device still holds is missing to the next user.
    let place = shelf
        .pools
        .iter()
        .position(|raw| raw.buffers == buffers && raw.data_bytes == data_bytes && available(raw) == buffers)?;
    Some(shelf.pools.swap_remove(place))
}

fn available(raw: &RawPool) -> u32 {
    // SAFETY: the pool lives as long as the EAL, which the owner of `raw` keeps alive.
    unsafe { sys::rte_mempool_avail_count(raw.pool.as_ptr()) }
}

fn create(buffers: u32, data_bytes: u16) -> Result<RawPool> {
    let failed = |code: i32| {
        let what = format!("no memory for {buffers} packet buffers of {data_bytes} bytes");
        Error::dpdk(ErrorKind::Memory, &what, code).hint("give DPDK more memory, or open fewer ports")
    };
    let number = NEXT_NAME.fetch_add(1, Ordering::Relaxed);
    let name = CString::new(format!("weir{number}")).unwrap_or_default();
    let room = data_bytes + sys::RTE_PKTMBUF_HEADROOM as u16;
    let object = size_of::<sys::rte_mbuf>() as u32 + u32::from(room);
    let private = size_of::<sys::rte_pktmbuf_pool_private>() as u32;
    // Step by step, as rte_pktmbuf_pool_create does, for the flag that it does not take: no padding between
    // buffers, so that their size is known (see `XDP_BUFFER`).
    // SAFETY: the name is NUL-terminated and copied; the EAL is started (callers hold EalShared).
    let pool = unsafe {
        sys::rte_mempool_create_empty(
            name.as_ptr(),
            buffers,
            object,
            CACHE,
            private,
            sys::weir_socket_id_any(),
            sys::RTE_MEMPOOL_F_NO_SPREAD,
        )
    };
    let Some(pool) = NonNull::new(pool) else {
        return Err(failed(last_code()));
    };
    let mut settings = sys::rte_pktmbuf_pool_private {
        mbuf_data_room_size: room,
        mbuf_priv_size: 0,
        flags: 0,
    };
    // SAFETY: a pool without objects gets its private part, of the size given above, then its memory, then each
    // object is made an mbuf of `object` bytes: the order that DPDK asks for. The settings are copied.
    unsafe {
        let raw = pool.as_ptr();
        if sys::rte_mempool_set_ops_byname(raw, c"ring_mp_mc".as_ptr(), std::ptr::null_mut()) != 0 {
            sys::rte_mempool_free(raw);
            return Err(failed(last_code()));
        }
        sys::rte_pktmbuf_pool_init(raw, (&raw mut settings).cast());
        let populated = sys::rte_mempool_populate_default(raw);
        if populated < 0 {
            sys::rte_mempool_free(raw);
            return Err(failed(-populated));
        }
        sys::rte_mempool_obj_iter(raw, Some(sys::rte_pktmbuf_init), std::ptr::null_mut());
    }
    Ok(RawPool {
        pool,
        buffers,
        data_bytes,
    })
}
