//! A capture file of any supported format as a stream of frames.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use weir_engine::LinkType;

use crate::error::{CaptureError, Cause};
use crate::input::Input;
use crate::lost::Lost;
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;

/// A time so far after that of the frame before and that of the next is damaged, ns: else all frames for so long
/// would seem to come late.
const ASTRAY: u64 = 1_000_000_000;

/// One frame as the file has it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// UTC ns since 1970.
    pub utc_ns: u64,
    /// That time cannot be right: the frame before and the next came a second earlier, or more.
    pub is_astray: bool,
    /// Number of the interface in the file, from 0.
    pub interface: u32,
    /// What the frame begins with; `None`: a link type that is not supported.
    pub link: Option<LinkType>,
    /// The same as the file has it (`LINKTYPE_` of the pcap registry).
    pub link_number: u16,
    /// Bytes on the wire, without FCS.
    pub wire: u32,
    /// The captured bytes, without FCS.
    pub data: &'a [u8],
}

/// Where the frame's bytes are in the input, and the rest of it.
pub(crate) struct Located {
    pub utc_ns: u64,
    pub interface: u32,
    pub link: Option<LinkType>,
    pub link_number: u16,
    pub wire: u32,
    /// Data from this byte of the piece ...
    pub from: usize,
    /// ... to this one.
    pub to: usize,
    /// Bytes of the whole piece.
    pub piece: usize,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// An open capture.
pub struct CaptureFile {
    name: String,
    input: Input,
    format: Format,
    frames: u64,
    /// The latest time that was not astray; 0 before the first.
    newest: u64,
    read: Arc<AtomicU64>,
    size: Option<u64>,
    failed: bool,
}

impl std::fmt::Debug for CaptureFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CaptureFile({}, {} frames)", self.name, self.frames)
    }
}

/// Counts what is read from the file itself, for progress on compressed files too.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl CaptureFile {
    /// Open a file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        if name == "-" {
            return Self::from_reader("standard input".into(), Box::new(io::stdin()), None);
        }
        let fail = |error| CaptureError {
            file: name.clone(),
            offset: 0,
            frames: 0,
            cause: Cause::Io(error),
        };
        let file = File::open(path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        if metadata.is_dir() {
            return Err(fail(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        let size = metadata.is_file().then_some(metadata.len());
        Self::from_reader(name, Box::new(file), size)
    }

    /// Read any stream; `name` is used in errors, `size` for progress.
    pub fn from_reader(name: String, reader: Box<dyn Read + Send>, size: Option<u64>) -> Result<Self, CaptureError> {
        let read = Arc::new(AtomicU64::new(0));
        let mut input = Input::new(Box::new(Counted {
            inner: reader,
            count: Arc::clone(&read),
        }));
        let fail = |cause| CaptureError {
            file: name.clone(),
            offset: 0,
            frames: 0,
            cause,
        };
        let have = input.fill(4).map_err(|error| fail(Cause::Io(error)))?;
        match input.peek(0, have) {
            // RFC 1952 2.3.1, RFC 8878 3.1.1.
            [0x1f, 0x8b, ..] => input = Input::new(Box::new(MultiGzDecoder::new(Rest(input)))),
            [0x28, 0xb5, 0x2f, 0xfd] => {
                let decoder = zstd::Decoder::new(Rest(input)).map_err(|error| fail(Cause::Io(error)))?;
                input = Input::new(Box::new(decoder));
            }
            _ => {}
        }
        let have = input.fill(4).map_err(|error| fail(Cause::Io(error)))?;
        if have == 0 {
            return Err(fail(Cause::Empty));
        }
        let mut magic = [0; 4];
        magic[..have].copy_from_slice(input.peek(0, have));
        let format = if magic == [0x0a, 0x0d, 0x0d, 0x0a] {
            Format::Pcapng(Pcapng::default())
        } else {
            Format::Pcap(Pcap::open(&mut input, magic).map_err(fail)?)
        };
        Ok(Self {
            name,
            input,
            format,
            frames: 0,
            newest: 0,
            read,
            size,
            failed: false,
        })
    }

    /// The name used in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next frame; `None` at the end. After an error there are no more.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)] // lends from the buffer
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        if self.failed {
            return Ok(None);
        }
        let located = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.input),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.input),
        };
        match located {
            Ok(Some(at)) => {
                self.frames += 1;
                let is_astray = at.utc_ns > self.newest && self.moves_on(&at);
                Ok(Some(Frame {
                    utc_ns: at.utc_ns,
                    is_astray,
                    interface: at.interface,
                    link: at.link,
                    link_number: at.link_number,
                    wire: at.wire,
                    data: self.input.take(at.from, at.to, at.piece),
                }))
            }
            Ok(None) => Ok(None),
            Err(cause) => Err(self.fail(cause)),
        }
    }

    /// A frame is later than all before; whether too much later. The first of a file cannot be told from a good one.
    #[inline]
    fn moves_on(&mut self, at: &Located) -> bool {
        let is_astray = at.utc_ns > self.newest.saturating_add(ASTRAY) && self.newest > 0 && self.turns_back(at);
        if !is_astray {
            self.newest = at.utc_ns;
        }
        is_astray
    }

    /// The frame behind this one is earlier.
    #[cold]
    fn turns_back(&mut self, at: &Located) -> bool {
        let next = match &self.format {
            Format::Pcap(pcap) => pcap.time_at(&mut self.input, at.piece),
            Format::Pcapng(pcapng) => pcapng.time_at(&mut self.input, at.piece),
        };
        next.is_some_and(|next| next.saturating_add(ASTRAY) < at.utc_ns)
    }

    #[cold]
    fn fail(&mut self, cause: Cause) -> CaptureError {
        self.failed = true;
        CaptureError {
            file: self.name.clone(),
            offset: self.input.offset(),
            frames: self.frames,
            cause,
        }
    }

    /// Frames delivered.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Bytes read from the file so far, and its size if known.
    pub fn progress(&self) -> (u64, Option<u64>) {
        (self.read.load(Ordering::Relaxed), self.size)
    }

    /// (interface, frames that it lost), as the file has them so far (pcapng).
    pub fn lost(&self) -> impl Iterator<Item = (u32, u64)> {
        let lost = match &self.format {
            Format::Pcap(_) => None,
            Format::Pcapng(pcapng) => Some(pcapng.lost()),
        };
        lost.into_iter().flat_map(Lost::totals)
    }
}

/// What an input has not yet given out, as a reader.
struct Rest(Input);

impl Read for Rest {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.0.fill(1)?;
        let n = self.0.available().min(buffer.len());
        buffer[..n].copy_from_slice(self.0.peek(0, n));
        self.0.skip(n);
        Ok(n)
    }
}
