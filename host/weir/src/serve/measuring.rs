//! Frames to records in the log, and what is counted meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_api::state::{CaptureState, PortCounters};
use weir_capture::intake::LinkCounters;
use weir_command::Failure;
use weir_dpdk::Progress;
use weir_messages::v1::{RecordLinkStatus, Severity};
use weir_record::Record;
use weir_record::frame::Refusal;

use super::events::tell;
use super::queue::{Change, Queue};
use super::{STOP, Shared, end_with};
use crate::measure::{Measured, Source};

/// How long the log of an inline path has taken all records when it is said to work again.
const SETTLED: Duration = Duration::from_secs(5);

/// The ports, as the measuring loop shows them.
pub struct Ports {
    pub counters: Vec<Arc<PortCounters>>,
    pub devices: Vec<String>,
    pub progress: Progress,
    pub stamps_by_clock: bool,
}

impl Ports {
    /// Those of a source, shown by `capture`.
    pub fn of(source: &Source, capture: &CaptureState) -> Self {
        let names = source.names().into_iter().enumerate();
        let counters = names.map(|(number, (name, drops_known))| capture.add_port(number as u32, name, drops_known));
        Self {
            counters: counters.collect(),
            devices: source.devices(),
            progress: Progress::default(),
            stamps_by_clock: source.stamps_by_clock(),
        }
    }
}

/// Frames to records in the log, until the sources end or the daemon stops. The network does not wait for the log; an inline
/// path does not end with it, either.
pub fn measure(
    source: Source,
    shared: &Shared,
    ports: &Ports,
    fail: &(impl Fn(Failure) + Sync),
) -> Result<(), Failure> {
    let Shared {
        log,
        capture,
        appliance,
        is_inline,
        ..
    } = shared;
    let waits = source.waits();
    let queue = Queue::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            end_with("writing the record log", fail, || {
                queue.write(log, SETTLED, |change| match change {
                    Change::Fails(error) if *is_inline => {
                        let text = format!(
                            "{error}; frames are forwarded, records are lost until that is mended, and counted"
                        );
                        tell(appliance, Severity::Error, "log", "LOG_FAILS", text);
                    }
                    Change::Fails(error) => fail(Failure::new(error)),
                    Change::Works => {
                        let text = "the record log is written again".to_owned();
                        tell(appliance, Severity::Info, "log", "LOG_WORKS", text);
                    }
                });
                Ok(())
            });
        });
        let _closing = queue.closing();
        source.run(&STOP, &ports.progress, |records: &[Record], measured: &Measured<'_>| {
            if let Some(lane) = measured.begins_anew() {
                queue.settle();
                log.restart_lane(lane);
            }
            if !records.is_empty() {
                let taken = if waits || measured.ended() {
                    queue.add(records)
                } else {
                    queue.offer(records)
                };
                if !taken {
                    log.count_lost(records.len());
                }
            }
            publish(measured, &ports.counters);
            appliance.flows_in_table.store(measured.flows(), Ordering::Relaxed);
            if let Some(link) = measured.link() {
                capture.set_link(link_status(link));
            }
        })
    })
}

fn link_status(link: &LinkCounters) -> RecordLinkStatus {
    let refused = Refusal::ALL
        .iter()
        .map(|&reason| (reason.name().to_owned(), link.refused(reason)));
    RecordLinkStatus {
        frames: link.frames,
        records: link.records,
        lost_frames: link.lost_frames,
        lost_records: link.lost_records,
        restarts: link.restarts,
        refused: refused.collect(),
    }
}

fn publish(measured: &Measured<'_>, counters: &[Arc<PortCounters>]) {
    for counter in counters {
        let port = measured.port(counter.port as u8);
        counter.frames.store(port.frames, Ordering::Relaxed);
        counter.bytes.store(port.bytes, Ordering::Relaxed);
        counter.tracked.store(port.tracked, Ordering::Relaxed);
        counter.clamped.store(port.clamped.into(), Ordering::Relaxed);
        counter.dropped.store(port.dropped.into(), Ordering::Relaxed);
        for (cell, &value) in counter.untracked.iter().zip(&port.untracked) {
            cell.store(value.into(), Ordering::Relaxed);
        }
    }
}
