//! The totals of `weir analyze --format json` against what the generator wrote: a fast wrong answer is no result.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::Error;
use crate::say;
use crate::truth::Truth;

/// One total that was compared.
#[derive(Debug)]
pub struct Total {
    /// What was counted.
    pub what: &'static str,
    /// What the file contains.
    pub truth: u64,
    /// What the analysis says.
    pub found: u64,
}

/// Runs the analysis of a capture that has its truth beside it.
pub fn check(weir: &Path, capture: &Path) -> Result<Vec<Total>, Error> {
    let truth = Truth::load(capture)?;
    let output = Command::new(weir)
        .arg("analyze")
        .arg(capture)
        .args(["--format", "json"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| Error::file("cannot start", weir, &e))?;
    if !output.status.success() {
        return Err(Error::new(format!(
            "{} analyze {}: {}",
            weir.display(),
            capture.display(),
            output.status
        )));
    }
    let answer: Value = serde_json::from_slice(&output.stdout).map_err(|e| {
        Error::new(format!(
            "{} analyze {} --format json: not JSON: {e}",
            weir.display(),
            capture.display()
        ))
    })?;
    Ok(totals(&truth, &answer))
}

/// Compares an answer with the truth.
#[must_use]
pub fn totals(truth: &Truth, answer: &Value) -> Vec<Total> {
    let connections = list(answer, "connections");
    let sum = |field: &str| -> u64 {
        connections
            .iter()
            .map(|c| number(&c["clientToServer"][field]) + number(&c["serverToClient"][field]))
            .fold(0, u64::saturating_add)
    };
    let one_way = |side: &str| {
        connections
            .iter()
            .map(|c| number(&c[side]["payloadBytes"]))
            .fold(0, u64::saturating_add)
    };
    let data = list(answer, "transactions")
        .iter()
        .filter(|t| t["kind"] == "DATA")
        .count() as u64;
    let repeated = sum("retransmittedPackets");
    // A repeated SYN is a retransmission too; whether it is in this counter is the analysis' to say.
    let syns = if repeated == truth.retransmitted_segments {
        0
    } else {
        truth.retransmitted_syns
    };
    vec![
        Total {
            what: "packets",
            truth: truth.packets,
            found: number(&answer["summary"]["packets"]),
        },
        Total {
            what: "packets in connections",
            truth: truth.packets,
            found: sum("packets"),
        },
        Total {
            what: "connections",
            truth: truth.connections,
            found: connections.len() as u64,
        },
        Total {
            what: "transactions",
            truth: truth.transactions,
            found: data,
        },
        Total {
            what: "payload client to server",
            truth: truth.payload_client_to_server,
            found: one_way("clientToServer"),
        },
        Total {
            what: "payload server to client",
            truth: truth.payload_server_to_client,
            found: one_way("serverToClient"),
        },
        Total {
            what: "retransmissions",
            truth: truth.retransmitted_segments + syns,
            found: repeated,
        },
        Total {
            what: "lost before the tap",
            truth: truth.lost_upstream,
            found: sum("lostUpstream"),
        },
        Total {
            what: "lost behind the tap",
            truth: truth.lost_downstream,
            found: sum("lostDownstream"),
        },
    ]
}

/// Prints the totals; true when all are equal.
pub fn print(capture: &Path, totals: &[Total]) -> bool {
    let wrong: Vec<&Total> = totals.iter().filter(|total| total.truth != total.found).collect();
    say!(
        "{}: {} of {} totals equal the truth",
        capture.display(),
        totals.len() - wrong.len(),
        totals.len()
    );
    for total in &wrong {
        say!("  {}: {} instead of {}", total.what, total.found, total.truth);
    }
    wrong.is_empty()
}

fn list<'a>(answer: &'a Value, field: &str) -> &'a [Value] {
    answer[field].as_array().map_or(&[], Vec::as_slice)
}

/// A number of proto3 JSON: 64-bit integers are strings, zeros are left out.
fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn totals_are_summed_over_connections_and_a_wrong_one_shows() {
        let truth = Truth {
            packets: 12,
            connections: 1,
            transactions: 1,
            payload_client_to_server: 10,
            payload_server_to_client: 20,
            retransmitted_segments: 2,
            lost_downstream: 2,
            ..Truth::default()
        };
        let mut answer = json!({
            "connections": [{
                "clientToServer": {"packets": "7", "payloadBytes": "10", "retransmittedPackets": "2", "lostDownstream": "2"},
                "serverToClient": {"packets": 5, "payloadBytes": "20"},
            }],
            "transactions": [{"kind": "SETUP"}, {"kind": "DATA"}, {"kind": "CLOSE"}],
            "summary": {"packets": "12"},
        });
        assert!(totals(&truth, &answer).iter().all(|total| total.truth == total.found));
        answer["connections"][0]["serverToClient"]["payloadBytes"] = json!("21");
        let wrong: Vec<_> = totals(&truth, &answer)
            .into_iter()
            .filter(|total| total.truth != total.found)
            .collect();
        assert_eq!(wrong.len(), 1);
        assert_eq!(wrong[0].what, "payload server to client");
    }
}
