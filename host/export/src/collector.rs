//! Where IPFIX messages go: a collector over UDP or TCP (RFC 7011 10.3, 10.4).

use std::fmt;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::str::FromStr;
use std::time::Duration;

/// A collector that takes longer to answer or to read is as good as away.
const TIMEOUT: Duration = Duration::from_secs(10);
/// UDP has nothing to slow the sender down (RFC 7011 10.3.2): 1 MB a second at most.
const UDP_PAUSE: Duration = Duration::from_micros(1400);

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
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        match scheme {
            "udp" | "tcp" if has_port => Ok(Self {
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
            Self::Tcp(stream) => stream.write_all(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_transport_and_a_port() {
        for bad in ["", "host:4739", "udp://host", "sctp://host:4739", "udp://host:port"] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
        let good: Address = "udp://[::1]:4739".parse().expect("an address");
        assert!(good.loses());
        assert_eq!(good.to_string(), "udp://[::1]:4739");
    }
}
