//! Errors name the file, the place in it, the cause, and what to do.

use std::fmt;
use std::io;

/// Reading a capture failed. Frames before the place were delivered and stay good.
#[derive(Debug)]
pub struct CaptureError {
    /// The file, as it was named to us.
    pub file: String,
    /// Byte offset in the (uncompressed) file at which the unreadable piece begins.
    pub offset: u64,
    /// Frames delivered before.
    pub frames: u64,
    /// What is wrong.
    pub cause: Cause,
}

/// What is wrong with a capture.
#[derive(Debug)]
pub enum Cause {
    /// It cannot be opened or read.
    Io(io::Error),
    /// The first bytes are of no capture format.
    NotACapture([u8; 4]),
    /// The file is empty.
    Empty,
    /// The file ends inside of a piece that says it has so many bytes.
    Cut {
        /// What the piece is.
        what: &'static str,
        /// Bytes that are there.
        have: usize,
        /// Bytes that it says it has.
        need: usize,
    },
    /// A length, a version or a number that cannot be.
    Corrupt(String),
}

/// Files and pipes themselves have no such errors.
fn is_of_decompression(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | Other | UnexpectedEof)
}

/// What became of the frames before an error.
fn used(frames: u64) -> String {
    match frames {
        0 => "there are no frames before it".to_owned(),
        1 => "the 1 frame before it was used".to_owned(),
        _ => format!("the {frames} frames before it were used"),
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            offset,
            frames,
            cause,
        } = self;
        match cause {
            Cause::Io(error) => {
                write!(f, "{file}: byte {offset}: cannot be read: {error}")?;
                if *frames > 0 {
                    write!(f, "; {}", used(*frames))?;
                }
                if is_of_decompression(error) {
                    write!(
                        f,
                        "; what is compressed is damaged from here on or cut off: copy the file again"
                    )?;
                }
                Ok(())
            }
            Cause::NotACapture(bytes) => {
                write!(
                    f,
                    "{file}: byte 0: begins with \"{}\", which is neither pcap or pcapng, nor gzip or zstd of them; \
                     convert it first, for example with: editcap -F pcapng IN OUT",
                    bytes.escape_ascii()
                )?;
                if bytes.iter().all(u8::is_ascii_graphic) {
                    write!(
                        f,
                        "; or, if it is a text (a web page, a pointer of Git LFS), get the capture itself"
                    )?;
                }
                Ok(())
            }
            Cause::Empty => write!(
                f,
                "{file}: byte 0: the file is empty; was the capture stopped before it was written?"
            ),
            Cause::Cut { what, have, need } => write!(
                f,
                "{file}: byte {offset}: the file ends inside of a {what} ({have} of {need} bytes are there); \
                 {}; copy the file again if it was still being written",
                used(*frames)
            ),
            Cause::Corrupt(what) => write!(
                f,
                "{file}: byte {offset}: {what}; {}; the file is damaged from here on",
                used(*frames)
            ),
        }
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Io(error) => Some(error),
            _ => None,
        }
    }
}
