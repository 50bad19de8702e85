//! Frames of 60 octets (64 on the wire): four rounds over all flows, so that every flow is open before any has its second packet.
//! The rounds are SYN, SYN-ACK, ACK, and a request of 6 octets, which just fills the frame. No flow is closed.

use weir_record::tcp_flag::{ACK, PSH, SYN};

use super::{START, scaled};
use crate::error::Error;
use crate::frame::{Ends, FrameWriter, Segment};
use crate::rng::Rng;

const FLOWS: u64 = 1_000_000;
/// 4 M frames a second.
const SPACING_NS: u64 = 250;
const REQUEST: u16 = 6;

pub(super) fn write(out: &mut FrameWriter, mut rng: Rng, scale: f64) -> Result<(), Error> {
    let flows = scaled(FLOWS, scale);
    let salt = rng.bits();
    let mut time = START;
    for round in 0..4u64 {
        // Each round visits the flows in another order, as an analyzer's caches would meet them.
        let step = coprime(rng.bits(), flows);
        let offset = rng.below(flows);
        let mut flow = offset;
        for _ in 0..flows {
            let (ends, isn) = flow_of(flow, salt);
            let (client, server) = ((isn >> 32) as u32, isn as u32);
            let mut segment = Segment {
                time,
                window: 64_000,
                from_client: round != 1,
                ip_id: round as u16 + 1,
                ..Segment::default()
            };
            (segment.flags, segment.seq, segment.ack, segment.len) = match round {
                0 => (SYN, client, 0, 0),
                1 => (SYN | ACK, server, client.wrapping_add(1), 0),
                2 => (ACK, client.wrapping_add(1), server.wrapping_add(1), 0),
                _ => (ACK | PSH, client.wrapping_add(1), server.wrapping_add(1), REQUEST),
            };
            out.write(&ends, &segment)?;
            time += SPACING_NS;
            flow = (flow + step) % flows;
        }
    }
    out.truth.connections = flows;
    out.truth.concurrent = flows;
    out.truth.transactions = flows;
    Ok(())
}

/// Ends and initial sequence numbers of a flow; nothing is kept per flow.
fn flow_of(flow: u64, salt: u64) -> (Ends, u64) {
    // 32,768 ports on each client: distinct for every flow at every scale.
    let client = (0x0a00_0000 + (flow >> 15) as u32 + 1, 32_768 + (flow & 0x7fff) as u16);
    let server = (0xc0a8_0000 + (flow % 251) as u32 + 1, 7_106);
    let isn = Rng::new(salt ^ flow).bits();
    (
        Ends {
            client,
            server,
            timestamps: false,
            options: false,
        },
        isn,
    )
}

/// A step that visits all of `0..n`: odd multiples are tried until one shares no factor with `n`.
fn coprime(random: u64, n: u64) -> u64 {
    let mut step = (random % n.max(1)) | 1;
    while gcd(step, n) != 1 {
        step += 2;
    }
    step
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flow_is_visited_once_a_round() {
        for n in [1u64, 2, 6, 97, 1000, 30_030] {
            let step = coprime(0x1234_5678, n);
            let mut seen = vec![false; n as usize];
            let mut flow = 0;
            for _ in 0..n {
                assert!(!seen[flow as usize]);
                seen[flow as usize] = true;
                flow = (flow + step) % n;
            }
        }
    }
}
