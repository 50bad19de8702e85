//! A capture file can be replayed without root, without hugepages and without a home.
//! Needs root to become somebody else; run by an ordinary user it tests that user.
#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use weir_dpdk::{Burst, Device, Eal, EalConfig, Port, PortConfig};

/// The user without rights.
const NOBODY: u32 = 65_534;

/// Set in the child: the file to replay.
const FILE: &str = "WEIR_TEST_FILE";

#[test]
fn replays_without_privileges() {
    if let Some(file) = std::env::var_os(FILE) {
        return replay(Device::Pcap(file.into()));
    }
    // A copy of this program where everybody may read it.
    let folder = common::scratch("ordinary");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (program, file) = (folder.join("test"), folder.join("a.pcap"));
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    common::write_pcap(&file, &common::generated_frames(100));

    let own = folder.join("run");
    std::fs::create_dir(&own).unwrap();
    let root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if root {
        std::os::unix::fs::chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let run = |runtime_directory: &Path| {
        let mut command = Command::new(&program);
        if root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
            .args(["--exact", "replays_without_privileges", "--nocapture"])
            .env(FILE, &file)
            .env("XDG_RUNTIME_DIR", runtime_directory);
        let output = command.output().unwrap();
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        (output.status.success(), text)
    };
    let (worked, text) = run(&own);
    assert!(worked, "{text}");
    // What remains of a session that ended, or of sudo: the usual reason of a failure, and it is named.
    let (worked, text) = run(Path::new("/nonexistent/run"));
    assert!(
        !worked && text.contains("/nonexistent/run") && text.contains("XDG_RUNTIME_DIR"),
        "{text}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

fn replay(device: Device) {
    let eal = match Eal::init(&EalConfig::default()) {
        Ok(eal) => eal,
        Err(error) => panic!("{error}"),
    };
    let port = Port::open(&eal, &device, &PortConfig::default()).unwrap();
    let mut burst = Burst::new();
    let count: usize = (0..20).map(|_| port.rx_burst(&mut burst)).sum();
    assert_eq!(count, 100);
    // Without the right the reason is given.
    let refused = Port::open(&eal, &Device::Eth("lo".to_owned()), &PortConfig::default()).unwrap_err();
    assert!(refused.to_string().contains("root"), "{refused}");
    println!("{refused}");
}
