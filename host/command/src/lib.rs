//! What the commands `weir` and `weir-sql` share.
//!
//! - [`output`]: where they write: standard output, or a file that has its name once it is whole.
//! - [`signals`]: what ends them before their time.
//! - [`Failure`]: what they fail with.
#![forbid(unsafe_code)]

mod failure;
pub mod output;
pub mod signals;

pub use failure::Failure;
