#![allow(clippy::unwrap_used)]
//! Attaching to the simulated card: firmware loaded and booted, configured and started by mailbox, traffic measured; then a
//! keeper tries an image that crashes, and goes on with the one before.
//! Runs where WEIR_NIC_SIM names the program of `make nic-sim` and build/firmware has the image.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_card::protocol::{ABI_MAJOR, BOOT_TRIES, CardState, EXECUTION_BASE, IMAGE_MAGIC, ImageHeader, Key, Opcode};
use weir_card::registers::{inline, system};
use weir_card::{
    AccessError, Card, Event, Image, Keeper, Registers, Report, Service, Settings, SocketRegisters, Timing, crc32,
};

/// The simulated card is some thousand times slower than a card.
const TIMING: Timing = Timing {
    reply: Duration::from_secs(60),
    boot: Duration::from_secs(240),
    poll: Duration::from_millis(1),
};

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

/// An image of these words.
fn image_of(body: &[u32], version: u32) -> Image {
    let mut header = ImageHeader {
        magic: IMAGE_MAGIC,
        version,
        length: 4 * body.len() as u32,
        load_address: EXECUTION_BASE,
        entry: EXECUTION_BASE,
        abi: ABI_MAJOR << 16,
        body_crc: crc32(body),
        header_crc: 0,
    };
    header.header_crc = crc32(&header.encode()[..7]);
    let words = [&header.encode(), body].concat();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Image::parse(&bytes).unwrap()
}

/// A service until its card has confirmed the firmware: what it was told.
struct Confirmed<'a> {
    socket: &'a Path,
    end: Arc<AtomicBool>,
    events: Vec<String>,
    epoch: u16,
}

impl Service for &mut Confirmed<'_> {
    type Registers = SocketRegisters;

    fn connect(&mut self) -> Result<SocketRegisters, AccessError> {
        SocketRegisters::connect(self.socket)
    }

    fn epoch(&mut self) -> Result<u16, String> {
        self.epoch += 1;
        Ok(self.epoch)
    }

    fn alive(&self) -> Box<dyn FnMut() -> bool + Send> {
        Box::new(|| true)
    }

    fn tai_now(&self) -> u64 {
        0
    }

    fn tell(&mut self, event: &Event) {
        println!("{}: {event}", event.name());
        self.events.push(event.name());
        if event.name() == "CONFIRMED" {
            self.end.store(true, Ordering::Relaxed);
        }
    }

    fn show(&mut self, _: &Report) {}
}

/// Names of what a keeper with this image tells until the firmware is confirmed.
fn keep(socket: &Path, image: Image) -> Vec<String> {
    let end = Arc::new(AtomicBool::new(false));
    let mut service = Confirmed {
        socket,
        end: Arc::clone(&end),
        events: Vec::new(),
        epoch: 1,
    };
    // A millisecond of the card takes seconds.
    let values = vec![(Key::HostTimeoutUs, 1500), (Key::BeatUs, 50), (Key::HealthyPeriods, 3)];
    let settings = Settings {
        image: Some(image),
        values,
        timing: TIMING,
        host_version: 1,
    };
    Keeper::new(&mut service, settings).run(&end).unwrap();
    service.events
}

fn an_image_that_crashes_is_given_up(socket: &Path, regs: &mut SocketRegisters) {
    let boots = |regs: &mut SocketRegisters| system::BOOT_COUNT.get(regs.read32(system::BOOT).unwrap());
    let before = boots(regs);
    // Instructions, then words that are none.
    let told = keep(socket, image_of(&[0x13, 0, 0, 0], 0x0900_0000));
    let wanted = [
        "FIRMWARE_LOADING",
        "FIRMWARE",
        "FIRMWARE_GIVEN_UP",
        "FAULT_ROLLBACK",
        "STARTED",
    ];
    let mut rest = told.iter();
    assert!(wanted.iter().all(|name| rest.any(|told| told == name)), "{told:?}");
    assert_eq!(boots(regs) - before, BOOT_TRIES + 1, "{told:?}");
}

#[test]
fn firmware_starts_the_card_and_outlives_an_update_that_crashes() {
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

    // The simulation goes on while somebody is connected.
    let mut regs = connect(&named("socket"));
    let mut card = Card::attach(connect(&named("socket")), TIMING).unwrap();
    assert_eq!(card.info().ports, 2);
    let image = Image::parse(&std::fs::read(image).unwrap()).unwrap();
    card.load_firmware(&image).unwrap();
    let hello = card.hello(1).unwrap();
    assert_eq!(hello.firmware_version, image.header.version);
    let heartbeat = card.heartbeat(Duration::from_millis(200), || true).unwrap();
    let deadline = Instant::now() + TIMING.boot;
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
    card.confirm().unwrap();
    card.stop().unwrap();
    assert_eq!(card.state().unwrap().state, CardState::Idle as u32);
    heartbeat.stop().unwrap();
    drop(card);
    an_image_that_crashes_is_given_up(&named("socket"), &mut regs);
    std::fs::remove_dir_all(&scratch).unwrap();
}
