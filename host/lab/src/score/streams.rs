//! The journeys of a run by stream, with what each stream's judge has to know.

use std::collections::{BTreeMap, HashMap};

use super::paws::discarded;
use crate::frame::TcpSummary;
use crate::truth::{Direction, Journey, Passage};

/// Connection, by the ports of client and server, and direction.
pub(super) type Stream = (u16, u16, Direction);

/// Of a journey.
pub(super) fn stream(journey: &Journey, tcp: &TcpSummary) -> Stream {
    match journey.direction {
        Direction::C2s => (tcp.src_port, tcp.dst_port, Direction::C2s),
        Direction::S2c => (tcp.dst_port, tcp.src_port, Direction::S2c),
    }
}

/// One transmission of a segment. Offsets count from the stream's first sequence number.
pub(super) struct Sent<'a> {
    pub journey: &'a Journey,
    pub seq: u32,
    pub from: i64,
    pub to: i64,
    /// It arrived and was thrown away.
    discarded: bool,
}

impl Sent<'_> {
    /// How it passed the tap, copies aside.
    pub fn passage(&self) -> Option<Passage> {
        self.journey.tap.first().copied()
    }

    pub fn is_lost(&self) -> bool {
        self.journey.arrived_ns.is_empty() || self.discarded
    }

    /// A SYN or SYN-ACK.
    pub fn is_syn(&self) -> bool {
        self.journey.tcp.as_ref().is_some_and(TcpSummary::is_syn)
    }
}

/// A SYN-ACK in the capture.
#[derive(Clone, Copy)]
pub(super) struct SynAck {
    pub time_ns: u64,
    /// It has timestamps, so it echoes that of a SYN: Linux that of the first that arrived.
    pub echoes: bool,
}

/// A packet in the capture.
pub(super) struct Captured {
    pub time_ns: u64,
    pub ip_id: u16,
    pub ack: u32,
    pub has_data: bool,
}

/// What both directions of a connection tell.
#[derive(Default)]
pub(super) struct Connection {
    /// Client and server permit SACK.
    sack: [bool; 2],
    has_missed: bool,
    /// The first SYN-ACK that the capture has.
    pub syn_ack: Option<SynAck>,
}

impl Connection {
    /// Both sides permit SACK.
    pub fn has_sack(&self) -> bool {
        self.sack == [true; 2]
    }

    /// The capture missed no segment.
    pub const fn is_whole(&self) -> bool {
        !self.has_missed
    }
}

/// A run's journeys, sorted.
pub(super) struct Streams<'a> {
    /// Transmissions of segments, as they were sent.
    pub sent: BTreeMap<Stream, Vec<Sent<'a>>>,
    /// All packets that the capture has, in order of time.
    packets: HashMap<Stream, Vec<Captured>>,
    /// By the ports of client and server.
    connections: HashMap<(u16, u16), Connection>,
}

impl<'a> Streams<'a> {
    pub fn new(journeys: &'a [Journey]) -> Self {
        let discarded = discarded(journeys);
        let mut streams = Self {
            sent: BTreeMap::new(),
            packets: HashMap::new(),
            connections: HashMap::new(),
        };
        for journey in journeys {
            let Some(tcp) = &journey.tcp else { continue };
            let key = stream(journey, tcp);
            streams.captured(key, journey, tcp);
            if tcp.sequence_len() > 0 {
                streams.connection(key, journey, tcp);
                streams.segment(key, journey, tcp, discarded.contains(&journey.frame));
            }
        }
        streams
            .packets
            .values_mut()
            .for_each(|all| all.sort_by_key(|packet| packet.time_ns));
        streams
    }

    fn captured(&mut self, key: Stream, journey: &Journey, tcp: &TcpSummary) {
        let passages = journey.tap.iter().filter(|passage| passage.captured);
        let captured = passages.map(|passage| Captured {
            time_ns: passage.time_ns,
            ip_id: tcp.ip_id,
            ack: tcp.ack,
            has_data: tcp.len > 0,
        });
        self.packets.entry(key).or_default().extend(captured);
    }

    fn connection(&mut self, (client, server, direction): Stream, journey: &Journey, tcp: &TcpSummary) {
        let connection = self.connections.entry((client, server)).or_default();
        connection.sack[direction as usize] |= tcp.sack_permitted;
        connection.has_missed |= journey.tap.iter().any(|passage| !passage.captured);
        if let Some(passage) = journey.tap.iter().find(|passage| passage.captured)
            && direction == Direction::S2c
            && tcp.is_syn()
            && connection.syn_ack.is_none_or(|first| passage.time_ns < first.time_ns)
        {
            connection.syn_ack = Some(SynAck {
                time_ns: passage.time_ns,
                echoes: tcp.tsval.is_some(),
            });
        }
    }

    fn segment(&mut self, key: Stream, journey: &'a Journey, tcp: &TcpSummary, discarded: bool) {
        let stream = self.sent.entry(key).or_default();
        let first = stream.first().map_or(tcp.seq, |sent| sent.seq);
        // Runs are far below 2 GB a stream.
        let from = i64::from(tcp.seq.wrapping_sub(first) as i32);
        stream.push(Sent {
            journey,
            seq: tcp.seq,
            from,
            to: from + i64::from(tcp.sequence_len()),
            discarded,
        });
    }

    pub fn packets(&self, key: Stream) -> &[Captured] {
        self.packets.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Of a stream of which segments were sent.
    pub fn connection_of(&self, (client, server, _): Stream) -> &Connection {
        &self.connections[&(client, server)]
    }

    /// When the receiver of a stream had sent its FIN and had that of the sender.
    pub fn closed_ns(&self, (client, server, direction): Stream) -> Option<u64> {
        let is_fin = |sent: &&Sent<'_>| sent.journey.tcp.as_ref().is_some_and(TcpSummary::is_fin);
        let of_receiver = self.sent.get(&(client, server, direction.other()))?;
        let sent_ns = of_receiver.iter().find(is_fin)?.journey.time_ns;
        let of_sender = self.sent.get(&(client, server, direction))?;
        let came_ns = of_sender
            .iter()
            .filter(is_fin)
            .flat_map(|sent| &sent.journey.arrived_ns);
        Some(sent_ns.max(*came_ns.min()?))
    }
}

/// Whether ranges have, together, all from the one end to the other.
pub(super) fn are_covered((from, to): (i64, i64), mut ranges: Vec<(i64, i64)>) -> bool {
    ranges.sort_unstable();
    let reach = ranges.iter().fold(
        from,
        |reach, &(from, to)| if from <= reach { reach.max(to) } else { reach },
    );
    reach >= to
}
