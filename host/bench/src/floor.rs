//! The floor: read a capture, walk Ethernet, IPv4 and TCP headers, count packets and octets per flow in a hash map.
//! No flow analysis of a file can be faster than this; the distance to it is what the analysis costs.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::Error;
use crate::say;

/// What the walk counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames in the file.
    pub packets: u64,
    /// TCP segments over IPv4.
    pub tcp_packets: u64,
    /// Distinct 5-tuples, both directions together.
    pub flows: u64,
    /// Octets of TCP payload.
    pub payload: u64,
}

#[derive(Default)]
struct Flow {
    packets: [u64; 2],
    payload: [u64; 2],
}

const CHUNK: usize = 1 << 20;

/// Walks a classic pcap file with Ethernet frames.
pub fn walk(path: &Path) -> Result<Counts, Error> {
    let mut file = File::open(path).map_err(|e| Error::file("cannot open", path, &e))?;
    let mut header = [0u8; 24];
    file.read_exact(&mut header)
        .map_err(|e| Error::file("offset 0: no capture file header in", path, &e))?;
    let big = match header[..4] {
        [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => false,
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => true,
        _ => {
            return Err(Error::new(format!(
                "{}: offset 0: not a classic pcap file; the floor reads no other",
                path.display()
            )));
        }
    };
    let word = |bytes: &[u8]| {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    };
    if word(&header[20..24]) != 1 {
        return Err(Error::new(format!(
            "{}: offset 20: link type {} is not Ethernet",
            path.display(),
            word(&header[20..24])
        )));
    }

    let mut flows: HashMap<u128, Flow, foldhash::fast::RandomState> = HashMap::default();
    let mut counts = Counts::default();
    let mut buffer = vec![0u8; CHUNK];
    let mut filled = 0;
    let mut offset = 24u64;
    loop {
        let read = file
            .read(&mut buffer[filled..])
            .map_err(|e| Error::file("cannot read", path, &e))?;
        if read == 0 {
            break;
        }
        filled += read;
        let mut at = 0;
        while filled - at >= 16 {
            let captured = word(&buffer[at + 8..at + 12]) as usize;
            if captured > CHUNK - 16 {
                let offset = offset + at as u64;
                return Err(Error::new(format!(
                    "{}: offset {offset}: frame of {captured} octets",
                    path.display()
                )));
            }
            let end = at + 16 + captured;
            if end > filled {
                break;
            }
            counts.packets += 1;
            frame(&buffer[at + 16..end], &mut flows, &mut counts);
            at = end;
        }
        buffer.copy_within(at..filled, 0);
        filled -= at;
        offset += at as u64;
    }
    if filled > 0 {
        return Err(Error::new(format!(
            "{}: offset {offset}: the last frame is cut short ({filled} octets are left)",
            path.display()
        )));
    }
    counts.flows = flows.len() as u64;
    Ok(counts)
}

fn frame(frame: &[u8], flows: &mut HashMap<u128, Flow, foldhash::fast::RandomState>, counts: &mut Counts) {
    let Some([0x08, 0x00, 0x45..=0x4f, ..]) = frame.get(12..) else {
        return;
    };
    let ip = &frame[14..];
    let ip_header = usize::from(ip[0] & 15) * 4;
    if ip.len() < ip_header + 20 || ip[9] != 6 {
        return;
    }
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let tcp = &ip[ip_header..];
    let payload = total.saturating_sub(ip_header + usize::from(tcp[12] >> 4) * 4) as u64;
    let address = |at: usize| u64::from(u32::from_be_bytes([ip[at], ip[at + 1], ip[at + 2], ip[at + 3]]));
    let source = address(12) << 16 | u64::from(u16::from_be_bytes([tcp[0], tcp[1]]));
    let destination = address(16) << 16 | u64::from(u16::from_be_bytes([tcp[2], tcp[3]]));
    let (key, side) = if source < destination {
        (u128::from(source) << 64 | u128::from(destination), 0)
    } else {
        (u128::from(destination) << 64 | u128::from(source), 1)
    };
    let flow = flows.entry(key).or_default();
    flow.packets[side] += 1;
    flow.payload[side] += payload;
    counts.tcp_packets += 1;
    counts.payload += payload;
}

/// Walks a file and prints the rate per second of CPU time of this process.
pub fn run(path: &Path) -> Result<(), Error> {
    let counts = walk(path)?;
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    say!(
        "{} packets, {} TCP, {} flows, {} octets of payload: {:.2} million packets per CPU second",
        counts.packets,
        counts.tcp_packets,
        counts.flows,
        counts.payload,
        counts.packets as f64 / seconds.max(1e-9) / 1e6
    );
    Ok(())
}
