//! Where IPFIX messages go: a collector over UDP or TCP (RFC 7011 10.3, 10.4).

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::num::NonZeroU16;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// A collector that takes longer to answer or to read is as good as away.
const TIMEOUT: Duration = Duration::from_secs(10);
/// UDP has nothing to slow the sender down (RFC 7011 10.3.2): 1 MB a second at most.
const UDP_PAUSE: Duration = Duration::from_micros(1400);
/// That nobody listens is told by an ICMP error, a round trip after the message.
const UDP_ANSWER: Duration = Duration::from_millis(500);

/// Address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    udp: bool,
    host: String,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, host) = text.split_once("://").unwrap_or_default();
        let is_place = host
            .rsplit_once(':')
            .is_some_and(|(name, port)| !name.is_empty() && port.parse::<NonZeroU16>().is_ok());
        match scheme {
            "udp" | "tcp" if is_place => Ok(Self {
                udp: scheme == "udp",
                host: host.to_owned(),
            }),
            _ => Err("a collector as udp://HOST:4739 or tcp://HOST:4739".into()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.udp { "udp" } else { "tcp" }, self.host)
    }
}

impl Address {
    /// Messages may be lost on the way.
    pub const fn loses(&self) -> bool {
        self.udp
    }

    /// Open the way to it.
    pub fn connect(&self) -> io::Result<Collector> {
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in self.host.to_socket_addrs()? {
            match open(self.udp, address) {
                Ok(collector) => return Ok(collector),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

fn open(udp: bool, address: SocketAddr) -> io::Result<Collector> {
    if !udp {
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        return Ok(Collector::Tcp(stream));
    }
    let any: SocketAddr = if address.is_ipv4() {
        ([0; 4], 0).into()
    } else {
        ([0u16; 8], 0).into()
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    Ok(Collector::Udp(socket))
}

/// An open way to a collector.
#[derive(Debug)]
pub enum Collector {
    /// Each message is a datagram.
    Udp(UdpSocket),
    /// Messages follow each other.
    Tcp(TcpStream),
}

impl Collector {
    /// Send a message.
    pub fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Udp(socket) => {
                socket.send(message)?;
                std::thread::sleep(UDP_PAUSE);
                Ok(())
            }
            Self::Tcp(stream) => stream.write_all(message).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "it reads nothing"),
                _ => error,
            }),
        }
    }

    /// Everything was sent: whether the collector is known to have taken it. Over UDP the last messages may have met
    /// nobody, over TCP they may wait for a collector that goes away: both come to light a little later, as errors.
    pub fn finish(self) -> io::Result<bool> {
        let answer = match self {
            Self::Udp(socket) => {
                socket.set_read_timeout(Some(UDP_ANSWER))?;
                socket.recv(&mut [0]).map(|_| false)
            }
            Self::Tcp(mut stream) => {
                // Where it is gone already, reading tells why.
                let _ = stream.shutdown(Shutdown::Write);
                stream.set_read_timeout(Some(TIMEOUT))?;
                // It has nothing to say, and closes when it has read all.
                let deadline = Instant::now() + TIMEOUT;
                loop {
                    match stream.read(&mut [0; 512]) {
                        Ok(0) => break Ok(true),
                        Ok(_) if Instant::now() < deadline => {}
                        Ok(_) => break Ok(false),
                        Err(error) => break Err(error),
                    }
                }
            }
        };
        match answer {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            answer => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn addresses_have_a_transport_and_a_port() {
        for bad in [
            "",
            "host:4739",
            "udp://host",
            "sctp://host:4739",
            "udp://host:port",
            "udp://host:0",
            "tcp://:4739",
        ] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
        let good: Address = "udp://[::1]:4739".parse().expect("an address");
        assert!(good.loses());
        assert_eq!(good.to_string(), "udp://[::1]:4739");
    }

    #[test]
    fn a_message_that_nobody_takes_is_an_error_at_the_end() {
        let gone = UdpSocket::bind("127.0.0.1:0")
            .expect("a port")
            .local_addr()
            .expect("bound");
        let mut collector = open(true, gone).expect("UDP knows nothing yet");
        collector.send(b"message").expect("sent");
        let error = collector.finish().expect_err("nobody is there");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    /// What `finish` says of a collector over TCP that reads or not before it closes.
    fn finished(reads: bool) -> io::Result<bool> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut collector = open(false, listener.local_addr().expect("bound")).expect("connected");
        collector.send(b"message").expect("sent");
        let (mut stream, _) = listener.accept().expect("a connection");
        let reader = std::thread::spawn(move || match reads {
            true => stream.read_to_end(&mut Vec::new()),
            // There is something to read, and it is thrown away.
            false => stream.peek(&mut [0]),
        });
        let answer = collector.finish();
        reader.join().expect("a thread").expect("read");
        answer
    }

    #[test]
    fn a_collector_over_tcp_has_read_all_or_it_is_told() {
        assert!(finished(true).expect("read"));
        let error = finished(false).expect_err("not read");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}
