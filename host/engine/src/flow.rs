//! The context of one flow (specification section 3).

use weir_record::width;

use crate::meta::{End, Key};

/// Bits of [`Side::flags`].
pub(crate) mod side {
    pub const HAS_NEXT: u16 = 1;
    pub const HAS_ACK: u16 = 1 << 1;
    pub const BLOCK_OPEN: u16 = 1 << 2;
    /// Something came again that no later ack has answered.
    pub const REPEATED: u16 = 1 << 3;
    pub const ZERO: u16 = 1 << 4;
    pub const SMALL: u16 = 1 << 5;
    pub const FULL: u16 = 1 << 6;
    pub const FIN: u16 = 1 << 7;
    pub const RST: u16 = 1 << 8;
    pub const FIN_ACKED: u16 = 1 << 9;
    pub const WILD: u16 = 1 << 10;
    pub const IDLE: u16 = 1 << 11;
    pub const SACK_OK: u16 = 1 << 12;
    pub const TIMESTAMPS: u16 = 1 << 13;
    pub const ECN: u16 = 1 << 14;
    /// Setup pending: options incomplete. Afterwards: the last ack was wild.
    pub const CUT: u16 = 1 << 15;
    pub const WILD_ACK: u16 = CUT;
}

/// Shift that stands for: no scale option, or not known.
pub(crate) const NO_SCALE: u8 = 15;

/// Times of 40 bits are given up when older than this, so that they never wrap (section 3).
pub(crate) const TIME_LIMIT: u64 = 1 << 38;
/// Counts that share the 6-bit chain field.
pub(crate) const CHAIN_MAX: u8 = (1 << width::CHAIN) - 1;

/// State of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// TCP whose handshake was not seen from its start.
    Mid,
    /// SYN seen.
    Syn,
    /// SYN-ACK seen.
    SynAck,
    /// Handshake done.
    Up,
    /// Both FINs acknowledged.
    ClosedFin,
    /// RST seen.
    ClosedRst,
    /// Not TCP.
    Other,
}

impl State {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Mid,
        Self::Syn,
        Self::SynAck,
        Self::Up,
        Self::ClosedFin,
        Self::ClosedRst,
        Self::Other,
    ];
}

/// The low 40 bits of a number, in the memory that they need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Low40 {
    low: [u8; 4],
    high: u8,
}

impl Low40 {
    #[inline]
    pub const fn new(number: u64) -> Self {
        Self {
            low: (number as u32).to_le_bytes(),
            high: (number >> 32) as u8,
        }
    }

    #[inline]
    pub const fn get(self) -> u64 {
        (self.high as u64) << 32 | u32::from_le_bytes(self.low) as u64
    }
}

/// A time of the context by its low 40 bits, as the card has it: times are given up before they are so old that they
/// wrap (section 3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortTime(Low40);

impl ShortTime {
    #[inline]
    pub const fn new(time: u64) -> Self {
        Self(Low40::new(time))
    }

    /// How long ago that was.
    #[inline]
    pub const fn age(self, now: u64) -> u64 {
        now.wrapping_sub(self.0.get()) & ((1 << 40) - 1)
    }

    /// The whole time, not after `now`.
    #[inline]
    pub const fn at(self, now: u64) -> u64 {
        now.saturating_sub(self.age(now))
    }
}

/// What `slot_time` and `slot_seq` of a side are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Nothing (or the setup, while it is pending).
    Free,
    /// A segment; `slot_seq` is its end.
    Segment,
    /// An ACK without data; `slot_seq` is its TSval.
    Ack,
}

/// What one side sent: the state of one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub payload: Low40,
    pub block_first: ShortTime,
    pub block_last: ShortTime,
    pub slot_time: ShortTime,
    pub packets: u32,
    pub next: u32,
    pub ack: u32,
    pub block_seq: u32,
    pub slot_seq: u32,
    pub flight_max: u32,
    pub rtt_min: u32,
    pub rtt_max: u32,
    pub dup_acks: u16,
    pub zero_windows: u16,
    pub small_windows: u16,
    pub copies: u16,
    pub window: u16,
    pub mss: u16,
    pub ip_id: u16,
    pub sack_hash: u16,
    pub flags: u16,
    pub block_packets: u16,
    pub block_max: u16,
    pub window_min: u16,
    pub window_max: u16,
    pub scale: u8,
    pub chain: u8,
    pub rtt_gate: u8,
    pub rtt_count: u8,
    /// Packets in the interval in progress.
    pub active: bool,
    pub slot: Slot,
}

/// rtt_min without samples.
pub(crate) const NO_RTT: u32 = 0xff_ffff;

/// How much a connection can have sent when a late copy of its SYN is still taken for that.
const MAX_REPEAT_DISTANCE: u32 = 1 << 16;

impl Side {
    pub const fn new() -> Self {
        Self {
            payload: Low40::new(0),
            block_first: ShortTime::new(0),
            block_last: ShortTime::new(0),
            slot_time: ShortTime::new(0),
            packets: 0,
            next: 0,
            ack: 0,
            block_seq: 0,
            slot_seq: 0,
            flight_max: 0,
            rtt_min: NO_RTT,
            rtt_max: 0,
            dup_acks: 0,
            zero_windows: 0,
            small_windows: 0,
            copies: 0,
            window: 0,
            mss: 0,
            ip_id: 0,
            sack_hash: 0,
            flags: side::IDLE,
            block_packets: 0,
            block_max: 0,
            window_min: u16::MAX,
            window_max: 0,
            scale: NO_SCALE,
            chain: 0,
            rtt_gate: 0,
            rtt_count: 0,
            active: false,
            slot: Slot::Free,
        }
    }

    #[inline]
    pub const fn is(&self, bits: u16) -> bool {
        self.flags & bits != 0
    }

    #[inline]
    pub const fn set(&mut self, bits: u16, on: bool) {
        if on {
            self.flags |= bits;
        } else {
            self.flags &= !bits;
        }
    }

    /// Whether `seq` of a SYN can be this side's initial sequence number (section 4.2).
    pub const fn repeats(&self, seq: u32) -> bool {
        let distance = self.next.wrapping_sub(seq.wrapping_add(1));
        self.is(side::HAS_NEXT) && distance <= MAX_REPEAT_DISTANCE
    }

    /// One RTT sample into the interval; `ns` is below 2³⁹.
    pub const fn sample(&mut self, ns: u64) {
        let units = ns >> 10;
        let value = if units >= NO_RTT as u64 {
            NO_RTT - 1
        } else {
            units as u32
        };
        if value < self.rtt_min {
            self.rtt_min = value;
        }
        if value > self.rtt_max {
            self.rtt_max = value;
        }
        self.rtt_count = self.rtt_count.saturating_add(1);
    }
}

/// Sender and receiver of a packet that side `s` sent.
#[inline]
pub(crate) fn pair(sides: &mut [Side; 2], s: usize) -> (&mut Side, &mut Side) {
    let [client, server] = sides;
    if s == 0 { (client, server) } else { (server, client) }
}

/// No visit is scheduled.
pub(crate) const NO_VISIT: u64 = u64::MAX;

/// The key of most flows: IPv4 without tags and tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainKey {
    pub low: [u8; 4],
    pub high: [u8; 4],
    pub low_port: u16,
    pub high_port: u16,
    pub protocol: u8,
}

/// IPv4 addresses are the last four bytes of `::ffff:a.b.c.d`.
pub(crate) const V4_PREFIX: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

#[inline]
fn v4(addr: &[u8; 16]) -> Option<[u8; 4]> {
    let [prefix @ .., a, b, c, d] = addr;
    (*prefix == V4_PREFIX).then_some([*a, *b, *c, *d])
}

fn mapped([a, b, c, d]: [u8; 4]) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}

impl PlainKey {
    /// The key without its tags, if it is one of IPv4.
    #[inline]
    pub fn untagged(key: &Key) -> Option<Self> {
        Some(Self {
            low: v4(&key.low.addr)?,
            high: v4(&key.high.addr)?,
            low_port: key.low.port,
            high_port: key.high.port,
            protocol: key.protocol,
        })
    }
}

/// A key in the memory that it needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StoredKey {
    Plain(PlainKey),
    Full(Box<Key>),
}

impl From<&Key> for StoredKey {
    fn from(key: &Key) -> Self {
        match PlainKey::untagged(key) {
            Some(plain) if key.vlans | key.overlay == 0 => Self::Plain(plain),
            _ => Self::Full(Box::new(*key)),
        }
    }
}

impl StoredKey {
    /// Of a context without a flow.
    pub const NONE: Self = Self::Plain(PlainKey {
        low: [0; 4],
        high: [0; 4],
        low_port: 0,
        high_port: 0,
        protocol: 0,
    });

    pub fn get(&self) -> Key {
        match self {
            Self::Plain(plain) => Key {
                low: End {
                    addr: mapped(plain.low),
                    port: plain.low_port,
                },
                high: End {
                    addr: mapped(plain.high),
                    port: plain.high_port,
                },
                protocol: plain.protocol,
                ..Key::default()
            },
            Self::Full(key) => **key,
        }
    }
}

/// Bits of [`Flow::bits`].
pub(crate) mod bit {
    pub const IN_USE: u8 = 1;
    pub const CLIENT_IS_LOW: u8 = 1 << 1;
    /// The interval in progress is a fine one.
    pub const FINE: u8 = 1 << 2;
    /// The next one will be.
    pub const TROUBLE: u8 = 1 << 3;
}

/// A flow of the table.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub key: StoredKey,
    pub generation: u32,
    pub last_seen: u64,
    /// Start of the interval in progress; 0: none.
    pub interval: u64,
    /// Number of the visit that is scheduled (software only: visits that can do nothing are skipped).
    pub visit: u64,
    /// A later visit that is in the calendar too; `NO_VISIT`: none.
    pub later: u64,
    pub state: State,
    /// Bits of [`bit`].
    pub bits: u8,
    /// Length of the interval in progress, units of 10 ms.
    pub span: u8,
    /// Client, server.
    pub sides: [Side; 2],
}

/// Bytes in flight from `sender`: its next less what `receiver` acknowledged.
#[inline]
pub(crate) const fn flight(sender: &Side, receiver: &Side) -> u32 {
    let bytes = sender.next.wrapping_sub(receiver.ack);
    if sender.is(side::HAS_NEXT) && receiver.is(side::HAS_ACK) && bytes < 1 << 31 {
        bytes
    } else {
        0
    }
}

impl Flow {
    /// A context that no flow was in.
    pub const fn unused() -> Self {
        Self {
            key: StoredKey::NONE,
            generation: 0,
            last_seen: 0,
            interval: 0,
            visit: NO_VISIT,
            later: NO_VISIT,
            state: State::Other,
            bits: 0,
            span: 0,
            sides: [Side::new(); 2],
        }
    }

    /// A new flow takes the context. Field by field: a whole flow would be made elsewhere and copied.
    pub fn begin(&mut self, key: StoredKey, state: State, client_is_low: bool, time: u64) {
        self.key = key;
        self.generation = self.generation.wrapping_add(1) & ((1 << width::GENERATION) - 1);
        self.last_seen = time;
        self.interval = 0;
        self.visit = NO_VISIT;
        self.later = NO_VISIT;
        self.state = state;
        self.bits = bit::IN_USE;
        self.set(bit::CLIENT_IS_LOW, client_is_low);
        self.sides = [const { Side::new() }; 2];
    }

    #[inline]
    pub const fn is(&self, bit: u8) -> bool {
        self.bits & bit != 0
    }

    #[inline]
    pub const fn set(&mut self, bit: u8, on: bool) {
        if on {
            self.bits |= bit;
        } else {
            self.bits &= !bit;
        }
    }

    /// The side that sent a packet: 0 client, 1 server.
    #[inline]
    pub const fn sender(&self, from_low: bool) -> usize {
        (from_low != self.is(bit::CLIENT_IS_LOW)) as usize
    }

    /// The handshake has begun and no SETUP was written.
    #[inline]
    pub const fn pending(&self) -> bool {
        matches!(self.state, State::Syn | State::SynAck)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_small() {
        assert!(size_of::<Flow>() <= 224, "{}", size_of::<Flow>());
    }

    #[test]
    fn times_come_back_whole() {
        let now = 1_700_000_000_000_000_123u64;
        for age in [0, 1, 255, 1 << 38, (1 << 40) - 1] {
            assert_eq!(ShortTime::new(now - age).at(now), now - age);
        }
        assert_eq!(ShortTime::new(5).at(7), 5);
    }

    #[test]
    fn a_key_is_stored_whole() {
        let end = |addr: [u8; 16], port| End { addr, port };
        let (v4, v6) = (mapped([10, 0, 0, 1]), [7; 16]);
        let plain = Key {
            low: end(v4, 1),
            high: end(mapped([10, 0, 0, 2]), 2),
            protocol: 6,
            ..Key::default()
        };
        let tagged = Key { vlans: 5, ..plain };
        let inner = Key { overlay: 5, ..plain };
        let wide = Key {
            high: end(v6, 2),
            ..plain
        };
        for key in [plain, tagged, inner, wide] {
            let stored = StoredKey::from(&key);
            assert_eq!(stored.get(), key);
            for other in [plain, tagged, inner, wide] {
                assert_eq!(stored == StoredKey::from(&other), key == other);
            }
        }
        assert!(matches!(StoredKey::from(&plain), StoredKey::Plain(_)));
    }
}
