//! Commits: rows in are rows out, torn ends are put right, one writer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use weir_store::tables::{ROWS, Table};
use weir_store::{Feed, Manifest, Options, Store, StoreError, check};

use crate::rows::{blocks, once, shown, shown_files, stored};

const HOUR: u64 = 3_600_000_000_000;

fn open(folder: &Path) -> Store {
    Store::open(folder, Options::default()).unwrap()
}

/// Add these rows as a source that always says the same, committing where `cuts` says, and stop before the end if it is
/// not to be `finished`.
fn ingest(store: &mut Store, rows: u64, step: u64, cuts: &[u64], finished: bool) -> Result<(), StoreError> {
    let mut feed = Feed::again(store, "t", "source", "source", "1")?;
    let mut begin = 0;
    for end in cuts.iter().copied().chain([rows]) {
        let end = end.clamp(begin, rows);
        feed.add(blocks(begin..end, step));
        begin = end;
        if begin < rows {
            feed.commit()?;
        }
    }
    if finished {
        feed.finish().map(drop)
    } else {
        feed.commit().map(drop)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any cut of the input into batches and commits, any resumption, any compaction: each row once.
    #[test]
    fn rows_in_are_rows_out(
        rows in 1_u64..150,
        step in prop_oneof![Just(0), Just(1), Just(HOUR / 50), Just(HOUR)],
        first in proptest::collection::vec(0_u64..150, 0..5),
        second in proptest::collection::vec(0_u64..150, 0..5),
        part in 0_u64..150,
        compacted in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let part = part.min(rows);
        let sorted = |mut cuts: Vec<u64>| { cuts.sort_unstable(); cuts };
        ingest(&mut open(folder.path()), part, step, &sorted(first), false).unwrap();
        prop_assert_eq!(stored(folder.path()), once(0..part));
        let mut store = open(folder.path());
        if compacted {
            store.compact().unwrap();
        }
        ingest(&mut store, rows, step, &sorted(second), true).unwrap();
        prop_assert_eq!(stored(folder.path()), once(0..rows));
        // What shows is what counts.
        prop_assert_eq!(shown(folder.path()).unwrap(), once(0..rows));
        prop_assert!(Feed::again(&mut store, "t", "source", "source", "2").unwrap().is_done());
        let done = store.compact().unwrap();
        prop_assert_eq!(stored(folder.path()), once(0..rows));
        let hours = store.manifest().files().map(|file| file.partition().unwrap().2.to_owned());
        let hours: std::collections::BTreeSet<_> = hours.collect();
        prop_assert_eq!(store.manifest().files().count(), hours.len(), "{:?}", done);
        prop_assert_eq!(check(folder.path()).unwrap().problems, Vec::<String>::new());
    }
}

#[test]
fn more_rows_than_a_merge_holds_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    // Files whose rows lie between each other's, each more than one batch of the reader.
    let all = blocks(0..3 * ROWS as u64, 1);
    for part in 0..3 {
        let rows: Vec<u32> = (0..ROWS as u32).map(|row| 3 * row + part).collect();
        let batch =
            arrow::compute::take_record_batch(&all[0].1, &rows.into_iter().collect::<arrow::array::UInt32Array>());
        store.commit("t", &[(Table::Blocks, batch.unwrap())], None).unwrap();
    }
    let done = store.compact().unwrap();
    assert_eq!((done.from, done.to, done.rows), (3, 1, 3 * ROWS as u64));
    assert_eq!(stored(folder.path()), once(0..3 * ROWS as u64));
    assert_eq!(check(folder.path()).unwrap().problems, Vec::<String>::new());
}

#[test]
fn a_daemons_hour_stays_at_few_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let mut most = 0;
    for commit in 0..300 {
        store.commit("t", &blocks(commit * 3..commit * 3 + 3, 1), None).unwrap();
        store.compact_some().unwrap();
        most = most.max(store.manifest().files().count());
    }
    assert!(most <= 40, "{most} files");
    assert_eq!(stored(folder.path()), once(0..900));
    // What readers may still read is hidden, and removed by the next opening.
    drop(store);
    let store = open(folder.path());
    assert!(store.recovery().removed > 200, "{:?}", store.recovery());
    assert_eq!(stored(folder.path()), once(0..900));
    // Commits are put together in checkpoints.
    let commits = fs::read_dir(folder.path().join("manifest")).unwrap().count();
    assert!(commits < 70, "{commits} files in the manifest");
}

#[test]
fn a_source_of_another_version_is_refused_until_it_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    ingest(&mut store, 10, 1, &[], false).unwrap();
    let refused = Feed::again(&mut store, "t", "source", "monday.pcap", "2")
        .err()
        .unwrap();
    assert!(
        refused.to_string().contains("monday.pcap was begun by version 1"),
        "{refused}"
    );
    // Under another tap it is another one.
    assert!(
        !Feed::again(&mut store, "other", "source", "monday.pcap", "2")
            .unwrap()
            .is_done()
    );
}

#[test]
fn captures_of_one_tap_have_connections_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let mut epochs = Vec::new();
    for name in ["a", "b", "c", "b"] {
        let mut feed = Feed::again(&mut store, "t", name, name, "1").unwrap();
        epochs.push(feed.epoch());
        feed.add(blocks(0..3, 1));
        feed.commit().unwrap();
    }
    assert_eq!(
        epochs,
        [0, u16::MAX, u16::MAX - 1, u16::MAX],
        "the first has the ids that are shown elsewhere"
    );
    // A daemon was there first: its ids count up from 1.
    store.commit("d", &blocks(0..3, 1), None).unwrap();
    assert_eq!(Feed::again(&mut store, "d", "a", "a", "1").unwrap().epoch(), u16::MAX);
    // Another tap whose name begins alike is another one.
    assert_eq!(Feed::again(&mut store, "t2", "a", "a", "1").unwrap().epoch(), 0);
}

#[test]
fn one_writer_and_many_readers() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.commit("t", &blocks(0..5, 1), None).unwrap();
    let refused = Store::open(folder.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, StoreError::Locked(_)), "{refused}");
    assert!(
        refused.to_string().contains("being written by another process"),
        "{refused}"
    );
    assert_eq!(stored(folder.path()), once(0..5));
    drop(store);
    open(folder.path());
}

#[test]
fn folders_and_names_that_are_not_of_a_store_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
    let refused = Store::open(folder.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, StoreError::NotAStore(_)), "{refused}");
    assert!(matches!(Manifest::read(folder.path()), Err(StoreError::NotAStore(_))));
    // A store that lost its manifest is not taken for an empty one: its files would be removed.
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.commit("t", &blocks(0..5, 1), None).unwrap();
    for name in ["", "a/b", "..", ".a", "a b", &"x".repeat(65)] {
        let refused = store.commit(name, &blocks(5..6, 1), None).unwrap_err();
        assert!(matches!(refused, StoreError::Tap(_)), "{name}: {refused}");
    }
    drop(store);
    fs::remove_dir_all(folder.path().join("manifest")).unwrap();
    assert!(Store::open(folder.path(), Options::default()).is_err());
    assert_eq!(shown(folder.path()).unwrap(), once(0..5));
}

/// Copy a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target)
        } else {
            fs::copy(&path, &target).map(drop).unwrap()
        }
    }
}

/// All files below a folder, relative to it.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, all);
            } else {
                all.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(folder, folder, &mut all);
    all
}

/// The states of the disk between two states of a store: files appear hidden, the commit appears, files are renamed.
/// After each of them the store opens and has the rows of before or after, from the commit on those of after.
fn every_instant(before: &Path, after: &Path, old: &BTreeMap<u64, u32>, new: &BTreeMap<u64, u32>) -> usize {
    let (from, to) = (tree(before), tree(after));
    let is_commit = |path: &&PathBuf| path.starts_with("manifest") && !from.contains_key(*path);
    let data = |path: &&PathBuf| !path.starts_with("manifest");
    let hidden = |path: &Path| {
        let part = path.file_stem().unwrap().to_str().unwrap();
        path.with_file_name(format!(".{part}.hidden"))
    };
    let shows = |path: &&PathBuf| path.extension().is_some_and(|end| end == "parquet");
    let added: Vec<_> = to
        .keys()
        .filter(data)
        .filter(shows)
        .filter(|path| !from.contains_key(*path))
        .collect();
    let gone: Vec<_> = from
        .keys()
        .filter(data)
        .filter(shows)
        .filter(|path| !to.contains_key(*path))
        .collect();
    let commits: Vec<_> = to.keys().filter(is_commit).collect();
    assert_eq!(commits.len(), 1);
    // Steps, each on top of those before it; a file that is being written may have any part of its bytes.
    let mut disk = from.clone();
    let mut steps = vec![(disk.clone(), false)];
    for path in &added {
        let bytes = &to[*path];
        for part in [0, bytes.len() / 2, bytes.len()] {
            disk.insert(hidden(path), bytes[..part].to_vec());
            steps.push((disk.clone(), false));
        }
    }
    let bytes = &to[commits[0]];
    let temporary = commits[0].with_extension("json.tmp");
    for part in [0, bytes.len() / 2, bytes.len()] {
        disk.insert(temporary.clone(), bytes[..part].to_vec());
        steps.push((disk.clone(), false));
    }
    disk.remove(&temporary);
    disk.insert(commits[0].clone(), bytes.clone());
    steps.push((disk.clone(), true));
    for path in &gone {
        let bytes = disk.remove(*path).unwrap();
        disk.insert(hidden(path), bytes);
        steps.push((disk.clone(), true));
    }
    for path in &added {
        let bytes = disk.remove(&hidden(path)).unwrap();
        disk.insert((*path).clone(), bytes);
        steps.push((disk.clone(), true));
    }
    for (step, (disk, counts)) in steps.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in disk {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let rows = if *counts { new } else { old };
        assert_eq!(&stored(folder.path()), rows, "step {step}, before it is opened");
        let store = open(folder.path());
        assert_eq!(&stored(folder.path()), rows, "step {step}");
        assert_eq!(&shown(folder.path()).unwrap(), rows, "step {step}");
        assert!(store.recovery().missing.is_empty(), "step {step}");
        assert_eq!(
            check(folder.path()).unwrap().problems,
            Vec::<String>::new(),
            "step {step}"
        );
        let files = store.manifest().files().count();
        assert_eq!(
            tree(folder.path()).keys().filter(data).count(),
            files,
            "step {step}: nothing else is left"
        );
    }
    steps.len()
}

#[test]
fn a_commit_that_stops_at_any_instant_is_whole_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.commit("t", &blocks(0..5, HOUR), None).unwrap();
    let before = tempfile::tempdir().unwrap();
    copy(folder.path(), before.path());
    // Three hours: three files.
    store.commit("t", &blocks(5..8, HOUR), None).unwrap();
    assert_eq!(
        every_instant(before.path(), folder.path(), &once(0..5), &once(0..8)),
        17
    );
}

/// A store of so many commits, each of the next five blocks.
fn commit_parts(folder: &Path, parts: u64) -> Store {
    let mut store = open(folder);
    for part in 0..parts {
        store.commit("t", &blocks(part * 5..part * 5 + 5, 1), None).unwrap();
    }
    store
}

#[test]
fn a_compaction_that_stops_at_any_instant_loses_and_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = commit_parts(folder.path(), 4);
    let before = tempfile::tempdir().unwrap();
    copy(folder.path(), before.path());
    store.compact().unwrap();
    assert_eq!(
        every_instant(before.path(), folder.path(), &once(0..20), &once(0..20)),
        13
    );
}

#[test]
fn files_that_are_gone_or_damaged_are_told_of_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    commit_parts(folder.path(), 3);
    let mut files = shown_files(folder.path());
    files.sort();
    fs::remove_file(&files[0]).unwrap();
    fs::write(&files[1], b"short").unwrap();
    fs::write(folder.path().join("blocks/tap=t/notes.parquet"), b"mine").unwrap();
    let problems = check(folder.path()).unwrap().problems;
    assert_eq!(problems.len(), 3, "{problems:?}");
    let notes = "blocks/tap=t/notes.parquet: the manifest does not know it";
    assert_eq!(problems[2], notes);
    let store = open(folder.path());
    assert_eq!(store.recovery().missing.len(), 2);
    assert_eq!(store.recovery().foreign, 1, "what is not ours is left alone");
    assert_eq!(store.manifest().lost["blocks"], 10);
    assert_eq!(stored(folder.path()), once(10..15));
    assert_eq!(check(folder.path()).unwrap().problems, [notes]);
    fs::remove_file(folder.path().join("blocks/tap=t/notes.parquet")).unwrap();
    // The same size, other bytes: only a check that reads finds it.
    drop(store);
    let mut bytes = fs::read(&files[2]).unwrap();
    let middle = bytes.len() / 2;
    bytes[4..middle].fill(0x55);
    fs::write(&files[2], bytes).unwrap();
    let checked = check(folder.path()).unwrap();
    assert_eq!((checked.files, checked.problems.len()), (0, 1), "{checked:?}");
}

/// Open a store whose manifest lacks commits: nothing of it changes.
fn refused(folder: &Path, why: &str) {
    let before = tree(folder);
    let error = Store::open(folder, Options::default()).unwrap_err();
    assert!(matches!(error, StoreError::Incomplete { .. }), "{error}");
    assert!(error.to_string().contains(why), "{error}");
    assert_eq!(tree(folder), before, "nothing was changed");
}

#[test]
fn a_flipped_bit_of_the_manifest_is_found_and_nothing_removed() {
    let folder = tempfile::tempdir().unwrap();
    commit_parts(folder.path(), 3);
    let whole = Manifest::read(folder.path()).unwrap();
    let files =
        ["checkpoint", "0000000001", "0000000003"].map(|name| folder.path().join(format!("manifest/{name}.json")));
    for file in files.iter().filter(|file| file.exists()) {
        let bytes = fs::read(file).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(file, flipped).unwrap();
            match Manifest::read(folder.path()) {
                // One of the name of the sum itself.
                Ok(read) => assert_eq!(read, whole, "bit {bit} of {text}"),
                Err(error) => assert!(
                    matches!(error, StoreError::Damaged { .. }),
                    "bit {bit} of {text}: {error}"
                ),
            }
        }
        // That of a version that kept no sum.
        let begin = text.rfind(",\"crc32\":").unwrap();
        fs::write(file, format!("{}}}", &text[..begin])).unwrap();
        assert_eq!(Manifest::read(folder.path()).unwrap(), whole);
        fs::write(file, &bytes).unwrap();
    }
    // Another name of a file that is there: it would be missing, and that which is there nobody's.
    let text = fs::read_to_string(&files[2]).unwrap();
    fs::write(&files[2], text.replace("0000000003.parquet", "0000000007.parquet")).unwrap();
    let before = tree(folder.path());
    let error = Store::open(folder.path(), Options::default()).unwrap_err();
    assert!(
        error.to_string().contains("Put back the whole store from a copy"),
        "{error}"
    );
    assert_eq!(tree(folder.path()), before, "nothing was changed");
}

#[test]
fn files_of_commits_that_the_manifest_lacks_are_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    commit_parts(folder.path(), 5);
    let commit = |number: u64| folder.path().join(format!("manifest/{number:010}.json"));
    // One in the middle.
    let third = fs::read(commit(3)).unwrap();
    fs::remove_file(commit(3)).unwrap();
    refused(folder.path(), "0000000003.json is not there, but commits up to 5 are");
    assert!(matches!(check(folder.path()), Err(StoreError::Incomplete { .. })));
    fs::write(commit(3), third).unwrap();
    // The last ones: their files show, so they counted.
    fs::remove_file(commit(5)).unwrap();
    refused(
        folder.path(),
        "0000000005.parquet is of a later commit than the last one there, number 4",
    );
    let problems = check(folder.path()).unwrap().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].ends_with("0000000005.parquet: the manifest does not know it"),
        "{problems:?}"
    );
    // Hidden, the last one's could be of a commit that stopped; not that of a later one.
    for file in shown_files(folder.path()) {
        if file.ends_with("0000000005.parquet") {
            fs::rename(&file, file.with_file_name(".0000000006.hidden")).unwrap();
        }
    }
    refused(folder.path(), ".0000000006.hidden is of a later commit");
}
