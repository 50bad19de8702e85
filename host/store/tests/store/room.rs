//! Retention, and a disk that is full.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use weir_store::{Manifest, Options, Store, WhenFull, check};

use crate::rows::{T0, blocks, once, stored};

const HOUR: u64 = 3_600_000_000_000;

fn at(row: u64, step: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(T0 + row * step)
}

fn keeping_three_hours(folder: &Path) -> Store {
    let options = Options {
        keep: Some(Duration::from_secs(3 * 3600)),
        ..Options::default()
    };
    Store::open(folder, options).unwrap()
}

#[test]
fn hours_that_are_too_old_go() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = keeping_three_hours(folder.path());
    store.commit("t", &blocks(0..10, HOUR), None).unwrap();
    assert_eq!(
        store.expire(at(3, HOUR)).unwrap(),
        None,
        "three hours and the one that is running"
    );
    let expired = store.expire(at(5, HOUR)).unwrap().unwrap();
    assert_eq!((expired.rows["blocks"], expired.to.as_str()), (2, "2026-01-01T01"));
    assert_eq!(stored(folder.path()), once(2..10));
    drop(store);
    // Its count outlives the process.
    assert_eq!(Manifest::read(folder.path()).unwrap().expired["blocks"], 2);
}

#[test]
fn a_clock_that_jumps_does_not_empty_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = keeping_three_hours(folder.path());
    store.commit("t", &blocks(0..4, HOUR), None).unwrap();
    // Years ahead; before 1970; and behind all that is stored.
    for now in [
        at(1_000_000, HOUR),
        SystemTime::UNIX_EPOCH,
        at(0, HOUR) - Duration::from_secs(86_400),
    ] {
        assert_eq!(store.expire_live(now).unwrap(), None);
    }
    // What comes is stamped by it, and the rows of before go as it passes: three hours are kept in all.
    store.commit("t", &blocks(1000..1003, HOUR), None).unwrap();
    let expired = store.expire_live(at(1002, HOUR)).unwrap().unwrap();
    assert_eq!((expired.rows["blocks"], expired.to.as_str()), (2, "2026-01-01T01"));
    store.commit("t", &blocks(1003..1005, HOUR), None).unwrap();
    assert_eq!(store.expire_live(at(1004, HOUR)).unwrap().unwrap().rows["blocks"], 3);
    assert_eq!(stored(folder.path()), once(1001..1005));
    // It is set right: rows of its future do not make others old.
    store.commit("t", &blocks(10..12, HOUR), None).unwrap();
    assert_eq!(store.expire_live(at(13, HOUR)).unwrap(), None);
    let expired = store.expire_live(at(14, HOUR)).unwrap().unwrap();
    assert_eq!((expired.rows["blocks"], expired.to.as_str()), (1, "2026-01-01T10"));
}

#[test]
fn a_store_that_is_too_large_loses_its_oldest_hours() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    store.commit("t", &blocks(0..10, HOUR), None).unwrap();
    let each = store.manifest().bytes() / 10;
    drop(store);
    let options = Options {
        keep_bytes: Some(each * 9 / 2),
        ..Options::default()
    };
    let mut store = Store::open(folder.path(), options).unwrap();
    store.expire(SystemTime::now()).unwrap();
    assert_eq!(stored(folder.path()), once(6..10));
    assert!(store.manifest().bytes() <= each * 9 / 2);
    // One hour alone: its files go one by one.
    store.commit("t", &blocks(9..10, HOUR), None).unwrap();
    drop(store);
    let options = Options {
        keep_bytes: Some(each * 3 / 2),
        ..Options::default()
    };
    let mut store = Store::open(folder.path(), options).unwrap();
    store.expire(SystemTime::now()).unwrap();
    assert_eq!(stored(folder.path()), once(9..10));
}

/// A file system of this size that is gone with its value; none without the right to mount.
struct Small(
    PathBuf,
    #[allow(dead_code, reason = "the folder lives as long")] tempfile::TempDir,
);

impl Small {
    fn new(kib: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={kib}k");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(folder.path())
            .output();
        if mount.is_ok_and(|output| output.status.success()) {
            return Some(Self(folder.path().to_owned(), folder));
        }
        println!("skipped: no right to mount a small file system");
        None
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Rows of a commit, more than compress to nothing.
const ROWS: u64 = 4000;

#[test]
fn a_full_disk_keeps_what_is_there_if_that_is_wanted() {
    let Some(disk) = Small::new(3072) else { return };
    let options = Options {
        when_full: WhenFull::Stop,
        ..Options::default()
    };
    let mut store = Store::open(disk.path(), options).unwrap();
    let (mut kept, mut given_up) = (0, 0);
    for commit in 0..400 {
        let rows = blocks(commit * ROWS..(commit + 1) * ROWS, HOUR / ROWS);
        match store.commit("t", &rows, None) {
            Ok(committed) => {
                assert_eq!(
                    given_up, 0,
                    "what is smaller may still find room: not with equal commits"
                );
                kept += committed.rows;
            }
            Err(error) => {
                assert!(error.is_full(), "{error}");
                assert!(error.to_string().contains("No space left on device"), "{error}");
                store.give_up(&rows);
                given_up += ROWS;
                if given_up > 5 * ROWS {
                    break;
                }
            }
        }
    }
    assert!(kept > 0 && given_up > 0, "{kept} {given_up}");
    assert_eq!(stored(disk.path()), once(0..kept));
    assert_eq!(check(disk.path()).unwrap().problems, Vec::<String>::new());
    // What was given up is told at the end, however full the disk is, and once.
    store.tell_given_up("t").unwrap();
    store.tell_given_up("t").unwrap();
    assert_eq!(Manifest::read(disk.path()).unwrap().not_stored["blocks"], given_up);
    assert_eq!(stored(disk.path()), once(0..kept));
    // It opens on the full disk, too.
    drop(store);
    let mut store = Store::open(disk.path(), options).unwrap();
    assert_eq!(stored(disk.path()), once(0..kept));
    // Somebody makes room: it goes on.
    std::fs::remove_file(disk.path().join("manifest/reserve")).unwrap();
    store.give_up(&blocks(0..7, 1));
    store.commit("t", &blocks(kept..kept + 1, HOUR / ROWS), None).unwrap();
    assert_eq!(stored(disk.path()), once(0..kept + 1));
    assert_eq!(Manifest::read(disk.path()).unwrap().not_stored["blocks"], given_up + 7);
}

#[test]
fn a_full_disk_gives_up_the_oldest_hours_if_that_is_wanted() {
    let Some(disk) = Small::new(3072) else { return };
    let mut store = Store::open(disk.path(), Options::default()).unwrap();
    let commits = 120;
    for commit in 0..commits {
        store
            .commit("t", &blocks(commit * ROWS..(commit + 1) * ROWS, HOUR / ROWS), None)
            .unwrap();
    }
    let expired = store.manifest().expired["blocks"];
    assert!(expired > 0, "the disk was not full");
    let left = stored(disk.path());
    assert_eq!(
        left.len() as u64 + expired,
        commits * ROWS,
        "each row is there or counted"
    );
    assert_eq!(left, once(expired..commits * ROWS), "the newest are there");
    assert_eq!(check(disk.path()).unwrap().problems, Vec::<String>::new());
    drop(store);
    Store::open(disk.path(), Options::default()).unwrap();
    assert_eq!(stored(disk.path()).len(), left.len());
}

#[test]
fn a_full_disk_keeps_the_last_commit_and_says_what_went() {
    let Some(disk) = Small::new(2048) else { return };
    let open = || Store::open(disk.path(), Options::default()).unwrap();
    let add = |store: &mut Store, rows: Range<u64>| store.commit("t", &blocks(rows, HOUR / ROWS / 4), None);
    let mut store = open();
    let (mut next, mut told) = (0, 0);
    while told == 0 {
        add(&mut store, next..next + ROWS).unwrap();
        store.compact_some().unwrap();
        next += ROWS;
        told += store.made_room().map_or(0, |room| room.rows["blocks"]);
    }
    assert_eq!(store.made_room(), None, "each row is told once");
    assert_eq!(stored(disk.path()), once(told..next));
    // A commit that finds no room by whatever goes takes the others with it, but not the last one.
    let too_large = next..next + 400 * ROWS;
    assert!(add(&mut store, too_large.clone()).unwrap_err().is_full());
    assert_eq!(stored(disk.path()), once(next - ROWS..next));
    assert_eq!(told + store.made_room().unwrap().rows["blocks"], next - ROWS);
    // Nor after an opening, nor where compaction has given it another name.
    drop(store);
    let mut store = open();
    add(&mut store, next..next + 1).unwrap();
    store.compact().unwrap();
    assert!(add(&mut store, too_large.clone()).unwrap_err().is_full());
    assert_eq!(stored(disk.path()), once(next - ROWS..next + 1));
    assert_eq!(store.made_room(), None);
    // What is smaller finds room, and is the last one then.
    add(&mut store, next + 1..next + 2).unwrap();
    assert!(add(&mut store, too_large).unwrap_err().is_full());
    assert_eq!(stored(disk.path()), once(next + 1..next + 2));
    assert_eq!(check(disk.path()).unwrap().problems, Vec::<String>::new());
}

#[test]
fn compaction_leaves_the_last_commit_its_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    let mut files = Vec::new();
    for commit in 0..17 {
        store
            .commit("t", &blocks(commit * 10..(commit + 1) * 10, 1), None)
            .unwrap();
        store.compact_some().unwrap();
        files.push(store.manifest().files().count());
    }
    assert_eq!(files[15..], [16, 2]);
    assert_eq!(stored(folder.path()), once(0..170));
}
