//! The client: workers that open connections one after the other and send requests on them.

use super::plan::{ConnectionPlan, RequestPlan};
use super::record::{ClientRecord, ClientTransaction, ConnectionRecord, Outcome, RecordFile};
use super::tcp_info::Sampler;
use super::{Writing, compose, wait_for_stop, write_chunked};
use crate::clock::Clock;
use crate::config::{CloseMode, Scenario};
use crate::netns::{CLIENT_ADDRESS, SERVER_ADDRESS};
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Requests,
    Refused,
    Ignored,
}

struct Client<'a> {
    scenario: &'a Scenario,
    clock: Clock,
    writing: Writing,
    records: RecordFile,
}

/// Makes all connections of the scenario, then returns.
pub(super) fn run(scenario: &Scenario, clock: Clock, records: RecordFile) -> Result<(), String> {
    thread::spawn(|| {
        wait_for_stop();
        std::process::exit(1);
    });
    let client = Client {
        scenario,
        clock,
        writing: Writing {
            clock,
            writers: Arc::default(),
        },
        records,
    };
    let sampler = Sampler::start(scenario, false, &client.writing.writers);
    let attempts = attempts(scenario);
    let next = AtomicUsize::new(0);
    let outcomes: Vec<io::Result<()>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..scenario.app.concurrency)
            .map(|_| {
                scope.spawn(|| {
                    while let Some(&(id, purpose)) = attempts.get(next.fetch_add(1, Ordering::Relaxed)) {
                        client.attempt(id, purpose)?;
                    }
                    Ok(())
                })
            })
            .collect();
        let panicked = || Err(io::Error::other("a worker stopped short"));
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| panicked()))
            .collect()
    });
    for outcome in outcomes {
        outcome.map_err(|error| error.to_string())?;
    }
    if let Some(sampler) = sampler {
        for sender in sampler.finish().map_err(|error| format!("TCP_INFO: {error}"))? {
            let written = client.records.write(&ClientRecord::Sender(sender));
            written.map_err(|error| error.to_string())?;
        }
    }
    client.records.flush().map_err(|error| error.to_string())
}

/// All attempts in the order in which they are made: those that will fail are spread among the others.
fn attempts(scenario: &Scenario) -> Vec<(u32, Purpose)> {
    let app = &scenario.app;
    let mut attempts: Vec<_> = (0..app.connections).map(|id| (id, Purpose::Requests)).collect();
    let purposes = std::iter::repeat_n(Purpose::Ignored, app.ignored as usize)
        .chain(std::iter::repeat_n(Purpose::Refused, app.refused as usize));
    let failing = (app.refused + app.ignored) as usize;
    for (number, purpose) in purposes.enumerate() {
        let place = (attempts.len() * (number + 1)) / (failing + 1);
        attempts.insert(place, (app.connections + number as u32, purpose));
    }
    attempts
}

impl Client<'_> {
    /// One connection from its first SYN to its end. Only an error of the record file is returned: what goes wrong on
    /// the connection is part of the truth.
    fn attempt(&self, id: u32, purpose: Purpose) -> io::Result<()> {
        let app = &self.scenario.app;
        let plan = ConnectionPlan::new(self.scenario, id);
        thread::sleep(plan.gap);
        let port = match purpose {
            Purpose::Requests => app.port,
            Purpose::Refused => app.refused_port(),
            Purpose::Ignored => app.ignored_port(),
        };
        let server = SocketAddr::from((SERVER_ADDRESS, port));
        let socket = self.open_socket()?;
        // Bound before it connects, so that the port is known even if nobody answers.
        let client = socket
            .local_addr()?
            .as_socket()
            .ok_or_else(|| io::Error::other("a socket without an address"))?;
        let timeout = match purpose {
            Purpose::Ignored => Duration::from_secs_f64(app.ignored_timeout_ms / 1e3),
            Purpose::Requests | Purpose::Refused => Duration::from_secs_f64(self.scenario.time_limit_s),
        };

        let connect_start_ns = self.clock.now_ns();
        let connected = socket.connect_timeout(&server.into(), timeout);
        let connect_end_ns = self.clock.now_ns();
        let mut record = ConnectionRecord {
            connection: id,
            client: client.ip(),
            client_port: client.port(),
            server: server.ip(),
            server_port: server.port(),
            connect_start_ns,
            connect_end_ns,
            outcome: match connected.as_ref().map_err(io::Error::kind) {
                Ok(()) => Outcome::Connected,
                Err(ErrorKind::ConnectionRefused) => Outcome::Refused,
                Err(ErrorKind::TimedOut) => Outcome::TimedOut,
                Err(_) => Outcome::Failed,
            },
            transactions: 0,
            close: None,
            close_ns: 0,
            error: None,
        };
        match connected {
            Ok(()) => {
                record.close = Some(plan.close);
                if let Err(error) = self.converse(socket, &plan, &mut record) {
                    record.error = Some(error.to_string());
                }
            }
            Err(error) => {
                drop(socket);
                if record.outcome == Outcome::Failed {
                    record.error = Some(error.to_string());
                }
            }
        }
        record.close_ns = self.clock.now_ns();
        self.records.write(&ClientRecord::Connection(record))
    }

    fn open_socket(&self) -> io::Result<Socket> {
        let app = &self.scenario.app;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        if app.client_sndbuf > 0 {
            socket.set_send_buffer_size(app.client_sndbuf as usize)?;
        }
        if app.client_rcvbuf > 0 {
            socket.set_recv_buffer_size(app.client_rcvbuf as usize)?;
        }
        if !app.client_congestion.is_empty() {
            socket.set_tcp_congestion(app.client_congestion.as_bytes())?;
        }
        socket.set_tcp_nodelay(app.nodelay)?;
        socket.bind(&SocketAddr::from((CLIENT_ADDRESS, 0)).into())?;
        Ok(socket)
    }

    /// Requests and responses, then the close.
    fn converse(&self, socket: Socket, plan: &ConnectionPlan, record: &mut ConnectionRecord) -> io::Result<()> {
        let patience_s = match self.scenario.app.patience_ms {
            0.0 => self.scenario.time_limit_s,
            ms => ms / 1e3,
        };
        socket.set_read_timeout(Some(Duration::from_secs_f64(patience_s)))?;
        let mut stream = TcpStream::from(socket);
        let last = plan.requests.len().saturating_sub(1);
        for (index, request) in plan.requests.iter().enumerate() {
            let half_close = index == last && plan.close == CloseMode::ClientHalfClose;
            let transaction = self.transact(&mut stream, (record.connection, index as u32), request, half_close)?;
            self.records.write(&ClientRecord::Transaction(transaction))?;
            record.transactions += 1;
        }
        match plan.close {
            CloseMode::ClientFin => Ok(()),
            CloseMode::ClientHalfClose | CloseMode::ServerFin => match stream.read(&mut [0])? {
                0 => Ok(()),
                _ => Err(io::Error::other("more bytes than the response has")),
            },
            CloseMode::ClientRst => Socket::from(stream).set_linger(Some(Duration::ZERO)),
        }
    }

    fn transact(
        &self,
        stream: &mut TcpStream,
        (connection, index): (u32, u32),
        plan: &RequestPlan,
        half_close: bool,
    ) -> io::Result<ClientTransaction> {
        let client_port = stream.local_addr()?.port();
        let mut header = connection.to_be_bytes().to_vec();
        header.extend_from_slice(&index.to_be_bytes());
        let request = plan.request;
        let message = compose(&header, request.bytes);
        thread::sleep(plan.think);
        let (request_write_start_ns, request_write_end_ns) = write_chunked(
            stream,
            client_port,
            &self.writing,
            &message,
            request.chunks,
            request.pause,
        )?;
        if half_close {
            stream.shutdown(Shutdown::Write)?;
        }

        let mut response_first_ns = 0;
        let mut response_last_ns = 0;
        let mut left = plan.response.bytes;
        let mut buffer = vec![0u8; 64 * 1024];
        let pause = Duration::from_secs_f64(self.scenario.app.read_pause_ms / 1e3);
        while left > 0 {
            thread::sleep(pause);
            let room = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let n = stream.read(&mut buffer[..room])?;
            response_last_ns = self.clock.now_ns();
            if n == 0 {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "closed before the response was complete",
                ));
            }
            if left == plan.response.bytes {
                response_first_ns = response_last_ns;
            }
            left -= n as u64;
        }
        Ok(ClientTransaction {
            connection,
            index,
            request_bytes: request.bytes,
            request_chunks: request.chunks,
            response_bytes: plan.response.bytes,
            response_chunks: plan.response.chunks,
            think_ns: plan.think.as_nanos() as u64,
            request_write_start_ns,
            request_write_end_ns,
            response_first_ns,
            response_last_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_attempts_are_spread_and_numbered_after_the_others() {
        let mut scenario = Scenario::default();
        scenario.app.connections = 4;
        scenario.app.refused = 1;
        scenario.app.ignored = 1;
        let attempts = attempts(&scenario);
        assert_eq!(attempts.len(), 6);
        assert_eq!(attempts[1], (4, Purpose::Ignored));
        assert_eq!(attempts[3], (5, Purpose::Refused));
    }
}
