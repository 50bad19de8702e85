//! What became of one segment, on what evidence (`docs/src/losses.md`).

use weir_messages::v1;
use weir_record::FlowId;

use crate::message::timestamp;

/// What a segment was that came twice, late or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The same packet again: made by the network or by the capture.
    Copy,
    /// A byte to ask for the receiver's window.
    WindowProbe,
    /// A sign of life.
    KeepAlive,
    /// In order on the wire, not in the capture.
    CaptureOrder,
    /// Overtaken by later ones.
    Reordered,
    /// Sent again.
    Retransmission,
    /// Never seen, but acknowledged: range of bytes, not one segment.
    Missed,
    /// Never seen and never acknowledged: range of bytes.
    Lost,
}

/// Why it was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Duplicate ACKs or SACK asked for it.
    Fast,
    /// The retransmission timer.
    Timeout,
    /// The probe timer of RFC 8985 7.
    TailProbe,
    /// Not known; or not a retransmission.
    Unknown,
}

impl Cause {
    /// The sender had waited for an ACK.
    pub(crate) const fn is_timer(self) -> bool {
        matches!(self, Self::Timeout | Self::TailProbe)
    }
}

/// Where the packet was lost whose loss this segment shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Data, between its sender and the tap.
    BeforeTap,
    /// Data, between the tap and its receiver.
    BehindTap,
    /// The ACK, between the data's receiver and the tap: the repeat was not needed.
    AckBeforeTap,
    /// The ACK, between the tap and the data's sender: the repeat was not needed.
    AckBehindTap,
    /// By the capture alone; the network delivered it.
    Capture,
    /// Nowhere: nothing was lost.
    Nowhere,
    /// Not known.
    Unknown,
}

impl Class {
    /// Name in the messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "COPY",
            Self::WindowProbe => "WINDOW_PROBE",
            Self::KeepAlive => "KEEP_ALIVE",
            Self::CaptureOrder => "CAPTURE_ORDER",
            Self::Reordered => "REORDERED",
            Self::Retransmission => "RETRANSMISSION",
            Self::Missed => "MISSED",
            Self::Lost => "LOST",
        }
    }
}

impl Cause {
    /// Name in the messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "FAST",
            Self::Timeout => "TIMEOUT",
            Self::TailProbe => "TAIL_PROBE",
            Self::Unknown => "UNKNOWN",
        }
    }
}

impl Place {
    /// Name in the messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeTap => "BEFORE_TAP",
            Self::BehindTap => "BEHIND_TAP",
            Self::AckBeforeTap => "ACK_BEFORE_TAP",
            Self::AckBehindTap => "ACK_BEHIND_TAP",
            Self::Capture => "CAPTURE",
            Self::Nowhere => "NOWHERE",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// The data was there: sending it again was not needed.
    pub const fn is_spurious(self) -> bool {
        matches!(
            self,
            Self::AckBeforeTap | Self::AckBehindTap | Self::Nowhere | Self::Capture
        )
    }
}

/// One sign that a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sign {
    bit: u64,
    /// Name in the messages.
    pub name: &'static str,
    /// How often a verdict that rests on this sign alone is right, roughly.
    pub confidence: f32,
}

macro_rules! signs {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $confidence:literal;)*) => {
        /// The signs (`docs/src/losses.md` lists them with their sources).
        pub mod sign {
            use super::Sign;
            $($(#[$doc])* pub const $name: Sign = Sign { bit: 1 << $bit, name: stringify!($name), confidence: $confidence };)*
            /// All of them.
            pub const ALL: &[Sign] = &[$($name),*];
        }
    };
}

signs! {
    /// The engine's COPY, or the IP id of an open verdict on the same bytes, or one of the time when they were new.
    SAME_IP_ID = 0, 0.99;
    /// Nothing asked for it and no timer can have run.
    NOBODY_ASKED = 1, 0.8;
    /// Its bytes had not been seen.
    UNSEEN = 2, 0.9;
    /// Its bytes had been seen.
    SEEN = 3, 0.5;
    /// Its TSval is older than that of what overtook it.
    OLDER_TSVAL = 4, 0.99;
    /// Its TSval is newer than that of what overtook it.
    NEWER_TSVAL = 5, 0.99;
    /// It came sooner than any answer of the receiver could have made the sender send it.
    SOON = 6, 0.9;
    /// The ACK of all its bytes had passed the tap.
    ACKED = 7, 0.95;
    /// A SACK block covered it.
    SACKED = 8, 0.97;
    /// A D-SACK named it afterwards.
    DSACKED = 9, 0.99;
    /// Duplicate ACKs asked for it.
    DUPLICATE_ACKS = 10, 0.9;
    /// SACK blocks left it as a hole.
    SACK_HOLE = 11, 0.99;
    /// RTO* or more had passed since the data before it.
    TIMER = 12, 0.7;
    /// It follows another retransmission within a round trip.
    BATCH = 13, 0.7;
    /// It is the last segment, sent again after a probe timeout.
    TAIL = 14, 0.6;
    /// Acknowledged afterwards without a D-SACK by a receiver that uses SACK.
    NO_DSACK = 15, 0.9;
    /// The first copy came after it.
    ORIGINAL_CAME = 16, 0.99;
    /// It was acknowledged sooner than an answer to it can come.
    ACKED_TOO_SOON = 17, 0.9;
    /// The receiver acknowledged bytes that were never seen.
    ACKED_UNSEEN = 18, 0.95;
    /// The sender must have had the ACK if it was not lost.
    ACK_WAS_DUE = 19, 0.8;
    /// The ACK had not passed the tap.
    NO_ACK = 20, 0.8;
    /// A SACK block covered it for the first time when an answer to it was due.
    SACKED_AFTER = 22, 0.95;
    /// The ACK that answered a retransmission stops where it begins.
    PARTIAL_ACK = 23, 0.9;
    /// The options of the SYN-ACK tell which SYN the server had.
    SYN_OPTIONS = 24, 0.95;
    /// The server sent two SYN-ACKs for one SYN: it had an earlier one.
    SECOND_ANSWER = 25, 0.9;
    /// The server reset the connection long after the last SYN: it had held it half open.
    LATE_RESET = 26, 0.85;
    /// Neither filled nor acknowledged when the flow ended.
    OPEN_GAP = 21, 0.5;
    /// Its IP id is a little lower than that of what overtook it: the sender made it before.
    OLDER_ID = 27, 0.97;
    /// Its IP id is a little higher than that of what overtook it.
    NEWER_ID = 28, 0.97;
    /// The receiver had answered with a RST, which passed the tap.
    RESET = 29, 0.9;
    /// IP ids were used that the tap did not see: of its sender before it, or of the receiver's answer.
    IDS_SKIPPED = 30, 0.9;
    /// The receiver used no IP id that the tap did not see: it had sent no answer before.
    NO_ID_MISSING = 31, 0.95;
    /// An ACK takes in what was sent behind the first copy and did not come again, of which nothing had told before.
    REST_ARRIVED = 35, 0.9;
    /// It is one of several that a timer sent, behind the last packet of the receiver: from then on nothing was heard of it.
    SILENCE = 33, 0.9;
    /// The server acknowledged an older connection of these ports (RFC 9293 3.5.1, RFC 5961 4.2).
    CHALLENGED = 32, 0.95;
    /// The server had taken the SYN without the data that came on it (RFC 7413 4.2).
    SYN_DATA = 34, 0.95;
    /// The ACK that takes it in echoes a TSval from before it was sent: it answers a first copy (RFC 3522).
    OLDER_ECHO = 36, 0.99;
    /// The SYN-ACK echoes the TSval of a SYN: the server had that one.
    SYN_ECHO = 37, 0.95;
    /// It was queued when the segment before it passed (no PSH), all of that was acknowledged, and nothing held it back.
    QUEUED = 39, 0.9;
    /// As many duplicate ACKs came as segments above the loss had passed, but for those that were found lost.
    ALL_ANSWERED = 38, 0.9;
    /// The round trip to the receiver that was timed last before it stood above the smallest: packets waited in a queue behind the tap. It tells
    /// why it may have been lost, not whether.
    QUEUE_STOOD = 40, 0.0;
    /// An ICMP error had said that its first copy was too large for the next link (RFC 1191 4, RFC 8201 4).
    TOO_LARGE = 41, 0.95;
}

/// A set of signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence(u64);

impl Evidence {
    /// No signs.
    pub const NONE: Self = Self(0);

    /// With another sign.
    #[must_use]
    pub const fn with(self, sign: Sign) -> Self {
        Self(self.0 | sign.bit)
    }

    /// With another sign when `condition` holds.
    #[must_use]
    pub const fn with_if(self, sign: Sign, condition: bool) -> Self {
        if condition { self.with(sign) } else { self }
    }

    /// Without a sign.
    #[must_use]
    pub const fn without(self, sign: Sign) -> Self {
        Self(self.0 & !sign.bit)
    }

    /// Whether the sign is in it.
    pub const fn has(self, sign: Sign) -> bool {
        self.0 & sign.bit != 0
    }

    /// The signs in it.
    pub fn signs(self) -> impl Iterator<Item = Sign> {
        sign::ALL.iter().copied().filter(move |sign| self.has(*sign))
    }
}

/// What became of one segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Its connection.
    pub connection: FlowId,
    /// The server sent it.
    pub from_server: bool,
    /// When it passed the tap (TAI ns); for bytes never seen, when they were missed first.
    pub time: u64,
    /// When the packet passed the tap, or should have, whose loss it shows (TAI ns): the first copy's place in the
    /// stream where the tap missed it, the last packet before a timer ran out, a round trip before what duplicate ACKs
    /// asked for; else `time`.
    pub lost_at: u64,
    /// Its first sequence number, as on the wire.
    pub seq: u32,
    /// Its payload; for bytes never seen, how many.
    pub length: u32,
    /// What it was.
    pub class: Class,
    /// Why it was sent again.
    pub cause: Cause,
    /// Where a packet was lost.
    pub place: Place,
    /// The signs.
    pub evidence: Evidence,
    /// Retransmissions of one recovery have the same number; from 1, per direction. 0: none.
    pub episode: u32,
    /// The first of its episode.
    pub begins: bool,
    /// A SYN or SYN-ACK.
    pub handshake: bool,
    /// Of what was sent behind it and had arrived (SACK, RFC 2018) when it was sent again: bytes of the largest piece, if that is smaller than
    /// it (of bytes never seen, smaller than a segment of them); else 0.
    pub smaller_arrived: u32,
    /// The receiver has acknowledged all of it, as far as is known.
    pub arrived: bool,
    /// Data segments that count as lost where `place` says (of [`Class::Lost`] it is not known where), or as missed by the capture
    /// ([`Place::Capture`]): the counters of its connection are the sums of them (`docs/src/losses.md`). 0: none.
    pub counted: u32,
}

impl Verdict {
    /// That of the strongest sign; 0 where the place is not known.
    pub fn confidence(&self) -> f32 {
        let is_open = self.place == Place::Unknown && matches!(self.class, Class::Retransmission | Class::Lost);
        if is_open {
            return 0.0;
        }
        self.evidence.signs().map(|sign| sign.confidence).fold(0.0, f32::max)
    }

    /// Data that was sent once and is late in the capture: blocks, which are of what is in sequence, do not count it as a
    /// segment.
    pub const fn is_late(&self) -> bool {
        matches!(self.class, Class::Reordered | Class::CaptureOrder) && self.length > 0 && !self.handshake
    }

    /// A data segment that was sent again: SYNs, and FINs without data, are none.
    pub fn is_data_again(&self) -> bool {
        self.class == Class::Retransmission && self.length > 0 && !self.handshake
    }

    /// As a message.
    pub fn message(&self) -> v1::Segment {
        v1::Segment {
            connection_id: self.connection.0,
            from_server: self.from_server,
            time: Some(timestamp(self.time)),
            seq: self.seq,
            length: self.length,
            class: self.class.name().to_owned(),
            cause: self.cause.name().to_owned(),
            place: self.place.name().to_owned(),
            evidence: self.evidence.signs().map(|sign| sign.name.to_owned()).collect(),
            // To three digits: the table has two.
            confidence: (f64::from(self.confidence()) * 1e3).round() / 1e3,
            episode: self.episode,
        }
    }
}
