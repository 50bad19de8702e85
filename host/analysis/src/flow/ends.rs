//! FINs, RSTs and ICMP errors: how a flow ends.

use weir_record::{CloseCause, Event, what};

use super::{ENDS, FIN, FIRST_IS_RST, FIRST_IS_SERVERS, Flow, RST};
use crate::closing::{Kind as CloseKind, closing};
use crate::icmp::Errors;
use crate::resets::{self, Reset};
use crate::turns::ClientFin;

/// Which packet closed the connection first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstEnd {
    None,
    Fin(u8),
    Rst(u8),
}

impl Flow {
    pub fn client_fin(&self) -> ClientFin {
        // Most have none yet, and the rest of it is further away.
        if !self.sent_fin(0) {
            return ClientFin::default();
        }
        ClientFin {
            time: self.fin_time(0),
            ack: self.fin_ack,
            repeat: self.extras.trouble().map_or(0, |t| t.fin_repeat),
        }
    }

    /// The client's FIN came again after `time`: what is acknowledged with it may answer that (Karn, RFC 6298 3).
    pub fn fin_came_again(&self, side: usize, time: u64) -> bool {
        let repeat = self.extras.trouble().map_or(0, |t| t.fin_repeat);
        side & 1 == 0 && repeat > time
    }

    pub const fn sent_fin(&self, side: usize) -> bool {
        self.bits & FIN << (side & 1) != 0
    }

    /// The server has not ended its side, and nobody has reset the connection.
    pub(super) const fn may_answer(&self) -> bool {
        self.bits & (FIN << 1 | RST | RST << 1) == 0
    }

    /// When this side's first FIN passed; 0: it did not, or that is not known.
    pub const fn fin_time(&self, side: usize) -> u64 {
        match self.first_end() {
            FirstEnd::Fin(first) if first as usize == side & 1 => self.end_time,
            FirstEnd::Rst(_) if side & 1 == 1 && self.sent_fin(0) => 0,
            _ if self.sent_fin(side) => self.fin_time,
            _ => 0,
        }
    }

    pub const fn sent_rst(&self, side: usize) -> bool {
        self.bits & RST << (side & 1) != 0
    }

    /// FINs and RSTs that CLOSE knows of; their time is not known when no EVENT told it.
    pub fn close_bits(&mut self, bits: u16) {
        let ends = bits as u8 & ENDS;
        for (kind, side) in [(FIN, 0), (FIN, 1), (RST, 0), (RST, 1)] {
            if ends & kind << side != 0 {
                self.add_end(kind, side);
            }
        }
    }

    /// `side` sent a FIN or RST. Returns whether it is the first of all.
    fn add_end(&mut self, kind: u8, side: usize) -> bool {
        let is_first = self.bits & ENDS == 0;
        if is_first {
            self.bits |= if kind == RST { FIRST_IS_RST } else { 0 };
            self.bits |= if side == 1 { FIRST_IS_SERVERS } else { 0 };
        }
        self.bits |= kind << side;
        is_first
    }

    /// Which packet closed the connection first.
    pub const fn first_end(&self) -> FirstEnd {
        let side = (self.bits & FIRST_IS_SERVERS != 0) as u8;
        if self.bits & ENDS == 0 {
            FirstEnd::None
        } else if self.bits & FIRST_IS_RST != 0 {
            FirstEnd::Rst(side)
        } else {
            FirstEnd::Fin(side)
        }
    }

    /// FIN and RST of an EVENT. Their order is that of the records.
    pub fn ending(&mut self, side: usize, e: &Event, time: u64) {
        let s = side & 1;
        if e.what & what::FIN != 0 && e.what & what::WILD == 0 {
            self.ids[s] = e.ip_id;
            if let Some((turn, tsval)) = self.turn.as_mut().zip(e.sent()).filter(|_| s == 0) {
                turn.set_stamp(tsval, time);
            }
            let is_again = self.fin_time(s) != 0;
            if s == 0 && !is_again {
                self.fin_ack = e.ack;
            }
            if self.add_end(FIN, s) {
                self.end_time = time;
            } else if !is_again && (s == 0 || self.fin_time == 0) {
                self.fin_time = time;
            }
        }
        if e.what & what::RST != 0 && e.what & what::WILD == 0 && self.add_end(RST, s) {
            self.end_time = time;
        }
    }

    /// An ICMP error about a packet of `side`.
    #[cold]
    pub fn refused(&mut self, side: usize, is_v6: bool, e: &Event, time: u64) {
        let new = || Errors::new(side & 1, is_v6, e, time);
        self.extras.make_errors(new).add(side & 1, e, time);
    }

    /// A RST of a connection that was set up.
    pub fn reset(&mut self, side: usize, e: &Event, time: u64) {
        if self.extras.reset().is_some() || !self.setup.is_done() || e.what & what::WILD != 0 {
            return;
        }
        let turn = self.turn.as_ref().filter(|_| side & 1 == 1);
        let asked = turn.and_then(|turn| {
            let shaken = || Some(self.first.saturating_add(self.setup.end_ns()?));
            Some(resets::Asked {
                request: turn.waits_since()?,
                end: turn.request_end()?,
                before: turn.previous().or_else(shaken)?,
            })
        });
        let reset = Reset::new(side & 1, e, time, asked, self.by_samples(0));
        self.extras.set_reset(reset);
    }

    /// When one side gave up, or nobody had when the input ended, TAI ns. `told`: when that was.
    pub fn gave_up(&self, cause: Option<CloseCause>, told: u64) -> u64 {
        match closing(self, cause).0 {
            CloseKind::Open => told.max(self.last),
            _ if self.end_time > 0 => self.end_time,
            _ => self.last,
        }
    }
}
