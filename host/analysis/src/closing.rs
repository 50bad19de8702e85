//! How a connection ended (`docs/src/transactions.md`).

use weir_record::CloseCause;

use crate::flow::{FirstEnd, Flow};
use crate::setup::Outcome;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The client sent the first FIN.
    ClientFin,
    /// The server sent the first FIN.
    ServerFin,
    /// The client reset it.
    ClientRst,
    /// The server reset it.
    ServerRst,
    /// A RST was the only answer to the SYNs.
    Refused,
    /// One FIN only.
    HalfClosed,
    /// No answer to the SYNs.
    Ignored,
    /// It was open when the input ended.
    Open,
    /// It was given up after silence.
    Timeout,
}

impl Kind {
    /// Name in the messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientFin => "CLIENT_FIN",
            Self::ServerFin => "SERVER_FIN",
            Self::ClientRst => "CLIENT_RST",
            Self::ServerRst => "SERVER_RST",
            Self::Refused => "REFUSED",
            Self::HalfClosed => "HALF_CLOSED",
            Self::Ignored => "IGNORED",
            Self::Open => "OPEN",
            Self::Timeout => "TIMEOUT",
        }
    }
}

/// Kind, and the time (TAI ns) when it is known. `cause` is `None` while the flow is in the table.
pub(crate) fn closing(flow: &Flow, cause: Option<CloseCause>) -> (Kind, Option<u64>) {
    let end = (flow.end_time != 0).then_some(flow.end_time);
    let setup = &flow.setup;
    // A server's RST is the only answer that the SYNs got, at once or late.
    if setup.reset_by_server() && !setup.answered() {
        return (Kind::Refused, end);
    }
    let one_fin = flow.sent_fin(0) != flow.sent_fin(1);
    let no_rst = !flow.sent_rst(0) && !flow.sent_rst(1);
    match flow.first_end() {
        FirstEnd::Fin(_) if one_fin && no_rst => (Kind::HalfClosed, end),
        FirstEnd::Fin(0) => (Kind::ClientFin, end),
        FirstEnd::Fin(_) => (Kind::ServerFin, end),
        FirstEnd::Rst(0) => (Kind::ClientRst, end),
        FirstEnd::Rst(_) => (Kind::ServerRst, end),
        FirstEnd::None if setup.is_done() && setup.outcome == Outcome::Ignored && !setup.is_pending() => {
            (Kind::Ignored, cause.map(|_| flow.last))
        }
        FirstEnd::None => match cause {
            None | Some(CloseCause::End) => (Kind::Open, None),
            Some(_) => (Kind::Timeout, Some(flow.last)),
        },
    }
}
