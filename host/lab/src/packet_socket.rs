//! A raw packet socket on one interface: every frame that arrives there, and nothing that leaves there.

use nix::sys::socket::{LinkAddr, MsgFlags, bind, recv, send, setsockopt, sockopt::RcvBufForce};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

const ETH_P_ALL: u16 = 0x0003;
/// Room for bursts while the process is not scheduled.
const RECEIVE_BUFFER_BYTES: usize = 64 << 20;

// Classic BPF (`linux/filter.h`): load a word that the kernel supplies, jump if equal, return.
const BPF_LD_W_ABS: u16 = 0x20;
const BPF_JEQ_K: u16 = 0x15;
const BPF_RET_K: u16 = 0x06;
/// SKF_AD_OFF + SKF_AD_PKTTYPE.
const PACKET_TYPE_WORD: u32 = 0xffff_f000 + 4;
/// PACKET_OUTGOING (`linux/if_packet.h`).
const OUTGOING: u32 = 4;

/// The socket.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: Socket,
}

impl PacketSocket {
    /// Opens a socket on an interface of this namespace.
    pub(crate) fn open(interface: &str) -> io::Result<PacketSocket> {
        let address = link_address(interface)?;
        let protocol = Protocol::from(i32::from(ETH_P_ALL.to_be()));
        let socket = Socket::new(Domain::PACKET, Type::RAW.cloexec().nonblocking(), Some(protocol))?;
        // Until it is bound the socket hears every interface: refuse all, throw away what came before that.
        socket.attach_filter(&[SockFilter::new(BPF_RET_K, 0, 0, 0)])?;
        bind(socket.as_raw_fd(), &address)?;
        let mut scrap = [0u8; 64];
        while recv(socket.as_raw_fd(), &mut scrap, MsgFlags::MSG_DONTWAIT).is_ok() {}
        setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER_BYTES)?;
        socket.attach_filter(&[
            SockFilter::new(BPF_LD_W_ABS, 0, 0, PACKET_TYPE_WORD),
            SockFilter::new(BPF_JEQ_K, 0, 1, OUTGOING),
            SockFilter::new(BPF_RET_K, 0, 0, 0),
            SockFilter::new(BPF_RET_K, 0, 0, u32::MAX),
        ])?;
        Ok(PacketSocket { socket })
    }

    /// The next frame that waits, its true length (above the buffer's when it was cut); `None` when none waits.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match recv(
            self.socket.as_raw_fd(),
            buffer,
            MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC,
        ) {
            Ok(len) => Ok(Some(len)),
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a whole frame.
    pub(crate) fn transmit(&self, frame: &[u8]) -> io::Result<()> {
        send(self.socket.as_raw_fd(), frame, MsgFlags::empty())?;
        Ok(())
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The address that binds a packet socket to the interface; its protocol of 0 keeps the socket's own.
fn link_address(interface: &str) -> io::Result<LinkAddr> {
    nix::ifaddrs::getifaddrs()?
        .filter(|entry| entry.interface_name == interface)
        .find_map(|entry| entry.address?.as_link_addr().copied())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no interface {interface}")))
}
