//! Findings that open, change and close while a stream is watched.

use std::collections::BTreeMap;

use weir_analysis::timestamp;
use weir_messages::v1::{Finding, FindingChange, finding_change::Kind};

/// A finding that is not found any more is closed after so long, ns: what comes and goes around a threshold, or needs
/// a while after the views took turns, is one finding.
pub const HOLD: u64 = 60_000_000_000;
/// A finding that only grows is told of again after so long, ns; a change of its severity at once.
pub const CALM: u64 = 60_000_000_000;

/// What is open. A finding is known by its kind and whom it is about; several of the same are told apart by their order.
#[derive(Debug, Default)]
pub struct Changes {
    open: BTreeMap<(String, String, usize), Open>,
    ids: u64,
}

#[derive(Debug)]
struct Open {
    id: u64,
    /// When it was found last, and told of last, TAI ns.
    found: u64,
    told: u64,
    /// As told last, and as found last.
    severity: String,
    is_news: bool,
    finding: Finding,
}

impl Changes {
    /// None is open; the first has the number behind this one.
    pub fn behind(number: u64) -> Self {
        Self {
            ids: number,
            ..Self::default()
        }
    }

    /// What has changed, given what is found at `now` (TAI ns).
    pub fn renew(&mut self, now: u64, found: &[Finding]) -> Vec<FindingChange> {
        let mut out = Vec::new();
        let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for finding in found {
            let number = seen.entry((&finding.kind, &finding.who)).or_default();
            let key = (finding.kind.clone(), finding.who.clone(), *number);
            *number += 1;
            if let Some(open) = self.open.get_mut(&key) {
                open.found = now;
                if open.finding != *finding {
                    open.finding = finding.clone();
                    open.is_news = true;
                }
                let due = open.is_news && now.abs_diff(open.told) >= CALM;
                if due || open.severity != finding.severity {
                    open.told = now;
                    open.is_news = false;
                    open.severity.clone_from(&finding.severity);
                    out.push(change(open.id, Kind::Updated, now, finding.clone()));
                }
                continue;
            }
            self.ids += 1;
            let open = Open {
                id: self.ids,
                found: now,
                told: now,
                severity: finding.severity.clone(),
                is_news: false,
                finding: finding.clone(),
            };
            out.push(change(open.id, Kind::Opened, now, finding.clone()));
            self.open.insert(key, open);
        }
        self.open.retain(|_, open| {
            let is_over = now.abs_diff(open.found) >= HOLD;
            if is_over {
                let last = std::mem::take(&mut open.finding);
                out.push(change(open.id, Kind::Closed, now, last));
            }
            !is_over
        });
        out
    }

    /// Findings that are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// None is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

fn change(id: u64, kind: Kind, now: u64, finding: Finding) -> FindingChange {
    FindingChange {
        id,
        kind: kind.into(),
        time: Some(timestamp(now)),
        finding: Some(finding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn finding(kind: &str, who: &str, severity: &str, title: &str) -> Finding {
        Finding {
            kind: kind.to_owned(),
            who: who.to_owned(),
            severity: severity.to_owned(),
            title: title.to_owned(),
            ..Finding::default()
        }
    }

    fn told(changes: &[FindingChange]) -> Vec<(u64, Kind)> {
        changes.iter().map(|change| (change.id, change.kind())).collect()
    }

    #[test]
    fn a_finding_opens_changes_and_closes_under_one_number() {
        let mut changes = Changes::default();
        let mut at = 1000 * SECOND;
        let first = [finding("A", "x", "INFO", "1"), finding("A", "y", "INFO", "1")];
        assert_eq!(told(&changes.renew(at, &first)), [(1, Kind::Opened), (2, Kind::Opened)]);
        assert!(changes.renew(at + SECOND, &first).is_empty());
        // It grows: told once a while. It becomes worse: told at once.
        at += 2 * SECOND;
        let grown = [finding("A", "x", "INFO", "2"), finding("A", "y", "WARNING", "1")];
        assert_eq!(told(&changes.renew(at, &grown)), [(2, Kind::Updated)]);
        at = 1000 * SECOND + CALM;
        assert_eq!(told(&changes.renew(at, &grown)), [(1, Kind::Updated)]);
        assert!(changes.renew(at + CALM, &grown).is_empty());
        // Gone for a moment is not gone.
        at += CALM;
        assert!(changes.renew(at + HOLD - 1, &grown[..1]).is_empty());
        assert!(changes.renew(at + HOLD - 1, &grown).is_empty());
        let closed = changes.renew(at + 2 * HOLD, &grown[..1]);
        assert_eq!(told(&closed), [(2, Kind::Closed)]);
        assert_eq!(closed[0].finding, Some(grown[1].clone()));
        assert_eq!(changes.len(), 1);
        // Back later: another one.
        assert_eq!(told(&changes.renew(at + 3 * HOLD, &grown)), [(3, Kind::Opened)]);
    }
}
