//! The application's truth: JSON Lines of what each side did and when. All times in UTC nanoseconds.

use crate::config::CloseMode;
use crate::error::LabError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// How an attempt to connect ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Connected.
    Connected,
    /// The peer answered with a reset.
    Refused,
    /// Nobody answered in time.
    TimedOut,
    /// Anything else; see the error.
    Failed,
}

/// A connection as its client knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConnectionRecord {
    /// Number of the connection.
    pub(crate) connection: u32,
    /// Client's address.
    pub(crate) client: IpAddr,
    /// Client's port.
    pub(crate) client_port: u16,
    /// Server's address.
    pub(crate) server: IpAddr,
    /// Server's port.
    pub(crate) server_port: u16,
    /// Before connect().
    pub(crate) connect_start_ns: u64,
    /// After connect().
    pub(crate) connect_end_ns: u64,
    /// What came of it.
    pub(crate) outcome: Outcome,
    /// Transactions finished.
    pub(crate) transactions: u32,
    /// The planned end; absent if never connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) close: Option<CloseMode>,
    /// When the client let go of the socket.
    pub(crate) close_ns: u64,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// A transaction as its client knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClientTransaction {
    /// Number of the connection.
    pub(crate) connection: u32,
    /// Number of the transaction on it, from 0.
    pub(crate) index: u32,
    /// Request size.
    pub(crate) request_bytes: u64,
    /// Writes it was sent in.
    pub(crate) request_chunks: u64,
    /// Response size.
    pub(crate) response_bytes: u64,
    /// Writes it was sent in.
    pub(crate) response_chunks: u64,
    /// Pause declared before the request.
    pub(crate) think_ns: u64,
    /// Before the first write.
    pub(crate) request_write_start_ns: u64,
    /// After the last write.
    pub(crate) request_write_end_ns: u64,
    /// After the read that brought the first byte.
    pub(crate) response_first_ns: u64,
    /// After the read that brought the last byte.
    pub(crate) response_last_ns: u64,
}

/// A transaction as its server knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerTransaction {
    /// After the read that brought the first byte of the request.
    pub(crate) server_request_first_ns: u64,
    /// After the read that brought its last byte.
    pub(crate) server_request_last_ns: u64,
    /// Work declared between the two.
    pub(crate) server_work_ns: u64,
    /// Before the first write of the response.
    pub(crate) server_response_start_ns: u64,
    /// After the last write.
    pub(crate) server_response_end_ns: u64,
}

/// What the kernel says of the sender of one direction of a connection (TCP_INFO), last seen before its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SenderRecord {
    /// The server's side sent.
    pub(crate) from_server: bool,
    /// Which connection.
    pub(crate) client_port: u16,
    /// Name of the congestion control.
    pub(crate) congestion_control: String,
    /// Bytes acknowledged, with those of SYN and FIN.
    pub(crate) bytes_acked: u64,
    /// Data waited or was in flight.
    pub(crate) busy_us: u64,
    /// Of that: the receiver's window did not let the next segment go, and nothing else kept it back.
    pub(crate) rwnd_limited_us: u64,
    /// Of that: all was sent, and the application waited for room in the send buffer.
    pub(crate) sndbuf_limited_us: u64,
    /// Data was in flight or waited, by the looks at it. Unlike `busy_us`, without the round trip of the FIN.
    pub(crate) data_us: u64,
    /// Looks at it in that time.
    pub(crate) samples: u64,
    /// Of those: data waited, and the receiver's window had room for less than three segments.
    pub(crate) window_samples: u64,
    /// Of those: all that was written was sent, the application was inside a write (it waited for room), and no recovery filled the
    /// congestion window.
    pub(crate) buffer_samples: u64,
}

/// A line of the client's file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ClientRecord {
    /// One per attempt.
    Connection(ConnectionRecord),
    /// One per finished transaction.
    Transaction(ClientTransaction),
    /// One per connection, when TCP_INFO is looked at.
    Sender(SenderRecord),
}

/// A line of the server's file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ServerRecord {
    /// One per finished transaction.
    Transaction {
        /// Number of the connection.
        connection: u32,
        /// Number of the transaction on it.
        index: u32,
        /// What the server knows.
        #[serde(flatten)]
        transaction: ServerTransaction,
    },
    /// One per connection, when TCP_INFO is looked at.
    Sender(SenderRecord),
}

/// A line of the joined file, to read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum TruthLine {
    /// An attempt to connect.
    Connection(ConnectionRecord),
    /// A transaction that both sides finished, or only the client.
    Transaction {
        /// The client's part.
        #[serde(flatten)]
        client: ClientTransaction,
        /// The server's part.
        #[serde(flatten)]
        server: Option<ServerTransaction>,
    },
    /// A sender.
    Sender(SenderRecord),
}

/// A line of the joined file.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Joined<'a> {
    /// A connection, a sender, or a transaction that the server did not finish.
    Client(&'a ClientRecord),
    /// A sender.
    Server(&'a ServerRecord),
    /// Both sides of a transaction.
    Both {
        #[serde(flatten)]
        client: &'a ClientRecord,
        #[serde(flatten)]
        server: &'a ServerTransaction,
    },
}

/// Puts what the server knows beside what the client knows, in the order of connections, each followed by its
/// transactions; senders come last.
pub(crate) fn join<'a>(client: &'a mut [ClientRecord], server: &'a [ServerRecord]) -> Vec<Joined<'a>> {
    let by_number: HashMap<_, _> = server
        .iter()
        .filter_map(|record| match record {
            ServerRecord::Transaction {
                connection,
                index,
                transaction,
            } => Some(((*connection, *index), transaction)),
            ServerRecord::Sender(_) => None,
        })
        .collect();
    client.sort_by_key(|record| match record {
        ClientRecord::Connection(connection) => (connection.connection, 0),
        ClientRecord::Transaction(transaction) => (transaction.connection, transaction.index + 1),
        ClientRecord::Sender(_) => (u32::MAX, 0),
    });
    let senders = server.iter().filter(|record| matches!(record, ServerRecord::Sender(_)));
    client
        .iter()
        .map(|record| match record {
            ClientRecord::Transaction(transaction) => by_number
                .get(&(transaction.connection, transaction.index))
                .map_or(Joined::Client(record), |server| Joined::Both { client: record, server }),
            ClientRecord::Connection(_) | ClientRecord::Sender(_) => Joined::Client(record),
        })
        .chain(senders.map(Joined::Server))
        .collect()
}

/// Reads a file of records.
pub(crate) fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, LabError> {
    let doing = || format!("reading {}", path.display());
    let file = File::open(path).map_err(LabError::io(doing()))?;
    BufReader::new(file)
        .lines()
        .map(|line| {
            let line = line.map_err(LabError::io(doing()))?;
            serde_json::from_str(&line).map_err(|error| LabError::io(doing())(error.into()))
        })
        .collect()
}

/// A file that several threads write records to.
#[derive(Debug)]
pub(super) struct RecordFile {
    out: Mutex<BufWriter<File>>,
}

impl RecordFile {
    /// An empty file.
    pub(super) fn create(path: &Path) -> io::Result<RecordFile> {
        Ok(RecordFile {
            out: Mutex::new(BufWriter::new(File::create(path)?)),
        })
    }

    /// Adds a record.
    pub(super) fn write(&self, record: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.out.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }

    /// Hands all records to the file.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn both_sides_of_a_transaction_become_one_line() {
        let transaction = ClientTransaction {
            connection: 3,
            index: 1,
            request_bytes: 10,
            request_chunks: 1,
            response_bytes: 20,
            response_chunks: 2,
            think_ns: 0,
            request_write_start_ns: 1,
            request_write_end_ns: 2,
            response_first_ns: 8,
            response_last_ns: 9,
        };
        let server = ServerTransaction {
            server_request_first_ns: 3,
            server_request_last_ns: 4,
            server_work_ns: 1,
            server_response_start_ns: 5,
            server_response_end_ns: 6,
        };
        let mut client = [
            ClientRecord::Transaction(transaction.clone()),
            ClientRecord::Transaction(ClientTransaction {
                index: 0,
                ..transaction
            }),
        ];
        let server = [ServerRecord::Transaction {
            connection: 3,
            index: 1,
            transaction: server,
        }];
        let lines: Vec<serde_json::Value> = join(&mut client, &server)
            .iter()
            .map(|line| serde_json::to_value(line).unwrap())
            .collect();
        assert_eq!(lines[0]["index"], 0);
        assert!(lines[0].get("server_work_ns").is_none());
        assert_eq!(lines[1]["type"], "transaction");
        assert_eq!(
            (&lines[1]["request_bytes"], &lines[1]["server_response_start_ns"]),
            (&10.into(), &5.into())
        );
        let read: Vec<TruthLine> = lines
            .into_iter()
            .map(|line| serde_json::from_value(line).unwrap())
            .collect();
        let has_server = |line: &TruthLine| matches!(line, TruthLine::Transaction { server: Some(_), .. });
        assert_eq!(read.iter().map(has_server).collect::<Vec<_>>(), [false, true]);
    }
}
