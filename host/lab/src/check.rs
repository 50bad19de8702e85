//! All of what Weir says about a run, held against the truth.

use crate::config::PassConfig;
use crate::error::LabError;
use crate::findings::findings;
use crate::limits::{LimitScore, score_limits};
use crate::marks::{MarkScore, score_marks};
use crate::run::LabReport;
use crate::score::{Score, Share, score};
use crate::server_time::{ServerTimeScore, score_server_time};
use std::collections::BTreeSet;
use std::fmt;

/// The judgements of one run, or of several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Check {
    /// Segments and losses.
    pub segments: Score,
    /// What limited each sender.
    pub limits: LimitScore,
    /// The server's time.
    pub server_time: ServerTimeScore,
    /// ECN marks.
    pub marks: MarkScore,
    /// Kinds of findings that are there.
    pub findings: BTreeSet<String>,
}

/// Judges a run.
pub fn check(report: &LabReport) -> Result<Check, LabError> {
    Ok(Check {
        segments: score(report)?,
        limits: score_limits(report)?,
        server_time: score_server_time(report)?,
        marks: score_marks(report)?,
        findings: findings(report)?,
    })
}

impl Check {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.segments.add(&other.segments);
        self.limits.add(&other.limits);
        self.server_time.add(&other.server_time);
        self.marks.add(&other.marks);
        self.findings.extend(other.findings.iter().cloned());
    }

    fn shares(&self, pass: &PassConfig) -> [Share; 6] {
        let (right, all) = self.limits.right();
        let (unknown, busy) = self.limits.unknown_ms();
        let ServerTimeScore { clean, lossy, .. } = &self.server_time;
        [
            Share::at_least("limits within 10 points of TCP_INFO", right, all, pass.limits),
            Share::at_most("limits unknown, ms of transfers", unknown, busy, pass.limits_unknown),
            Share::at_least(
                "server time right or said uncertain",
                clean.right + clean.unknown,
                clean.all,
                pass.server_time,
            ),
            Share::at_most(
                "server time uncertain",
                clean.unknown,
                clean.all,
                pass.server_time_unknown,
            ),
            Share::at_least(
                "the same where something was lost",
                lossy.right + lossy.unknown,
                lossy.all,
                pass.server_time_with_loss,
            ),
            Share::at_least(
                "ECN marks in the records",
                self.marks.right,
                self.marks.judged,
                pass.marks,
            ),
        ]
    }

    /// What the limits of the scenario say: a line each; empty when all are kept.
    pub fn failures(&self, pass: &PassConfig) -> Vec<String> {
        let mut out = self.segments.failures(pass);
        out.extend(self.shares(pass).iter().filter_map(Share::failure));
        let missing = pass.findings.iter().filter(|kind| !self.findings.contains(*kind));
        out.extend(missing.map(|kind| format!("no finding {kind}")));
        out
    }

    /// A line for each judgement that differs.
    pub fn misses(&self) -> impl Iterator<Item = String> + '_ {
        let segments = self.segments.misses.iter().cloned();
        segments
            .chain(self.limits.misses())
            .chain(self.server_time.misses.iter().cloned())
            .chain(self.marks.misses.iter().cloned())
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.segments)?;
        for share in self.shares(&PassConfig::default()).iter().filter(|s| s.whole > 0) {
            writeln!(f, "{share}")?;
        }
        if !self.findings.is_empty() {
            let kinds: Vec<_> = self.findings.iter().map(String::as_str).collect();
            writeln!(f, "  findings: {}", kinds.join(", "))?;
        }
        let ServerTimeScore { late, unseen, .. } = self.server_time;
        if late + unseen > 0 {
            writeln!(
                f,
                "  server times not judged: {late} on a host that was late, {unseen} whose request the capture missed"
            )?;
        }
        Ok(())
    }
}
