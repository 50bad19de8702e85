//! Small answers: summary, findings, taps, dialogues, whose time it was.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Value, json};
use weir_messages::v1::{Connection, Direction, TimeShares};

use crate::dataset::Dataset;
use crate::error::Refused;
use crate::groups::{By, name};
use crate::params::Params;
use crate::reply::Reply;

/// `/summary`.
pub fn summary(data: &Dataset, params: Params) -> Result<Reply, Refused> {
    params.end()?;
    Ok(Reply::json(&data.summary))
}

/// `/findings`.
pub fn findings(data: &Dataset, params: Params) -> Result<Reply, Refused> {
    params.end()?;
    let findings: Vec<Value> = data
        .findings
        .iter()
        .map(|finding| {
            let mut out = json!({
                "key": format!("{} {}", finding.kind, finding.who).trim_end(),
                "finding": finding,
            });
            if let Some(start) = &finding.start {
                out["from"] = json!(data.moment(start));
            }
            if let Some(end) = &finding.end {
                out["to"] = json!(data.moment(end));
            }
            if let Some(next) = weir_report::next_step(finding) {
                out["advice"] = json!(next);
            }
            out
        })
        .collect();
    Ok(Reply::json(&json!({ "findings": findings })))
}

/// `/taps`.
pub fn taps(data: &Dataset, params: Params) -> Result<Reply, Refused> {
    params.end()?;
    let path = &data.path;
    Ok(Reply::json(
        &json!({ "taps": path.taps, "legs": path.legs, "pie": path.pies }),
    ))
}

/// What passed between a client and a service in one direction.
#[derive(Clone, Debug, Default)]
struct Flow {
    packets: u64,
    bytes: u64,
    /// Packets with data, and those of them that are retransmissions.
    data: u64,
    retransmitted: u64,
    lost: [u64; 3],
    missed: u64,
    rtt: Option<f64>,
}

impl Flow {
    fn add(&mut self, direction: &Direction) {
        self.data += direction.data_packets;
        self.packets += direction.packets;
        self.bytes += direction.payload_bytes;
        self.retransmitted += direction.retransmitted_data_packets;
        self.lost[0] += direction.lost_upstream;
        self.lost[1] += direction.lost_downstream;
        self.lost[2] += direction.lost_unknown;
        self.missed += direction.missed_by_capture;
        let rtt = direction.rtt.as_ref().and_then(|rtt| rtt.min_seconds);
        self.rtt = match (self.rtt, rtt) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.data += other.data;
        self.retransmitted += other.retransmitted;
        for (mine, others) in self.lost.iter_mut().zip(other.lost) {
            *mine += others;
        }
        self.missed += other.missed;
        self.rtt = [self.rtt, other.rtt].into_iter().flatten().reduce(f64::min);
    }

    fn json(&self) -> Value {
        let rate = (self.data > 0).then(|| self.retransmitted as f64 / self.data as f64);
        json!({
            "packets": self.packets,
            "bytes": self.bytes,
            "dataPackets": self.data,
            "retransmittedPackets": self.retransmitted,
            "retransmissionRate": rate,
            "lostBeforeTap": self.lost[0],
            "lostBehindTap": self.lost[1],
            "lostUnknown": self.lost[2],
            "missedByCapture": self.missed,
            "minRttSeconds": self.rtt,
        })
    }
}

/// What passed between a client and a service.
#[derive(Clone, Debug, Default)]
struct Dialogue {
    connections: u64,
    failed: u64,
    flows: [Flow; 2],
}

impl Dialogue {
    fn json(&self) -> Value {
        json!({
            "connections": self.connections,
            "failed": self.failed,
            "clientToServer": self.flows[0].json(),
            "serverToClient": self.flows[1].json(),
        })
    }
}

/// Client, server, server's port.
type Pair<'a> = (&'a str, &'a str, u32);

fn pair(connection: &Connection) -> Pair<'_> {
    let client = connection.client.as_ref().map_or("", |end| end.address.as_str());
    let server = connection.server.as_ref();
    (
        client,
        server.map_or("", |end| end.address.as_str()),
        server.map_or(0, |end| end.port),
    )
}

/// `/dialogues`.
pub fn dialogues(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let span = params.span(data.whole())?;
    let filter = params.text("filter").unwrap_or_default();
    let limit = params.number("limit", 500usize, 1, 5000)?;
    params.end()?;
    let mut all: HashMap<Pair<'_>, Dialogue> = HashMap::new();
    for row in data.select_connections(&filter)?.iter() {
        let life = data.lives[*row as usize];
        if life.first >= span.to || life.last < span.from {
            continue;
        }
        let connection = &data.connections[*row as usize];
        let dialogue = all.entry(pair(connection)).or_default();
        dialogue.connections += 1;
        dialogue.failed += u64::from(life.failed);
        let directions = [&connection.client_to_server, &connection.server_to_client];
        for (side, direction) in directions.into_iter().enumerate() {
            if let Some(direction) = direction {
                dialogue.flows[side].add(direction);
            }
        }
    }
    let mut all: Vec<_> = all.into_iter().collect();
    let volume = |dialogue: &Dialogue| dialogue.flows[0].bytes + dialogue.flows[1].bytes;
    all.sort_by(|a, b| volume(&b.1).cmp(&volume(&a.1)).then_with(|| a.0.cmp(&b.0)));
    let total = all.len();
    let rest = all.split_off(limit.min(total));
    let mut left_out = Dialogue::default();
    for (_, dialogue) in &rest {
        left_out.connections += dialogue.connections;
        left_out.failed += dialogue.failed;
        left_out.flows[0].merge(&dialogue.flows[0]);
        left_out.flows[1].merge(&dialogue.flows[1]);
    }
    let shown: Vec<Value> = all
        .iter()
        .map(|((client, server, port), dialogue)| {
            let mut out = dialogue.json();
            out["client"] = json!(client);
            out["server"] = json!(server);
            out["port"] = json!(port);
            out
        })
        .collect();
    let left_out = (!rest.is_empty()).then(|| left_out.json());
    Ok(Reply::json(
        &json!({ "dialogues": shown, "leftOut": left_out, "total": total }),
    ))
}

/// Words of the parameter `by` of `/delays`.
const DELAYS: &[(&str, By)] = &[
    ("server", By::Server),
    ("client", By::Client),
    ("signature", By::Signature),
    ("connection", By::Connection),
    ("none", By::None),
];

/// `/delays`.
pub fn delays(data: &Dataset, mut params: Params) -> Result<Reply, Refused> {
    let span = params.span(data.whole())?;
    let filter = params.text("filter").unwrap_or_default();
    let by = params.word("by", DELAYS)?;
    let limit = params.number("limit", 20usize, 1, 1000)?;
    params.end()?;
    let rows = data.select_transactions(&filter)?;
    let mut groups: HashMap<Cow<'_, str>, (u64, TimeShares)> = HashMap::new();
    for row in &rows[span.part(&rows, |row| data.exchanges[*row as usize].begin)] {
        let place = *row as usize;
        let (count, sum) = groups.entry(name(data, place, by)).or_default();
        *count += 1;
        if let Some(shares) = &data.transactions[place].shares {
            add(sum, shares);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|(a_name, (_, a)), (b_name, (_, b))| {
        let most = b.total_seconds.total_cmp(&a.total_seconds);
        most.then_with(|| a_name.cmp(b_name))
    });
    let left_out = groups.len().saturating_sub(limit);
    groups.truncate(limit);
    let groups: Vec<Value> = groups
        .iter()
        .map(|(name, (count, shares))| json!({ "name": name, "transactions": count, "shares": shares }))
        .collect();
    Ok(Reply::json(&json!({ "groups": groups, "leftOut": left_out })))
}

/// What is not known of one is in its processing.
fn add(sum: &mut TimeShares, shares: &TimeShares) {
    sum.user_think_seconds += shares.user_think_seconds;
    sum.client_processing_seconds += shares.client_processing_seconds;
    sum.server_processing_seconds += shares.server_processing_seconds;
    if let Some(latency) = shares.latency_seconds {
        sum.latency_seconds = Some(sum.latency_seconds.unwrap_or(0.0) + latency);
    }
    sum.bandwidth_seconds += shares.bandwidth_seconds;
    sum.congestion_seconds += shares.congestion_seconds;
    sum.protocol_seconds += shares.protocol_seconds;
    sum.total_seconds += shares.total_seconds;
}
