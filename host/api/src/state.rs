//! Counters that the daemon's threads fill and CaptureService and ApplianceService read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use weir_messages::Timestamp;
use weir_messages::v1::{GetCaptureStatusResponse, PortStatus, RecordLinkStatus};
use weir_record::Untracked;

/// Counters of one source of frames.
#[derive(Debug, Default)]
pub struct PortCounters {
    /// Port number in records.
    pub port: u32,
    /// The DPDK device or file behind it.
    pub name: String,
    /// False when the source cannot tell how much it lost.
    pub drops_known: bool,
    /// Frames received.
    pub frames: AtomicU64,
    /// Their bytes on the wire.
    pub bytes: AtomicU64,
    /// Frames that are in a flow's counters.
    pub tracked: AtomicU64,
    /// Frames that are in none, by [`Untracked`].
    pub untracked: [AtomicU64; Untracked::ALL.len()],
    /// Lost before Weir, as the source says.
    pub dropped: AtomicU64,
    /// Times that ran backwards.
    pub clamped: AtomicU64,
}

impl PortCounters {
    fn status(&self) -> PortStatus {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let untracked = Untracked::ALL.iter().zip(&self.untracked);
        PortStatus {
            port: self.port,
            name: self.name.clone(),
            frames: count(&self.frames),
            bytes: count(&self.bytes),
            tracked: count(&self.tracked),
            untracked: untracked
                .map(|(cause, counter)| (cause.name().to_owned(), count(counter)))
                .collect(),
            dropped: count(&self.dropped),
            clamped: count(&self.clamped),
            drops_known: self.drops_known,
        }
    }
}

/// The sources of frames.
#[derive(Debug, Default)]
pub struct CaptureState {
    /// All ports; the thread that reads a port keeps its own handle.
    pub ports: RwLock<Vec<Arc<PortCounters>>>,
    /// Set when the sources have ended.
    pub finished: AtomicBool,
    /// Frames forwarded by the inline path.
    pub forwarded: AtomicU64,
    /// Frames that the inline path could not forward.
    pub forward_drops: AtomicU64,
    /// The link from a card, if one measures.
    link: Mutex<Option<RecordLinkStatus>>,
}

impl CaptureState {
    /// Renew what came over the link from the card.
    pub fn set_link(&self, status: RecordLinkStatus) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    /// Add a port and return its counters.
    pub fn add_port(&self, port: u32, name: impl Into<String>, drops_known: bool) -> Arc<PortCounters> {
        let counters = Arc::new(PortCounters {
            port,
            name: name.into(),
            drops_known,
            ..PortCounters::default()
        });
        self.ports
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&counters));
        counters
    }

    pub(crate) fn status(&self) -> GetCaptureStatusResponse {
        let ports = self.ports.read().unwrap_or_else(PoisonError::into_inner);
        GetCaptureStatusResponse {
            ports: ports.iter().map(|port| port.status()).collect(),
            finished: self.finished.load(Ordering::Relaxed),
            forwarded: self.forwarded.load(Ordering::Relaxed),
            forward_drops: self.forward_drops.load(Ordering::Relaxed),
            link: self.link.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// What only the daemon knows of the appliance.
#[derive(Debug, Default)]
pub struct ApplianceState {
    /// When the daemon started.
    pub start_time: Timestamp,
    /// Flows in the engine's table.
    pub flows_in_table: AtomicU64,
}
