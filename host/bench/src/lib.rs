//! Measuring Weir: large captures with known totals, the floor that no flow analysis can beat, whole commands side by side,
//! and a black-box test of robustness.
//!
//! - [`generate`] writes captures; [`truth`] is what they contain.
//! - [`floor`] reads a capture, walks its headers and counts packets per flow, and does nothing else.
//! - [`compare`] runs `weir analyze`, the floor and other tools on the same captures and prints CPU time, memory and ratios.
//! - [`check`] holds the totals of `weir analyze` against the truth.
//! - [`generate::hostile`] and [`nic`] are for the comparison of the card's logic with the software engine.
//! - [`say!`] is the `println!` of all of them.
//! - [`mutate`] damages captures in thousands of ways and runs a command on each.

pub mod check;
pub mod compare;
pub mod error;
pub mod floor;
pub mod frame;
pub mod generate;
pub mod mutate;
pub mod nic;
mod pcap;
pub mod process;
pub mod rng;
pub mod say;
pub mod truth;
