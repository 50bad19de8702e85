//! Which findings Weir has about a run, patterns over time included.

use crate::analysis::analyze;
use crate::error::LabError;
use crate::run::LabReport;
use std::collections::BTreeSet;
use weir_messages::v1;
use weir_patterns::Watched;

/// Kinds of the findings about the run's capture of the middle.
pub fn findings(report: &LabReport) -> Result<BTreeSet<String>, LabError> {
    let mut watched = Watched::new(v1::Analysis::default());
    analyze(&report.tap, &mut watched)?;
    watched.complete();
    Ok(watched.inner.findings.into_iter().map(|finding| finding.kind).collect())
}
