//! What a segment was, what Weir can say of it, and which losses are not judged.

use weir_analysis::{Class, Place, Verdict};

/// What a segment at the tap truly was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Truth {
    /// Sent for the first time and in order.
    New,
    /// Sent for the first time and overtaken.
    Reordered,
    /// Copied by the network before the tap.
    Copied,
    /// Copied by the capture.
    Mirrored,
    /// Sent again although nothing was lost.
    Spurious,
    /// The same without SACK, so that no D-SACK can tell.
    SpuriousBlind,
    /// The same of a FIN without data, or to a host that had sent and got a FIN: hosts that have closed do not tell of what
    /// came twice.
    SpuriousFin,
    /// Sent again; lost between its sender and the tap.
    LostBefore,
    /// Sent again; lost between the tap and its receiver, or thrown away by that for its old timestamp.
    LostBehind,
    /// A SYN sent again; all before it were lost between the tap and the server. It looks like [`Self::SpuriousSyn`].
    LostSyn,
    /// The same where the SYN-ACK tells by the timestamp that it echoes.
    EchoedSyn,
    /// A SYN sent again although the server had one; no SYN-ACK had passed the tap.
    SpuriousSyn,
    /// Missed by the capture alone.
    NotCaptured,
}

/// What Weir said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// Nothing.
    Nothing,
    /// Reordered, by the network or in the capture.
    Reordered,
    /// A copy.
    Copy,
    /// A spurious retransmission.
    Spurious,
    /// A retransmission; lost before the tap.
    LostBefore,
    /// A retransmission; lost behind the tap.
    LostBehind,
    /// A retransmission or a loss without a place.
    Unknown,
    /// Missed by the capture.
    Missed,
    /// A window probe or keep-alive.
    Probe,
}

/// Why a loss is excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Its bytes never passed the tap again.
    NeverAgain,
    /// Lost before the tap, and nothing behind it passed the tap before its bytes did: there is no gap. Nor is its IP id the
    /// only sign, before what came instead.
    TailBeforeTap,
    /// Lost before the tap, when its bytes had passed the tap before: there is no trace of it.
    SeenBefore,
    /// Lost behind the tap, when its receiver had its bytes: nothing shows it.
    Arrived,
    /// The capture missed the segment itself or what was sent in its place.
    NotCaptured,
    /// A SYN that nothing answered, lost behind the tap: its SYN-ACK may have been lost before it. What is said of the next SYN
    /// is judged as [`Truth::LostSyn`].
    UnansweredSyn,
    /// A SYN lost behind the tap, of which the server had one before: its timer sends the SYN-ACK when the SYN's would.
    NeedlessSyn,
    /// A SYN-ACK lost behind the tap shortly before the server sent another one for a reason of its own.
    SynAckAgain,
}

impl Rule {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::NeverAgain => "never sent again",
            Self::TailBeforeTap => "last of its burst, before the tap",
            Self::SeenBefore => "a repeat before the tap of what the tap had seen",
            Self::Arrived => "a repeat behind the tap of what had arrived",
            Self::NotCaptured => "missed by the capture as well",
            Self::UnansweredSyn => "a SYN without an answer, behind the tap",
            Self::NeedlessSyn => "a SYN behind the tap of which the server had one",
            Self::SynAckAgain => "a SYN-ACK behind the tap, sent again before its timer",
        }
    }
}

impl Truth {
    pub(super) const ALL: [Self; 13] = [
        Self::New,
        Self::Reordered,
        Self::Copied,
        Self::Mirrored,
        Self::Spurious,
        Self::SpuriousBlind,
        Self::SpuriousFin,
        Self::LostBefore,
        Self::LostBehind,
        Self::LostSyn,
        Self::EchoedSyn,
        Self::SpuriousSyn,
        Self::NotCaptured,
    ];

    pub(super) const fn is(self, answer: Answer) -> bool {
        matches!(
            (self, answer),
            (Self::New, Answer::Nothing | Answer::Probe)
                | (Self::Reordered, Answer::Reordered)
                | (Self::Copied | Self::Mirrored, Answer::Copy)
                | (Self::Spurious, Answer::Spurious)
                | (
                    Self::SpuriousBlind | Self::SpuriousFin | Self::SpuriousSyn,
                    Answer::Spurious | Answer::Unknown
                )
                | (Self::LostSyn, Answer::LostBehind | Answer::Unknown)
                | (Self::LostBefore, Answer::LostBefore)
                | (Self::LostBehind | Self::EchoedSyn, Answer::LostBehind)
                | (Self::NotCaptured, Answer::Missed | Answer::Nothing)
        )
    }
}

impl Answer {
    pub(super) const ALL: [Self; 9] = [
        Self::Nothing,
        Self::Reordered,
        Self::Copy,
        Self::Spurious,
        Self::LostBefore,
        Self::LostBehind,
        Self::Unknown,
        Self::Missed,
        Self::Probe,
    ];
}

impl From<&Verdict> for Answer {
    fn from(verdict: &Verdict) -> Self {
        match (verdict.class, verdict.place) {
            (Class::Reordered | Class::CaptureOrder, _) => Self::Reordered,
            (Class::Copy, _) => Self::Copy,
            (Class::WindowProbe | Class::KeepAlive, _) => Self::Probe,
            (Class::Missed, _) => Self::Missed,
            (Class::Lost, _) | (Class::Retransmission, Place::Unknown) => Self::Unknown,
            (Class::Retransmission, Place::BeforeTap) => Self::LostBefore,
            (Class::Retransmission, Place::BehindTap) => Self::LostBehind,
            (Class::Retransmission, _) => Self::Spurious,
        }
    }
}
