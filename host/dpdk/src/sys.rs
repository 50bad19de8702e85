//! Generated bindings (see `build.rs`) and the two accessors that need nothing else.
#![allow(
    unsafe_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    dead_code,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));

// The field offsets of `rte_mbuf` are read directly: it must be the two cache lines of the headers.
const _: () = assert!(core::mem::size_of::<rte_mbuf>() == 128);

/// `rte_errno` of the calling thread.
pub fn errno() -> i32 {
    // SAFETY: reads a thread-local integer, valid at any time.
    unsafe { weir_rte_errno() }
}

/// The text of an errno, DPDK's own numbers included.
pub fn error_text(code: i32) -> String {
    // SAFETY: rte_strerror returns a NUL-terminated string in static or thread-local memory,
    // copied before anything else can run on this thread.
    unsafe { std::ffi::CStr::from_ptr(rte_strerror(code)) }
        .to_string_lossy()
        .into_owned()
}
