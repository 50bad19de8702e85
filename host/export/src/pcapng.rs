//! Blocks of a pcapng file (draft-ietf-opsawg-pcapng), little-endian, times in nanoseconds.

use std::io::{self, Write};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// opt_endofopt, behind the options of any block that has some.
const END_OF_OPTIONS: u16 = 0;
/// opt_comment, of any block.
const COMMENT: u16 = 1;
/// shb_userappl.
const APPLICATION: u16 = 4;
/// if_tsresol, and its value for nanoseconds.
const RESOLUTION: u16 = 9;
const NANOSECONDS: u8 = 9;
/// isb_ifdrop.
const DROPPED: u16 = 5;
/// An option's length has 16 bits.
const LONGEST_OPTION: usize = u16::MAX as usize;

/// Writes one section after another.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Nothing is written yet.
    pub const fn new(out: W) -> Self {
        Self { out, block: Vec::new() }
    }

    /// Begin a section; interfaces are numbered anew.
    pub fn section(&mut self, comment: &str) -> io::Result<()> {
        self.begin(SECTION);
        self.block.extend(0x1a2b_3c4d_u32.to_le_bytes());
        self.block.extend(1u16.to_le_bytes());
        self.block.extend(0u16.to_le_bytes());
        // The section's length is not known.
        self.block.extend(u64::MAX.to_le_bytes());
        self.option(COMMENT, comment.as_bytes());
        self.option(APPLICATION, concat!("weir ", env!("CARGO_PKG_VERSION")).as_bytes());
        self.end_of_options();
        self.end()
    }

    /// Describe the section's next interface by its link type (`LINKTYPE_`).
    pub fn interface(&mut self, link: u16) -> io::Result<()> {
        self.begin(INTERFACE);
        self.block.extend(link.to_le_bytes());
        self.block.extend(0u16.to_le_bytes());
        // No limit of a packet's length is known.
        self.block.extend(0u32.to_le_bytes());
        self.option(RESOLUTION, &[NANOSECONDS]);
        self.end_of_options();
        self.end()
    }

    /// Frames that an interface lost before the file, as of a time (UTC ns).
    pub fn statistics(&mut self, interface: u32, utc_ns: u64, dropped: u64) -> io::Result<()> {
        self.begin(STATISTICS);
        self.block.extend(interface.to_le_bytes());
        self.time(utc_ns);
        self.option(DROPPED, &dropped.to_le_bytes());
        self.end_of_options();
        self.end()
    }

    /// A packet of an interface: UTC ns, bytes captured, bytes on the wire, what is said of it.
    pub fn packet(
        &mut self,
        interface: u32,
        utc_ns: u64,
        data: &[u8],
        wire: u32,
        comments: &[String],
    ) -> io::Result<()> {
        self.begin(ENHANCED_PACKET);
        self.block.extend(interface.to_le_bytes());
        self.time(utc_ns);
        self.block.extend((data.len() as u32).to_le_bytes());
        self.block.extend(wire.to_le_bytes());
        self.block.extend(data);
        self.pad();
        for comment in comments {
            self.option(COMMENT, comment.as_bytes());
        }
        if !comments.is_empty() {
            self.end_of_options();
        }
        self.end()
    }

    /// What is under it, with everything written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.block.extend(kind.to_le_bytes());
        self.block.extend([0; 4]);
    }

    /// The higher half comes first, whatever the order of bytes.
    fn time(&mut self, utc_ns: u64) {
        self.block.extend(((utc_ns >> 32) as u32).to_le_bytes());
        self.block.extend((utc_ns as u32).to_le_bytes());
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(LONGEST_OPTION)];
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    /// Writers have to tell it, and some readers need it.
    fn end_of_options(&mut self) {
        self.option(END_OF_OPTIONS, &[]);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// The length stands at both ends.
    fn end(&mut self) -> io::Result<()> {
        let length = (self.block.len() + 4) as u32;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.block.extend(length.to_le_bytes());
        self.out.write_all(&self.block)
    }
}
