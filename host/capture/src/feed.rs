//! From a capture file to words for the flow engine.

use std::borrow::Cow;

use weir_engine::{Engine, Fragment, Meta, Parsed, Parser, Profile};
use weir_record::{Record, Untracked, time::tai_from_utc};

use crate::card;
use crate::defrag::Defrag;
use crate::error::CaptureError;
use crate::file::{CaptureFile, Frame};

/// Fragmented datagrams inside of each other that are followed.
const MAX_NESTED: usize = 4;

/// It takes the frames of all interfaces beyond.
const LAST_PORT: u8 = 15;

/// The port of an interface of the file, but in the nic profile.
fn port_of(interface: u32) -> u8 {
    interface.min(LAST_PORT.into()) as u8
}

/// One frame for the engine.
#[derive(Debug)]
pub struct Word<'a> {
    /// The port (interface of the file, the 16th and later ones as the 16th; nic profile: see [`card`]).
    pub port: u8,
    /// TAI ns.
    pub time: u64,
    /// Bytes on the wire.
    pub wire: u32,
    /// Bytes captured.
    pub captured: u32,
    /// What it is.
    pub item: Item<'a>,
}

impl Word<'_> {
    /// Give the word to an engine; its records are appended to `records`.
    #[inline]
    pub fn enter(&self, engine: &mut Engine, records: &mut Vec<Record>) {
        match self.item {
            Item::Packet(meta) => engine.packet(meta, self.captured, records),
            Item::Untracked(reason) => {
                engine.untracked(self.port, self.time, self.wire, self.captured, reason, records);
            }
        }
    }
}

/// What a frame is.
#[derive(Debug)]
pub enum Item<'a> {
    /// A parsed packet.
    Packet(&'a Meta),
    /// Not counted in any flow.
    Untracked(Untracked),
}

/// Parses frames and puts fragments together.
#[derive(Default)]
pub struct Feed {
    parser: Parser,
    defrag: Defrag,
    /// Number of the datagram that the frame in hand is a piece of.
    datagram: Option<u64>,
    /// The frame in hand: kept here, because it is large.
    meta: Meta,
    /// Frames so far: of all ports, or, as the card counts them, of each.
    numbers: [u64; 16],
    left_out: u64,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Feed({} frames)", self.numbers.iter().sum::<u64>())
    }
}

impl Feed {
    /// A feed with this parser.
    pub fn new(parser: Parser) -> Self {
        Self {
            parser,
            ..Self::default()
        }
    }

    /// Read up to `limit` frames and give a word for each; false at the end of the file.
    pub fn read(
        &mut self,
        file: &mut CaptureFile,
        limit: usize,
        mut word: impl FnMut(Word<'_>),
    ) -> Result<bool, CaptureError> {
        for _ in 0..limit {
            let Some(frame) = file.next()? else { return Ok(false) };
            self.file_frame(&frame, &mut word);
        }
        Ok(true)
    }

    /// The word of a frame of a file; none if it cannot come to the card (nic profile).
    #[inline]
    pub fn file_frame(&mut self, frame: &Frame<'_>, word: impl FnMut(Word<'_>)) {
        let mut time = tai_from_utc(frame.utc_ns);
        let port = match self.parser.profile() {
            Profile::Full => {
                if frame.is_astray {
                    time = 0; // it is clamped, and counted so
                }
                port_of(frame.interface)
            }
            // The card sees no frame before it came.
            Profile::Nic => match card::port(frame) {
                Some(port) => port,
                None => {
                    self.left_out += 1;
                    return;
                }
            },
        };
        self.frame(port, time, frame.link, frame.data, frame.wire, word);
    }

    /// Tell an engine what the file says its interfaces lost; on the card that counter is its own.
    pub fn tell_lost(&self, file: &CaptureFile, engine: &mut Engine) {
        if self.parser.profile() == Profile::Nic {
            return;
        }
        let mut ports = [None::<u64>; LAST_PORT as usize + 1];
        for (interface, frames) in file.lost() {
            let port = &mut ports[usize::from(port_of(interface))];
            *port = Some(port.unwrap_or(0).saturating_add(frames));
        }
        for (port, frames) in (0..).zip(ports) {
            if let Some(frames) = frames {
                engine.dropped(port, u32::try_from(frames).unwrap_or(u32::MAX));
            }
        }
    }

    /// The fragmented datagram that the last frame is a piece of, the outermost if there are several inside of each other: its
    /// number, counted up from 1 as they begin. Its last piece is the packet, the others are [`Untracked::Fragment`].
    pub fn datagram(&self) -> Option<u64> {
        self.datagram
    }

    /// Frames of files that were left out because they cannot come to the card ([`card::port`]).
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// One frame of any source: `time` in TAI ns.
    #[inline]
    pub fn frame(
        &mut self,
        port: u8,
        time: u64,
        link: Option<weir_engine::LinkType>,
        data: &[u8],
        wire: u32,
        mut word: impl FnMut(Word<'_>),
    ) {
        let counter = match self.parser.profile() {
            Profile::Full => 0,
            Profile::Nic => usize::from(port) % self.numbers.len(),
        };
        self.numbers[counter] += 1;
        let number = self.numbers[counter];
        let captured = data.len() as u32;
        self.datagram = None;
        let mut parsed = match link {
            Some(link) => self.parser.parse(link, data, wire, &mut self.meta),
            None => Parsed::Untracked(Untracked::Link),
        };
        if let Parsed::Fragment(fragment) = parsed {
            (self.datagram, parsed) = self.fragment(fragment, data, time, wire);
        }
        let item = match parsed {
            Parsed::Packet => {
                self.meta.time = time;
                self.meta.number = number;
                self.meta.port = port;
                Item::Packet(&self.meta)
            }
            Parsed::Fragment(_) => Item::Untracked(Untracked::Fragment),
            Parsed::Untracked(reason) => Item::Untracked(reason),
        };
        word(Word {
            port,
            time,
            wire,
            captured,
            item,
        });
    }

    /// Keep a piece, or parse the datagram that it completes; what that carries may again be a
    /// piece (a fragmented tunnel with fragments inside).
    #[cold]
    fn fragment(&mut self, mut fragment: Box<Fragment>, data: &[u8], time: u64, wire: u32) -> (Option<u64>, Parsed) {
        let mut bytes = Cow::Borrowed(data);
        let mut outermost = None;
        for nested in 0..MAX_NESTED {
            let payload = bytes.get(fragment.data.clone()).unwrap_or_default();
            let whole = self.defrag.piece(&fragment, payload, time);
            if nested == 0 {
                outermost = self.defrag.last();
            }
            let Some(whole) = whole else {
                return (outermost, Parsed::Untracked(Untracked::Fragment));
            };
            match self
                .parser
                .datagram(&whole.context, &whole.start, whole.length, wire, &mut self.meta)
            {
                Parsed::Fragment(inner) => fragment = inner,
                parsed => return (outermost, parsed),
            }
            bytes = Cow::Owned(whole.start);
        }
        (outermost, Parsed::Untracked(Untracked::Depth))
    }
}
