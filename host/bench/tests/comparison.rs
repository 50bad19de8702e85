//! The comparison notices a command whose answer is wrong, and does not charge one command's memory to another.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use weir_bench::generate::{Kind, generate};

#[test]
fn a_wrong_answer_fails_and_its_size_is_charged_to_nobody() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("comparison");
    std::fs::create_dir_all(&folder).unwrap();
    let weir = folder.join("weir");
    // Ten million octets of an answer that says nothing; as a tree in memory 160.
    std::fs::write(
        &weir,
        "#!/bin/sh\ntest \"$3\" = --format || exit 0\nprintf '[0'\nyes ,0 | head -n 5000000 | tr -d '\\n'\necho ]\n",
    )
    .unwrap();
    std::fs::set_permissions(&weir, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut compare = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    compare
        .args(["compare", "--scale", "0.001", "--runs", "1", "--weir"])
        .arg(&weir)
        .arg("--dir")
        .arg(&folder);
    let output = compare.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("packets: 0 instead of"), "{text}");
    // Of three captures; `weir analyze` with text and with JSON.
    for (command, measured) in [("floor", 3), ("weir analyze", 6)] {
        let rows: Vec<&str> = text
            .lines()
            .filter(|line| line.trim_start().starts_with(command))
            .collect();
        assert_eq!(rows.len(), measured, "{text}");
        for row in rows {
            let figures: Vec<f64> = row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            // scale, packets, user, system, CPU, wall, memory
            assert!((1.0..30.0).contains(&figures[6]), "{row}");
        }
    }
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let capture = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("nobody-listens.pcap");
    generate(Kind::Minimum, 0.001, 1, &capture).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut floor = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    let status = floor.arg("floor").arg(&capture).stdout(writer).status().unwrap();
    assert!(status.success(), "{status}");
}
