//! An answer in messages of about a megabyte: lists continue where the part before ended.

use weir_messages::Message;
use weir_messages::v1::Analysis;

/// Bytes from which on a part is given.
const PART: usize = 1 << 20;

/// Gives them to `give`, which says whether to go on.
pub struct Parts<F> {
    give: F,
    part: Analysis,
    bytes: usize,
    is_over: bool,
}

impl<F: FnMut(Analysis) -> bool> Parts<F> {
    pub fn new(give: F) -> Self {
        Self {
            give,
            part: Analysis::default(),
            bytes: 0,
            is_over: false,
        }
    }

    /// All messages of a list; `add` puts one into it.
    pub fn list<M: Message>(&mut self, messages: impl IntoIterator<Item = M>, add: impl Fn(&mut Analysis, M)) {
        for message in messages {
            if self.is_over {
                return;
            }
            self.bytes += message.encoded_len();
            add(&mut self.part, message);
            if self.bytes >= PART {
                self.bytes = 0;
                self.is_over = !(self.give)(std::mem::take(&mut self.part));
            }
        }
    }

    /// What is left of the lists, with the rest of the answer.
    pub fn finish(mut self, rest: Analysis) {
        if !self.is_over {
            (self.give)(Analysis {
                connections: self.part.connections,
                transactions: self.part.transactions,
                segments: self.part.segments,
                findings: self.part.findings,
                ..rest
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_messages::v1::Connection;

    fn connections(count: u64) -> impl Iterator<Item = Connection> {
        (0..count).map(|id| Connection {
            id,
            ..Connection::default()
        })
    }

    #[test]
    fn all_comes_once_and_in_order() {
        let mut parts = Vec::new();
        let mut given = Parts::new(|part| {
            parts.push(part);
            true
        });
        given.list(connections(1_000_000), |part, connection| {
            part.connections.push(connection)
        });
        given.finish(Analysis::default());
        // Each message has a few bytes around it in its list.
        assert!(parts.len() > 2 && parts.iter().all(|part| part.encoded_len() <= 2 * PART));
        let ids = parts
            .iter()
            .flat_map(|part| &part.connections)
            .map(|connection| connection.id);
        assert!(ids.eq(0..1_000_000));
    }

    #[test]
    fn nothing_comes_after_a_no() {
        let mut count = 0;
        let mut given = Parts::new(|_| {
            count += 1;
            false
        });
        given.list(connections(1_000_000), |part, connection| {
            part.connections.push(connection)
        });
        given.finish(Analysis::default());
        assert_eq!(count, 1);
    }
}
