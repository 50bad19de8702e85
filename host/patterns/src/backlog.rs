//! Facts wait for each other, and then are looked at together: what finds facts and what looks at them would each push
//! the other's code out of the processor's cache, and what is known of their connections comes into it all at once.
//!
//! Memory: 256 facts of at most 336 bytes.

use std::ops::Range;

use weir_analysis::{self as analysis, Acknowledged, DataBlock, Ended, Ends, Finished, Hops, Opened, Verdict};
use weir_record::FlowId;

use crate::routes::RouteKey;
use crate::view::View;

/// Facts that wait.
const TOGETHER: usize = 256;
/// Facts whose connections are looked up together: what is known of them fits into the first level of the cache.
const NEAR: usize = 32;

/// A transaction that is over.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    pub id: FlowId,
    pub ends: Ends,
    pub facts: &'a Finished,
    pub request: Request<&'a str>,
}

/// A request, as signatures describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Request<Text> {
    /// One block of so many bytes.
    Single(u64),
    /// Something else.
    Other(Text),
}

/// A transaction that waits.
#[derive(Debug)]
struct Waiting {
    id: FlowId,
    ends: Ends,
    facts: Finished,
    /// With the place of the text.
    request: Request<Range<usize>>,
}

/// A fact, the next of its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub kind: Kind,
    /// Its connection.
    pub id: FlowId,
    /// Where its route is.
    pub key: RouteKey,
}

/// What a fact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Opened,
    Connection,
    Transaction,
    Hops,
    Block,
    Acknowledged,
    Again,
    Segment,
}

/// Facts in their order, each kind in a list of its own.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    order: Vec<Next>,
    opened: Vec<Opened>,
    connections: Vec<Ended>,
    transactions: Vec<Waiting>,
    hops: Vec<Hops>,
    blocks: Vec<DataBlock>,
    acks: Vec<Acknowledged>,
    again: Vec<(FlowId, bool)>,
    segments: Vec<(Verdict, Ends)>,
    /// Texts of requests.
    texts: String,
}

impl Backlog {
    pub const fn is_full(&self) -> bool {
        self.order.len() >= TOGETHER
    }

    fn next(&mut self, kind: Kind, id: FlowId, ends: &Ends) {
        let key = RouteKey::of(ends);
        self.order.push(Next { kind, id, key });
    }

    pub fn opened(&mut self, opened: &Opened) {
        self.next(Kind::Opened, opened.id, &opened.ends);
        self.opened.push(*opened);
    }

    pub fn connection(&mut self, connection: Ended) {
        self.next(Kind::Connection, connection.id, &connection.ends);
        self.connections.push(connection);
    }

    pub fn transaction(&mut self, transaction: &analysis::Transaction<'_>) {
        self.next(Kind::Transaction, transaction.id(), &transaction.ends());
        let request = transaction.single_request().map_or_else(
            || {
                let start = self.texts.len();
                transaction.write_request(&mut self.texts);
                Request::Other(start..self.texts.len())
            },
            Request::Single,
        );
        self.transactions.push(Waiting {
            id: transaction.id(),
            ends: transaction.ends(),
            facts: transaction.facts().clone(),
            request,
        });
    }

    pub fn hops(&mut self, hops: &Hops) {
        self.next(Kind::Hops, hops.id, &hops.ends);
        self.hops.push(*hops);
    }

    pub fn block(&mut self, block: &DataBlock) {
        self.next(Kind::Block, block.id, &block.ends);
        self.blocks.push(*block);
    }

    pub fn acknowledged(&mut self, ack: &Acknowledged) {
        self.next(Kind::Acknowledged, ack.id, &ack.ends);
        self.acks.push(*ack);
    }

    pub fn again(&mut self, id: FlowId, from_server: bool) {
        self.order.push(Next {
            kind: Kind::Again,
            id,
            key: RouteKey::default(),
        });
        self.again.push((id, from_server));
    }

    pub fn segment(&mut self, verdict: &Verdict, ends: &Ends) {
        self.next(Kind::Segment, verdict.connection, ends);
        self.segments.push((*verdict, *ends));
    }

    /// Show them to a view.
    pub fn show(&self, view: &mut View) {
        let Self {
            order,
            opened,
            connections,
            transactions,
            hops,
            blocks,
            acks,
            again,
            segments,
            texts,
        } = self;
        let (mut opened, mut connections, mut transactions) = (opened.iter(), connections.iter(), transactions.iter());
        let (mut hops, mut blocks, mut acks) = (hops.iter(), blocks.iter(), acks.iter());
        let (mut again, mut segments) = (again.iter(), segments.iter());
        for near in order.chunks(NEAR) {
            view.warm(near);
            for Next { kind, key, .. } in near {
                match kind {
                    Kind::Opened => opened.next().into_iter().for_each(|opened| view.opened(opened, *key)),
                    Kind::Connection => connections
                        .next()
                        .into_iter()
                        .for_each(|ended| view.connection(ended, *key)),
                    Kind::Transaction => transactions.next().into_iter().for_each(|waiting| {
                        let transaction = Transaction {
                            id: waiting.id,
                            ends: waiting.ends,
                            facts: &waiting.facts,
                            request: match &waiting.request {
                                Request::Single(bytes) => Request::Single(*bytes),
                                Request::Other(text) => Request::Other(&texts[text.clone()]),
                            },
                        };
                        view.transaction(&transaction, *key);
                    }),
                    Kind::Hops => hops.next().into_iter().for_each(|hops| view.hops(hops, *key)),
                    Kind::Block => blocks.next().into_iter().for_each(|block| view.block(block, *key)),
                    Kind::Acknowledged => acks.next().into_iter().for_each(|ack| view.acknowledged(ack, *key)),
                    Kind::Again => again
                        .next()
                        .into_iter()
                        .for_each(|(id, server)| view.again(*id, *server)),
                    Kind::Segment => segments
                        .next()
                        .into_iter()
                        .for_each(|(verdict, ends)| view.segment(verdict, ends, *key)),
                }
            }
        }
    }

    /// They have been seen.
    pub fn clear(&mut self) {
        self.order.clear();
        self.opened.clear();
        self.connections.clear();
        self.transactions.clear();
        self.hops.clear();
        self.blocks.clear();
        self.acks.clear();
        self.again.clear();
        self.segments.clear();
        self.texts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_take_the_memory_that_the_module_states() {
        let sizes = [size_of::<Ended>(), size_of::<Waiting>(), size_of::<(Verdict, Ends)>()];
        assert!(sizes.iter().all(|size| size + size_of::<Next>() <= 336), "{sizes:?}");
    }
}
