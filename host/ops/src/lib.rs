//! For those who operate Weir: its counters, and word of what it finds.
//!
//! - [`metrics`]: every counter and state of the daemon as OpenMetrics.
//! - [`endpoint`]: the address at which they are scraped.
//! - [`analysis`]: counters that the analysis fills.
//! - [`store`]: counters of the store that a daemon writes to.
//! - [`webhook`]: findings that open, change or close, posted to a URL.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod endpoint;
mod histogram;
pub mod metrics;
mod page;
pub mod store;
pub mod webhook;
