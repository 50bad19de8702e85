//! Standard output, for people.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// As `println!`, but a reader that has seen enough (`weir-bench compare ... | head`) is no failure.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::say::line(format_args!($($words)*)) };
}

/// What [`say!`] does. Nothing is left to tell when nobody listens, so that ends the program.
pub fn line(words: Arguments<'_>) {
    if let Err(error) = writeln!(io::stdout(), "{words}") {
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        eprintln!("weir-bench: cannot write to standard output: {error}");
        std::process::exit(1);
    }
}
