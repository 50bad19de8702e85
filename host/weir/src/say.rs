//! Lines to standard error.

use std::fmt::Display;
use std::io::Write as _;

/// A line to standard error. One that cannot be written (a full disk, a closed pipe) is given up: there is nowhere to
/// tell of it, and what measures goes on.
pub fn line(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}
