//! Kernel network interfaces, and the drop counters of the sockets that drivers open on them.
//!
//! Drivers over kernel sockets do not report what the kernel dropped before them: net_af_packet
//! reports nothing, net_af_xdp not the frames for which its ring was full. The sockets are in
//! this process, so the kernel can be asked directly.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fs::DirEntry;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

/// What a kernel interface can do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// Frames can come and go.
    Up,
    /// Set down, or without a carrier: nothing arrives until that changes.
    Down,
    /// Removed, or moved to another network namespace. One that is made under the same name is another one.
    Gone,
}

/// A network interface of the calling thread's network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) index: u32,
    /// Largest packet behind the link header, in bytes, when asked.
    pub(crate) mtu: u32,
}

impl Interface {
    pub(crate) fn find(name: &str) -> io::Result<Self> {
        let text = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: a NUL-terminated string, only read.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            index,
            mtu: mtu(&text)?,
        })
    }

    /// The name now. By the number: a name may be given to another one, or change.
    fn name(&self) -> io::Result<CString> {
        let mut name = [0 as c_char; libc::IF_NAMESIZE];
        // SAFETY: room for the longest name.
        if unsafe { libc::if_indextoname(self.index, name.as_mut_ptr()) }.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has written a NUL-terminated name.
        Ok(unsafe { CStr::from_ptr(name.as_ptr()) }.to_owned())
    }

    /// Frames that the kernel was given to send there, by whomever, and dropped or could not send; `None` when the system
    /// does not tell.
    pub(crate) fn unsent(&self) -> Option<u64> {
        let table = std::fs::read_to_string("/proc/thread-self/net/dev").ok()?;
        unsent(&table, self.name().ok()?.to_str().ok()?)
    }

    /// The state now; `None` when the system does not tell.
    pub(crate) fn link(&self) -> Option<LinkState> {
        let name = match self.name() {
            Ok(name) => name,
            Err(error) => return (error.raw_os_error() == Some(libc::ENXIO)).then_some(LinkState::Gone),
        };
        let answer = ask(&name, libc::SIOCGIFFLAGS).ok()?;
        // SAFETY: SIOCGIFFLAGS fills this member of the union.
        let flags = c_int::from(unsafe { answer.ifr_ifru.ifru_flags });
        let up = libc::IFF_UP | libc::IFF_RUNNING;
        Some(if flags & up == up {
            LinkState::Up
        } else {
            LinkState::Down
        })
    }
}

fn mtu(name: &CStr) -> io::Result<u32> {
    Ok(mtu_of(&ask(name, libc::SIOCGIFMTU)?))
}

fn mtu_of(answer: &libc::ifreq) -> u32 {
    // SAFETY: SIOCGIFMTU fills this member of the union.
    let mtu = unsafe { answer.ifr_ifru.ifru_mtu };
    u32::try_from(mtu).unwrap_or(0)
}

/// The MTU of an interface, for those who ask with each burst: nobody tells when it is set.
#[derive(Debug)]
pub(crate) struct Mtu {
    interface: Interface,
    name: RefCell<CString>,
    socket: OwnedFd,
}

impl Mtu {
    pub(crate) fn of(interface: &Interface) -> io::Result<Self> {
        Ok(Self {
            interface: interface.clone(),
            name: RefCell::new(interface.name()?),
            socket: socket(libc::AF_INET, libc::SOCK_DGRAM)?,
        })
    }

    /// In bytes, now; `None` when the interface is gone.
    pub(crate) fn now(&self) -> Option<u32> {
        let ask = || {
            let mut request = about(&self.name.borrow()).ok()?;
            interface_ioctl_on(&self.socket, &mut request, libc::SIOCGIFMTU).ok()?;
            Some(mtu_of(&request))
        };
        ask().or_else(|| {
            // It may have another name by now.
            *self.name.borrow_mut() = self.interface.name().ok()?;
            ask()
        })
    }
}

/// What an interface of `/proc/net/dev` (proc_net(5)) could not send: its errors, and the frames that it dropped.
fn unsent(table: &str, name: &str) -> Option<u64> {
    /// Behind those of receiving and `bytes` and `packets`.
    const ERRORS: usize = 10;
    let counters = table.lines().find_map(|line| {
        let (this, counters) = line.split_once(':')?;
        (this.trim() == name).then_some(counters)
    })?;
    let mut sent = counters.split_whitespace().skip(ERRORS);
    let (errors, dropped) = (sent.next()?, sent.next()?);
    Some(errors.parse::<u64>().ok()? + dropped.parse::<u64>().ok()?)
}

/// Ways in which frames are joined on reception: a packet socket gets pieces of up to 64 KiB that never were on the wire.
/// By the names that `ethtool -K` takes, those that are on; none where the system does not tell.
pub(crate) fn joining(name: &str) -> Vec<&'static str> {
    /// `ETH_FLAG_LRO` among the flags of `ETHTOOL_GFLAGS`.
    const LRO: u32 = 1 << 15;
    let is_on = |question, bit| {
        let mut value = EthtoolValue {
            question,
            ..EthtoolValue::default()
        };
        CString::new(name).is_ok_and(|name| ethtool(&name, &mut value).is_ok()) && value.data & bit != 0
    };
    let (gro, lro) = (is_on(ETHTOOL_GGRO, u32::MAX), is_on(ETHTOOL_GFLAGS, LRO));
    [("gro", gro), ("lro", lro)]
        .into_iter()
        .filter_map(|(name, on)| on.then_some(name))
        .collect()
}

/// Receive queues of an interface: those that only receive, and those that send, too. `None` when the driver does not tell:
/// it has one.
pub(crate) fn receive_queues(name: &str) -> Option<[u32; 2]> {
    let mut channels = EthtoolChannels {
        question: ETHTOOL_GCHANNELS,
        ..EthtoolChannels::default()
    };
    ethtool(&CString::new(name).ok()?, &mut channels).ok()?;
    Some([channels.receive, channels.combined])
}

const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// `struct ethtool_value`.
#[repr(C)]
#[derive(Default)]
struct EthtoolValue {
    question: u32,
    data: u32,
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct EthtoolChannels {
    question: u32,
    most: [u32; 4],
    receive: u32,
    send: u32,
    other: u32,
    combined: u32,
}

/// The structures of `ethtool` questions that only read: the question stands first, the kernel fills in the rest.
trait Question {}
impl Question for EthtoolValue {}
impl Question for EthtoolChannels {}

fn ethtool<T: Question>(name: &CStr, question: &mut T) -> io::Result<()> {
    let mut request = about(name)?;
    request.ifr_ifru.ifru_data = std::ptr::from_mut(question).cast();
    interface_ioctl(&mut request, libc::SIOCETHTOOL as libc::Ioctl)
}

/// What the kernel answers to a question about an interface, one of netdevice(7) that only reads.
fn ask(name: &CStr, question: libc::Ioctl) -> io::Result<libc::ifreq> {
    let mut request = about(name)?;
    interface_ioctl(&mut request, question)?;
    Ok(request)
}

/// The beginning of a question about an interface.
fn about(name: &CStr) -> io::Result<libc::ifreq> {
    // SAFETY: ifreq is plain data, all zero is valid.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    let bytes = name.to_bytes();
    if bytes.len() >= request.ifr_name.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (place, &byte) in request.ifr_name.iter_mut().zip(bytes) {
        *place = byte as c_char;
    }
    Ok(request)
}

fn interface_ioctl(request: &mut libc::ifreq, question: libc::Ioctl) -> io::Result<()> {
    interface_ioctl_on(&socket(libc::AF_INET, libc::SOCK_DGRAM)?, request, question)
}

fn interface_ioctl_on(socket: &OwnedFd, request: &mut libc::ifreq, question: libc::Ioctl) -> io::Result<()> {
    // SAFETY: a valid ifreq with a NUL-terminated name, which the kernel fills; where it points to a structure, the caller
    // has it for as long.
    match unsafe { libc::ioctl(socket.as_raw_fd(), question, request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn socket(family: c_int, kind: c_int) -> io::Result<OwnedFd> {
    // SAFETY: makes a descriptor and nothing else.
    let descriptor = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// An interface that receives every frame. It is asked for by a socket, which takes no frame: the kernel counts who asks, and
/// forgets it with the socket, however the process ends. (Drivers set a flag of the interface instead, which stays.)
#[derive(Debug)]
pub(crate) struct Promiscuous(#[expect(dead_code, reason = "held open")] OwnedFd);

impl Promiscuous {
    pub(crate) fn new(interface: &Interface) -> io::Result<Self> {
        let socket = socket(libc::AF_PACKET, libc::SOCK_RAW)?;
        let request = libc::packet_mreq {
            mr_ifindex: interface.index as c_int,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        // SAFETY: the kernel reads a whole packet_mreq.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                std::ptr::from_ref(&request).cast(),
                size_of::<libc::packet_mreq>() as libc::socklen_t,
            )
        };
        match result {
            0 => Ok(Self(socket)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// A descriptor and what it is open on: the number alone may have been given to something else since.
pub(crate) type Descriptor = (RawFd, PathBuf);

/// The descriptors open now; empty when the system does not tell.
pub(crate) fn open_descriptors() -> BTreeSet<Descriptor> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return BTreeSet::new();
    };
    let describe = |entry: DirEntry| {
        Some((
            entry.file_name().to_str()?.parse().ok()?,
            entry.path().read_link().ok()?,
        ))
    };
    entries.flatten().filter_map(describe).collect()
}

/// The sockets a driver opened for a port, with what the kernel dropped at them.
#[derive(Debug, Default)]
pub(crate) struct DriverSockets {
    packet: Vec<OwnedFd>,
    xdp: Vec<OwnedFd>,
    /// The driver's own descriptors of these.
    driver_xdp: Vec<Descriptor>,
    /// The packet socket's counter starts again with each reading.
    packet_drops: u64,
}

impl DriverSockets {
    /// Finds the sockets that were opened since `before` was taken.
    pub(crate) fn opened_since(before: &BTreeSet<Descriptor>, interface: &Interface) -> Self {
        let mut found = Self::default();
        for (descriptor, target) in open_descriptors().difference(before) {
            let descriptor = *descriptor;
            match option::<c_int>(descriptor, libc::SOL_SOCKET, libc::SO_DOMAIN) {
                Some(libc::AF_PACKET) if is_ring_on(descriptor, interface.index) => {
                    found.packet.extend(duplicate(descriptor));
                }
                Some(libc::AF_XDP) => {
                    found.xdp.extend(duplicate(descriptor));
                    found.driver_xdp.push((descriptor, target.clone()));
                }
                _ => {}
            }
        }
        found
    }

    /// What packet sockets dropped until now does not count.
    pub(crate) fn forget(&mut self) {
        self.unreported();
        self.packet_drops = 0;
    }

    /// What the kernel counts and the driver does not report: `None` when no socket was found.
    pub(crate) fn unreported(&mut self) -> Option<Unreported> {
        let mut sum = Unreported::default();
        for socket in &self.packet {
            let statistics: libc::tpacket_stats =
                option(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
            self.packet_drops += u64::from(statistics.tp_drops);
        }
        for socket in &self.xdp {
            let statistics: libc::xdp_statistics = option(socket.as_raw_fd(), libc::SOL_XDP, libc::XDP_STATISTICS)?;
            // rx_dropped is what the driver reports as missed.
            sum.missed += statistics.rx_ring_full;
            sum.receive_errors += statistics.rx_invalid_descs;
            sum.send_errors += statistics.tx_invalid_descs;
        }
        sum.missed += self.packet_drops;
        (!self.packet.is_empty() || !self.xdp.is_empty()).then_some(sum)
    }
}

impl Drop for DriverSockets {
    /// To be dropped after the port was closed: net_af_xdp leaves its socket open, which keeps the interface's queue
    /// taken for the life of the process.
    fn drop(&mut self) {
        let open = open_descriptors();
        for left_behind in self.driver_xdp.iter().filter(|&own| open.contains(own)) {
            // SAFETY: the same descriptor of the same socket that the driver opened for the port that is closed.
            unsafe { libc::close(left_behind.0) };
        }
    }
}

/// Counters of the kernel's side of a driver's sockets, in frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unreported {
    /// Dropped for want of room.
    pub(crate) missed: u64,
    /// Buffers for receiving that the kernel refused.
    pub(crate) receive_errors: u64,
    /// Frames to send that the kernel refused.
    pub(crate) send_errors: u64,
}

/// A duplicate stays valid when the driver closes its own.
fn duplicate(descriptor: RawFd) -> Option<OwnedFd> {
    // SAFETY: fcntl on any number is harmless; a new descriptor comes back or -1.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
    // SAFETY: just made, no other owner.
    (copy >= 0).then(|| unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Whether a packet socket is bound to the interface and is set as the driver sets its ring:
/// another part of the program may open packet sockets at the same moment.
fn is_ring_on(descriptor: RawFd, interface_index: u32) -> bool {
    let mut address = MaybeUninit::<libc::sockaddr_ll>::zeroed();
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes of the address.
    let result = unsafe { libc::getsockname(descriptor, address.as_mut_ptr().cast(), &mut length) };
    // SAFETY: zeroed, so initialised whatever the kernel wrote.
    let address = unsafe { address.assume_init() };
    let version = option::<c_int>(descriptor, libc::SOL_PACKET, libc::PACKET_VERSION);
    result == 0
        && u32::try_from(address.sll_ifindex) == Ok(interface_index)
        && version == Some(libc::tpacket_versions::TPACKET_V2 as c_int)
}

/// A socket option of plain data; `None` when the kernel does not give all of it.
fn option<T: PlainData>(descriptor: RawFd, level: c_int, name: c_int) -> Option<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes of the value.
    let result = unsafe { libc::getsockopt(descriptor, level, name, value.as_mut_ptr().cast(), &mut length) };
    if result != 0 || length as usize != size_of::<T>() {
        return None;
    }
    // SAFETY: zeroed before and `T` is plain data: any bytes are a value.
    Some(unsafe { value.assume_init() })
}

/// Types for which any bytes are a value.
trait PlainData {}
impl PlainData for c_int {}
impl PlainData for libc::tpacket_stats {}
impl PlainData for libc::xdp_statistics {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_reused_number_is_a_new_descriptor() {
        let before = open_descriptors();
        // The listing's own descriptor was among them and its number is free again.
        let sockets: Vec<_> = (0..3)
            .map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap())
            .collect();
        let after = open_descriptors();
        let new: Vec<RawFd> = after.difference(&before).map(|&(descriptor, _)| descriptor).collect();
        assert!(
            sockets.iter().all(|socket| new.contains(&socket.as_raw_fd())),
            "{new:?}"
        );
    }

    #[test]
    fn what_an_interface_did_not_send_is_found_by_its_name() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
                     face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
                     lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n eth10: 0 0 0 0 0 0 0 0 0 0 3 4 0 0 0 0\n";
        assert_eq!(unsent(table, "lo"), Some(23));
        assert_eq!(unsent(table, "eth10"), Some(7));
        assert_eq!(unsent(table, "eth1"), None);
        assert_eq!(unsent("lo: 1 2", "lo"), None);
    }

    #[test]
    fn the_loopback_interface_is_known() {
        let loopback = Interface::find("lo").unwrap();
        assert!(loopback.unsent().is_some());
        assert_eq!(Mtu::of(&loopback).unwrap().now(), Some(loopback.mtu));
        assert!(loopback.index > 0 && loopback.mtu >= 1500, "{loopback:?}");
        assert_eq!(loopback.link(), Some(LinkState::Up));
        let removed = Interface {
            index: u32::MAX >> 1,
            ..loopback
        };
        assert_eq!(removed.link(), Some(LinkState::Gone));
        assert!(Interface::find("nosuchif0").is_err());
        assert!(Interface::find("a name that is much too long").is_err());
    }

    #[test]
    fn what_the_kernel_does_to_frames_is_asked() {
        // The loopback interface joins what it receives unless somebody has told it not to, and has no queues to tell of.
        let joining = joining("lo");
        assert!(joining.iter().all(|way| ["gro", "lro"].contains(way)), "{joining:?}");
        assert_eq!(receive_queues("lo"), None);
        assert!(super::joining("nosuchif0").is_empty());
        assert_eq!(receive_queues("a name that is much too long"), None);
    }
}
