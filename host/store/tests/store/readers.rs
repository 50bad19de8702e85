//! Readers while a writer commits and compacts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_store::{Options, Store, check};

use crate::rows::{blocks, once, stored};

#[test]
fn a_reader_sees_one_state_while_commits_and_compactions_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    let (committed, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let reads = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !done.load(Ordering::Acquire) {
                let least = committed.load(Ordering::Acquire);
                let rows = stored(folder.path());
                let count = rows.len() as u64;
                assert_eq!(rows, once(0..count), "each row once, none left out");
                assert!(
                    count >= least && count.is_multiple_of(20),
                    "{count} rows, {least} were committed"
                );
                assert_eq!(check(folder.path()).unwrap().problems, Vec::<String>::new());
                reads += 1;
            }
            reads
        });
        for commit in 0..200 {
            store
                .commit("t", &blocks(commit * 20..commit * 20 + 20, 100_000_000_000), None)
                .unwrap();
            committed.store((commit + 1) * 20, Ordering::Release);
            store.compact_some().unwrap();
            if commit % 50 == 49 {
                store.compact().unwrap();
            }
        }
        done.store(true, Ordering::Release);
        reader.join().unwrap()
    });
    println!("{reads} reads");
    assert!(reads > 0);
    assert_eq!(stored(folder.path()), once(0..4000));
}
