//! TCP segments as Ethernet frames in a classic pcap file with nanoseconds, checksums valid.
//!
//! The cost per frame matters (2 M frames a second and more), so the payload is a slice of one fixed pattern, chosen by
//! the sequence number (a repeated segment repeats its bytes), whose checksum comes from prefix sums.

use std::path::Path;

use weir_record::tcp_flag::SYN;

use crate::error::Error;
use crate::pcap::Output;
use crate::rng::Rng;
use crate::truth::Truth;

/// Largest payload of a segment without options: an MTU of 1,500.
pub const MSS: u16 = 1460;
/// Octets of payload that the timestamps option takes from a full segment.
pub const TIMESTAMPS_LENGTH: u16 = 12;
/// Window scale offered by all hosts.
const WINDOW_SCALE: u8 = 7;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Client's address and port.
    pub client: (u32, u16),
    /// Server's address and port.
    pub server: (u32, u16),
    /// Both sides use the timestamps option (RFC 7323 3).
    pub timestamps: bool,
    /// The SYNs carry options at all.
    pub options: bool,
}

/// One segment as the tap sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// ns since 1970 UTC.
    pub time: u64,
    /// Sent by the client.
    pub from_client: bool,
    /// Flags byte.
    pub flags: u8,
    /// Window field.
    pub window: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Octets of payload.
    pub len: u16,
    /// IP identification.
    pub ip_id: u16,
    /// TSval.
    pub tsval: u32,
    /// TSecr.
    pub tsecr: u32,
    /// One SACK block, left and right edge, when they differ.
    pub sack: (u32, u32),
}

/// Length of the pattern; a power of two, so that it is continuous where sequence numbers wrap.
const PATTERN: usize = 1 << 15;

/// Fixed payload octets with sums for checksums.
struct Pattern {
    bytes: Vec<u8>,
    /// `sums[i]`: sum of the octets before `i` with even index, and with odd index.
    sums: Vec<[u32; 2]>,
}

impl Pattern {
    fn new() -> Self {
        let mut rng = Rng::new(0x5eed);
        let mut bytes: Vec<u8> = (0..PATTERN).map(|_| b' ' + (rng.below(95) as u8)).collect();
        bytes.extend_from_within(..usize::from(MSS));
        let mut sums = Vec::with_capacity(bytes.len() + 1);
        let mut sum = [0u32; 2];
        sums.push(sum);
        for (index, byte) in bytes.iter().enumerate() {
            sum[index & 1] += u32::from(*byte);
            sums.push(sum);
        }
        Self { bytes, sums }
    }

    /// The payload of a segment, and the sum of its 16-bit words (RFC 1071; an odd last octet is padded with zero).
    fn slice(&self, seq: u32, len: u16) -> (&[u8], u64) {
        let len = len.min(MSS);
        let start = seq as usize % PATTERN;
        let end = start + usize::from(len);
        let part = |parity: usize| u64::from(self.sums[end][parity] - self.sums[start][parity]);
        let high = part(start & 1);
        let low = part((start & 1) ^ 1);
        (&self.bytes[start..end], high * 256 + low)
    }
}

/// Longest header of a frame: Ethernet, IPv4, TCP with 40 octets of options.
const HEADERS: usize = 14 + 20 + 60;

/// Writes frames to a capture file and counts the truth of what it writes.
pub struct FrameWriter {
    output: Output,
    pattern: Pattern,
    /// Totals so far.
    pub truth: Truth,
}

impl FrameWriter {
    /// Creates the file and writes its header.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let mut output = Output::create(path)?;
        output.pcap_header()?;
        Ok(Self {
            output,
            pattern: Pattern::new(),
            truth: Truth::default(),
        })
    }

    /// Writes one segment.
    pub fn write(&mut self, ends: &Ends, segment: &Segment) -> Result<(), Error> {
        let mut header = [0u8; HEADERS];
        let options = options(ends, segment, &mut header[54..]);
        let tcp_len = 20 + options + usize::from(segment.len);
        let ip_len = 20 + tcp_len;
        // Ethernet's shortest frame is 60 octets without its check sequence (IEEE 802.3 3.2.8): the rest is padding.
        let frame = (14 + ip_len).max(60);

        let (source, destination) = if segment.from_client {
            (ends.client, ends.server)
        } else {
            (ends.server, ends.client)
        };
        mac(&mut header[0..6], destination.0);
        mac(&mut header[6..12], source.0);
        header[12..14].copy_from_slice(&[0x08, 0x00]);

        let ip = &mut header[14..34];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&(ip_len as u16).to_be_bytes());
        ip[4..6].copy_from_slice(&segment.ip_id.to_be_bytes());
        ip[6] = 0x40;
        ip[8] = if segment.from_client { 63 } else { 64 };
        ip[9] = 6;
        ip[12..16].copy_from_slice(&source.0.to_be_bytes());
        ip[16..20].copy_from_slice(&destination.0.to_be_bytes());
        let sum = fold(words(ip));
        ip[10..12].copy_from_slice(&(!sum).to_be_bytes());

        let (payload, payload_sum) = self.pattern.slice(segment.seq, segment.len);
        let tcp = &mut header[34..54 + options];
        tcp[0..2].copy_from_slice(&source.1.to_be_bytes());
        tcp[2..4].copy_from_slice(&destination.1.to_be_bytes());
        tcp[4..8].copy_from_slice(&segment.seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&segment.ack.to_be_bytes());
        tcp[12] = (((20 + options) / 4) << 4) as u8;
        tcp[13] = segment.flags;
        tcp[14..16].copy_from_slice(&segment.window.to_be_bytes());
        let pseudo = halves(source.0) + halves(destination.0) + 6 + tcp_len as u64;
        let sum = fold(pseudo + words(tcp) + payload_sum);
        tcp[16..18].copy_from_slice(&(!sum).to_be_bytes());

        self.output.pcap_frame(segment.time, frame as u32, frame as u32)?;
        self.output.bytes(&header[..54 + options])?;
        self.output.bytes(payload)?;
        let padding = frame - 14 - ip_len;
        self.output.bytes(&[0u8; 60][..padding])?;
        self.count(ends, segment, frame);
        Ok(())
    }

    fn count(&mut self, ends: &Ends, segment: &Segment, frame: usize) {
        let truth = &mut self.truth;
        if truth.packets == 0 {
            truth.first_time_ns = segment.time;
        }
        truth.packets += 1;
        truth.frame_bytes += frame as u64;
        truth.last_time_ns = segment.time;
        if segment.from_client {
            truth.payload_client_to_server += u64::from(segment.len);
        } else {
            truth.payload_server_to_client += u64::from(segment.len);
        }
        truth.sack_segments += u64::from(ends.options && segment.sack.0 != segment.sack.1);
    }

    /// Writes what is left; the totals are the truth of the file.
    pub fn finish(self) -> Result<Truth, Error> {
        self.output.finish()?;
        Ok(self.truth)
    }
}

/// TCP options of a segment; returns their length, a multiple of 4.
fn options(ends: &Ends, segment: &Segment, out: &mut [u8]) -> usize {
    if !ends.options {
        return 0;
    }
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    let syn = segment.flags & SYN != 0;
    if syn {
        let mss = MSS.to_be_bytes();
        put(&[2, 4, mss[0], mss[1]]);
        put(if ends.timestamps { &[4, 2] } else { &[1, 1, 4, 2] });
    } else if ends.timestamps {
        put(&[1, 1]);
    }
    if ends.timestamps {
        put(&[8, 10]);
        put(&segment.tsval.to_be_bytes());
        put(&segment.tsecr.to_be_bytes());
    }
    if syn {
        put(&[1, 3, 3, WINDOW_SCALE]);
    } else if segment.sack.0 != segment.sack.1 {
        put(&[1, 1, 5, 10]);
        put(&segment.sack.0.to_be_bytes());
        put(&segment.sack.1.to_be_bytes());
    }
    at
}

fn mac(out: &mut [u8], address: u32) {
    out[0] = 0x02;
    out[1] = 0x00;
    out[2..6].copy_from_slice(&address.to_be_bytes());
}

fn halves(address: u32) -> u64 {
    u64::from(address >> 16) + u64::from(address & 0xffff)
}

/// Sum of the 16-bit big-endian words of a slice of even length.
fn words(bytes: &[u8]) -> u64 {
    bytes
        .chunks_exact(2)
        .map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum()
}

/// One's complement sum in 16 bits (RFC 1071 1).
fn fold(mut sum: u64) -> u16 {
    for _ in 0..4 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
