//! The word that the kernels take, made from what the flow engine was given and the records that it made.

use weir_engine::{Class, Meta};
use weir_record::{Event, Kind as RecordKind, Open, Record, Rtt, what};

use weir_engine::meta::tcp;

/// What a word says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A frame.
    #[default]
    Packet,
    /// Nothing but what time it is.
    Time,
    /// The input is over.
    End,
}

/// What the parser and the tracker know of one frame; the fields of `hw/hls/include/weir_word.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// What it says.
    pub kind: Kind,
    /// TAI ns, never before that of an earlier word.
    pub time: u64,
    /// Receiving port.
    pub port: u8,
    /// Bytes on the wire.
    pub wire: u32,
    /// `None`: no flow counts the frame, and only time, port and length hold.
    pub class: Option<Class>,
    /// TCP flags.
    pub flags: u8,
    /// Destination address (of ICMP errors: of the quoted packet).
    pub destination: [u8; 16],
    /// Source address.
    pub source: [u8; 16],
    /// The packet is counted in the flow of `index`.
    pub tracked: bool,
    /// It opened that flow.
    pub fresh: bool,
    /// The flow's server sent it.
    pub from_server: bool,
    /// It brought TCP payload that was not seen before.
    pub new_data: bool,
    /// The RTT record that it made, in ns.
    pub rtt: Option<u64>,
    /// The server sent the timed segment.
    pub rtt_of_server: bool,
    /// Context index of the flow.
    pub index: u32,
    /// Port of the flow's server.
    pub server_port: u16,
}

/// Fields of the packed word: name, lowest bit, width. The definition is `hw/hls/include/weir_word.h`.
pub const FIELDS: [(&str, usize, usize); 21] = [
    ("kind", 0, 3),
    ("tracked", 3, 1),
    ("fresh", 4, 1),
    ("from_server", 5, 1),
    ("new_data", 6, 1),
    ("rtt_valid", 7, 1),
    ("class_", 8, 2),
    ("rtt_of_server", 10, 1),
    ("port", 12, 4),
    ("flags", 16, 8),
    ("index", 24, 18),
    ("fine_digit", 44, 4),
    ("server_port", 48, 16),
    ("wire_length", 64, 20),
    ("rtt", 88, 38),
    ("timestamp", 128, 64),
    ("fine_start", 192, 64),
    ("destination_low", 256, 64),
    ("destination_high", 320, 64),
    ("source_low", 384, 64),
    ("source_high", 448, 64),
];

const FINE_NS: u64 = 10_000_000;

impl Word {
    /// The 512 bits, lowest byte first.
    pub fn packed(&self) -> [u8; 64] {
        let kind = match self.kind {
            Kind::Packet => 0,
            Kind::Time => 1,
            Kind::End => 3,
        };
        let class = match self.class {
            Some(Class::Tcp) => 0,
            Some(Class::Other) => 1,
            Some(Class::IcmpError) => 2,
            None => 3,
        };
        let [destination, source] = [self.destination, self.source].map(u128::from_be_bytes);
        let values = [
            kind,
            u64::from(self.tracked),
            u64::from(self.fresh),
            u64::from(self.from_server),
            u64::from(self.new_data),
            u64::from(self.rtt.is_some()),
            class,
            u64::from(self.rtt_of_server),
            u64::from(self.port),
            u64::from(self.flags),
            u64::from(self.index),
            self.time / FINE_NS % 10,
            u64::from(self.server_port),
            u64::from(self.wire),
            self.rtt.unwrap_or(0),
            self.time,
            self.time - self.time % FINE_NS,
            destination as u64,
            (destination >> 64) as u64,
            source as u64,
            (source >> 64) as u64,
        ];
        let mut out = [0; 64];
        for ((_, low, width), value) in FIELDS.into_iter().zip(values) {
            for bit in 0..width {
                out[(low + bit) / 8] |= ((value >> bit & 1) as u8) << ((low + bit) % 8);
            }
        }
        out
    }
}

/// What is kept of a flow while its context is in use.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    client_is_low: bool,
    server_port: u16,
}

/// Makes words of packets and their records. Give it all packets of a run, in the order of the engine.
#[derive(Debug, Default)]
pub struct WordMaker {
    flows: Vec<Flow>,
    now: u64,
}

impl WordMaker {
    fn clamped(&mut self, time: u64) -> u64 {
        self.now = self.now.max(time);
        self.now
    }

    /// A frame without a packet.
    pub fn untracked(&mut self, port: u8, time: u64, wire: u32) -> Word {
        Word {
            port,
            time: self.clamped(time),
            wire,
            ..Word::default()
        }
    }

    /// A packet, the records that the engine appended for it, and the context of its flow now, if it has one.
    pub fn packet(&mut self, meta: &Meta, records: &[Record], context: Option<u32>) -> Word {
        let (source, destination) = if meta.from_low {
            (meta.key.low, meta.key.high)
        } else {
            (meta.key.high, meta.key.low)
        };
        let mut word = Word {
            port: meta.port,
            time: self.clamped(meta.time),
            wire: meta.wire,
            class: Some(meta.class),
            flags: meta.flags,
            destination: destination.addr,
            source: source.addr,
            ..Word::default()
        };
        let Some(index) = context else { return word };
        let mut what = 0;
        for record in records {
            match record.kind() {
                Some(RecordKind::Open) if !record.is_continuation() => {
                    word.fresh = true;
                    let flow = Flow {
                        client_is_low: meta.from_low != record.server_to_client(),
                        server_port: Open::decode(record).server_port,
                    };
                    let place = index as usize;
                    if self.flows.len() <= place {
                        self.flows.resize(place + 1, Flow::default());
                    }
                    self.flows[place] = flow;
                }
                Some(RecordKind::Rtt) => {
                    word.rtt = Some(Rtt::decode(record).rtt);
                    word.rtt_of_server = record.server_to_client();
                }
                Some(RecordKind::Event) if !record.is_continuation() => what = Event::decode(record).what,
                _ => {}
            }
        }
        let flow = self.flows.get(index as usize).copied().unwrap_or_default();
        word.tracked = true;
        word.index = index;
        word.server_port = flow.server_port;
        word.from_server = meta.from_low != flow.client_is_low;
        word.new_data = meta.class == Class::Tcp
            && meta.payload > 0
            && meta.flags & (tcp::SYN | tcp::RST) == 0
            && (what & what::WILD == 0 || what & what::RESYNC != 0)
            && (what & what::BELOW == 0 || what & what::PARTIAL != 0);
        word
    }

    /// The input is over.
    pub fn end(&self) -> Word {
        Word {
            kind: Kind::End,
            time: self.now,
            ..Word::default()
        }
    }
}
