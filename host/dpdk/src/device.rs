//! Device names as users write them, and what DPDK is told for them.

use std::fmt;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::netif;
use crate::pool::LARGEST_BUFFER;
use crate::sys;

/// A device to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// `pcap:FILE`: a capture file, replayed once and as fast as it is polled.
    Pcap(PathBuf),
    /// `eth:NAME`: a kernel network interface through a packet socket.
    Eth(String),
    /// `xdp:NAME`: a kernel network interface through an XDP socket.
    Xdp(String),
    /// `null`: frames of 64 zero bytes without end; what is sent to it disappears.
    Null,
    /// A PCI address or a virtual device with its settings, as DPDK writes them.
    Raw(String),
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let device = match text.split_once(':') {
            Some(("pcap", file)) if !file.is_empty() => Self::Pcap(PathBuf::from(file)),
            Some(("eth", name)) if !name.is_empty() => Self::Eth(name.to_owned()),
            Some(("xdp", name)) if !name.is_empty() => Self::Xdp(name.to_owned()),
            Some(("pcap" | "eth" | "xdp", _)) => {
                return Err(Error::new(
                    ErrorKind::Argument,
                    format!("`{text}` names no device; write pcap:FILE, eth:INTERFACE or xdp:INTERFACE"),
                ));
            }
            _ if text == "null" => Self::Null,
            _ if text.is_empty() || text.contains(['\0', '\n']) => {
                return Err(Error::new(
                    ErrorKind::Argument,
                    "a device name is empty; write pcap:FILE, eth:INTERFACE, xdp:INTERFACE, null, a PCI address or a DPDK device string",
                ));
            }
            _ if is_dpdk(text) => Self::Raw(text.to_owned()),
            _ => return Err(Error::new(ErrorKind::Argument, format!("`{text}` {}", meant(text)))),
        };
        Ok(device)
    }
}

/// Whether a text has the form of a DPDK device: a PCI address, `BUS:DEVICE`, or a virtual device, which has its driver's name.
fn is_dpdk(text: &str) -> bool {
    let buses = ["auxiliary", "dpaa_bus", "fslmc", "pci", "vdev", "vmbus"];
    let is_bus = |bus: &str| buses.contains(&bus) || bus.bytes().all(|byte| byte.is_ascii_hexdigit());
    let drivers = ["net_", "eth_", "virtio_user"];
    drivers.iter().any(|driver| text.starts_with(driver)) || text.split_once(':').is_some_and(|(bus, _)| is_bus(bus))
}

/// What may have been meant by a text that names no device.
fn meant(text: &str) -> String {
    if netif::Interface::find(text).is_ok() {
        format!("is a kernel interface; write eth:{text} or xdp:{text}")
    } else if Path::new(text).is_file() {
        format!("is a file; write pcap:{text}")
    } else {
        "is no device; write pcap:FILE, eth:INTERFACE, xdp:INTERFACE, null, a PCI address or a DPDK device as in --vdev"
            .into()
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pcap(path) => write!(formatter, "pcap:{}", path.display()),
            Self::Eth(name) => write!(formatter, "eth:{name}"),
            Self::Xdp(name) => write!(formatter, "xdp:{name}"),
            Self::Null => formatter.write_str("null"),
            Self::Raw(text) => formatter.write_str(text),
        }
    }
}

/// What DPDK is told to make the device, and what is known of it beforehand.
#[derive(Debug)]
pub(crate) struct Probe {
    /// The device's name inside DPDK.
    pub(crate) name: String,
    /// Name and settings.
    pub(crate) devargs: String,
    /// Buffers must take this many bytes of frame data.
    pub(crate) buffer_bytes: u16,
    /// The kernel interface behind it.
    pub(crate) interface: Option<netif::Interface>,
    /// A received frame of at least this length was probably cut to it by the kernel.
    pub(crate) cut_length: Option<u32>,
    /// Receive stamps and the end of traffic come from a file.
    pub(crate) replay: bool,
    /// The replayed file: open as long as DPDK reads it through this descriptor.
    pub(crate) file: Option<File>,
}

/// Frame data of a buffer for devices that do not ask for more: 1500-byte MTU with tags, and some.
const USUAL_BUFFER: u16 = 2048;

/// Makes names unique: a user may open the same kind of device any number of times.
static NEXT_NAME: AtomicU32 = AtomicU32::new(0);

/// What to tell DPDK for a device.
///
/// # Errors
/// [`ErrorKind::Device`] when the file or interface is not there: DPDK's own message would not say so.
pub(crate) fn probe_for(device: &Device) -> Result<Probe> {
    let number = NEXT_NAME.fetch_add(1, Ordering::Relaxed);
    let plain = |name: String, devargs: String| Probe {
        name,
        devargs,
        buffer_bytes: USUAL_BUFFER,
        interface: None,
        cut_length: None,
        replay: false,
        file: None,
    };
    match device {
        Device::Pcap(path) => {
            let named =
                |error: std::io::Error| Error::new(ErrorKind::Device, format!("{device} cannot be opened: {error}"));
            let file = File::open(path).map_err(named)?;
            if !file.metadata().map_err(named)?.is_file() {
                return Err(Error::new(ErrorKind::Device, format!("{device} is not a regular file")));
            }
            let name = format!("net_pcap_w{number}");
            // By descriptor: DPDK's settings cannot hold a comma or a bracket, file names can.
            let devargs = format!("{name},rx_pcap=/proc/self/fd/{}", file.as_raw_fd());
            Ok(Probe {
                replay: true,
                file: Some(file),
                ..plain(name, devargs)
            })
        }
        Device::Eth(interface_name) => {
            let interface = interface(device, interface_name)?;
            let name = format!("net_af_packet_w{number}");
            let slot = slot_bytes(interface.mtu);
            let devargs = format!(
                "{name},iface={interface_name},blocksz={},framesz={slot},framecnt={},qdisc_bypass=1",
                slot.max(65_536),
                RING_BYTES / slot,
            );
            Ok(Probe {
                buffer_bytes: u16::try_from(slot).unwrap_or(LARGEST_BUFFER),
                cut_length: Some(slot - SLOT_HEADER),
                interface: Some(interface),
                ..plain(name, devargs)
            })
        }
        Device::Xdp(interface_name) => {
            let interface = interface(device, interface_name)?;
            if interface.mtu > XDP_LARGEST_MTU {
                return Err(Error::new(
                    ErrorKind::Device,
                    format!(
                        "{device} has an MTU of {} and an XDP socket takes no frame larger than its buffer; \
                         set the MTU to {XDP_LARGEST_MTU} or less, or use eth:{interface_name}",
                        interface.mtu
                    ),
                ));
            }
            one_queue(device, interface_name, netif::receive_queues(interface_name))?;
            let name = format!("net_af_xdp_w{number}");
            let devargs = format!("{name},iface={interface_name},busy_budget=0");
            Ok(Probe {
                buffer_bytes: XDP_BUFFER,
                interface: Some(interface),
                ..plain(name, devargs)
            })
        }
        Device::Null => {
            let name = format!("net_null_w{number}");
            Ok(plain(name.clone(), name))
        }
        Device::Raw(text) => {
            let name = text.split(',').next().unwrap_or_default().to_owned();
            Ok(Probe {
                replay: text.contains("rx_pcap="),
                ..plain(name, text.clone())
            })
        }
    }
}

/// An XDP socket takes the frames of one receive queue: those of another would be neither measured nor forwarded, and nobody
/// would count them.
fn one_queue(device: &Device, name: &str, queues: Option<[u32; 2]>) -> Result<()> {
    let [receive, combined] = queues.unwrap_or_default();
    let number = receive + combined;
    if number <= 1 {
        return Ok(());
    }
    let only = match (receive, combined) {
        (0, _) => "combined 1",
        (_, 0) => "rx 1",
        _ => "rx 0 combined 1",
    };
    Err(Error::new(
        ErrorKind::Device,
        format!(
            "{device} has {number} receive queues and an XDP socket takes the frames of one; leave it one with: \
             ethtool -L {name} {only}, or use eth:{name}"
        ),
    ))
}

fn interface(device: &Device, name: &str) -> Result<netif::Interface> {
    // Everything else would end up inside DPDK's settings.
    if name.contains([',', '=', '[', ']', '"', ' ']) {
        return Err(Error::new(
            ErrorKind::Argument,
            format!("{device}: not the name of a network interface"),
        ));
    }
    netif::Interface::find(name).map_err(|error| {
        Error::new(
            ErrorKind::Device,
            format!(
                "{device}: no such network interface here ({error}); `ip link` lists them, in this network namespace"
            ),
        )
    })
}

/// Memory of each ring of a packet socket: receive and send have one each.
const RING_BYTES: u32 = 32 << 20;

/// What the kernel puts before the frame in a ring slot: `TPACKET2_HDRLEN` (52) and the
/// Ethernet header (at least 16) rounded up to 16, less the Ethernet header (14): af_packet.c, `tpacket_rcv`.
const SLOT_HEADER: u32 = 66;

/// Ethernet header and two VLAN tags.
const LINK_HEADERS: u32 = 14 + 4 + 4;

/// The ring slot that takes frames of an interface: a power of two, as the driver asks.
fn slot_bytes(mtu: u32) -> u32 {
    // A buffer's size has 16 bits: larger frames than this slot takes are cut, and counted as such.
    const LARGEST_SLOT: u32 = 32_768;
    let needed = mtu.saturating_add(LINK_HEADERS + SLOT_HEADER + 1).min(LARGEST_SLOT);
    needed.next_power_of_two().max(2048)
}

/// With 64 bytes of pool header, 128 of `rte_mbuf` and 128 headroom exactly one page of 4096 bytes. The driver
/// registers (number of buffers) × (size of a buffer) of memory with the kernel; pools put no buffer across pages, so that with
/// a smaller size the last buffers lie outside and their frames are lost without a sign.
const XDP_BUFFER: u16 = 3776;

const _: () =
    assert!(64 + size_of::<sys::rte_mbuf>() + sys::RTE_PKTMBUF_HEADROOM as usize + XDP_BUFFER as usize == 4096);

/// Largest MTU that fits [`XDP_BUFFER`] with the link headers and 256 bytes that the kernel keeps free.
const XDP_LARGEST_MTU: u32 = XDP_BUFFER as u32 - 256 - LINK_HEADERS;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_as_users_write_them() {
        let parse = |text: &str| text.parse::<Device>();
        assert_eq!(
            parse("pcap:/a/b,c.pcap").unwrap(),
            Device::Pcap(PathBuf::from("/a/b,c.pcap"))
        );
        assert_eq!(parse("eth:veth0").unwrap(), Device::Eth("veth0".to_owned()));
        assert_eq!(parse("xdp:eth1").unwrap(), Device::Xdp("eth1".to_owned()));
        assert_eq!(parse("null").unwrap(), Device::Null);
        assert_eq!(parse("0000:01:00.0").unwrap(), Device::Raw("0000:01:00.0".to_owned()));
        assert_eq!(
            parse("net_tap0,iface=t0").unwrap(),
            Device::Raw("net_tap0,iface=t0".to_owned())
        );
        for text in ["", "  ", "eth:", "pcap:", "a\nb"] {
            assert_eq!(parse(text).unwrap_err().kind(), ErrorKind::Argument, "{text:?}");
        }
        for (text, says) in [
            ("lo", "write eth:lo"),
            ("Cargo.toml", "write pcap:Cargo.toml"),
            ("nosuchif0", "is no device; write pcap:FILE, eth:INTERFACE"),
            ("veth:a", "is no device"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Argument, "{text}");
            assert!(error.to_string().contains(says), "{error}");
        }
        for text in ["vdev:net_null0", "pci:0000:01:00.0", "net_null1"] {
            assert_eq!(parse(text).unwrap(), Device::Raw(text.to_owned()));
        }
        for text in ["pcap:/x", "eth:a", "xdp:a", "null", "net_ring0"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_missing_is_said_before_dpdk_is_asked() {
        let missing = probe_for(&Device::Pcap(PathBuf::from("/nonexistent.pcap"))).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::Device);
        assert!(missing.to_string().contains("/nonexistent.pcap"), "{missing}");
        let no_interface = probe_for(&Device::Eth("nosuchif0".to_owned())).unwrap_err();
        assert!(
            no_interface.to_string().contains("no such network interface"),
            "{no_interface}"
        );
        let settings = probe_for(&Device::Eth("lo,framesz=1".to_owned())).unwrap_err();
        assert_eq!(settings.kind(), ErrorKind::Argument);
    }

    #[test]
    fn an_xdp_socket_takes_an_interface_of_one_queue() {
        let device = Device::Xdp("eth1".to_owned());
        for queues in [None, Some([0, 0]), Some([0, 1]), Some([1, 0])] {
            assert!(one_queue(&device, "eth1", queues).is_ok(), "{queues:?}");
        }
        for (queues, says) in [
            ([0, 4], "xdp:eth1 has 4 receive queues"),
            ([0, 4], "ethtool -L eth1 combined 1,"),
            ([2, 0], "ethtool -L eth1 rx 1,"),
            ([1, 1], "ethtool -L eth1 rx 0 combined 1,"),
        ] {
            let error = one_queue(&device, "eth1", Some(queues)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Device);
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn ring_slots_take_the_largest_frame_uncut() {
        assert_eq!(slot_bytes(1500), 2048);
        assert_eq!(slot_bytes(9000), 16_384);
        for mtu in 68..16_000 {
            assert!(slot_bytes(mtu) - SLOT_HEADER > mtu + LINK_HEADERS, "MTU {mtu}");
        }
        assert_eq!(slot_bytes(65_536), 32_768);
        assert_eq!(slot_bytes(u32::MAX), 32_768);
    }
}
