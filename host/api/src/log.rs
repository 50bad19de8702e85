//! The record log: a bounded, crash-safe queue of records on disk.
//!
//! ```text
//! append ──► newest segment ... segment, segment ──► oldest segment, removed when over the limit
//!                 └────────── any number of readers, each at its own position ──────────┘
//! ```
//! - **Positions** count records from 0 for the life of the log. A reader asks for a position and
//!   gets records, or is told exactly which positions no longer exist.
//! - **Bounded**: all files together stay within the limit; the oldest segment goes first. So it does when the disk has no room
//!   for a log that is opened.
//! - **Crash-safe**: when the process dies, all that was appended is there; when the power fails,
//!   all up to the last [`RecordLog::sync`] is, and a torn end is cut to a whole record.
//! - **Boot epochs**: every opening begins a segment with the next epoch, and so does every later start of what
//!   measures. A position is only
//!   trusted together with its epoch, because a power failure can take back positions that a
//!   reader has already seen.
//! - **Gaps**: the sequence numbers of each lane are followed; where one jumps, a GAP record is
//!   put into the log in the place of what is missing.

mod error;
mod segment;

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::watch;
use weir_record::raw::BYTES;
use weir_record::{Gap, Header, Kind, LANES, Record};

pub use error::LogError;
use segment::{HEADER_BYTES, Head, Segment};

/// Smallest size limit that [`RecordLog::open`] accepts.
pub const MIN_LIMIT_BYTES: u64 = 8 * 1024;
/// Segments are an eighth of the limit, but not larger than this.
const MAX_SEGMENT_BYTES: u64 = 64 << 20;
/// `Gap::reason`: lost between the engine and the log.
const LOST_BEFORE_LOG: u8 = 1;

/// Where the log is and how large it may become.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its directory; made when missing. Nothing else may write there.
    pub directory: PathBuf,
    /// Most bytes of all its files together.
    pub limit_bytes: u64,
}

/// What opening found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Bytes of a torn end that were cut.
    pub cut_bytes: u64,
    /// Files with a damaged header, by their new names: set aside, not read and not counted
    /// against the limit. Their positions are a gap.
    pub damaged: Vec<PathBuf>,
    /// Oldest records that were given up, as the disk had no room to begin a segment.
    pub given_up: u64,
}

/// Answer of [`RecordLog::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// This many records from the wanted position on, at least 1.
    Records(u64),
    /// The positions from the wanted one to this one (inclusive) are no longer in the log.
    Reclaimed {
        /// Last missing position.
        to: u64,
    },
    /// Nothing at this position yet.
    End,
}

/// Why a place given by a reader does not fit the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// The position has not been written yet.
    Future,
    /// The log no longer knows where the epoch ended.
    UnknownEpoch,
}

/// The log; shared by one writer and many readers.
#[derive(Debug)]
pub struct RecordLog {
    directory: PathBuf,
    limit_bytes: u64,
    segment_records: u64,
    id: u64,
    epoch: AtomicU16,
    /// First position since it was opened.
    opened_at: u64,
    recovery: Recovery,
    /// Oldest first. The last one is written.
    segments: RwLock<VecDeque<Arc<Segment>>>,
    writer: Mutex<Writer>,
    lost: AtomicU64,
    fails: AtomicBool,
    next: watch::Sender<u64>,
    /// Why there are no files: [`Self::without_files`].
    not_open: Option<String>,
    /// Held for its lock.
    _lock: Option<File>,
}

#[derive(Debug, Default)]
struct Writer {
    /// Next sequence number of each lane.
    expected: [u32; LANES],
    buffer: Vec<u8>,
}

impl RecordLog {
    /// Open or make the log, cut a torn end, and begin the next boot epoch.
    pub fn open(config: Config) -> Result<Self, LogError> {
        let Config { directory, limit_bytes } = config;
        if limit_bytes < MIN_LIMIT_BYTES {
            return Err(LogError::Limit(limit_bytes));
        }
        fs::create_dir_all(&directory).map_err(LogError::io("make", &directory))?;
        let lock = lock(&directory.join("lock"))?;

        let mut recovery = Recovery::default();
        let mut segments: VecDeque<Arc<Segment>> = VecDeque::new();
        for path in segment::list(&directory)? {
            match Segment::open(&path)? {
                Some(segment) => segments.push_back(Arc::new(segment)),
                None => recovery.damaged.push(segment::set_aside(&path)?),
            }
        }
        let last = segments.back().cloned();
        if let Some(last) = &last {
            recovery.cut_bytes = last.cut_torn_tail()?;
            // From here on only what this epoch appends can be lost.
            last.sync()?;
            if last.records() == 0 {
                // Its file is replaced by the new segment's, which has the same first position.
                segments.pop_back();
            }
        }
        let head = Head {
            // Randomly keyed per process: logs made anew do not accept each other's tokens.
            log_id: last
                .as_ref()
                .map_or_else(|| RandomState::new().build_hasher().finish(), |last| last.head.log_id),
            epoch: next_epoch(last.as_ref().map_or(0, |last| last.head.epoch), recovery.damaged.len()),
            first: last.as_ref().map_or(0, |last| last.end()),
        };
        // A file that is open keeps its room when it is removed.
        drop(last);

        let segment_bytes = (limit_bytes / 8).min(MAX_SEGMENT_BYTES);
        let mut log = Self {
            directory,
            limit_bytes,
            segment_records: (segment_bytes - HEADER_BYTES) / BYTES as u64,
            id: head.log_id,
            epoch: AtomicU16::new(head.epoch),
            opened_at: head.first,
            recovery,
            segments: RwLock::new(segments),
            writer: Mutex::default(),
            lost: AtomicU64::new(0),
            fails: AtomicBool::new(false),
            next: watch::Sender::new(head.first),
            not_open: None,
            _lock: Some(lock),
        };
        let (mut given_up, mut freed) = (0, 0);
        while let Err(error) = log.begin_segment(head.first) {
            // The oldest records go first, on a full disk as well; but not all of them for nothing.
            let oldest = (error.is_full() && freed < segment_bytes).then(|| log.write_segments().pop_front());
            let Some(oldest) = oldest.flatten() else {
                return Err(error);
            };
            given_up += oldest.records();
            freed += oldest.bytes();
            oldest.remove()?;
        }
        log.recovery.given_up = given_up;
        Ok(log)
    }

    /// A log that has no files, for what must run although its log cannot be opened: every record is lost, and counted. The
    /// epoch is that of a new log.
    pub fn without_files(config: Config, why: &LogError) -> Self {
        Self {
            directory: config.directory,
            limit_bytes: config.limit_bytes,
            segment_records: 0,
            id: RandomState::new().build_hasher().finish(),
            epoch: AtomicU16::new(next_epoch(0, 0)),
            opened_at: 0,
            recovery: Recovery::default(),
            segments: RwLock::default(),
            writer: Mutex::default(),
            lost: AtomicU64::new(0),
            fails: AtomicBool::new(true),
            next: watch::Sender::new(0),
            not_open: Some(why.to_string()),
            _lock: None,
        }
    }

    /// Number of the epoch, for flow ids: 1, 2, ... 65535, 1. Each opening of the log begins one, and
    /// [`Self::begin_epoch`]; [`Self::begin_epoch_at`] leaves some out.
    pub fn epoch(&self) -> u16 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Begin the next epoch, in a segment of its own: what measures starts anew, and its flow ids would repeat.
    pub fn begin_epoch(&self) -> Result<u16, LogError> {
        let epoch = next_epoch(self.epoch(), 0);
        self.begin_epoch_at(epoch)?;
        Ok(epoch)
    }

    /// The same, with an epoch that the caller knows to be new.
    pub fn begin_epoch_at(&self, epoch: u16) -> Result<(), LogError> {
        let _writer = self.lock_writer();
        let newest = self.read_segments().back().cloned();
        if let Some(newest) = newest {
            newest.sync()?;
            if newest.records() == 0 {
                // Its file is replaced by the new segment's, which has the same first position.
                self.write_segments().pop_back();
            }
        }
        self.epoch.store(epoch, Ordering::Release);
        self.begin_segment(self.next_position())?;
        Ok(())
    }

    /// Give the epoch back, if nothing was appended in it: the next opening begins it again.
    pub fn give_back_epoch(&self) -> Result<(), LogError> {
        if self.not_open.is_some() || self.appended() > 0 {
            return Ok(());
        }
        self.begin_epoch_at(self.epoch() - 1)
    }

    /// Identity of the log, kept for its life.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What opening found.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Most bytes of all files together.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Bytes of all files now.
    pub fn bytes(&self) -> u64 {
        self.read_segments().iter().map(|segment| segment.bytes()).sum()
    }

    /// Position of the oldest record, or of the next one when there is none.
    pub fn first_position(&self) -> u64 {
        self.read_segments()
            .front()
            .map_or_else(|| self.next_position(), |segment| segment.head.first)
    }

    /// Position that the next record will get.
    pub fn next_position(&self) -> u64 {
        *self.next.borrow()
    }

    /// Records appended since opening, GAP records included.
    pub fn appended(&self) -> u64 {
        self.next_position() - self.opened_at
    }

    /// Records that were to be appended and were not, since opening.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Records that are not appended, because there is no time to: the next one of their lane shows the gap.
    pub fn count_lost(&self, records: usize) {
        self.lost.fetch_add(records as u64, Ordering::Relaxed);
    }

    /// Whether the last [`Self::append`] failed.
    pub fn fails(&self) -> bool {
        self.fails.load(Ordering::Relaxed)
    }

    /// Follows [`Self::next_position`]: wakes when records were appended.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.next.subscribe()
    }

    /// Append records and return the next position. Where the sequence numbers of a lane jump, a
    /// GAP record is put before the record that shows it.
    ///
    /// On an error, the records before the failing part are in the log and the rest is not, and counted as lost; the
    /// lanes' sequence numbers will show what is missing.
    pub fn append(&self, mut records: &[Record]) -> Result<u64, LogError> {
        let result = self.append_some(&mut records);
        self.fails.store(result.is_err(), Ordering::Relaxed);
        self.count_lost(records.len());
        result.map(|()| self.next_position())
    }

    /// Takes from the front of `records` what is in the log.
    fn append_some(&self, records: &mut &[Record]) -> Result<(), LogError> {
        let mut guard = self.lock_writer();
        let writer = &mut *guard;
        let mut done = 0;
        while !records.is_empty() {
            let segment = self.writable_segment()?;
            let room = (self.segment_records - segment.records()) as usize;
            let mut expected = writer.expected;
            let (taken, fault) = encode(records, room, &mut expected, &mut writer.buffer);
            segment.append(&writer.buffer)?;
            writer.expected = expected;
            // Readers wake once for each part, after it can be read.
            self.next.send_replace(segment.end());
            *records = &records[taken..];
            done += taken;
            if fault {
                return Err(LogError::NotARecord(done));
            }
        }
        Ok(())
    }

    /// The engine behind this lane was restarted: its next record has sequence number 0.
    pub fn restart_lane(&self, lane: u8) {
        if let Some(expected) = self.lock_writer().expected.get_mut(usize::from(lane)) {
            *expected = 0;
        }
    }

    /// Bring all that was appended to the disk.
    pub fn sync(&self) -> Result<(), LogError> {
        let newest = self.read_segments().back().cloned();
        newest.map_or(Ok(()), |segment| segment.sync())
    }

    /// Append the bytes of at most `max_records` records from `position` on to `out`.
    ///
    /// Blocks for the disk; never more than one segment is read from.
    pub fn read(&self, position: u64, max_records: usize, out: &mut Vec<u8>) -> Result<Read, LogError> {
        let (segment, following) = {
            let segments = self.read_segments();
            let after = segments.partition_point(|segment| segment.head.first <= position);
            let segment = after.checked_sub(1).and_then(|index| segments.get(index)).cloned();
            (segment, segments.get(after).map(|segment| segment.head.first))
        };
        let available = segment
            .as_ref()
            .map_or(0, |segment| segment.end().saturating_sub(position));
        match (segment, following) {
            (Some(segment), _) if available > 0 => {
                let count = available.min(max_records.max(1) as u64);
                segment.read(position, count as usize, out)?;
                Ok(Read::Records(count))
            }
            (_, Some(first)) => Ok(Read::Reclaimed { to: first - 1 }),
            _ => Ok(Read::End),
        }
    }

    /// Where a reader goes on that has handled all before `position`, which it was told while the
    /// log was at `epoch`.
    pub fn resume(&self, epoch: u16, position: u64) -> Result<u64, PlaceError> {
        let segments = self.read_segments();
        let end = segments
            .iter()
            .rev()
            .find(|segment| segment.head.epoch == epoch)
            .map(|segment| segment.end());
        match end {
            Some(end) if position <= end => Ok(position),
            Some(_) if epoch == self.epoch() => Err(PlaceError::Future),
            // A power failure took back what the reader had already seen of that epoch.
            Some(end) => Ok(end),
            None if epoch > self.epoch() => Err(PlaceError::UnknownEpoch),
            // No segment of it is left, or it never wrote one: it ended where the next one begins.
            None => segments
                .iter()
                .find(|segment| segment.head.epoch > epoch)
                .map(|segment| position.min(segment.head.first))
                .ok_or(PlaceError::UnknownEpoch),
        }
    }

    /// The newest segment if it has room for a record behind a GAP record, otherwise a new one.
    fn writable_segment(&self) -> Result<Arc<Segment>, LogError> {
        let newest = self.read_segments().back().cloned();
        match newest {
            Some(segment) if segment.records() + 2 <= self.segment_records => return Ok(segment),
            Some(segment) => segment.sync()?,
            None => {}
        }
        self.begin_segment(self.next_position())
    }

    /// Make room within the limit, then begin a segment.
    fn begin_segment(&self, first: u64) -> Result<Arc<Segment>, LogError> {
        if let Some(why) = &self.not_open {
            return Err(LogError::NotOpen(why.clone()));
        }
        let full = HEADER_BYTES + self.segment_records * BYTES as u64;
        let mut total = self.bytes();
        while total + full > self.limit_bytes {
            // Taken out of the list first: no new reader comes to a file that is being removed.
            let oldest = self.write_segments().pop_front();
            let Some(oldest) = oldest else { break };
            total -= oldest.bytes();
            oldest.remove()?;
        }
        let head = Head {
            log_id: self.id,
            epoch: self.epoch(),
            first,
        };
        let segment = Arc::new(Segment::create(&self.directory, head)?);
        self.write_segments().push_back(Arc::clone(&segment));
        Ok(segment)
    }

    fn read_segments(&self) -> std::sync::RwLockReadGuard<'_, VecDeque<Arc<Segment>>> {
        self.segments.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_segments(&self) -> std::sync::RwLockWriteGuard<'_, VecDeque<Arc<Segment>>> {
        self.segments.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RecordLog {
    fn drop(&mut self) {
        // The records are with the operating system already; nobody is left to tell of an error.
        let _ = self.sync();
    }
}

/// The epoch after `last`. A damaged file may hide an epoch of its own, so each skips one.
fn next_epoch(last: u16, damaged: usize) -> u16 {
    let steps = 1 + damaged.min(1000) as u32;
    // 1 ..= 65535, then 1 again: 0 is no epoch.
    ((u32::from(last) + steps - 1) % u32::from(u16::MAX) + 1) as u16
}

/// Bytes of as many records, with the GAP records they need, as fit into `room` records. Returns
/// how many of `records` they are and whether the next one is no record.
fn encode(records: &[Record], room: usize, expected: &mut [u32; LANES], buffer: &mut Vec<u8>) -> (usize, bool) {
    buffer.clear();
    let room = room * BYTES;
    for (taken, record) in records.iter().enumerate() {
        if record.version() == 0 {
            return (taken, true);
        }
        if buffer.len() + 2 * BYTES > room {
            return (taken, false);
        }
        let next = &mut expected[usize::from(record.lane())];
        // Whoever read the card's link has told of the gap: the record behind it is expected now.
        if record.kind() == Some(Kind::Gap) {
            *next = Gap::decode(record).to_sequence.wrapping_add(1);
            buffer.extend_from_slice(&record.0);
            continue;
        }
        let sequence = record.sequence();
        if sequence != *next {
            let gap = Gap {
                from_sequence: *next,
                to_sequence: sequence.wrapping_sub(1),
                reason: LOST_BEFORE_LOG,
            };
            let header = Header {
                lane: record.lane(),
                sequence: *next,
                time: record.time(),
                ..Header::default()
            };
            buffer.extend_from_slice(&gap.encode(header).0);
        }
        *next = sequence.wrapping_add(1);
        buffer.extend_from_slice(&record.0);
    }
    (records.len(), false)
}

fn lock(path: &std::path::Path) -> Result<File, LogError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(LogError::io("open", path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LogError::Locked(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(LogError::io("lock", path)(error)),
    }
}
