//! Records on their way to the log: the network does not wait for a disk.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weir_api::log::{LogError, RecordLog};
use weir_record::Record;

/// Records that wait at most, 16 MiB: some seconds of a disk that stands still. What comes then is lost, and counted.
const WAITING: usize = 1 << 18;

/// Between the thread that measures and the one that writes.
#[derive(Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    records: Vec<Record>,
    /// Others were taken and are not in the log yet.
    writing: bool,
    /// No more come.
    closed: bool,
    /// Nobody takes them any more.
    abandoned: bool,
}

/// What changed about the log.
pub enum Change {
    /// Records cannot be written any more.
    Fails(LogError),
    /// They can be again.
    Works,
}

impl Queue {
    /// Add records, all or none of them, without a wait; false if there is no room.
    #[must_use]
    pub fn offer(&self, records: &[Record]) -> bool {
        let mut waiting = self.lock();
        let room = !waiting.abandoned && waiting.records.len() + records.len() <= WAITING;
        if room {
            waiting.records.extend_from_slice(records);
            self.changed.notify_all();
        }
        room
    }

    /// Add records, and wait until there is room; false if nobody takes them any more.
    #[must_use]
    pub fn add(&self, records: &[Record]) -> bool {
        let is_full = |waiting: &mut Waiting| !waiting.abandoned && !waiting.records.is_empty();
        let guard = self.lock();
        if guard.records.len() + records.len() > WAITING {
            drop(
                self.changed
                    .wait_while(guard, is_full)
                    .unwrap_or_else(PoisonError::into_inner),
            );
        } else {
            drop(guard);
        }
        self.offer(records)
    }

    /// Wait until all that was added is in the log, or cannot be.
    pub fn settle(&self) {
        let is_under_way =
            |waiting: &mut Waiting| !waiting.abandoned && (waiting.writing || !waiting.records.is_empty());
        drop(
            self.changed
                .wait_while(self.lock(), is_under_way)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// No more come once this is dropped.
    pub fn closing(&self) -> Closing<'_> {
        Closing(self)
    }

    /// Write what comes to the log until no more come. Records that cannot be written are lost, and those behind them are
    /// tried; `tell` hears when that begins, and when it has not happened for a time of `settled`: into the last room of a
    /// full disk a few records go now and then.
    pub fn write(&self, log: &RecordLog, settled: Duration, mut tell: impl FnMut(Change)) {
        let _abandon = Abandon(self);
        let mut records = Vec::new();
        // That of one that could not be opened was told.
        let mut failed = log.fails().then(Instant::now);
        loop {
            let is_idle = |waiting: &mut Waiting| waiting.records.is_empty() && !waiting.closed;
            let mut waiting = self
                .changed
                .wait_while(self.lock(), is_idle)
                .unwrap_or_else(PoisonError::into_inner);
            if waiting.records.is_empty() {
                return;
            }
            std::mem::swap(&mut waiting.records, &mut records);
            waiting.writing = true;
            drop(waiting);
            self.changed.notify_all();
            match log.append(&records) {
                Ok(_) if failed.is_some_and(|last| last.elapsed() >= settled) => {
                    failed = None;
                    tell(Change::Works);
                }
                Ok(_) => {}
                Err(error) => {
                    if failed.replace(Instant::now()).is_none() {
                        tell(Change::Fails(error));
                    }
                }
            }
            records.clear();
            self.lock().writing = false;
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of what comes, also when measuring panics.
pub struct Closing<'a>(&'a Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

/// Also when writing panics: nobody is to wait for room then.
struct Abandon<'a>(&'a Queue);

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        self.0.lock().abandoned = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use weir_api::log::{Config, Read};
    use weir_record::raw::BYTES;
    use weir_record::{Gap, Header, Kind};

    use super::*;

    fn records(sequences: std::ops::Range<u32>) -> Vec<Record> {
        let record = |sequence| {
            Header {
                sequence,
                ..Header::default()
            }
            .start(Kind::Event, false)
        };
        sequences.map(record).collect()
    }

    /// Sequence numbers in the log; of a gap those that are missing.
    fn sequences(log: &RecordLog) -> (Vec<u32>, Vec<(u32, u32)>) {
        let (mut bytes, mut position) = (Vec::new(), log.first_position());
        while let Read::Records(count) = log.read(position, usize::MAX >> 8, &mut bytes).expect("readable") {
            position += count;
        }
        let (mut found, mut gaps) = (Vec::new(), Vec::new());
        for bytes in bytes.chunks_exact(BYTES) {
            let record = Record::from_slice(bytes).expect("a record");
            if record.kind() == Some(Kind::Gap) {
                let gap = Gap::decode(&record);
                gaps.push((gap.from_sequence, gap.to_sequence));
            } else {
                found.push(record.sequence());
            }
        }
        (found, gaps)
    }

    fn log(directory: &std::path::Path, limit_bytes: u64) -> RecordLog {
        let config = Config {
            directory: directory.to_owned(),
            limit_bytes,
        };
        RecordLog::open(config).expect("a log")
    }

    #[test]
    fn a_full_queue_refuses_and_the_log_shows_the_gap() {
        let directory = tempfile::tempdir().expect("a folder");
        let log = log(directory.path(), 64 << 20);
        let queue = Queue::default();
        let all = records(0..WAITING as u32 + 5);
        assert!(queue.offer(&all[..WAITING]));
        assert!(!queue.offer(&all[WAITING..WAITING + 1]));
        std::thread::scope(|scope| {
            scope.spawn(|| queue.write(&log, Duration::ZERO, |_| {}));
            let _closing = queue.closing();
            assert!(queue.add(&all[WAITING + 3..]));
        });
        let (found, gaps) = sequences(&log);
        let end = WAITING as u32;
        assert_eq!(gaps, [(end, end + 2)]);
        assert_eq!(found[found.len() - 2..], [end + 3, end + 4]);
        assert!(!queue.offer(&all[..1]) && !queue.add(&all[..1]), "nobody takes it");
        queue.settle();
    }

    #[test]
    fn what_has_settled_is_in_the_log() {
        let directory = tempfile::tempdir().expect("a folder");
        let log = log(directory.path(), 64 << 20);
        let queue = Queue::default();
        std::thread::scope(|scope| {
            scope.spawn(|| queue.write(&log, Duration::ZERO, |_| {}));
            let _closing = queue.closing();
            for end in (1..=100).map(|n| 100 * n) {
                assert!(queue.offer(&records(end - 100..end)));
                queue.settle();
                assert_eq!(log.appended(), u64::from(end));
            }
        });
    }

    #[test]
    fn a_log_that_cannot_be_written_is_told_once_and_goes_on_when_it_can() {
        let outer = tempfile::tempdir().expect("a folder");
        let directory = outer.path().join("log");
        let log = log(&directory, 8 << 10);
        let told = Mutex::new(Vec::new());
        let queue = Queue::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                queue.write(&log, Duration::ZERO, |text| {
                    let text = match text {
                        Change::Fails(error) => error.to_string(),
                        Change::Works => "works".to_owned(),
                    };
                    told.lock().expect("no panic").push(text);
                });
            });
            let _closing = queue.closing();
            let until = |condition: &dyn Fn() -> bool| {
                while !condition() {
                    std::thread::yield_now();
                }
            };
            assert!(queue.offer(&records(0..5)));
            until(&|| log.appended() == 5);
            // No new segment can be made.
            std::fs::rename(&directory, outer.path().join("away")).expect("renamed");
            assert!(queue.offer(&records(5..20)));
            until(&|| log.lost() == 15 - (log.appended() - 5));
            let lost = log.lost();
            assert!(log.fails() && queue.offer(&records(20..30)));
            until(&|| log.lost() == lost + 10);
            std::fs::rename(outer.path().join("away"), &directory).expect("renamed");
            assert!(queue.offer(&records(30..32)));
        });
        let told = told.into_inner().expect("no panic");
        assert!(
            told.len() == 2 && told[0].contains("cannot create") && told[1] == "works",
            "{told:?}"
        );
        assert!(!log.fails());
        let (found, gaps) = sequences(&log);
        assert_eq!(gaps.len(), 1);
        let (from, to) = gaps[0];
        assert_eq!(
            (u64::from(to - from) + 1, to, found.last()),
            (log.lost(), 29, Some(&31))
        );
    }
}
