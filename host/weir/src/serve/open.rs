//! Connections that are open, shown while they last.

use std::collections::VecDeque;

use weir_analysis::Analyzer;
use weir_api::facts::FactStore;
use weir_record::FlowId;

/// Of each kind, shown at a time: more would hold up the analysis.
const AT_A_TIME: usize = 10_000;

/// Those that opened since the last time are shown at once; of all others a part each time, in turn.
#[derive(Debug, Default)]
pub struct OpenConnections {
    /// The newest come last.
    new: VecDeque<FlowId>,
    /// Index with which the next part begins.
    next: usize,
}

impl OpenConnections {
    /// A connection opened. Of more than can be shown the oldest wait for their turn.
    pub fn opened(&mut self, id: FlowId) {
        if self.new.len() == AT_A_TIME {
            self.new.pop_front();
        }
        self.new.push_back(id);
    }

    /// Show what is due. For connections that are not held there must be room, but for new ones.
    pub fn show(&mut self, analyzer: &Analyzer, facts: &FactStore) {
        let part: Vec<FlowId> = analyzer.open_connections(self.next).take(AT_A_TIME).collect();
        self.next = match part.last() {
            Some(last) if part.len() == AT_A_TIME => last.index() + 1,
            _ => 0,
        };
        let known = facts.held_or_room(part.iter().map(|id| id.0));
        let due = known.into_iter().map(FlowId).chain(self.new.drain(..));
        facts.update_connections(due.filter_map(|id| analyzer.open_connection(id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_analysis::{Config, Ends, Sink};
    use weir_api::facts::{Facts, Limits};
    use weir_messages::v1;
    use weir_record::{Header, Open, PROTOCOL_TCP, Record};

    struct Ignore;
    impl Sink for Ignore {
        fn connection(&mut self, _: &weir_analysis::Connection<'_>) {}
        fn transaction(&mut self, _: &weir_analysis::Transaction<'_>) {}
        fn finding(&mut self, _: v1::Finding) {}
        fn segment(&mut self, _: &weir_analysis::Verdict, _: &Ends) {}
    }

    /// OPEN, and its continuation missing.
    fn record(id: FlowId, sequence: u32) -> Record {
        let open = Open {
            client_addr: [1; 16],
            server_addr: [2; 16],
            client_port: 40_000,
            server_port: 80,
            protocol: PROTOCOL_TCP,
            vlans: 0,
        };
        let header = Header {
            flags: 0,
            lane: 0,
            arg: 0,
            sequence,
            flow: id,
            time: 1,
        };
        open.encode(header)
    }

    fn store(connections: usize) -> FactStore {
        FactStore::new(Limits {
            connections,
            ..Limits::default()
        })
    }

    #[test]
    fn every_open_connection_is_shown_in_time() {
        const MANY: usize = 2 * AT_A_TIME + 5_000;
        let mut analyzer = Analyzer::new(Config::default());
        let mut open = OpenConnections::default();
        let ids: Vec<FlowId> = (0..MANY as u64).map(|index| FlowId(1 << 24 | index)).collect();
        let records: Vec<Record> = (0..).zip(&ids).map(|(sequence, id)| record(*id, sequence)).collect();
        analyzer.push(&records, &mut Ignore);
        let facts = store(100_000);
        // A flood: those that opened first wait for their turn.
        ids.iter().for_each(|id| open.opened(*id));
        open.show(&analyzer, &facts);
        assert_eq!(facts.counts().connections, 2 * AT_A_TIME as u64);
        (0..2).for_each(|_| open.show(&analyzer, &facts));
        assert_eq!(facts.counts().connections, MANY as u64);
        assert_eq!(facts.counts().dropped_connections, 0);

        // Without room the new ones push out others, which do not push them out in turn.
        let small = store(1_000);
        ids[..2_000].iter().for_each(|id| open.opened(*id));
        (0..4).for_each(|_| open.show(&analyzer, &small));
        assert_eq!(small.counts().dropped_connections, 1_000);
        assert!(small.connection(ids[1_999].0).is_some() && small.connection(ids[0].0).is_none());
    }
}
