//! Spans: times in a transfer that have a cause of their own, whatever limited the round trips around them.

use std::slice::Iter;

use super::MANY;
use super::charges::{Cause, Charges};

#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub from: u64,
    pub to: u64,
    pub cause: Cause,
    /// Of a full send buffer, and of the application.
    pub sure: Sure,
    /// Bytes of the flight before it; 0: not one flight.
    pub flight: u32,
}

impl Span {
    /// ns of it from `from` to `to`.
    pub fn within(&self, from: u64, to: u64) -> u64 {
        self.to.min(to).saturating_sub(self.from.max(from))
    }
}

/// How a pause is known to be that of a full send buffer, or of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sure {
    /// By what the trips around it look like.
    ByTrips,
    /// It is, if slow start turns out to have gone on.
    IfGrows,
    /// By the pauses themselves, whatever the trips around look like.
    Yes,
    /// Nothing that was written was left to send, whatever was sent again.
    Dry,
}

/// What was noted of the transfer in progress, in the order in which it was.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans(Vec<Span>);

impl Spans {
    pub fn iter(&self) -> Iter<'_, Span> {
        self.0.iter()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether one of the last two is of `cause` and ends at `time`.
    pub fn ends_with(&self, time: u64, cause: Cause) -> bool {
        let mut last = self.0.iter().rev().take(2);
        last.any(|span| span.cause == cause && span.to == time)
    }

    pub const fn are_many(&self) -> bool {
        self.0.len() >= MANY
    }

    pub fn push(&mut self, span: Span) {
        self.0.push(span);
    }

    pub const fn len(&self) -> usize {
        self.0.len()
    }

    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    pub fn pop(&mut self) {
        self.0.pop();
    }

    pub fn drop_first(&mut self) {
        self.0.remove(0);
    }

    /// Keeps those that end after `time`.
    pub fn keep_after(&mut self, time: u64) {
        self.0.retain(|s| s.to > time);
    }

    /// What had passed by `time` had been sent by `sent`: from then on no application paused.
    pub fn had_been_sent(&mut self, sent: u64, time: u64) {
        for span in self
            .0
            .iter_mut()
            .filter(|s| s.cause == Cause::Application && s.to <= time)
        {
            span.to = span.to.min(sent.max(span.from));
        }
    }

    /// Makes one of the last longer by a span that goes on with it. Whether there is such a one.
    pub fn extend(&mut self, span: &Span) -> bool {
        let &Span {
            from, to, cause, sure, ..
        } = span;
        // What is surely the application's stays apart from what a full window can outrank.
        let same = |s: &&mut Span| {
            s.cause == cause
                && (s.sure == sure || cause != Cause::Application && s.sure < Sure::Dry && sure < Sure::Dry)
        };
        if let Some(last) = self.0.iter_mut().rev().take(3).find(same)
            && from <= last.to
            && last.from <= to
        {
            last.from = last.from.min(from);
            last.to = last.to.max(to);
            last.sure = last.sure.max(sure);
            return true;
        }
        false
    }

    /// The last pause of a send buffer was surely that.
    pub fn prove_last(&mut self) {
        if let Some(last) = self.0.iter_mut().rev().find(|s| s.cause == Cause::SendBuffer) {
            last.sure = last.sure.max(Sure::Yes);
        }
    }

    /// Pauses that were the send buffer's if slow start went on were. Whether there are any.
    pub fn prove(&mut self) -> bool {
        let mut any = false;
        for span in self.0.iter_mut().filter(|s| s.sure == Sure::IfGrows) {
            span.sure = Sure::Yes;
            any = true;
        }
        any
    }

    /// ns of spans of these causes from `from` to `to`.
    pub fn within(&self, causes: &[Cause], from: u64, to: u64) -> u64 {
        self.iter()
            .filter(|span| causes.contains(&span.cause))
            .map(|span| span.within(from, to))
            .fold(0, u64::saturating_add)
    }

    /// The end of so many ns from `from` on, beside those that spans of the receiver's window cover.
    pub fn beside_window(&self, from: u64, ns: u64) -> u64 {
        let mut end = from.saturating_add(ns);
        if ns == 0 {
            return end;
        }
        for span in self.iter().filter(|s| s.cause == Cause::ReceiverWindow) {
            if span.from < end {
                end = end.saturating_add(span.to.saturating_sub(span.from.max(from)));
            }
        }
        end
    }

    /// Charge `from` to `to` to `cause`, but for what spans cover. `flat`: the trip was as all around it, so that pauses
    /// after full segments are those of a full send buffer.
    pub fn paint(&self, from: u64, to: u64, (cause, flat): (Cause, bool), by: &mut Charges) {
        if from >= to {
            return;
        }
        let outranked = |s: &Span| match s.cause {
            Cause::SendBuffer => !flat && (s.sure < Sure::Yes || cause == Cause::ReceiverWindow),
            // What looks like the end of a message is the end of the window.
            Cause::Application => s.sure < Sure::Yes && cause == Cause::ReceiverWindow,
            _ => false,
        };
        let covers = |s: &&Span| s.from < to && s.to > from && !outranked(s);
        if !self.iter().any(|s| covers(&s)) {
            by.add(cause, to - from);
            return;
        }
        let mut cuts: Vec<u64> = self
            .iter()
            .filter(covers)
            .flat_map(|s| [s.from.max(from), s.to.min(to)])
            .chain([from, to])
            .collect();
        cuts.sort_unstable();
        for piece in cuts.windows(2) {
            let (a, b) = (piece[0], piece[1]);
            let over = self
                .iter()
                .filter(covers)
                .filter(|s| s.from <= a && s.to >= b)
                .max_by_key(|s| rank(s))
                .map(|s| s.cause);
            by.add(over.unwrap_or(cause), b - a);
        }
    }
}

/// What outranks what when spans overlap.
const fn rank(span: &Span) -> u8 {
    match span.cause {
        Cause::SendBuffer if matches!(span.sure, Sure::Dry) => 6,
        Cause::ZeroWindow => 9,
        Cause::SmallWindow => 8,
        Cause::Recovery => 5,
        Cause::Nagle | Cause::CongestionWindow => 4,
        Cause::ReceiverWindow => 7,
        Cause::Application => 3,
        Cause::SendBuffer => 2,
        _ => 1,
    }
}

pub(super) const fn closed_cause(zero: bool) -> Cause {
    if zero { Cause::ZeroWindow } else { Cause::SmallWindow }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_at_the_edge_is_beside_the_pauses_there() {
        let span = |from, to, cause| Span {
            from,
            to,
            cause,
            sure: Sure::Yes,
            flight: 0,
        };
        let spans = Spans(vec![
            span(10, 30, Cause::ReceiverWindow),
            span(35, 50, Cause::Application),
            span(60, 100, Cause::ReceiverWindow),
        ]);
        assert_eq!(spans.beside_window(0, 0), 0);
        assert_eq!(spans.beside_window(0, 10), 10);
        assert_eq!(spans.beside_window(0, 40), 60);
        assert_eq!(spans.beside_window(0, 50), 110);
        assert_eq!(spans.beside_window(20, 30), 60);
    }
}
