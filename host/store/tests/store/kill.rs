//! A writer that is killed at any instant, again and again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use weir_store::{Feed, Options, Store, check};

use crate::rows::{blocks, once, stored};

/// The folder that the writer is to write to; without it the writer is no test.
const FOLDER: &str = "WEIR_KILL_FOLDER";
/// How many are killed, and the seed of the times.
const KILLS: &str = "WEIR_KILLS";
const SEED: &str = "WEIR_SEED";
/// Of the source.
const ROWS: u64 = 200_000;
/// Of a commit.
const AT_A_TIME: u64 = 40;
/// ns between rows: an hour has some of them, so that there are several files in a commit now and then.
const STEP: u64 = 200_000_000;

/// Stores a source that says the same each time, and says what is stored: what it has said is so.
#[test]
fn writer() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let mut store = Store::open(Path::new(&folder), Options::default()).unwrap();
    assert!(store.recovery().missing.is_empty(), "{:?}", store.recovery());
    println!("\nopen");
    let mut feed = Feed::again(&mut store, "t", "source", "source", "1").unwrap();
    let begin = feed.stored();
    feed.add(blocks(0..begin, STEP));
    for at in (begin..ROWS).step_by(AT_A_TIME as usize) {
        feed.add(blocks(at..at + AT_A_TIME, STEP));
        feed.commit().unwrap();
        println!("stored {}", at + AT_A_TIME);
        feed.store().compact_some().unwrap();
    }
}

#[test]
fn killed_at_any_instant_nothing_acknowledged_is_lost_or_doubled() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let kills = number(KILLS).unwrap_or(12);
    let seed = number(SEED).unwrap_or_else(|| std::process::id().into());
    println!("{KILLS}={kills} {SEED}={seed}");
    let mut random = seed;
    let folder = tempfile::tempdir().unwrap();
    let (mut acknowledged, mut torn, mut shown) = (0, 0, 0);
    for kill in 0..kills {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::writer", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        // It works when it says so: the time until then is not what is to be tested, except now and then.
        if kill % 4 != 3 {
            lines
                .by_ref()
                .find(|line| line.as_ref().is_ok_and(|line| line == "open"))
                .unwrap()
                .unwrap();
        }
        // xorshift64*, Vigna 2016.
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        let pause = (random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % 250_000;
        std::thread::sleep(Duration::from_micros(pause));
        // SIGKILL.
        writer.kill().unwrap();
        let status = writer.wait().unwrap();
        assert!(
            status.code().is_none(),
            "kill {kill}: the writer ended by itself: {status}"
        );
        for line in lines.map_while(Result::ok) {
            if let Some(rows) = line.strip_prefix("stored ") {
                acknowledged = rows.parse().unwrap();
            }
        }
        // Readers need no writer; then the next opening puts right what was left.
        let before = stored(folder.path());
        let store = Store::open(folder.path(), Options::default()).unwrap();
        torn += store.recovery().torn;
        shown += store.recovery().shown;
        assert!(
            store.recovery().missing.is_empty(),
            "kill {kill}: {:?}",
            store.recovery()
        );
        let rows = stored(folder.path());
        assert_eq!(rows, before, "kill {kill}: opening changes no row");
        let count = rows.len() as u64;
        assert_eq!(rows, once(0..count), "kill {kill}: each row once, none left out");
        assert!(
            count >= acknowledged,
            "kill {kill}: {acknowledged} rows were acknowledged, {count} are there"
        );
        assert!(count.is_multiple_of(AT_A_TIME), "kill {kill}: a commit is whole");
    }
    let checked = check(folder.path()).unwrap();
    assert_eq!(checked.problems, Vec::<String>::new());
    println!(
        "{kills} kills: {acknowledged} rows acknowledged, {} stored; {torn} torn files removed, {shown} shown late",
        checked.rows
    );
    assert!(acknowledged > 0);
}
