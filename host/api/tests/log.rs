//! The record log: order, limits, gaps and what crashes leave.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use weir_api::log::{Config, LogError, PlaceError, Read, RecordLog};
use weir_record::raw::BYTES;
use weir_record::{Gap, Header, Kind, Record};

fn record(lane: u8, sequence: u32) -> Record {
    Header {
        lane,
        sequence,
        time: u64::from(sequence) * 1000,
        ..Header::default()
    }
    .start(Kind::Event, false)
}

fn records(from: u32, to: u32) -> Vec<Record> {
    (from..to).map(|sequence| record(0, sequence)).collect()
}

fn open(directory: &Path, limit_bytes: u64) -> RecordLog {
    RecordLog::open(Config {
        directory: directory.to_owned(),
        limit_bytes,
    })
    .unwrap()
}

/// All records from `position` on, and the gaps on the way.
fn read_all(log: &RecordLog, mut position: u64) -> (Vec<Record>, Vec<(u64, u64)>) {
    let (mut bytes, mut gaps) = (Vec::new(), Vec::new());
    loop {
        match log.read(position, 7, &mut bytes).unwrap() {
            Read::Records(count) => position += count,
            Read::Reclaimed { to } => {
                gaps.push((position, to));
                position = to + 1;
            }
            Read::End => break,
        }
    }
    (
        bytes
            .chunks(BYTES)
            .map(|bytes| Record::from_slice(bytes).unwrap())
            .collect(),
        gaps,
    )
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "weirlog"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn what_goes_in_comes_out_also_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1 << 20);
    assert_eq!(log.append(&records(0, 100)).unwrap(), 100);
    assert_eq!(log.append(&[]).unwrap(), 100);
    assert_eq!(read_all(&log, 0), (records(0, 100), vec![]));
    assert_eq!(read_all(&log, 98).0, records(98, 100));
    let (id, epoch) = (log.id(), log.epoch());
    drop(log);

    let log = open(directory.path(), 1 << 20);
    assert_eq!((log.id(), log.epoch()), (id, epoch + 1));
    assert_eq!(log.next_position(), 100);
    assert_eq!(read_all(&log, 0).0, records(0, 100));
    log.append(&records(0, 5)).unwrap();
    assert_eq!(
        read_all(&log, 100).0,
        records(0, 5),
        "a new epoch starts its lanes at 0"
    );
}

#[test]
fn openings_without_records_leave_one_file() {
    let directory = tempfile::tempdir().unwrap();
    for epoch in 1..5 {
        assert_eq!(open(directory.path(), 1 << 20).epoch(), epoch);
    }
    assert_eq!(files(directory.path()).len(), 1);
}

#[test]
fn an_epoch_that_was_given_back_is_begun_again() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let log = open(directory.path(), 1 << 20);
        assert_eq!(log.epoch(), 1);
        log.give_back_epoch().unwrap();
    }
    let log = open(directory.path(), 1 << 20);
    let id = log.id();
    log.append(&records(0, 10)).unwrap();
    // It has records: they keep it.
    log.give_back_epoch().unwrap();
    drop(log);
    for _ in 0..3 {
        let log = open(directory.path(), 1 << 20);
        assert_eq!((log.id(), log.epoch(), log.next_position()), (id, 2, 10));
        assert_eq!(read_all(&log, 0), (records(0, 10), vec![]));
        log.give_back_epoch().unwrap();
    }
    assert_eq!(files(directory.path()).len(), 2);
}

#[test]
fn an_epoch_begun_in_between_is_as_one_of_an_opening() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1 << 20);
    let epoch = log.epoch();
    // Without records before it takes the place of the file.
    assert_eq!(log.begin_epoch().unwrap(), epoch + 1);
    assert_eq!(files(directory.path()).len(), 1);
    log.append(&records(0, 10)).unwrap();
    assert_eq!(log.begin_epoch().unwrap(), epoch + 2);
    assert_eq!(files(directory.path()).len(), 2);
    assert_eq!(log.epoch(), epoch + 2);
    assert_eq!(log.appended(), 10);
    log.append(&records(10, 20)).unwrap();
    assert_eq!(read_all(&log, 0), (records(0, 20), vec![]));
    assert_eq!(log.resume(epoch + 1, 10), Ok(10));
    assert_eq!(log.resume(epoch + 2, 20), Ok(20));
    assert_eq!(log.resume(epoch + 2, 21), Err(PlaceError::Future));
    drop(log);
    let log = open(directory.path(), 1 << 20);
    assert_eq!(log.epoch(), epoch + 3);
    assert_eq!(read_all(&log, 0).0, records(0, 20));
}

#[test]
fn the_limit_holds_and_the_oldest_go_first() {
    let directory = tempfile::tempdir().unwrap();
    let limit = 16 * 1024;
    let log = open(directory.path(), limit);
    for batch in 0..200 {
        log.append(&records(batch * 10, batch * 10 + 10)).unwrap();
        let on_disk: u64 = files(directory.path())
            .iter()
            .map(|path| path.metadata().unwrap().len())
            .sum();
        assert!(on_disk <= limit, "{on_disk} bytes");
        assert_eq!(on_disk, log.bytes());
    }
    let first = log.first_position();
    assert!(first > 1000, "{first}");
    assert!(log.bytes() > limit / 2);
    let (kept, gaps) = read_all(&log, 3);
    assert_eq!(gaps, vec![(3, first - 1)]);
    assert_eq!(kept, records(first as u32, 2000));
}

#[test]
fn a_jump_in_a_lane_becomes_a_gap_record() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1 << 20);
    log.append(&[record(0, 0), record(1, 0), record(0, 1), record(1, 5), record(0, 2)])
        .unwrap();
    let (kept, _) = read_all(&log, 0);
    assert_eq!(kept.len(), 6);
    assert_eq!(kept[3].kind(), Some(Kind::Gap));
    assert_eq!(kept[3].lane(), 1);
    assert_eq!(
        Gap::decode(&kept[3]),
        Gap {
            from_sequence: 1,
            to_sequence: 4,
            reason: 1
        }
    );
    assert_eq!(kept[4], record(1, 5));

    log.restart_lane(0);
    log.append(&[record(0, 0)]).unwrap();
    assert_eq!(log.next_position(), 7, "a restarted lane has no gap");
    log.append(&[record(0, u32::MAX), record(0, 0)]).unwrap();
    assert_eq!(log.next_position(), 10, "one gap, then the number wraps");
}

#[test]
fn gaps_that_the_source_tells_are_not_told_twice() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1 << 20);
    let header = Header {
        sequence: 2,
        time: 5,
        ..Header::default()
    };
    let gap = Gap {
        from_sequence: 2,
        to_sequence: 6,
        reason: 1,
    };
    let appended = [
        record(0, 0),
        record(0, 1),
        gap.encode(header),
        record(0, 7),
        record(0, 8),
    ];
    log.append(&appended).unwrap();
    assert_eq!(read_all(&log, 0).0, appended);
}

#[test]
fn a_second_process_is_kept_out_and_small_limits_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        directory: directory.path().to_owned(),
        limit_bytes: 1 << 20,
    };
    let log = RecordLog::open(config.clone()).unwrap();
    assert!(matches!(RecordLog::open(config.clone()), Err(LogError::Locked(_))));
    drop(log);
    assert!(matches!(
        RecordLog::open(Config {
            limit_bytes: 100,
            ..config
        }),
        Err(LogError::Limit(100))
    ));
}

#[test]
fn what_is_no_record_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1 << 20);
    let batch = [record(0, 0), Record([0; BYTES]), record(0, 1)];
    assert!(matches!(log.append(&batch), Err(LogError::NotARecord(1))));
    assert_eq!(read_all(&log, 0).0, records(0, 1));
}

#[test]
fn a_damaged_header_is_reported_and_its_positions_are_a_gap() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 16 * 1024);
    log.append(&records(0, 150)).unwrap();
    drop(log);
    let victim = files(directory.path())[1].clone();
    let mut bytes = fs::read(&victim).unwrap();
    bytes[20] ^= 1;
    fs::write(&victim, bytes).unwrap();

    let log = open(directory.path(), 16 * 1024);
    assert_eq!(log.recovery().damaged, [victim.with_extension("damaged")]);
    assert_eq!(log.epoch(), 3, "the damaged file may have had an epoch of its own");
    let (kept, gaps) = read_all(&log, 0);
    assert_eq!(gaps.len(), 1);
    let (from, to) = gaps[0];
    assert_eq!(kept.len() as u64, 150 - (to + 1 - from));
    assert_eq!(log.next_position(), 150);
}

#[test]
fn zeros_at_the_end_are_cut() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1 << 20);
    log.append(&records(0, 10)).unwrap();
    drop(log);
    let path = files(directory.path()).pop().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[64 + 8 * BYTES..].fill(0);
    bytes.extend([0; 1000]);
    fs::write(&path, bytes).unwrap();

    let log = open(directory.path(), 1 << 20);
    assert_eq!(log.recovery().cut_bytes, 2 * BYTES as u64 + 1000);
    assert_eq!(read_all(&log, 0).0, records(0, 8));
}

#[test]
fn a_reader_that_saw_more_than_survived_goes_on_at_the_next_epoch() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1 << 20);
    let epoch = log.epoch();
    log.append(&records(0, 10)).unwrap();
    assert_eq!(log.resume(epoch, 10), Ok(10));
    assert_eq!(log.resume(epoch, 11), Err(PlaceError::Future));
    drop(log);
    let path = files(directory.path()).pop().unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(64 + 6 * BYTES as u64)
        .unwrap();

    let log = open(directory.path(), 1 << 20);
    log.append(&records(0, 20)).unwrap();
    assert_eq!(log.resume(epoch, 4), Ok(4));
    assert_eq!(
        log.resume(epoch, 10),
        Ok(6),
        "positions 6.. now hold records of the new epoch"
    );
    assert_eq!(log.resume(epoch + 1, 10), Ok(10));
    assert_eq!(log.resume(epoch + 5, 10), Err(PlaceError::UnknownEpoch));
}

#[test]
fn a_removed_segment_does_not_disturb_its_reader() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 8 * 1024);
    let log = &log;
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let (mut position, mut bytes, mut seen) = (0, Vec::new(), 0_u64);
            while position < 20_000 {
                bytes.clear();
                match log.read(position, 50, &mut bytes).unwrap() {
                    Read::Records(count) => {
                        for (index, record) in bytes.chunks(BYTES).enumerate() {
                            let record = Record::from_slice(record).unwrap();
                            assert_eq!(u64::from(record.sequence()), position + index as u64);
                        }
                        position += count;
                        seen += count;
                    }
                    Read::Reclaimed { to } => position = to + 1,
                    Read::End => std::thread::yield_now(),
                }
            }
            seen
        });
        for batch in 0..2000 {
            log.append(&records(batch * 10, batch * 10 + 10)).unwrap();
        }
        assert!(reader.join().unwrap() > 0);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A crash may cut the newest file anywhere: what remains is a prefix, and the log goes on.
    #[test]
    fn any_cut_leaves_a_prefix(count in 1_u32..120, back in 0_u64..2000, again in 0_u32..20) {
        let directory = tempfile::tempdir().unwrap();
        let log = open(directory.path(), 8 * 1024);
        log.append(&records(0, count)).unwrap();
        let oldest = log.first_position();
        drop(log);
        let path = files(directory.path()).pop().unwrap();
        let bytes = path.metadata().unwrap().len();
        let cut = bytes.saturating_sub(back).max(64);
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(cut).unwrap();

        let log = open(directory.path(), 8 * 1024);
        let lost = (bytes - 64) / 64 - (cut - 64) / 64;
        prop_assert_eq!(log.next_position(), u64::from(count) - lost);
        prop_assert!(log.first_position() >= oldest);
        let from = log.first_position() as u32;
        log.append(&records(0, again)).unwrap();
        let (kept, gaps) = read_all(&log, 0);
        let skipped = gaps.first().map_or(0, |(_, to)| (to + 1) as u32);
        prop_assert!(skipped >= from);
        let mut all = records(0, count - lost as u32);
        all.extend(records(0, again));
        prop_assert_eq!(&kept[..], &all[skipped as usize..]);
    }

    /// Batches of any size come out as one sequence, across segments.
    #[test]
    fn any_batches_come_out_in_order(sizes in prop::collection::vec(0_u32..40, 1..20)) {
        let directory = tempfile::tempdir().unwrap();
        let log = open(directory.path(), 1 << 20);
        let mut next = 0;
        for size in sizes {
            log.append(&records(next, next + size)).unwrap();
            next += size;
        }
        prop_assert_eq!(read_all(&log, 0), (records(0, next), vec![]));
    }
}
