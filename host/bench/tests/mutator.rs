//! The black-box test tests itself: commands that panic, hang, die or say nothing are found, good ones are not.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use weir_bench::generate::{Kind, generate};

fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("mutator-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    generate(Kind::Connections, 0.0005, 1, &folder.join("source.pcap")).unwrap();
    folder
}

/// Runs the tool over a script; `$1` is the damaged file.
fn mutate(folder: &Path, script: &str, count: &str, more: &[&str]) -> Output {
    let command = folder.join("command");
    std::fs::write(&command, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&command, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut tool = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    tool.arg("mutate")
        .arg(folder.join("source.pcap"))
        .args(["--count", count, "--keep"])
        .arg(folder.join("kept"));
    tool.arg("--command")
        .arg(format!("{} {{}}", command.display()))
        .args(more);
    tool.output().unwrap()
}

fn kept(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("kept")).unwrap().count()
}

#[test]
fn a_command_that_reads_everything_or_refuses_with_a_reason_passes() {
    let folder = folder("good");
    let output = mutate(
        &folder,
        "test $(wc -c < $1) -gt 9000 || { echo \"$1: byte 0: too short\" >&2; exit 1; }",
        "200",
        &[],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.starts_with("201 runs") && !text.contains(" 0 refused"), "{text}");
    assert_eq!(kept(&folder), 0);
}

#[test]
fn a_panic_a_signal_and_a_mute_refusal_are_found_and_their_files_kept() {
    for (test, script, failure) in [
        (
            "panic",
            "echo \"thread 'main' panicked at src/x.rs:1\" >&2; exit 101",
            "Crash: ",
        ),
        ("signal", "kill -SEGV $$", "Crash: "),
        (
            "memory",
            "echo 'memory allocation of 9 bytes failed' >&2; kill -ABRT $$",
            "Memory: ",
        ),
        ("mute", "exit 1", "Mute: "),
        ("nowhere", "echo \"$1: cannot be read\" >&2; exit 1", "Mute: "),
    ] {
        let folder = folder(test);
        // Only on files that do not begin as they should.
        let script = format!("case $(head -c 4 $1 | od -An -tx1) in *'4d 3c b2 a1'*) exit 0;; esac; {script}");
        let output = mutate(&folder, &script, "100", &[]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!output.status.success(), "{test}: {text}");
        assert!(text.contains(failure), "{test}: {text}");
        assert!((1..100).contains(&kept(&folder)), "{test}: {text}");
    }
}

#[test]
fn a_hang_is_ended_and_found() {
    let folder = folder("hang");
    let output = mutate(&folder, "exec sleep 60", "3", &["--timeout", "0.1"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success());
    assert!(text.contains("4 hangs"), "{text}");
}

#[test]
fn the_memory_limit_holds() {
    let folder = folder("limit");
    let output = mutate(
        &folder,
        "test $(ulimit -v) = 524288 || exit 101",
        "3",
        &["--memory", "512"],
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_command_that_is_not_there_is_an_error_and_no_result() {
    let folder = folder("absent");
    let mut tool = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    tool.arg("mutate")
        .arg(folder.join("source.pcap"))
        .args(["--command", "/no/such/program {}", "--keep"]);
    let output = tool.arg(folder.join("kept")).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot start /no/such/program"));
}
