//! Ports: one receive and one send queue each.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::mem::MaybeUninit;
use std::sync::{Arc, PoisonError};

use crate::burst::{BURST, Burst, Frame, StampField};
use crate::device::{Device, Probe, probe_for};
use crate::eal::{Eal, EalShared, log_text};
use crate::error::{Error, ErrorKind, Result};
use crate::netif::{self, DriverSockets, Interface, LinkState, Mtu, Promiscuous, open_descriptors};
use crate::pool::Mempool;
use crate::sys;

/// How a port is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortConfig {
    /// Receive every frame, whatever its destination address.
    pub promiscuous: bool,
    /// Packet buffers of the port's pool; by default 32 MiB of frame data, and 1024 to 16,384 buffers.
    pub buffers: Option<u32>,
    /// Receive and send descriptors asked for; the driver may take fewer.
    pub descriptors: u16,
}

impl Default for PortConfig {
    fn default() -> Self {
        Self {
            promiscuous: true,
            buffers: None,
            descriptors: 2048,
        }
    }
}

/// Counters of a port since it was opened, in frames unless the name says bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Frames received.
    pub received: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Frames sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Frames that came but found no room. With `drops_known` false it is a lower bound.
    pub missed: u64,
    /// Frames received with errors.
    pub receive_errors: u64,
    /// Frames that the driver took for sending and dropped, and those that its kernel interface dropped or could not send, whoever
    /// sent them.
    pub send_errors: u64,
    /// Receive attempts that found no packet buffer.
    pub no_buffer: u64,
    /// Whether `missed` holds all frames dropped between the wire and this port, as far as driver and kernel count.
    pub drops_known: bool,
}

/// An open port. It can move to another thread, but be used by one thread at a time.
/// Dropping it stops and closes the device.
#[derive(Debug)]
pub struct Port {
    id: u16,
    device: Device,
    driver: String,
    raw_device: *mut sys::rte_device,
    pool: Arc<Mempool>,
    eal: Arc<EalShared>,
    stamp: Option<StampField>,
    replay: bool,
    cut_length: Option<u32>,
    interface: Option<Interface>,
    /// Its MTU now, and the longest frame without a tag that it takes, as far as it was asked.
    mtu: Option<Mtu>,
    largest_untagged: Cell<Option<u32>>,
    /// What the interface had not sent when the port was opened.
    unsent_before: Option<u64>,
    sends_segments: bool,
    sockets: RefCell<DriverSockets>,
    promiscuous: Option<Promiscuous>,
    counts_own_drops: bool,
    started: Cell<bool>,
    /// Read by the driver through its descriptor.
    _file: Option<File>,
}

// SAFETY: DPDK's queues may be used from any thread, one at a time: `Port` is not `Sync`
// (it has cells) and hands out no reference to the raw device.
unsafe impl Send for Port {}

impl Port {
    /// Opens and starts a device with a pool of its own.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] or [`ErrorKind::Argument`] with the reason of the system or the driver,
    /// [`ErrorKind::Memory`] when there is no room for the pool.
    pub fn open(eal: &Eal, device: &Device, config: &PortConfig) -> Result<Self> {
        let shared = eal.shared();
        if is_pci_address(device) && !shared.pci {
            return Err(Error::new(
                ErrorKind::Argument,
                format!(
                    "{device} is a PCI address and DPDK was started without PCI; start it with PCI devices enabled"
                ),
            ));
        }
        let probing = shared.probing.lock().unwrap_or_else(PoisonError::into_inner);
        // Failures before this one are not this one's reason.
        let _ = log_text();
        let probe = probe_for(device)?;
        let buffers = config.buffers.unwrap_or_else(|| usual_buffers(probe.buffer_bytes));
        let pool = Mempool::with_shared(shared, buffers, probe.buffer_bytes)?;
        let before = open_descriptors();
        let interface = probe.interface.clone();
        let mut port = Self::probe(shared, device, probe, pool)?;
        let outcome = port.set_up(config);
        if let Some(interface) = &interface {
            port.sockets = RefCell::new(DriverSockets::opened_since(&before, interface));
        }
        if outcome.is_ok() && port.driver == "net_af_packet" {
            port.forget_foreign();
        }
        // Closing a port that could not be set up takes the same lock.
        drop(probing);
        outcome.map(|()| port)
    }

    fn probe(eal: &Arc<EalShared>, device: &Device, probe: Probe, pool: Arc<Mempool>) -> Result<Self> {
        let text = |text: &str| {
            CString::new(text).map_err(|_| Error::new(ErrorKind::Argument, format!("{device} holds a NUL byte")))
        };
        let (devargs, name) = (text(&probe.devargs)?, text(&probe.name)?);
        if port_by_name(&name).is_some() {
            return Err(Error::new(ErrorKind::Device, format!("{device} is open already")));
        }
        // SAFETY: NUL-terminated, copied by DPDK; the EAL is started; one thread at a time by `probing`.
        let result = unsafe { sys::rte_dev_probe(devargs.as_ptr()) };
        if result < 0 {
            return Err(
                Error::dpdk(ErrorKind::Device, &format!("{device} cannot be opened"), -result).hint(open_hint(device)),
            );
        }
        let id = port_by_name(&name).ok_or_else(|| {
            Error::dpdk(ErrorKind::Device, &format!("{device} gave no network port"), 0)
                .hint("it may be another kind of device")
        })?;
        let info = device_info(id, device)?;
        let driver = if info.driver_name.is_null() {
            String::new()
        } else {
            // SAFETY: a static NUL-terminated string of the driver.
            unsafe { CStr::from_ptr(info.driver_name) }
                .to_string_lossy()
                .into_owned()
        };
        Ok(Self {
            id,
            device: device.clone(),
            raw_device: info.device,
            mtu: probe.interface.as_ref().and_then(|interface| Mtu::of(interface).ok()),
            largest_untagged: Cell::new(
                probe
                    .interface
                    .as_ref()
                    .map(|interface| largest_untagged(interface.mtu)),
            ),
            unsent_before: probe.interface.as_ref().and_then(Interface::unsent),
            interface: probe.interface,
            counts_own_drops: !driver.starts_with("net_af_") && driver != "net_tap",
            driver,
            pool,
            eal: Arc::clone(eal),
            stamp: None,
            replay: probe.replay,
            cut_length: probe.cut_length,
            sends_segments: false,
            sockets: RefCell::default(),
            promiscuous: None,
            started: Cell::new(false),
            _file: probe.file,
        })
    }

    fn set_up(&mut self, config: &PortConfig) -> Result<()> {
        let info = device_info(self.id, &self.device)?;
        // SAFETY: plain C data, all zero is the default configuration.
        let mut settings: sys::rte_eth_conf = unsafe { MaybeUninit::zeroed().assume_init() };
        self.sends_segments = info.tx_offload_capa & MULTI_SEGMENT_SEND != 0;
        settings.txmode.offloads = info.tx_offload_capa & MULTI_SEGMENT_SEND;
        // A capture device may be made for one direction only.
        let receives = info.max_rx_queues.min(1);
        let sends = info.max_tx_queues.min(1);
        // SAFETY: an open port, not started; the configuration is copied.
        let result = unsafe { sys::rte_eth_dev_configure(self.id, receives, sends, &settings) };
        self.check(result, "could not be configured")?;

        let (mut receive_slots, mut send_slots) = (config.descriptors, config.descriptors);
        // SAFETY: the port is configured; both numbers are adjusted in place.
        let result = unsafe { sys::rte_eth_dev_adjust_nb_rx_tx_desc(self.id, &mut receive_slots, &mut send_slots) };
        self.check(result, "could not be given descriptors")?;
        // SAFETY: reads a constant.
        let any_socket = unsafe { sys::weir_socket_id_any() } as u32;
        if receives > 0 {
            // SAFETY: queue 0 of a configured port; null asks for the driver's defaults; the pool outlives
            // the port (its memory is kept while the EAL lives).
            let result = unsafe {
                sys::rte_eth_rx_queue_setup(
                    self.id,
                    0,
                    receive_slots,
                    any_socket,
                    std::ptr::null(),
                    self.pool.as_ptr(),
                )
            };
            self.check(result, "could not be given a receive queue")?;
        }
        if sends > 0 {
            // SAFETY: as above.
            let result = unsafe { sys::rte_eth_tx_queue_setup(self.id, 0, send_slots, any_socket, std::ptr::null()) };
            self.check(result, "could not be given a send queue")?;
        }
        // SAFETY: a configured port with its queues set up.
        let result = unsafe { sys::rte_eth_dev_start(self.id) };
        self.check(result, "could not be started")?;
        self.started.set(true);
        if config.promiscuous {
            self.receive_all()?;
        }
        // The field is registered when the driver starts. Other drivers' units are their own clocks'.
        self.stamp = (self.driver == "net_pcap").then(pcap_stamp).flatten();
        Ok(())
    }

    /// Gives back, uncounted, what is in the ring. The driver's socket listens to all interfaces from its begin on, and is bound
    /// to its own when the ring is there: what came until then may be of any, and an inline path would send it on.
    fn forget_foreign(&self) {
        let mut burst = Burst::new();
        for _ in 0..MOST_RING / BURST {
            if self.rx_burst(&mut burst) < BURST {
                break;
            }
        }
        burst.clear();
        self.sockets.borrow_mut().forget();
        // SAFETY: a started port.
        unsafe { sys::rte_eth_stats_reset(self.id) };
    }

    /// Receive frames to any address.
    fn receive_all(&mut self) -> Result<()> {
        if let Some(interface) = &self.interface {
            let asked = Promiscuous::new(interface).map_err(|error| {
                let text = format!("{} could not be made promiscuous: {error}", self.device);
                Error::new(ErrorKind::Device, text).hint(open_hint(&self.device))
            })?;
            self.promiscuous = Some(asked);
        } else if !self.replay {
            // Devices without addresses (null, ring) do not know the mode: receiving everything is what they do.
            // SAFETY: a started port.
            let result = unsafe { sys::rte_eth_promiscuous_enable(self.id) };
            if result != -libc::ENOTSUP {
                self.check(result, "could not be made promiscuous")?;
            }
        }
        Ok(())
    }

    fn check(&self, result: i32, what: &str) -> Result<()> {
        if result >= 0 {
            return Ok(());
        }
        Err(Error::dpdk(ErrorKind::Device, &format!("{} {what}", self.device), -result).hint(open_hint(&self.device)))
    }

    /// Receives up to [`BURST`] frames without waiting; returns how many. What is left in the burst is given back.
    pub fn rx_burst<'p>(&'p self, burst: &mut Burst<'p>) -> usize {
        let frames = burst.refill(self.stamp);
        // SAFETY: a started port's queue 0, used by this thread alone (`Port` is not `Sync`); room for BURST.
        let count = unsafe { sys::rte_eth_rx_burst(self.id, 0, frames.as_mut_ptr(), BURST as u16) };
        let count = usize::from(count).min(BURST);
        // SAFETY: the driver put `count` buffers there and gave them up.
        unsafe { burst.filled(count) };
        count
    }

    /// Sends frames from the front of the burst without waiting; returns how many the driver took. The rest stays in
    /// the burst.
    pub fn tx_burst(&self, burst: &mut Burst<'_>) -> usize {
        let frames = burst.offer();
        if frames.is_empty() {
            return 0;
        }
        let offered = frames.len();
        // SAFETY: as for receiving; the buffers are held by the burst. Buffers of other ports are fine:
        // pool memory stays while the EAL lives.
        let count = unsafe { sys::rte_eth_tx_burst(self.id, 0, frames.as_mut_ptr(), offered as u16) };
        let count = usize::from(count).min(offered);
        // SAFETY: the driver took the first `count`.
        unsafe { burst.taken(count) };
        count
    }

    /// Whether the driver can send the frame whole. Where it cannot, drivers drop or cut without telling.
    pub fn takes(&self, frame: &Frame<'_>) -> bool {
        if frame.segment_count() > 1 && !self.sends_segments {
            return false;
        }
        let Some(limit) = self.largest_untagged.get() else {
            return true;
        };
        // The kernel lets a VLAN tag go beyond the MTU, and only for the 802.1Q type (af_packet.c, `tpacket_snd`).
        let tagged = frame
            .segments()
            .next()
            .is_some_and(|data| data.get(12..14) == Some(&[0x81, 0x00]));
        frame.length() <= limit + if tagged { 4 } else { 0 }
    }

    /// Asks for the interface's MTU, by which [`Self::takes`] goes from now on; true if it is lower than it was: what was sent since
    /// it was asked last, and is longer, the kernel has probably dropped without telling. Frames longer than the MTU at the opening are not
    /// taken in any case: the driver's ring was made for that.
    pub fn renew_limit(&self) -> bool {
        let (Some(interface), Some(now)) = (&self.interface, self.mtu.as_ref().and_then(Mtu::now)) else {
            return false;
        };
        let limit = Some(largest_untagged(now.min(interface.mtu)));
        limit < self.largest_untagged.replace(limit)
    }

    /// Whether a received frame was probably cut by the kernel: its length is all that the ring takes.
    pub fn probably_cut(&self, length: u32) -> bool {
        self.cut_length.is_some_and(|limit| length >= limit)
    }

    /// Counters since opening.
    pub fn stats(&self) -> PortStats {
        let mut raw = MaybeUninit::<sys::rte_eth_stats>::zeroed();
        // SAFETY: an open port; the structure is zeroed, so initialised whatever the call writes.
        let raw = unsafe {
            sys::rte_eth_stats_get(self.id, raw.as_mut_ptr());
            raw.assume_init()
        };
        let unreported = self.sockets.borrow_mut().unreported();
        let drops_known = self.counts_own_drops || unreported.is_some();
        let unreported = unreported.unwrap_or_default();
        let unsent = self.interface.as_ref().and_then(Interface::unsent);
        let unsent = unsent
            .zip(self.unsent_before)
            .map_or(0, |(now, before)| now.saturating_sub(before));
        PortStats {
            received: raw.ipackets,
            received_bytes: raw.ibytes,
            sent: raw.opackets,
            sent_bytes: raw.obytes,
            missed: raw.imissed + unreported.missed,
            receive_errors: raw.ierrors + unreported.receive_errors,
            send_errors: raw.oerrors + unreported.send_errors + unsent,
            no_buffer: raw.rx_nombuf,
            drops_known,
        }
    }

    /// The state of the kernel interface behind the port; `None` where there is none, or the system does not tell.
    pub fn link(&self) -> Option<LinkState> {
        self.interface.as_ref()?.link()
    }

    /// Ways in which the kernel joins frames before this port gets them, as `ethtool -K` calls them (`gro`, `lro`): what it
    /// joins is longer than what was on the wire, and than what another port takes. None where it is not known.
    pub fn joining(&self) -> Vec<&'static str> {
        match &self.device {
            Device::Eth(name) => netif::joining(name),
            _ => Vec::new(),
        }
    }

    /// The device as the user named it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The driver's name, such as `net_af_packet`.
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// Whether frames and their times come from a file, not from now.
    pub fn is_replay(&self) -> bool {
        self.replay
    }

    /// The port's buffers.
    pub fn pool(&self) -> &Mempool {
        &self.pool
    }

    pub(crate) fn eal(&self) -> &Arc<EalShared> {
        &self.eal
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _one_at_a_time = self.eal.probing.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the port is open and nobody else uses it; no burst of it is left (they borrow the port).
        unsafe {
            if self.started.get() {
                sys::rte_eth_dev_stop(self.id);
            }
            sys::rte_eth_dev_close(self.id);
            if !self.raw_device.is_null() {
                sys::rte_dev_remove(self.raw_device);
            }
        }
        // Before another port may be opened.
        self.sockets.take();
        self.promiscuous.take();
    }
}

/// `RTE_ETH_TX_OFFLOAD_MULTI_SEGS`: a macro with a cast that the bindings cannot carry.
const MULTI_SEGMENT_SEND: u64 = 1 << 15;

/// Frames that a ring of `net_af_packet` has at most.
const MOST_RING: usize = 1 << 16;

fn usual_buffers(data_bytes: u16) -> u32 {
    const FRAME_DATA: u32 = 32 << 20;
    (FRAME_DATA / u32::from(data_bytes.max(1))).clamp(1024, 16_384)
}

fn largest_untagged(mtu: u32) -> u32 {
    const ETHERNET_HEADER: u32 = 14;
    mtu.saturating_add(ETHERNET_HEADER)
}

fn is_pci_address(device: &Device) -> bool {
    let Device::Raw(text) = device else {
        return false;
    };
    let address = text.split(',').next().unwrap_or_default();
    let hex = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    address
        .rsplit_once('.')
        .is_some_and(|(bus, function)| hex(function) && bus.contains(':') && bus.split(':').all(hex))
}

fn port_by_name(name: &CStr) -> Option<u16> {
    let mut id = 0;
    // SAFETY: a NUL-terminated string and a place for the number.
    let result = unsafe { sys::rte_eth_dev_get_port_by_name(name.as_ptr(), &mut id) };
    (result == 0).then_some(id)
}

fn device_info(id: u16, device: &Device) -> Result<sys::rte_eth_dev_info> {
    let mut info = MaybeUninit::<sys::rte_eth_dev_info>::zeroed();
    // SAFETY: an open port; the structure is zeroed, so initialised whatever the call writes.
    let (result, info) = unsafe { (sys::rte_eth_dev_info_get(id, info.as_mut_ptr()), info.assume_init()) };
    if result < 0 {
        return Err(Error::dpdk(
            ErrorKind::Device,
            &format!("{device} does not describe itself"),
            -result,
        ));
    }
    Ok(info)
}

/// net_pcap's stamps are microseconds since 1970 (UTC), also for files with nanoseconds.
fn pcap_stamp() -> Option<StampField> {
    // SAFETY: NUL-terminated names; null asks for no further description.
    let (offset, flag) = unsafe {
        (
            sys::rte_mbuf_dynfield_lookup(c"rte_dynfield_timestamp".as_ptr(), std::ptr::null_mut()),
            sys::rte_mbuf_dynflag_lookup(c"rte_dynflag_rx_timestamp".as_ptr(), std::ptr::null_mut()),
        )
    };
    let offset = usize::try_from(offset).ok()?;
    let flag = u32::try_from(flag).ok().filter(|&bit| bit < 64)?;
    let inside = offset + size_of::<u64>() <= size_of::<sys::rte_mbuf>();
    inside.then_some(StampField {
        offset,
        flag: 1 << flag,
        unit_ns: 1000,
    })
}

fn open_hint(device: &Device) -> &'static str {
    match device {
        Device::Pcap(_) => "the file must be an uncompressed pcap or pcapng of Ethernet frames",
        Device::Eth(_) => {
            "the interface must be up and the process needs CAP_NET_RAW, CAP_NET_ADMIN and room to lock memory, ulimit -l unlimited (root has all of it)"
        }
        Device::Xdp(_) => {
            "the interface must be up and the process needs root; the interface takes one XDP program at a time"
        }
        Device::Null => "see DPDK's own message",
        Device::Raw(_) => "write it as DPDK does: net_ring0, net_tap0,iface=NAME or a PCI address such as 0000:01:00.0",
    }
}
