//! Findings, most serious first.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use weir_messages::v1::{Finding, FindingChange};

use super::{DIM, heading};

/// The findings in the order of the report: most serious first.
pub(super) fn print(findings: &[Finding], note: &str, out: &mut dyn Write) -> io::Result<()> {
    heading(out, "Findings", note)?;
    for finding in weir_report::ranked(findings) {
        let color = match finding.severity.as_str() {
            "CRITICAL" => AnsiColor::Red,
            "WARNING" => AnsiColor::Yellow,
            _ => AnsiColor::Cyan,
        };
        let style = Style::new().bold().fg_color(Some(color.into()));
        writeln!(
            out,
            "  {style}{}{style:#} {} {DIM}({}, confidence {:.0} %){DIM:#}",
            finding.severity,
            finding.title,
            finding.kind,
            100.0 * finding.confidence
        )?;
        for line in &finding.evidence {
            writeln!(out, "      {line}")?;
        }
    }
    Ok(())
}

/// A finding opened, changed or closed, in a line.
pub fn change(change: &FindingChange) -> String {
    let time = change.time.map_or_else(String::new, |time| time.to_string());
    let what = change.kind().as_str_name().trim_start_matches("KIND_");
    let id = change.id;
    let Some(finding) = &change.finding else {
        return format!("{time} {what:7} finding {id}");
    };
    let Finding {
        severity,
        kind,
        title,
        who,
        ..
    } = finding;
    let who = if who.is_empty() {
        String::new()
    } else {
        format!(" [{who}]")
    };
    format!("{time} {what:7} finding {id}: {severity} {kind}{who}: {title}")
}
