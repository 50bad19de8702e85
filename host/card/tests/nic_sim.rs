#![allow(clippy::unwrap_used)]
//! Attaching to the simulated card: firmware loaded and booted, configured and started by mailbox, traffic measured.
//! Runs where WEIR_NIC_SIM names the program of `make nic-sim` and build/firmware has the image.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weir_card::protocol::{CardState, Key, Opcode};
use weir_card::registers::inline;
use weir_card::{Card, Image, Registers, SocketRegisters, Timing};

/// Ends the simulation with the test.
struct Simulation(Child);

impl Drop for Simulation {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn connect(path: &Path) -> SocketRegisters {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match SocketRegisters::connect(path) {
            Ok(registers) => return registers,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn firmware_starts_the_card() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let image = root.join("build/firmware/firmware.wfw");
    let Some(program) = std::env::var_os("WEIR_NIC_SIM").filter(|_| image.exists()) else {
        println!("skipped: no WEIR_NIC_SIM, or no firmware image");
        return;
    };
    let scratch = std::env::temp_dir().join(format!("weir-nic-sim-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let named = |name: &str| -> PathBuf { scratch.join(name) };
    let child = Command::new(program)
        .arg("--wire0")
        .arg(root.join("docs/demo/demo.pcap"))
        .arg("--records")
        .arg(named("link.pcap"))
        .arg("--socket")
        .arg(named("socket"))
        .arg("--hold")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _simulation = Simulation(child);

    // The simulated card is some thousand times slower than a card.
    let timing = Timing {
        reply: Duration::from_secs(60),
        boot: Duration::from_secs(240),
        poll: Duration::from_millis(1),
    };
    let mut card = Card::attach(connect(&named("socket")), timing).unwrap();
    assert_eq!(card.info().ports, 2);
    let image = Image::parse(&std::fs::read(image).unwrap()).unwrap();
    card.load_firmware(&image).unwrap();
    let hello = card.hello(1).unwrap();
    assert_eq!(hello.firmware_version, image.header.version);
    let heartbeat = card.heartbeat(Duration::from_millis(200), || true).unwrap();
    let deadline = Instant::now() + timing.boot;
    loop {
        let state = card.state().unwrap();
        if state.state == CardState::Idle as u32 {
            break;
        }
        assert!(Instant::now() < deadline, "{state:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let seeds = (Key::Seed0 as u32..=Key::Seed12 as u32).filter_map(Key::from_u32);
    let mut values: Vec<_> = seeds
        .map(|key| (key, 0x9e37_79b9_u32.wrapping_mul(key as u32)))
        .collect();
    values.push((Key::Epoch, 1));
    card.configure(&values).unwrap();
    card.start().unwrap();
    assert_eq!(card.state().unwrap().state, CardState::Running as u32);
    let deadline = Instant::now() + Duration::from_secs(120);
    while card.registers().read32(inline::port_frames_out(0)).unwrap() < 686 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(100));
    }
    let statistics = card.statistics().unwrap();
    assert!(statistics.records_in_low > 500, "{statistics:?}");
    assert_eq!(statistics.port0_frames_dropped, 0);
    let notices = card.notices().unwrap();
    let changes = notices.iter().filter(|m| m.opcode == Some(Opcode::StateChange)).count();
    assert!(changes > 0, "{notices:?}");
    card.stop().unwrap();
    assert_eq!(card.state().unwrap().state, CardState::Idle as u32);
    heartbeat.stop().unwrap();
    drop(card);
    std::fs::remove_dir_all(&scratch).unwrap();
}
