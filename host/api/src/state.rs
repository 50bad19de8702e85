//! Counters that the daemon's threads fill and CaptureService and ApplianceService read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use tokio::sync::watch;
use weir_messages::Timestamp;
use weir_messages::v1::{CardStatus, Event, GetCaptureStatusResponse, GetStatusResponse, PortStatus, RecordLinkStatus};
use weir_record::Untracked;

use crate::facts::Facts;
use crate::health::Troubles;
use crate::log::RecordLog;
use crate::streams::Streams;

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
    /// Whether the interface can receive, where there is one.
    link_up: Mutex<Option<bool>>,
}

impl PortCounters {
    /// Renew what is known of the interface; returns what was known before.
    pub fn set_link(&self, up: Option<bool>) -> Option<bool> {
        std::mem::replace(&mut *self.link_up.lock().unwrap_or_else(PoisonError::into_inner), up)
    }

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
            link_up: *self.link_up.lock().unwrap_or_else(PoisonError::into_inner),
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
    /// Frames that the inline path did not forward.
    pub forward_drops: AtomicU64,
    /// Frames received and not measured, because measuring had failed.
    pub unmeasured: AtomicU64,
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

    /// As CaptureService tells it.
    pub fn status(&self) -> GetCaptureStatusResponse {
        let ports = self.ports.read().unwrap_or_else(PoisonError::into_inner);
        GetCaptureStatusResponse {
            ports: ports.iter().map(|port| port.status()).collect(),
            finished: self.finished.load(Ordering::Relaxed),
            forwarded: self.forwarded.load(Ordering::Relaxed),
            forward_drops: self.forward_drops.load(Ordering::Relaxed),
            link: self.link.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            unmeasured: self.unmeasured.load(Ordering::Relaxed),
        }
    }
}

/// Steps of the system's clock.
#[derive(Debug, Default)]
pub struct ClockCounters {
    /// Times that it was set ahead.
    pub forward: AtomicU64,
    /// Times that it was set back.
    pub back: AtomicU64,
    /// How far it is behind the times that records have (ns): these stand still until it has caught up.
    pub behind_ns: AtomicU64,
}

/// What only the daemon knows of the appliance.
#[derive(Debug, Default)]
pub struct ApplianceState {
    /// When the daemon started.
    pub start_time: Timestamp,
    /// Flows in the engine's table.
    pub flows_in_table: AtomicU64,
    /// What happened.
    pub events: Events,
    /// What keeps it from its work.
    pub troubles: Troubles,
    /// Of the system's clock, where records are stamped by it.
    pub clock: ClockCounters,
    /// The card, if one is kept.
    card: Mutex<Option<CardStatus>>,
    /// Those of the server, once it runs.
    pub(crate) streams: OnceLock<Streams>,
}

impl ApplianceState {
    /// Of a daemon that started now.
    pub fn new(start_time: Timestamp) -> Self {
        Self {
            start_time,
            events: Events::behind(numbers_of(start_time)),
            ..Self::default()
        }
    }

    /// Numbers of what this daemon tells are behind this one: who knows some of the daemon before takes none of this one's for
    /// the same, or for known.
    pub fn numbers_before(&self) -> u64 {
        numbers_of(self.start_time)
    }

    /// Renew what is known of the card.
    pub fn set_card(&self, status: CardStatus) {
        *self.card.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    /// What is known of the card, if one is kept.
    pub fn card(&self) -> Option<CardStatus> {
        self.card.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// As ApplianceService tells it.
    pub fn status(&self, log: &RecordLog, facts: &dyn Facts) -> GetStatusResponse {
        let counts = facts.counts();
        let subscribers = self.streams.get().map_or(0, Streams::open);
        GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            start_time: Some(self.start_time),
            boot_epoch: u32::from(log.epoch()),
            records: log.appended(),
            log_first_position: log.first_position(),
            log_next_position: log.next_position(),
            log_bytes: log.bytes(),
            log_limit_bytes: log.limit_bytes(),
            flows_in_table: self.flows_in_table.load(Ordering::Relaxed),
            connections: counts.connections,
            transactions: counts.transactions,
            subscribers: u32::try_from(subscribers).unwrap_or(u32::MAX),
            resident_bytes: resident_bytes().unwrap_or(0),
            card: self.card(),
        }
    }
}

/// Of a daemon that started then: the microsecond. No daemon tells a million things a second for all its life.
fn numbers_of(start_time: Timestamp) -> u64 {
    u64::try_from(start_time.unix_nanos() / 1000).unwrap_or(0)
}

/// Memory of this process, from `/proc/self/status` (proc(5), VmRSS in kB).
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Events that are kept.
const KEPT: usize = 1000;

/// The newest events, numbered.
#[derive(Debug, Default)]
pub struct Events {
    kept: Mutex<VecDeque<Event>>,
    newest: watch::Sender<u64>,
}

impl Events {
    /// None yet; the first has the number behind this one.
    fn behind(number: u64) -> Self {
        Self {
            newest: watch::Sender::new(number),
            ..Self::default()
        }
    }

    /// One more; it gets its number here.
    pub fn add(&self, event: Event) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let number = *self.newest.borrow() + 1;
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(Event { number, ..event });
        self.newest.send_replace(number);
    }

    /// Those behind this number, oldest first.
    pub fn after(&self, number: u64) -> Vec<Event> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().filter(|event| event.number > number).cloned().collect()
    }

    /// Wakes when there are more.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_events_are_kept_and_numbers_show_what_is_gone() {
        let events = Events::default();
        assert!(events.after(0).is_empty());
        for i in 0..KEPT + 10 {
            events.add(Event {
                text: i.to_string(),
                ..Event::default()
            });
        }
        let kept = events.after(0);
        assert_eq!(kept.len(), KEPT);
        assert_eq!((kept[0].number, kept[0].text.as_str()), (11, "10"));
        assert_eq!(events.after(1009).len(), 1);
        assert_eq!(*events.follow().borrow(), 1010);
    }

    #[test]
    fn events_of_a_daemon_that_was_started_anew_are_behind_those_of_the_one_before() {
        let started = |seconds| ApplianceState::new(Timestamp { seconds, nanos: 5_000 });
        let (before, anew) = (started(1_800_000_000), started(1_800_000_001));
        for _ in 0..3 {
            before.events.add(Event::default());
        }
        anew.events.add(Event::default());
        let known = before.events.after(0)[2].number;
        assert_eq!(known, 1_800_000_000_000_005 + 3);
        assert_eq!(anew.events.after(known).len(), 1);
    }
}
