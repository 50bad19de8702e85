//! How the connection was set up, whose time that took, and what was lost of it.

use weir_record::{ClientHow, Setup};

use super::Flow;
use crate::handshake::{Handshake, Known, explain_late_answer, is_answer_late, server_waited};
use crate::icmp::Errors;
use crate::setup::{FIRST_TIMEOUT, Outcome};
use crate::shares::TimeShares;
use crate::turns::Finished;
use crate::verdict::{Evidence, Place, Verdict, sign};

const MILLISECOND: u64 = 1_000_000;

impl Flow {
    /// The SETUP record, before the setup takes it in. Returns it with the SYNs and SYN-ACKs that were sent, copies left
    /// out.
    pub fn handshake(&mut self, setup: &Setup) -> Setup {
        let Some(trouble) = self.extras.trouble_mut() else {
            return *setup;
        };
        let [client, server] = &mut trouble.losses;
        trouble
            .handshake
            .settle(setup, [&mut client.counts, &mut server.counts])
    }

    /// The first round trip of data to the server: where it is as long as a timer, that of the handshake was none.
    pub fn confirm_answer(&mut self, side: usize, rtt: u64) {
        if side == 0 && self.setup.has_late_answer() && self.rtt.samples(0) == 0 {
            let wait = self.setup.response_ns().filter(|wait| rtt >= wait / 2);
            if let Some(wait) = wait {
                self.setup.set_late_answer(false);
                self.rtt.sample(0, wait);
            }
        }
    }

    /// The server's timer sent the SYN-ACK: one before it was lost.
    pub fn is_answer_late(&self) -> bool {
        is_answer_late(&self.setup, self.known().trips[0])
    }

    /// What a handshake is judged by.
    pub(super) fn known(&self) -> Known {
        Known {
            trips: [0, 1].map(|side| self.by_samples(side)),
            server_has_ids: self.newest_id(1) != 0,
        }
    }

    /// The server answered a SYN by an ACK of an older connection of these ports.
    pub fn met_older(&self) -> bool {
        let handshake = self.extras.trouble().map(|trouble| &trouble.handshake);
        let is_challenged = |(_, _, evidence): (_, _, Evidence)| evidence.has(sign::CHALLENGED);
        handshake.is_some_and(|handshake| handshake.verdicts(&self.setup, self.known()).any(is_challenged))
    }

    /// Whose time the handshake took.
    pub fn setup_time(&self) -> TimeShares {
        let setup = &self.setup;
        if setup.took_data() {
            // Beside it the server answered what came on the SYN: the time is that transaction's.
            return TimeShares::setup(0, Some(0), false);
        }
        let repeated = setup.syn_count > 1 || setup.syn_ack_count > 1;
        let waited = setup
            .response_ns()
            .filter(|_| setup.has_late_answer())
            .map_or(0, server_waited);
        // An answer that took longer than the first timer waited for a timer itself.
        let answer = setup.response_ns().map(|ns| ns.saturating_sub(waited));
        let answer = answer.filter(|ns| *ns < FIRST_TIMEOUT);
        let handshake = self.extras.trouble().map(|trouble| &trouble.handshake);
        let only = || Some(setup.end_ns()?.saturating_sub(setup.response_ns()?)).filter(|_| !repeated);
        let ack = handshake.and_then(Handshake::ack).or_else(only);
        let ack = ack.filter(|ns| *ns < FIRST_TIMEOUT);
        let trip = setup
            .path_rtt()
            .or_else(|| Some(answer?.saturating_add(ack.unwrap_or(0))));
        // A repeat behind which nothing was lost waited for something else.
        let lost = |(_, place, _)| !matches!(place, Place::Nowhere | Place::Capture);
        let lost = handshake.is_none_or(|handshake| handshake.verdicts(setup, self.known()).any(lost));
        setup.end_ns().map_or_else(TimeShares::default, |whole| {
            TimeShares::setup(whole, trip, repeated && lost || waited > 0)
        })
    }

    /// From the end of the handshake to the first transaction.
    pub(super) fn since_setup(&self, done: &Finished) -> Option<u64> {
        let whole = self
            .setup
            .end_ns()
            .filter(|_| done.index == 1 && self.how == ClientHow::Syn as u8)?;
        Some(done.request_time.saturating_sub(self.first.saturating_add(whole)))
    }

    /// What was lost of a handshake in which something came again, and how one failed, in words.
    pub fn explain_setup(&self) -> Option<String> {
        // Who says that it did not pass the SYN goes before all guesses.
        let refused = self.extras.errors().filter(|_| self.setup.is_unanswered());
        if let Some(refused) = refused.and_then(Errors::explain) {
            return Some(refused);
        }
        let trouble = self.extras.trouble();
        let again = trouble.and_then(|t| t.handshake.explain(&self.setup, self.known()));
        let late = || {
            let wait = self.setup.response_ns().filter(|_| self.is_answer_late());
            wait.map(explain_late_answer)
        };
        match (again.or_else(late), self.setup.failure()) {
            // What was lost of it says why nobody answered.
            (Some(lost), Some(failure)) if self.setup.outcome == Outcome::Refused => Some(format!("{lost} {failure}")),
            (Some(lost), _) => Some(lost),
            (None, failure) => failure.map(str::to_owned),
        }
    }

    /// How far the client's clock of timestamps is before the time of the packet, if it ticks once a ms, modulo 2^32: by its FIN or, where it was
    /// never answered, its last SYN but the first.
    pub fn client_clock(&self) -> Option<u32> {
        let syn = || self.extras.trouble()?.handshake.last_stamp();
        let (tsval, time) = self.turn.as_ref().and_then(|turn| turn.stamp()).or_else(syn)?;
        Some(tsval.wrapping_sub((time / MILLISECOND) as u32))
    }

    /// Verdicts on what came again of the handshake.
    pub fn handshake_verdicts(&self) -> impl Iterator<Item = Verdict> + '_ {
        let (connection, known) = (self.id, self.known());
        let verdicts = self
            .extras
            .trouble()
            .into_iter()
            .flat_map(move |t| t.handshake.verdicts(&self.setup, known));
        let answer = self.extras.trouble().and_then(|t| t.handshake.answered());
        let mut last_syn = self.first;
        let mut last_syn_ack = None;
        verdicts.map(move |(repeat, place, evidence)| {
            let lost_at = if repeat.from_server {
                let before_this = last_syn_ack.or(answer).unwrap_or(repeat.time);
                last_syn_ack = Some(repeat.time);
                before_this.min(repeat.time)
            } else {
                std::mem::replace(&mut last_syn, repeat.time)
            };
            Verdict {
                connection,
                from_server: repeat.from_server,
                time: repeat.time,
                lost_at,
                seq: repeat.seq,
                length: repeat.length,
                class: repeat.class,
                cause: Handshake::CAUSE,
                place,
                evidence,
                episode: 0,
                begins: false,
                handshake: true,
                smaller_arrived: 0,
                arrived: true,
                counted: 0,
            }
        })
    }
}
