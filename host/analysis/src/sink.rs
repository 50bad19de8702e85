//! Facts as they are found. Most are only counted; who wants one whole asks for its message.

use weir_messages::v1;
use weir_record::{CloseCause, FlowId};

use crate::closing::closing;
use crate::flow::Flow;
use crate::message::{self, CloseCounts};
use crate::setup::Outcome;
use crate::shares::TimeShares;
use crate::turns::Finished;
use crate::verdict::Verdict;

/// Where facts go.
pub trait Sink {
    /// A connection is over.
    fn connection(&mut self, connection: &Connection<'_>);
    /// A transaction is over.
    fn transaction(&mut self, transaction: &Transaction<'_>);
    /// Something worth pointing out.
    fn finding(&mut self, finding: v1::Finding);
    /// What became of a segment that came twice, late or never. It is told when nothing can change
    /// it any more, so not in order of time.
    fn segment(&mut self, _: &Verdict) {}
}

/// A sink that keeps everything.
impl Sink for v1::Analysis {
    fn connection(&mut self, connection: &Connection<'_>) {
        self.connections.push(connection.message());
    }

    fn transaction(&mut self, transaction: &Transaction<'_>) {
        self.transactions.push(transaction.message());
    }

    fn finding(&mut self, finding: v1::Finding) {
        self.findings.push(finding);
    }
}

/// A connection that is over.
#[derive(Debug)]
pub struct Connection<'a> {
    pub(crate) flow: &'a Flow,
    pub(crate) cause: Option<CloseCause>,
    pub(crate) counts: [CloseCounts; 2],
    pub(crate) link: Option<f64>,
}

impl Connection<'_> {
    /// All of it.
    pub fn message(&self) -> v1::Connection {
        message::connection(self.flow, self.cause, self.counts, self.link)
    }

    /// `Setup.outcome`, if there is a setup to tell of.
    pub fn outcome(&self) -> Option<&'static str> {
        message::has_setup(self.flow).then(|| self.flow.setup.outcome.name())
    }

    /// `Close.kind`.
    pub fn close_kind(&self) -> &'static str {
        closing(self.flow, self.cause).0.name()
    }

    /// The setup did not succeed.
    pub fn failed(&self) -> bool {
        let outcome = self.flow.setup.outcome;
        message::has_setup(self.flow) && matches!(outcome, Outcome::Refused | Outcome::Ignored | Outcome::ResetLate)
    }

    /// Something happened to its segments or windows.
    pub fn has_trouble(&self) -> bool {
        self.flow.trouble.is_some()
    }

    /// Packets that went wrong: sent again, out of order, lost, or with a closed window.
    pub fn trouble(&self) -> u64 {
        message::trouble(self.flow, 0, self.counts[0]) + message::trouble(self.flow, 1, self.counts[1])
    }
}

/// A transaction that is over.
#[derive(Debug)]
pub struct Transaction<'a> {
    pub(crate) id: FlowId,
    pub(crate) signature: &'a str,
    pub(crate) done: &'a Finished,
    pub(crate) time: &'a TimeShares,
}

impl Transaction<'_> {
    /// All of it.
    pub fn message(&self) -> v1::Transaction {
        message::transaction(self.id, self.signature, self.done, self.time)
    }
}
