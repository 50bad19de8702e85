//! The word that the kernels take, made from what the flow engine was given and the records that it made.

use weir_engine::{Class, Engine, Meta};
use weir_record::{FINE_INTERVAL_NS, Kind as RecordKind, Open, Record, Rtt, RttHow};

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
            self.time / FINE_INTERVAL_NS % 10,
            u64::from(self.server_port),
            u64::from(self.wire),
            self.rtt.unwrap_or(0),
            self.time,
            self.time - self.time % FINE_INTERVAL_NS,
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
}

impl WordMaker {
    /// A frame without a packet, which `engine` just took.
    pub fn untracked(&self, port: u8, wire: u32, engine: &Engine) -> Word {
        Word {
            port,
            time: engine.now(),
            wire,
            ..Word::default()
        }
    }

    /// A packet that `engine` just took, and the records that it appended for it.
    pub fn packet(&mut self, meta: &Meta, records: &[Record], engine: &Engine) -> Word {
        let (source, destination) = if meta.from_low {
            (meta.key.low, meta.key.high)
        } else {
            (meta.key.high, meta.key.low)
        };
        let mut word = Word {
            port: meta.port,
            time: engine.now(),
            wire: meta.wire,
            class: Some(meta.class),
            flags: meta.flags,
            destination: destination.addr,
            source: source.addr,
            ..Word::default()
        };
        let Some(index) = engine.context(meta) else { return word };
        let mut about_flow = false;
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
                Some(RecordKind::Rtt) if record.arg() != RttHow::Echo as u8 => {
                    word.rtt = Some(Rtt::decode(record).rtt);
                    word.rtt_of_server = record.server_to_client();
                }
                Some(RecordKind::Event) => about_flow = true,
                _ => {}
            }
        }
        // An error about a flow that has timed out and waits for its visit is not tracked.
        if meta.class == Class::IcmpError && !about_flow {
            return word;
        }
        let flow = self.flows.get(index as usize).copied().unwrap_or_default();
        word.tracked = true;
        word.index = index;
        word.server_port = flow.server_port;
        word.from_server = meta.from_low != flow.client_is_low;
        word.new_data = engine.new_bytes();
        word
    }

    /// The input is over.
    pub fn end(&self, engine: &Engine) -> Word {
        Word {
            kind: Kind::End,
            time: engine.now(),
            ..Word::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_engine::{Config, End, Key};
    use weir_record::tcp_flag;

    const CLIENT: u8 = 9;
    const SERVER: u8 = 3;

    struct Bench {
        engine: Engine,
        maker: WordMaker,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                engine: Engine::new(Config::appliance()),
                maker: WordMaker::default(),
            }
        }

        /// A segment between port 2000 of one address and port 80 of the other.
        fn segment(&mut self, from: u8, time: u64, flags: u8, seq: u32, ack: u32, payload: u32) -> Word {
            let end = |address: u8| End {
                addr: [address; 16],
                port: if address == SERVER { 80 } else { 2000 },
            };
            let to = if from == SERVER { CLIENT } else { SERVER };
            let (key, from_low) = Key::new(end(from), end(to), 6);
            let meta = Meta {
                time,
                key,
                from_low,
                wire: 54 + payload,
                payload,
                flags,
                seq,
                ack,
                window: 1000,
                ..Meta::default()
            };
            let mut records = Vec::new();
            self.engine.packet(&meta, meta.wire, &mut records);
            self.maker.packet(&meta, &records, &self.engine)
        }
    }

    #[test]
    fn a_connection_is_told_as_the_tracker_sees_it() {
        let mut bench = Bench::new();
        let start = 1_800_000_000_000_000_000;
        let syn = bench.segment(CLIENT, start, tcp_flag::SYN, 100, 0, 0);
        assert!(syn.tracked && syn.fresh && !syn.from_server && !syn.new_data);
        assert_eq!(
            (syn.server_port, syn.destination, syn.source),
            (80, [SERVER; 16], [CLIENT; 16])
        );

        let syn_ack = bench.segment(SERVER, start + 5_000, tcp_flag::SYN | tcp_flag::ACK, 500, 101, 0);
        assert!(!syn_ack.fresh && syn_ack.from_server);
        assert_eq!((syn_ack.rtt, syn_ack.rtt_of_server), (Some(5_000), false));
        let ack = bench.segment(CLIENT, start + 7_000, tcp_flag::ACK, 101, 501, 0);
        assert_eq!((ack.rtt, ack.rtt_of_server), (Some(2_000), true));

        let request = bench.segment(CLIENT, start + 8_000, tcp_flag::ACK | tcp_flag::PSH, 101, 501, 10);
        assert!(request.new_data && !request.from_server);
        let again = bench.segment(CLIENT, start + 9_000, tcp_flag::ACK | tcp_flag::PSH, 101, 501, 10);
        assert!(again.tracked && !again.new_data, "a repeat brings nothing new");
        let more = bench.segment(CLIENT, start + 9_500, tcp_flag::ACK | tcp_flag::PSH, 101, 501, 20);
        assert!(more.new_data, "a repeat with new bytes behind");
        let late = bench.segment(SERVER, start + 1, tcp_flag::ACK, 501, 121, 100);
        assert!(late.new_data && late.from_server);
        assert_eq!(late.time, start + 9_500, "time does not run backwards");

        let reused = bench.segment(CLIENT, start + 10_000, tcp_flag::SYN, 900_000, 0, 0);
        assert!(reused.fresh && !reused.new_data);
    }

    #[test]
    fn no_room_in_the_table_no_flow() {
        let mut bench = Bench::new();
        bench.engine = Engine::new(Config {
            contexts: 0,
            ..Config::appliance()
        });
        let word = bench.segment(CLIENT, 5, tcp_flag::SYN, 1, 0, 0);
        assert!(!word.tracked && word.class == Some(Class::Tcp));
        assert_eq!(word.destination, [SERVER; 16]);
    }

    #[test]
    fn fields_lie_side_by_side() {
        let mut end = 0;
        for (name, low, width) in FIELDS {
            assert!(low >= end && low / 64 == (low + width - 1) / 64, "{name}");
            end = low + width;
        }
        assert_eq!(end, 512);
    }

    proptest! {
        #[test]
        fn every_field_is_where_the_table_says(
            time in 0..1_u64 << 63, wire in 0..1_u32 << 20, index in 0..1_u32 << 18, rtt in prop::option::of(0..1_u64 << 38),
            (port, flags, server_port, bits) in (0..16_u8, any::<u8>(), any::<u16>(), any::<[bool; 5]>()),
            (destination, source) in (any::<[u8; 16]>(), any::<[u8; 16]>()),
        ) {
            let [tracked, fresh, from_server, new_data, rtt_of_server] = bits;
            let word = Word {
                kind: Kind::Packet, time, port, wire, class: Some(Class::IcmpError), flags, destination, source, tracked,
                fresh, from_server, new_data, rtt, rtt_of_server, index, server_port,
            };
            let packed = word.packed();
            let field = |name: &str| {
                let (_, low, width) = FIELDS.into_iter().find(|(field, _, _)| *field == name).unwrap_or(("", 0, 0));
                (0..width).rev().fold(0_u64, |value, bit| {
                    value << 1 | u64::from(packed[(low + bit) / 8] >> ((low + bit) % 8) & 1)
                })
            };
            prop_assert_eq!(field("timestamp"), time);
            prop_assert_eq!(field("fine_start") + time % 10_000_000, time);
            prop_assert_eq!((field("fine_start") / 10_000_000) % 10, field("fine_digit"));
            prop_assert_eq!((field("wire_length"), field("index")), (u64::from(wire), u64::from(index)));
            prop_assert_eq!((field("rtt_valid") == 1).then(|| field("rtt")), rtt);
            prop_assert_eq!((field("port"), field("flags")), (u64::from(port), u64::from(flags)));
            prop_assert_eq!((field("class_"), field("server_port")), (2, u64::from(server_port)));
            let flags = ["tracked", "fresh", "from_server", "new_data", "rtt_of_server"].map(|name| field(name) == 1);
            prop_assert_eq!(flags, bits);
            for (name, address) in [("destination", destination), ("source", source)] {
                let high = u128::from(field(&format!("{name}_high"))) << 64;
                prop_assert_eq!((high | u128::from(field(&format!("{name}_low")))).to_be_bytes(), address);
            }
        }
    }
}
