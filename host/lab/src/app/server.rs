//! The server: reads requests, works as long as the plan says, and responds.

use super::plan::{ConnectionPlan, RequestPlan};
use super::record::{RecordFile, ServerRecord, ServerTransaction};
use super::tcp_info::Sampler;
use super::{READY, Writing, compose, wait_for_stop, write_chunked};
use crate::clock::Clock;
use crate::config::{CloseMode, REQUEST_HEADER_LEN, Scenario};
use crate::netns::SERVER_ADDRESS;
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const BACKLOG: i32 = 1024;
const STACK_BYTES: usize = 256 * 1024;
/// How often, ten milliseconds apart, a stopping server looks whether its connections have ended.
const STOP_CHECKS: u32 = 500;

struct Server {
    scenario: Scenario,
    clock: Clock,
    writing: Writing,
    records: RecordFile,
    open_connections: AtomicUsize,
}

/// Serves until the lab stops us.
pub(super) fn run(scenario: &Scenario, clock: Clock, records: RecordFile) -> Result<(), String> {
    let listener = listen(scenario).map_err(|error| format!("listening: {error}"))?;
    println!("{READY}");
    io::stdout().flush().map_err(|error| error.to_string())?;
    let server = Arc::new(Server {
        scenario: scenario.clone(),
        clock,
        writing: Writing {
            clock,
            writers: Arc::default(),
        },
        records,
        open_connections: AtomicUsize::new(0),
    });
    let sampler = Sampler::start(scenario, true, &server.writing.writers);
    let acceptor = Arc::clone(&server);
    thread::spawn(move || accept_all(&listener, &acceptor));
    wait_for_stop();
    for _ in 0..STOP_CHECKS {
        if server.open_connections.load(Ordering::Acquire) == 0 {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    if let Some(sampler) = sampler {
        for sender in sampler.finish().map_err(|error| format!("TCP_INFO: {error}"))? {
            let written = server.records.write(&ServerRecord::Sender(sender));
            written.map_err(|error| error.to_string())?;
        }
    }
    server.records.flush().map_err(|error| error.to_string())
}

fn listen(scenario: &Scenario) -> io::Result<TcpListener> {
    let app = &scenario.app;
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    // Accepted sockets inherit all of this; the window scale depends on them, so they come before listen().
    if app.server_sndbuf > 0 {
        socket.set_send_buffer_size(app.server_sndbuf as usize)?;
    }
    if app.server_rcvbuf > 0 {
        socket.set_recv_buffer_size(app.server_rcvbuf as usize)?;
    }
    if !app.server_congestion.is_empty() {
        socket.set_tcp_congestion(app.server_congestion.as_bytes())?;
    }
    socket.bind(&SocketAddr::from((SERVER_ADDRESS, app.port)).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn accept_all(listener: &TcpListener, server: &Arc<Server>) {
    for stream in listener.incoming().flatten() {
        let handler = Arc::clone(server);
        server.open_connections.fetch_add(1, Ordering::AcqRel);
        let spawned = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            // A reset or a lost peer is the client's truth to tell.
            let _ = handler.serve(stream);
            handler.open_connections.fetch_sub(1, Ordering::AcqRel);
        });
        if spawned.is_err() {
            server.open_connections.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Server {
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(self.scenario.app.nodelay)?;
        stream.set_read_timeout(Some(Duration::from_secs_f64(self.scenario.time_limit_s)))?;
        let mut plan: Option<ConnectionPlan> = None;
        loop {
            let Some((header_ns, connection, index)) = self.read_header(&mut stream)? else {
                return Ok(());
            };
            let plan = plan.get_or_insert_with(|| ConnectionPlan::new(&self.scenario, connection));
            let Some(request) = plan.requests.get(index as usize) else {
                return Err(io::Error::new(ErrorKind::InvalidData, "a request that is not planned"));
            };
            let transaction = self.respond(&mut stream, header_ns, request)?;
            self.records.write(&ServerRecord::Transaction {
                connection,
                index,
                transaction,
            })?;
            let is_last = index as usize + 1 == plan.requests.len();
            if is_last && plan.close == CloseMode::ServerFin {
                return Ok(());
            }
        }
    }

    /// Times of the header's first and last byte, connection and request number; `None` at the end of the connection.
    fn read_header(&self, stream: &mut TcpStream) -> io::Result<Option<([u64; 2], u32, u32)>> {
        let mut header = [0u8; REQUEST_HEADER_LEN as usize];
        let n = stream.read(&mut header)?;
        let first_ns = self.clock.now_ns();
        if n == 0 {
            return Ok(None);
        }
        let mut last_ns = first_ns;
        if n < header.len() {
            stream.read_exact(&mut header[n..])?;
            last_ns = self.clock.now_ns();
        }
        let [c0, c1, c2, c3, i0, i1, i2, i3] = header;
        Ok(Some((
            [first_ns, last_ns],
            u32::from_be_bytes([c0, c1, c2, c3]),
            u32::from_be_bytes([i0, i1, i2, i3]),
        )))
    }

    /// Reads the rest of the request, works, responds.
    fn respond(
        &self,
        stream: &mut TcpStream,
        [first_ns, mut server_request_last_ns]: [u64; 2],
        plan: &RequestPlan,
    ) -> io::Result<ServerTransaction> {
        let mut left = plan.request.bytes.saturating_sub(REQUEST_HEADER_LEN);
        let mut buffer = [0u8; 16 * 1024];
        while left > 0 {
            let room = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let n = stream.read(&mut buffer[..room])?;
            server_request_last_ns = self.clock.now_ns();
            if n == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            left -= n as u64;
        }
        let client_port = stream.peer_addr()?.port();
        let response = plan.response;
        let message = compose(&[], response.bytes);
        thread::sleep(plan.server);
        let (server_response_start_ns, server_response_end_ns) = write_chunked(
            stream,
            client_port,
            &self.writing,
            &message,
            response.chunks,
            response.pause,
        )?;
        Ok(ServerTransaction {
            server_request_first_ns: first_ns,
            server_request_last_ns,
            server_work_ns: plan.server.as_nanos() as u64,
            server_response_start_ns,
            server_response_end_ns,
        })
    }
}
