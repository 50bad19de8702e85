//! What the kernel itself says of its senders: TCP_INFO of every socket, asked for by `sock_diag(7)`.

use super::record::SenderRecord;
use crate::config::Scenario;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

// `linux/netlink.h`, `linux/sock_diag.h`, `linux/inet_diag.h`.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// NLM_F_REQUEST and NLM_F_DUMP.
const DUMP: u16 = 0x301;
const AF_INET: u8 = 2;
const IPPROTO_TCP: u8 = 6;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const NETLINK_HEADER: usize = 16;
const REQUEST: usize = NETLINK_HEADER + 56;
const DIAG_MESSAGE: usize = 72;
/// States with a sender: ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING (`net/tcp_states.h`).
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// `TCP_CA_Recovery` and what is above it (`linux/tcp.h`): a loss is being recovered.
const RECOVERY: u8 = 3;

/// The receiver's window counts as full when fewer segments than this would fit (Siekkinen et al.).
const ROOM: u64 = 3;

/// Connections, by their client's port, on which the application is inside a write: it has more to send.
#[derive(Debug, Default)]
pub(super) struct Writers(Mutex<BTreeSet<u16>>);

impl Writers {
    /// Calls `write` as one that writes to the connection.
    pub(super) fn during<T>(&self, client_port: u16, write: impl FnOnce() -> T) -> T {
        self.set(|ports| ports.insert(client_port));
        let result = write();
        self.set(|ports| ports.remove(&client_port));
        result
    }

    fn set<T>(&self, change: impl FnOnce(&mut BTreeSet<u16>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Looks at the senders of a side until it is stopped.
pub(super) struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Vec<SenderRecord>>>,
}

impl Sampler {
    /// Starts, if the scenario asks for it.
    pub(super) fn start(scenario: &Scenario, from_server: bool, writers: &Arc<Writers>) -> Option<Sampler> {
        let interval = Duration::from_secs_f64(scenario.app.tcp_info_ms / 1e3);
        if interval.is_zero() {
            return None;
        }
        let port = scenario.app.port;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, writers) = (Arc::clone(&stop), Arc::clone(writers));
        let thread = thread::spawn(move || {
            let socket = open()?;
            let mut senders = BTreeMap::new();
            let mut last = Instant::now();
            while !stopped.load(Ordering::Acquire) {
                let since = last.elapsed();
                last += since;
                look(&socket, port, from_server, &writers, since, &mut senders)?;
                thread::sleep(interval);
            }
            Ok(senders.into_values().collect())
        });
        Some(Sampler { stop, thread })
    }

    /// The last that was seen of each sender.
    pub(super) fn finish(self) -> io::Result<Vec<SenderRecord>> {
        self.stop.store(true, Ordering::Release);
        let panicked = || Err(io::Error::other("the sampler of TCP_INFO stopped short"));
        self.thread.join().unwrap_or_else(|_| panicked())
    }
}

fn open() -> io::Result<OwnedFd> {
    Ok(socket(
        AddressFamily::Netlink,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkSockDiag,
    )?)
}

/// Takes in the state of all sockets of the application, which stands for the time `since` the last look.
fn look(
    socket: &OwnedFd,
    port: u16,
    from_server: bool,
    writers: &Writers,
    since: Duration,
    senders: &mut BTreeMap<u16, SenderRecord>,
) -> io::Result<()> {
    send(socket.as_raw_fd(), &request(), MsgFlags::empty())?;
    let mut buffer = vec![0u8; 64 * 1024];
    let writing = writers.set(|ports| ports.clone());
    loop {
        let n = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        let mut rest = &buffer[..n];
        while let Some((kind, message, next)) = netlink_message(rest) {
            rest = next;
            match kind {
                NLMSG_DONE => return Ok(()),
                NLMSG_ERROR => return Err(io::Error::other("sock_diag refused the request for TCP_INFO")),
                _ => {}
            }
            if let Some(state) = State::parse(message) {
                state.enter(port, from_server, &writing, since, senders);
            }
        }
    }
}

fn request() -> [u8; REQUEST] {
    let mut out = [0u8; REQUEST];
    out[..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
    out[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    out[16] = AF_INET;
    out[17] = IPPROTO_TCP;
    out[18] = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    out[20..24].copy_from_slice(&STATES.to_ne_bytes());
    out
}

/// The first message of a buffer: its type, its content, what follows it.
fn netlink_message(buffer: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32_at(buffer, 0)? as usize;
    let content = buffer.get(NETLINK_HEADER..length)?;
    let next = buffer.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    Some((u16_at(buffer, 4)?, content, next))
}

/// What a message says of a socket.
struct State<'a> {
    local: u16,
    remote: u16,
    congestion_control: &'a str,
    info: &'a [u8],
}

impl<'a> State<'a> {
    fn parse(message: &'a [u8]) -> Option<State<'a>> {
        let port = |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
        let mut state = State {
            local: port(4)?,
            remote: port(6)?,
            congestion_control: "",
            info: &[],
        };
        let mut rest = message.get(DIAG_MESSAGE..)?;
        while let Some(length) = u16_at(rest, 0).map(usize::from).filter(|length| *length >= 4) {
            let content = rest.get(4..length)?;
            match u16_at(rest, 2)? {
                INET_DIAG_INFO => state.info = content,
                INET_DIAG_CONG => {
                    let text = content.split(|byte| *byte == 0).next()?;
                    state.congestion_control = std::str::from_utf8(text).ok()?;
                }
                _ => {}
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        }
        Some(state)
    }

    fn enter(
        &self,
        port: u16,
        from_server: bool,
        writing: &BTreeSet<u16>,
        since: Duration,
        senders: &mut BTreeMap<u16, SenderRecord>,
    ) {
        let (own, client_port) = if from_server {
            (self.local, self.remote)
        } else {
            (self.remote, self.local)
        };
        let Some(info) = Info::parse(self.info).filter(|_| own == port) else {
            return;
        };
        let record = senders.entry(client_port).or_insert_with(|| SenderRecord {
            from_server,
            client_port,
            congestion_control: self.congestion_control.into(),
            bytes_acked: 0,
            busy_us: 0,
            rwnd_limited_us: 0,
            sndbuf_limited_us: 0,
            data_us: 0,
            samples: 0,
            window_samples: 0,
            buffer_samples: 0,
        });
        record.bytes_acked = info.bytes_acked;
        record.busy_us = info.busy_us;
        record.rwnd_limited_us = info.rwnd_limited_us;
        record.sndbuf_limited_us = info.sndbuf_limited_us;
        let in_flight = info.bytes_sent.saturating_sub(info.bytes_retrans + info.bytes_acked);
        // Behind a closed window all that was sent may have arrived.
        if in_flight == 0 && info.not_sent == 0 {
            return;
        }
        record.data_us += since.as_micros() as u64;
        record.samples += 1;
        let is_full = u64::from(info.window) < in_flight + ROOM * u64::from(info.segment);
        record.window_samples += u64::from(info.not_sent > 0 && is_full);
        let waits = writing.contains(&client_port);
        record.buffer_samples += u64::from(info.not_sent == 0 && waits && info.has_room());
    }
}

/// Fields of `struct tcp_info` (`linux/tcp.h`).
struct Info {
    ca_state: u8,
    segment: u32,
    /// Segments: sent and not acknowledged; of those SACKed, lost, and sent again.
    unacked: u32,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    congestion_window: u32,
    bytes_acked: u64,
    not_sent: u32,
    busy_us: u64,
    rwnd_limited_us: u64,
    sndbuf_limited_us: u64,
    bytes_sent: u64,
    bytes_retrans: u64,
    window: u32,
}

impl Info {
    /// None from a kernel without them (`tcpi_snd_wnd` came with Linux 5.17).
    fn parse(b: &[u8]) -> Option<Info> {
        Some(Info {
            ca_state: *b.get(1)?,
            segment: u32_at(b, 16)?,
            unacked: u32_at(b, 24)?,
            sacked: u32_at(b, 28)?,
            lost: u32_at(b, 32)?,
            retransmitted: u32_at(b, 36)?,
            congestion_window: u32_at(b, 80)?,
            bytes_acked: u64_at(b, 120)?,
            not_sent: u32_at(b, 144)?,
            busy_us: u64_at(b, 168)?,
            rwnd_limited_us: u64_at(b, 176)?,
            sndbuf_limited_us: u64_at(b, 184)?,
            bytes_sent: u64_at(b, 200)?,
            bytes_retrans: u64_at(b, 208)?,
            window: u32_at(b, 228)?,
        })
    }

    /// Whether the congestion window would let more go. In a recovery what it lets go is sent again first; otherwise a sender that has sent
    /// all it has may fill it by chance.
    fn has_room(&self) -> bool {
        let in_network = (self.unacked + self.retransmitted).saturating_sub(self.sacked + self.lost);
        self.ca_state < RECOVERY || in_network < self.congestion_window
    }
}

fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(b.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(b.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(b: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(b.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    /// `TCP_INFO` with a state, segments not acknowledged, SACKed, lost and sent again, and a congestion window.
    fn info(ca_state: u8, segments: [u32; 4], congestion_window: u32) -> Info {
        let mut b = [0; 232];
        b[1] = ca_state;
        let window = (80, congestion_window);
        for (at, number) in (24..).step_by(4).zip(segments).chain([window]) {
            b[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        Info::parse(&b).unwrap()
    }

    #[test]
    fn a_congestion_window_that_repeats_fill_has_no_room() {
        assert!(!info(3, [69, 1, 55, 1], 14).has_room());
        assert!(info(3, [69, 2, 55, 1], 14).has_room());
        assert!(info(0, [24, 0, 0, 0], 24).has_room());
    }

    /// A socket of this process, as its kernel knows it.
    #[test]
    fn the_kernel_tells_of_a_sender() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let server = listener.accept().unwrap();
        client.write_all(&[7; 3000]).unwrap();
        let mut senders = BTreeMap::new();
        look(
            &open().unwrap(),
            port,
            false,
            &Writers::default(),
            Duration::ZERO,
            &mut senders,
        )
        .unwrap();
        let own = client.local_addr().unwrap().port();
        assert_eq!(senders.keys().copied().collect::<Vec<_>>(), [own]);
        // The SYN counts as a byte; the loopback acknowledges at once, or nearly so.
        assert!(senders[&own].bytes_acked <= 3001, "{senders:?}");
        assert!(!senders[&own].congestion_control.is_empty());
        drop(server);
    }
}
