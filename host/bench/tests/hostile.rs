//! The hostile capture is what it promises to be: the same for the same seed, and full of corners.

use std::path::PathBuf;

use weir_bench::generate::hostile;
use weir_bench::nic::{coverage::Coverage, play};

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

#[test]
fn everything_that_the_engine_can_say_occurs_often() {
    let file = folder("hostile").join("million.pcap");
    hostile::write(&file, 1, 1_000_000).expect("written");
    let coverage = Coverage::of(&file).expect("counted");
    assert_eq!(coverage.frames, 1_000_000);
    let below = coverage.below(1_000);
    coverage.print();
    std::fs::remove_file(&file).expect("removed");
    assert!(below.is_empty(), "fewer than 1,000 times: {below:?}");
}

#[test]
fn same_seed_same_capture() {
    let folder = folder("hostile-seeds");
    let make = |name: &str, seed| {
        let file = folder.join(name);
        hostile::write(&file, seed, 5_000).expect("written");
        std::fs::read(file).expect("read")
    };
    let first = make("a.pcap", 7);
    assert_eq!(first, make("b.pcap", 7));
    assert_ne!(first, make("c.pcap", 8));
}

#[test]
fn a_play_list_holds_every_frame_and_few_visits() {
    let file = folder("hostile-play").join("small.pcap");
    hostile::write(&file, 3, 20_000).expect("written");
    let options = play::Options {
        contexts: None,
        all_visits: false,
        vlan_in_key: true,
    };
    let mut list = Vec::new();
    let counts = play::write(&file, &options, &mut list).expect("played");
    assert_eq!((counts.frames, counts.left_out), (20_000, 0));
    assert!(counts.visits > 1_000 && counts.visits < 2_000_000, "{counts:?}");
    assert_eq!(list[..8], *b"WEIRPLAY");
}
