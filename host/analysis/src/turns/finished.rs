//! A transaction that is over.

use crate::queues::Wait;

/// Kinds of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The handshake.
    Setup,
    /// Request and response.
    Data,
    /// The client closed in it.
    Close,
}

impl Kind {
    /// Name in the messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setup => "SETUP",
            Self::Data => "DATA",
            Self::Close => "CLOSE",
        }
    }
}

/// A finished transaction; times are TAI ns, durations ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Position in the connection: 0 is the setup.
    pub index: u32,
    /// What it is.
    pub kind: Kind,
    /// First packet of the request, or of the response where none of it was seen.
    pub request_time: u64,
    /// Payload of the request.
    pub request_bytes: u64,
    /// Payload of the response.
    pub response_bytes: u64,
    /// From the end of the previous transaction to the request.
    pub client: Option<u64>,
    /// First to last request packet.
    pub request: u64,
    /// Last request packet to first response packet.
    pub server: Option<u64>,
    /// The round trip in it, when a queue stood between the tap and the server.
    pub(crate) wait: Option<Wait>,
    /// First to last response packet.
    pub response: Option<u64>,
    /// First response packet; 0 = none.
    pub response_time: u64,
    /// Last request packet to last response packet; of a setup, first SYN to its end.
    pub end: Option<u64>,
    /// An answer was due and never came: from the last request packet until one side gave up, or the input ended.
    pub unanswered: Option<u64>,
    /// Of the last one: when one side gave up, or the input ended, TAI ns; 0: another came.
    pub(crate) gave_up: u64,
    /// Losses of either direction within it.
    pub losses: u32,
    /// Of a setup: payload of a full segment, where both sides told their MSS.
    pub segment: Option<u32>,
    /// Request and response data crossed.
    pub overlapped: bool,
    /// The capture missed the request, which came in so many ns: from the end of the previous transaction, if there was one, to the response.
    pub(crate) missed: Option<u64>,
    /// The round trip in the client's time before it, when a queue stood between the tap and the client.
    pub(crate) client_wait: Option<Wait>,
    /// How far the client's time before it may be from the truth, ns.
    pub(crate) client_uncertain: Option<u64>,
    /// Longest time within its request in which the client had nothing to send, µs; 0 where something crossed.
    pub paused_us: u32,
    /// Time of a receiver's window whose scale was inferred from what filled it, ns: another limit of that size looks the same.
    pub(crate) inferred: u64,
    /// Sequence numbers behind the request and the response.
    pub(crate) ends: [u32; 2],
    /// The request began while the response before it was on its way, and the response while the request was: neither waited for
    /// the other.
    pub(crate) amid: [bool; 2],
}

impl Finished {
    /// Its packets went on behind its blocks, ns: what filled a gap had been lost or late before the tap. `before`: those of the transaction
    /// before it; `end`: the response's, or of a request without one, its own.
    pub(crate) fn go_on(&mut self, before: u64, request: u64, end: u64) {
        self.client = self.client.map(|gap| gap.saturating_sub(before));
        match self.response {
            Some(response) => {
                self.request = self.request.saturating_add(request);
                self.server = self.server.map(|gap| gap.saturating_sub(request));
                self.response = Some(response.saturating_add(end));
                self.end = self.end.map(|whole| whole.saturating_add(end).saturating_sub(request));
            }
            None => self.request = self.request.saturating_add(end),
        }
    }

    /// Last packet of its response, TAI ns.
    pub(crate) fn response_end(&self) -> Option<u64> {
        Some(self.response_time.saturating_add(self.response?))
    }

    /// Its request was seen.
    pub(crate) const fn was_asked(&self) -> bool {
        self.request_bytes > 0 && self.missed.is_none()
    }

    /// Sequence number of its first byte, if its request was seen.
    pub fn request_start(&self) -> Option<u32> {
        self.was_asked()
            .then(|| self.ends[0].wrapping_sub(self.request_bytes as u32))
    }

    /// Sequence number of the first byte of its response, if it has one.
    pub(crate) const fn response_start(&self) -> u32 {
        self.ends[1].wrapping_sub(self.response_bytes as u32)
    }

    /// How far the server's time may be from the truth, ns; `u64::MAX`: all of it may be something else's.
    pub(crate) fn server_uncertain(&self) -> Option<u64> {
        // Whether it had to answer is not known.
        let uncertain = |wait: Wait| match wait.uncertain {
            u32::MAX => u64::MAX,
            ns => ns.into(),
        };
        self.unanswered.or_else(|| self.wait.map(uncertain))
    }
}

#[cfg(test)]
impl Finished {
    /// A request of one packet at `at` and its answer of one packet `whole` ns later.
    pub(crate) fn answered(at: u64, whole: u64) -> Self {
        Self {
            index: 1,
            kind: Kind::Data,
            request_time: at,
            request_bytes: 1,
            response_bytes: 1,
            client: None,
            request: 0,
            server: Some(whole),
            wait: None,
            response: Some(0),
            response_time: at + whole,
            end: Some(whole),
            unanswered: None,
            gave_up: 0,
            losses: 0,
            segment: None,
            overlapped: false,
            missed: None,
            client_wait: None,
            client_uncertain: None,
            paused_us: 0,
            inferred: 0,
            ends: [0; 2],
            amid: [false; 2],
        }
    }
}
