//! Messages with the card's firmware (`docs/src/card-protocol.md`).
//!
//! A request is sent whole and waited for: its reply has its opcode and sequence. What comes unasked is kept, up to a
//! limit, and words that belong to no good message are skipped and counted. A request whose reply does not come, or
//! that came damaged, is not repeated here: the caller knows whether that does harm.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::access::Registers;
use crate::crc::crc32;
use crate::error::CardError;
use crate::protocol::{MAX_PAYLOAD_WORDS, MESSAGE_MAGIC, Opcode, PROTOCOL_VERSION, Status, UNSOLICITED};
use crate::registers::mailbox::{
    TO_CARD_PUSH, TO_CARD_STATUS, TO_CARD_STATUS_READY, TO_HOST_POP, TO_HOST_STATUS, TO_HOST_STATUS_VALID,
};

/// Words of a message beside its payload.
const FRAME_WORDS: usize = 3;
/// Unsolicited messages that are kept.
const MOST_NOTICES: usize = 256;

/// How long to wait, and how often to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// For a reply.
    pub reply: Duration,
    /// For the firmware to boot.
    pub boot: Duration,
    /// Between two looks at the mailbox.
    pub poll: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            reply: Duration::from_secs(2),
            boot: Duration::from_secs(10),
            poll: Duration::from_micros(200),
        }
    }
}

/// A message that nobody asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it is; `None`: an opcode that this program does not know.
    pub opcode: Option<Opcode>,
    /// Its number.
    pub sequence: u16,
    /// Its payload.
    pub payload: Vec<u32>,
}

/// The host's end of the mailbox.
#[derive(Debug)]
pub struct Mailbox<R> {
    registers: R,
    timing: Timing,
    sequence: u16,
    words: VecDeque<u32>,
    notices: VecDeque<Message>,
    garbage: u64,
    lost_notices: u64,
    stale: u64,
}

/// A whole message with a good CRC.
struct Received {
    opcode: u32,
    sequence: u16,
    status: u16,
    payload: Vec<u32>,
}

impl<R: Registers> Mailbox<R> {
    /// The mailbox of a card.
    pub fn new(registers: R, timing: Timing) -> Self {
        Self {
            registers,
            timing,
            sequence: 0,
            words: VecDeque::new(),
            notices: VecDeque::new(),
            garbage: 0,
            lost_notices: 0,
            stale: 0,
        }
    }

    /// Send a request and wait for its reply; the payload of the reply.
    ///
    /// # Errors
    /// The message did not get through, no reply came in time, or the card refused.
    pub fn request(&mut self, opcode: Opcode, payload: &[u32]) -> Result<Vec<u32>, CardError> {
        let patience = self.timing.reply;
        self.sequence = self.sequence.wrapping_add(1);
        let message = encode(opcode as u32, self.sequence, 0, payload).ok_or(CardError::TooLong(payload.len()))?;
        self.send(&message, patience)?;
        let deadline = Instant::now() + patience;
        loop {
            while let Some(received) = self.receive()? {
                if received.opcode & UNSOLICITED != 0 {
                    self.keep(received);
                } else if self.answers(&received, opcode) {
                    return match Status::from_u32(received.status.into()) {
                        Some(Status::Ok) => Ok(received.payload),
                        status => Err(CardError::Refused {
                            opcode,
                            status,
                            detail: received.payload.first().copied().unwrap_or(0),
                        }),
                    };
                } else {
                    self.stale += 1;
                }
            }
            if Instant::now() >= deadline {
                return Err(CardError::NoAnswer(opcode, patience));
            }
            std::thread::sleep(self.timing.poll);
        }
    }

    /// A damaged request comes back with the sequence that it had on arrival, and only one request is on its way.
    fn answers(&self, reply: &Received, opcode: Opcode) -> bool {
        reply.opcode == opcode as u32
            && (reply.sequence == self.sequence || u32::from(reply.status) == Status::BadCrc as u32)
    }

    /// Unsolicited messages since the last call, oldest first.
    ///
    /// # Errors
    /// The mailbox cannot be read.
    pub fn notices(&mut self) -> Result<Vec<Message>, CardError> {
        while let Some(received) = self.receive()? {
            if received.opcode & UNSOLICITED != 0 {
                self.keep(received);
            } else {
                self.stale += 1;
            }
        }
        Ok(self.notices.drain(..).collect())
    }

    /// (words that belonged to no message, replies that nobody waited for any more, unsolicited messages thrown away).
    pub fn counters(&self) -> (u64, u64, u64) {
        (self.garbage, self.stale, self.lost_notices)
    }

    fn keep(&mut self, received: Received) {
        if self.notices.len() == MOST_NOTICES {
            self.notices.pop_front();
            self.lost_notices += 1;
        }
        self.notices.push_back(Message {
            opcode: Opcode::from_u32(received.opcode),
            sequence: received.sequence,
            payload: received.payload,
        });
    }

    fn send(&mut self, message: &[u32], patience: Duration) -> Result<(), CardError> {
        let deadline = Instant::now() + patience;
        for &word in message {
            while TO_CARD_STATUS_READY.get(self.registers.read32(TO_CARD_STATUS)?) == 0 {
                if Instant::now() >= deadline {
                    return Err(CardError::MailboxFull(patience));
                }
                // Room may come only when the card is rid of what it has for us.
                self.pump()?;
                std::thread::sleep(self.timing.poll);
            }
            self.registers.write32(TO_CARD_PUSH, word)?;
        }
        Ok(())
    }

    fn pump(&mut self) -> Result<(), CardError> {
        while self.words.len() < 4 * (MAX_PAYLOAD_WORDS as usize + FRAME_WORDS)
            && TO_HOST_STATUS_VALID.get(self.registers.read32(TO_HOST_STATUS)?) == 1
        {
            let word = self.registers.read32(TO_HOST_POP)?;
            self.words.push_back(word);
        }
        Ok(())
    }

    /// The next whole message, if it is there.
    fn receive(&mut self) -> Result<Option<Received>, CardError> {
        self.pump()?;
        loop {
            while self.words.front().is_some_and(|&word| !is_header(word)) {
                self.words.pop_front();
                self.garbage += 1;
            }
            let Some(&head) = self.words.front() else {
                return Ok(None);
            };
            let length = (head & 0xff) as usize + FRAME_WORDS;
            if self.words.len() < length {
                return Ok(None);
            }
            let message: Vec<u32> = self.words.iter().take(length).copied().collect();
            if let Some(received) = decode(&message) {
                self.words.drain(..length);
                return Ok(Some(received));
            }
            // It only looked like a message, or was damaged: the next may begin within it.
            self.words.pop_front();
            self.garbage += 1;
        }
    }
}

fn is_header(word: u32) -> bool {
    word >> 24 == MESSAGE_MAGIC && word >> 16 & 0xff == PROTOCOL_VERSION && word & 0xff <= MAX_PAYLOAD_WORDS
}

/// The words of a message; `None` when the payload is too long.
pub fn encode(opcode: u32, sequence: u16, status: u16, payload: &[u32]) -> Option<Vec<u32>> {
    let length = u32::try_from(payload.len())
        .ok()
        .filter(|&words| words <= MAX_PAYLOAD_WORDS)?;
    let mut words = vec![
        MESSAGE_MAGIC << 24 | PROTOCOL_VERSION << 16 | (opcode & 0xff) << 8 | length,
        u32::from(sequence) << 16 | u32::from(status),
    ];
    words.extend_from_slice(payload);
    words.push(crc32(&words));
    Some(words)
}

fn decode(message: &[u32]) -> Option<Received> {
    let (&crc, rest) = message.split_last()?;
    let (&[head, second], payload) = rest.split_first_chunk::<2>()?;
    (crc == crc32(rest)).then(|| Received {
        opcode: head >> 8 & 0xff,
        sequence: (second >> 16) as u16,
        status: second as u16,
        payload: payload.to_vec(),
    })
}
