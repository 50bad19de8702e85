//! What a detector is, and the list of them.

use weir_analysis::{Acknowledged, DataBlock, Ended, Ends, Hops, Opened, Verdict};
use weir_messages::v1::Finding;
use weir_record::FlowId;

use crate::backlog::{Next, Transaction};
use crate::routes::Route;
use crate::timeline::Timeline;
use crate::{capacity, frontend_queueing};

/// Looks at facts for one pattern (or a few that share their counts).
///
/// Live, detectors forget by being replaced (see `view`): each begins in the middle of a stream, as at the start of a
/// capture, and hears of connections and transactions whose beginning it did not hear of. It is asked for its findings
/// again and again; several of one kind differ in `who`.
///
/// Each fact comes with its [`Route`], on which a detector notes where it keeps what it knows of the hosts.
pub(crate) trait Detector {
    /// Something of what it will need for a fact, for which that comes into the cache.
    fn warm(&self, _: &Next) -> u64 {
        0
    }
    /// A connection's first packet passed.
    fn opened(&mut self, _: &Opened, _: &mut Route) {}
    /// A connection is over.
    fn connection(&mut self, _: &Ended, _: &mut Route) {}
    /// A transaction is over.
    fn transaction(&mut self, _: &Transaction<'_>, _: &mut Route) {}
    /// The TTL of the first packet of a connection, and of the server's first data.
    fn hops(&mut self, _: &Hops, _: &mut Route) {}
    /// Data passed.
    fn block(&mut self, _: &DataBlock, _: &mut Route) {}
    /// An ACK of data passed.
    fn acknowledged(&mut self, _: &Acknowledged, _: &mut Route) {}
    /// A SYN of a connection came again, or a SYN-ACK (`from_server`).
    fn again(&mut self, _: FlowId, _from_server: bool) {}
    /// A segment came twice, late or never.
    fn segment(&mut self, _: &Verdict, _: &Ends, _: &mut Route) {}
    /// What it found so far.
    fn findings(&self, timeline: &Timeline, out: &mut Vec<Finding>);
}

macro_rules! detectors {
    ($($name:ident: $kind:ty),* $(,)?) => {
        /// All of them; findings come in this order.
        #[derive(Debug, Default)]
        pub(crate) struct Detectors {
            $(pub $name: $kind),*
        }

        impl Detector for Detectors {
            #[inline(always)]
            fn warm(&self, fact: &Next) -> u64 {
                0 $(^ self.$name.warm(fact))*
            }

            #[inline(always)]
            fn opened(&mut self, opened: &Opened, route: &mut Route) {
                $(self.$name.opened(opened, route);)*
            }

            #[inline(always)]
            fn connection(&mut self, connection: &Ended, route: &mut Route) {
                $(self.$name.connection(connection, route);)*
            }

            #[inline(always)]
            fn transaction(&mut self, transaction: &Transaction<'_>, route: &mut Route) {
                $(self.$name.transaction(transaction, route);)*
            }

            #[inline(always)]
            fn hops(&mut self, hops: &Hops, route: &mut Route) {
                $(self.$name.hops(hops, route);)*
            }

            #[inline(always)]
            fn block(&mut self, block: &DataBlock, route: &mut Route) {
                $(self.$name.block(block, route);)*
            }

            #[inline(always)]
            fn acknowledged(&mut self, ack: &Acknowledged, route: &mut Route) {
                $(self.$name.acknowledged(ack, route);)*
            }

            fn again(&mut self, id: FlowId, from_server: bool) {
                $(self.$name.again(id, from_server);)*
            }

            #[inline(always)]
            fn segment(&mut self, verdict: &Verdict, ends: &Ends, route: &mut Route) {
                $(self.$name.segment(verdict, ends, route);)*
            }

            fn findings(&self, timeline: &Timeline, out: &mut Vec<Finding>) {
                $(self.$name.findings(timeline, out);)*
                self.responses.bands(&self.application_sleep, out);
                capacity::findings(timeline, &self.application_sleep, out);
                frontend_queueing::findings(timeline, &self.application_sleep, out);
            }
        }
    };
}

detectors! {
    losses: crate::losses::Losses,
    retransmission_times: crate::retransmission_times::RetransmissionTimes,
    rtt_shift: crate::rtt_shift::RttShift,
    connection_per_transaction: crate::connection_per_transaction::ConnectionPerTransaction,
    failing_setups: crate::failing_setups::FailingSetups,
    mtu_black_hole: crate::mtu_black_hole::MtuBlackHole,
    dead_connections: crate::dead_connections::DeadConnections,
    port_collision: crate::port_collision::PortCollision,
    route_change: crate::route_change::RouteChange,
    port_scan: crate::port_scan::PortScan,
    mirror_duplicates: crate::mirror_duplicates::MirrorDuplicates,
    one_sided: crate::one_sided::OneSided,
    application_sleep: crate::sleep::ApplicationSleep,
    slow_ramp: crate::slow_ramp::SlowRamp,
    ports: crate::ports::Ports,
    responses: crate::responses::Responses,
    calls: crate::calls::Calls,
    keep_alive_storm: crate::keep_alive_storm::KeepAliveStorm,
}
