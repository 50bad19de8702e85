//! Connections as biflows: IPFIX messages (RFC 7011) whose records tell both directions (RFC 5103).

use std::net::IpAddr;
use weir_record::PROTOCOL_TCP;

use weir_messages::v1::{Connection, Direction};

/// Version of IPFIX (RFC 7011 3.1).
const VERSION: u16 = 10;
const HEADER: usize = 16;
const SET_HEADER: usize = 4;
/// Set of templates (RFC 7011 3.3.2).
const TEMPLATES: u16 = 2;
/// Enterprise number whose elements tell the reverse direction (RFC 5103 6.1).
const REVERSE: u32 = 29305;
/// Fits into a frame of 1500 bytes with IPv6 and UDP (RFC 7011 10.3.3).
pub const LONGEST_MESSAGE: usize = 1400;

/// What a record's field is: element of the IANA registry, its length, and whether it tells of the server's direction.
#[derive(Clone, Copy)]
struct Element {
    id: u16,
    length: u16,
    reverse: bool,
}

const fn element(id: u16, length: u16) -> Element {
    Element {
        id,
        length,
        reverse: false,
    }
}

const fn reverse(id: u16, length: u16) -> Element {
    Element {
        id,
        length,
        reverse: true,
    }
}

/// IPv4 and IPv6 differ in their addresses alone.
const KEYS: [[Element; 2]; 2] = [
    // sourceIPv4Address, destinationIPv4Address
    [element(8, 4), element(12, 4)],
    // sourceIPv6Address, destinationIPv6Address
    [element(27, 16), element(28, 16)],
];
const FIELDS: [Element; 13] = [
    element(7, 2),   // sourceTransportPort
    element(11, 2),  // destinationTransportPort
    element(4, 1),   // protocolIdentifier
    element(239, 1), // biflowDirection
    element(136, 1), // flowEndReason
    element(58, 2),  // vlanId
    element(148, 8), // flowId
    element(152, 8), // flowStartMilliseconds
    element(153, 8), // flowEndMilliseconds
    element(2, 8),   // packetDeltaCount
    reverse(2, 8),   // the same of the server
    element(401, 8), // transportOctetDeltaCount: payload
    reverse(401, 8), // the same of the server
];
/// Templates by the version of IP; below 256 are sets of other kinds.
const TEMPLATE_IDS: [u16; 2] = [256, 257];

/// Why a connection is not exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// An end has no address, or the two are of different versions of IP.
    Addresses,
}

/// Makes messages of connections.
#[derive(Debug)]
pub struct Exporter {
    domain: u32,
    /// Data records in all messages before this one (RFC 7011 3.1, Sequence Number).
    sequence: u32,
    /// Records of the message that is being made, in the order in which they came.
    records: Vec<(usize, Vec<u8>)>,
    /// Every message begins with the templates: over UDP the first ones may be lost (RFC 7011 8.4).
    repeat_templates: bool,
    told_templates: bool,
}

impl Exporter {
    /// Messages of this observation domain; `repeat_templates`: for transports that lose messages.
    pub const fn new(domain: u32, repeat_templates: bool) -> Self {
        Self {
            domain,
            sequence: 0,
            records: Vec::new(),
            repeat_templates,
            told_templates: false,
        }
    }

    /// Add a connection; the message before it, when that is full. `now`: UTC seconds, the export time.
    pub fn add(&mut self, connection: &Connection, now: u32) -> Result<Option<Vec<u8>>, Unfit> {
        let (version, record) = record(connection)?;
        let is_full = self.length() + SET_HEADER + record.len() > LONGEST_MESSAGE;
        let message = is_full.then(|| self.message(now));
        self.records.push((version, record));
        Ok(message)
    }

    /// The last message, if there is one. A file of none has its templates at least.
    pub fn finish(&mut self, now: u32) -> Option<Vec<u8>> {
        (!self.records.is_empty() || !self.told_templates).then(|| self.message(now))
    }

    fn has_templates(&self) -> bool {
        self.repeat_templates || !self.told_templates
    }

    /// Bytes of the message as it is; at worst each record has a set of its own.
    fn length(&self) -> usize {
        let templates = if self.has_templates() { templates().len() } else { 0 };
        let sets = self.records.iter().map(|(_, record)| SET_HEADER + record.len());
        HEADER + templates + sets.sum::<usize>()
    }

    fn message(&mut self, now: u32) -> Vec<u8> {
        let mut message = Vec::with_capacity(self.length());
        message.extend(VERSION.to_be_bytes());
        message.extend([0; 2]);
        message.extend(now.to_be_bytes());
        message.extend(self.sequence.to_be_bytes());
        message.extend(self.domain.to_be_bytes());
        if self.has_templates() {
            message.extend(templates());
            self.told_templates = true;
        }
        // A set for each run of records of one template.
        for run in self.records.chunk_by(|a, b| a.0 == b.0) {
            let content: Vec<u8> = run.iter().flat_map(|(_, record)| record).copied().collect();
            message.extend(set(TEMPLATE_IDS[run[0].0], &content));
        }
        let length = message.len() as u16;
        message[2..4].copy_from_slice(&length.to_be_bytes());
        self.sequence = self.sequence.wrapping_add(self.records.len() as u32);
        self.records.clear();
        message
    }
}

fn set(id: u16, content: &[u8]) -> Vec<u8> {
    let length = (SET_HEADER + content.len()) as u16;
    [&id.to_be_bytes(), &length.to_be_bytes(), content].concat()
}

fn templates() -> Vec<u8> {
    let mut content = Vec::new();
    for (id, keys) in TEMPLATE_IDS.iter().zip(KEYS) {
        content.extend(id.to_be_bytes());
        content.extend(((keys.len() + FIELDS.len()) as u16).to_be_bytes());
        for element in keys.iter().chain(&FIELDS) {
            let enterprise = if element.reverse { 1 << 15 } else { 0 };
            content.extend((element.id | enterprise).to_be_bytes());
            content.extend(element.length.to_be_bytes());
            if element.reverse {
                content.extend(REVERSE.to_be_bytes());
            }
        }
    }
    set(TEMPLATES, &content)
}

/// Version of IP (0: 4, 1: 6) and the bytes of a record.
fn record(connection: &Connection) -> Result<(usize, Vec<u8>), Unfit> {
    let end = |end: &Option<weir_messages::v1::Endpoint>| {
        let end = end.as_ref().ok_or(Unfit::Addresses)?;
        let address: IpAddr = end.address.parse().map_err(|_| Unfit::Addresses)?;
        Ok((address, end.port as u16))
    };
    let ((client, client_port), (server, server_port)) = (end(&connection.client)?, end(&connection.server)?);
    let mut record = Vec::with_capacity(128);
    let version = match (client, server) {
        (IpAddr::V4(client), IpAddr::V4(server)) => {
            record.extend(client.octets());
            record.extend(server.octets());
            0
        }
        (IpAddr::V6(client), IpAddr::V6(server)) => {
            record.extend(client.octets());
            record.extend(server.octets());
            1
        }
        _ => return Err(Unfit::Addresses),
    };
    record.extend(client_port.to_be_bytes());
    record.extend(server_port.to_be_bytes());
    record.push(PROTOCOL_TCP);
    record.push(direction(&connection.client_known_by));
    let kind = connection.close.as_ref().map_or("", |close| &close.kind);
    record.push(end_reason(kind));
    let vlan = connection.vlans.first().copied().unwrap_or(0);
    record.extend((vlan as u16).to_be_bytes());
    record.extend(connection.id.to_be_bytes());
    let start = connection.first_packet_time.map_or(0, |time| time.unix_nanos());
    let end = start.saturating_add((connection.duration_seconds * 1e9).round() as i64);
    for nanos in [start, end] {
        record.extend((nanos.max(0) / 1_000_000).to_be_bytes());
    }
    let sides = [&connection.client_to_server, &connection.server_to_client];
    let of = |value: fn(&Direction) -> u64| sides.map(|side| side.as_ref().map_or(0, value));
    for count in [of(|d| d.packets), of(|d| d.payload_bytes)].concat() {
        record.extend(count.to_be_bytes());
    }
    Ok((version, record))
}

/// biflowDirection (RFC 5103 6.3.1): the source began it, or which of the two is the source is arbitrary.
fn direction(client_known_by: &str) -> u8 {
    match client_known_by {
        "SYN" | "SYN_ACK" | "SERVER" => 1,
        _ => 0,
    }
}

/// flowEndReason (RFC 5102 5.11.3): 1 idle, 3 its end was seen, 4 ended from outside.
fn end_reason(close_kind: &str) -> u8 {
    match close_kind {
        "IGNORED" | "TIMEOUT" => 1,
        "OPEN" | "" => 4,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use weir_messages::v1::Endpoint;

    use super::*;

    fn connection(client: &str, server: &str) -> Connection {
        let end = |address: &str, port| {
            Some(Endpoint {
                address: address.to_owned(),
                port,
            })
        };
        Connection {
            client: end(client, 40_000),
            server: end(server, 80),
            ..Connection::default()
        }
    }

    fn sequences(messages: &[Vec<u8>]) -> Vec<u32> {
        let word = |m: &Vec<u8>| m[8..12].iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        messages.iter().map(word).collect()
    }

    #[test]
    fn messages_fit_and_number_their_records() {
        let mut exporter = Exporter::new(7, true);
        let mut messages = Vec::new();
        for i in 0..100 {
            let connection = if i % 3 == 0 {
                connection("fe80::1", "fe80::2")
            } else {
                connection("10.0.0.1", "10.0.0.2")
            };
            messages.extend(exporter.add(&connection, 1).expect("fits"));
        }
        messages.extend(exporter.finish(1));
        assert!(messages.len() > 5);
        for message in &messages {
            assert!(message.len() <= LONGEST_MESSAGE, "{}", message.len());
            assert_eq!(usize::from(message[2]) << 8 | usize::from(message[3]), message.len());
            assert_eq!(message[17], TEMPLATES as u8);
        }
        let numbers = sequences(&messages);
        assert!(numbers.is_sorted() && numbers[0] == 0 && numbers[1] > 0, "{numbers:?}");
        assert_eq!(exporter.sequence, 100);
    }

    #[test]
    fn templates_come_once_where_nothing_is_lost() {
        let mut exporter = Exporter::new(7, false);
        let mut messages = Vec::new();
        for _ in 0..50 {
            messages.extend(exporter.add(&connection("10.0.0.1", "10.0.0.2"), 1).expect("fits"));
        }
        messages.extend(exporter.finish(1));
        let with: Vec<_> = messages.iter().map(|m| m[17] == TEMPLATES as u8).collect();
        assert!(with[0] && !with[1..].contains(&true), "{with:?}");
    }

    #[test]
    fn ends_without_addresses_do_not_fit() {
        let mut exporter = Exporter::new(7, false);
        for (client, server) in [("", "10.0.0.1"), ("10.0.0.1", "fe80::1")] {
            assert_eq!(exporter.add(&connection(client, server), 1), Err(Unfit::Addresses));
        }
    }

    #[test]
    fn nothing_to_tell_still_makes_a_file() {
        let mut exporter = Exporter::new(7, false);
        assert_eq!(exporter.finish(1).map(|m| m.len()), Some(HEADER + templates().len()));
        assert_eq!(exporter.finish(1), None);
    }
}
