//! Connections that a finding is about, and the finding.

use weir_messages::v1;
use weir_record::FlowId;

use crate::flow::Flow;
use crate::message::timestamp;
use crate::numbers::{connections, count};

/// Connection ids that a finding names; its evidence tells how many there are.
const IDS: usize = 1000;

/// Connections with one property.
#[derive(Clone, Debug, Default)]
pub struct Group {
    count: u64,
    /// The last that came.
    last: Option<FlowId>,
    ids: Vec<u64>,
    start: u64,
    end: u64,
}

impl Group {
    /// A connection, once for both of its directions.
    pub(crate) fn add(&mut self, flow: &Flow) {
        if self.last.replace(flow.id) != Some(flow.id) {
            self.include(flow.id, flow.first, flow.last);
        }
    }

    /// Another connection, and the time that it is about (TAI ns).
    pub fn include(&mut self, id: FlowId, start: u64, end: u64) {
        self.start = if self.count == 0 { start } else { self.start.min(start) };
        self.end = self.end.max(end);
        self.count += 1;
        if self.ids.len() < IDS {
            self.ids.push(id.0);
        }
    }

    /// Nobody in particular, within a range of time (TAI ns).
    pub fn range(start: u64, end: u64) -> Self {
        Self {
            start,
            end,
            ..Self::default()
        }
    }

    /// The time that it is about reaches from `start` to `end` at least (TAI ns).
    pub fn extend(&mut self, start: u64, end: u64) {
        self.start = if self.end == 0 { start } else { self.start.min(start) };
        self.end = self.end.max(end);
    }

    /// Connections in it.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// First and last time, TAI ns.
    pub const fn span(&self) -> (u64, u64) {
        (self.start, self.end)
    }

    /// Those of another group, too.
    pub fn join(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.start = if self.count == 0 {
            other.start
        } else {
            self.start.min(other.start)
        };
        self.end = self.end.max(other.end);
        self.count += other.count;
        let room = IDS.saturating_sub(self.ids.len());
        self.ids.extend(other.ids.iter().take(room));
    }
}

/// A finding about the connections of a group; `values` are numbers by the names of `docs/src/findings.md`.
pub fn finding(
    kind: &str,
    severity: &str,
    confidence: f64,
    title: String,
    mut evidence: Vec<String>,
    group: &Group,
    values: &[(&str, f64)],
) -> v1::Finding {
    if group.count > IDS as u64 {
        evidence.push(format!(
            "the first {} of {} are named",
            count(IDS as u64),
            connections(group.count)
        ));
    }
    let number = |value| v1::FindingValue {
        value: Some(v1::finding_value::Value::Number(value)),
    };
    v1::Finding {
        kind: kind.to_owned(),
        severity: severity.to_owned(),
        confidence,
        title,
        evidence,
        start: (group.end > 0).then(|| timestamp(group.start)),
        end: (group.end > 0).then(|| timestamp(group.end)),
        connection_ids: group.ids.clone(),
        values: values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), number(*value)))
            .collect(),
        who: String::new(),
    }
}
