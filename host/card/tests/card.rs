#![allow(clippy::unwrap_used)]
//! A card made of registers and a firmware that answers as it is told.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use weir_card::mailbox::encode;
use weir_card::protocol::{
    ABI_MAJOR, ABI_MINOR, BOOT_TRIES, BootStage, CardState, EXECUTION_BASE, FaultEntry, IMAGE_HEADER_BYTES,
    IMAGE_MAGIC, ImageError, ImageHeader, Key, Opcode, RAM_BASE, SLOT_A_BASE, SLOT_B_BASE, ServoSource, State, Status,
    SyncAction,
};
use weir_card::registers::{Register, clock, host, info, mailbox, system};
use weir_card::{
    AccessError, Card, CardError, Event, Image, ImageProblem, Keeper, Registers, Report, Service, Settings,
    SocketRegisters, Timing, crc32,
};

type Answer = Box<dyn FnMut(&[u32]) -> Vec<Vec<u32>> + Send>;
/// The CPU's, by address in the load window.
type Memory = Arc<Mutex<BTreeMap<u32, u32>>>;

/// Registers that hold what is written, a mailbox, and a firmware: from a whole request to messages.
struct Mock {
    values: BTreeMap<u32, u32>,
    memory: Memory,
    to_card: Vec<u32>,
    to_host: VecDeque<u32>,
    deaf: bool,
    boots: bool,
    answer: Answer,
    /// Told at the end of a reset of the CPU whether an image was loaded.
    restarted: Box<dyn FnMut(bool) + Send>,
}

impl Mock {
    fn new(answer: impl FnMut(&[u32]) -> Vec<Vec<u32>> + Send + 'static) -> Self {
        let values = [
            (info::MAGIC, 0x5745_4952),
            (info::ABI, ABI_MAJOR << 16 | ABI_MINOR),
            (info::CONTEXTS, 4096),
            (system::CONTROL, 3),
        ];
        Self {
            values: values.map(|(register, value)| (register.0, value)).into(),
            memory: Memory::default(),
            to_card: Vec::new(),
            to_host: VecDeque::new(),
            deaf: false,
            boots: true,
            answer: Box::new(answer),
            restarted: Box::new(|_| {}),
        }
    }

    fn silent() -> Self {
        Self::new(|_| Vec::new())
    }

    fn with(mut self, register: Register, value: u32) -> Self {
        self.values.insert(register.0, value);
        self
    }
}

impl Registers for Mock {
    fn read32(&mut self, register: Register) -> Result<u32, AccessError> {
        Ok(match register {
            mailbox::TO_CARD_STATUS => mailbox::TO_CARD_STATUS_READY.set(0, u32::from(!self.deaf)),
            mailbox::TO_HOST_STATUS => mailbox::TO_HOST_STATUS_VALID.set(0, u32::from(!self.to_host.is_empty())),
            mailbox::TO_HOST_POP => self.to_host.pop_front().unwrap_or(0),
            system::LOAD_READ => {
                let place = self.values.get(&system::LOAD_ADDRESS.0).copied().unwrap_or(0);
                self.memory.lock().unwrap().get(&place).copied().unwrap_or(0)
            }
            _ => self.values.get(&register.0).copied().unwrap_or(0),
        })
    }

    fn write32(&mut self, register: Register, value: u32) -> Result<(), AccessError> {
        let before = self.values.insert(register.0, value).unwrap_or(0);
        let slot = SLOT_A_BASE - RAM_BASE;
        match register {
            mailbox::TO_CARD_PUSH => {
                self.to_card.push(value);
                if self.to_card.len() == (self.to_card[0] & 0xff) as usize + 3 {
                    let request = std::mem::take(&mut self.to_card);
                    self.to_host.extend((self.answer)(&request).concat());
                }
            }
            system::LOAD_WRITE => {
                let place = self.values.entry(system::LOAD_ADDRESS.0).or_default();
                self.memory.lock().unwrap().insert(*place, value);
                *place += 4;
            }
            // The boot: out of reset, with an image in the slot.
            system::CONTROL if before & 1 == 1 && value & 1 == 0 && self.boots => {
                assert_eq!(self.memory.lock().unwrap().get(&slot), Some(&IMAGE_MAGIC));
                (self.restarted)(true);
                self.values.insert(host::BOOT_STAGE.0, BootStage::Tested as u32);
            }
            system::REQUEST => {
                (self.restarted)(false);
                self.values.insert(host::BOOT_STAGE.0, BootStage::Tested as u32);
            }
            _ => {}
        }
        Ok(())
    }
}

fn attach(mock: Mock) -> Card<Mock> {
    let timing = Timing {
        reply: Duration::from_millis(60),
        boot: Duration::from_millis(60),
        poll: Duration::from_micros(50),
    };
    Card::attach(mock, timing).unwrap()
}

fn opcode(request: &[u32]) -> u32 {
    request[0] >> 8 & 0xff
}

fn sequence(request: &[u32]) -> u16 {
    (request[1] >> 16) as u16
}

fn payload(request: &[u32]) -> &[u32] {
    let (crc, rest) = request.split_last().unwrap();
    assert_eq!(crc32(rest), *crc);
    &rest[2..]
}

fn reply(request: &[u32], status: Status, payload: &[u32]) -> Vec<u32> {
    encode(opcode(request), sequence(request), status as u16, payload).unwrap()
}

/// A firmware that agrees to everything, and what it was asked.
#[allow(clippy::type_complexity)]
fn agreeing() -> (Mock, Arc<Mutex<Vec<(u32, Vec<u32>)>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let inside = Arc::clone(&seen);
    let mock = Mock::new(move |request| {
        inside
            .lock()
            .unwrap()
            .push((opcode(request), payload(request).to_vec()));
        vec![reply(request, Status::Ok, &[0])]
    });
    (mock, seen)
}

fn image(body: &[u32]) -> Vec<u8> {
    let mut header = ImageHeader {
        magic: IMAGE_MAGIC,
        version: 0x0001_0000,
        length: 4 * body.len() as u32,
        load_address: EXECUTION_BASE,
        entry: EXECUTION_BASE,
        abi: ABI_MAJOR << 16,
        body_crc: crc32(body),
        header_crc: 0,
    };
    header.header_crc = crc32(&header.encode()[..7]);
    let words = [&header.encode(), body].concat();
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn another_card_or_none_is_refused_by_name() {
    let refusal = |mock: Mock| Card::attach(mock, Timing::default()).err().unwrap();
    let none = refusal(Mock::silent().with(info::MAGIC, 0xffff_ffff));
    assert!(matches!(none, CardError::NoCard(0xffff_ffff)));
    let newer = refusal(Mock::silent().with(info::ABI, (ABI_MAJOR + 1) << 16 | 7)).to_string();
    for part in [
        format!("version {}.7", ABI_MAJOR + 1),
        format!("knows {ABI_MAJOR}.{ABI_MINOR}"),
        "update weir".into(),
    ] {
        assert!(newer.contains(&part), "{newer}");
    }
    let older = refusal(Mock::silent().with(info::ABI, (ABI_MAJOR - 1) << 16)).to_string();
    assert!(older.contains("update the card"), "{older}");
    // More than is known is good.
    let more = attach(Mock::silent().with(info::ABI, ABI_MAJOR << 16 | (ABI_MINOR + 9)));
    assert_eq!(
        (more.info().contexts, more.info().abi),
        (4096, (ABI_MAJOR, ABI_MINOR + 9))
    );
}

#[test]
fn an_image_is_loaded_and_booted() {
    let parsed = Image::parse(&image(&[1, 2, 3])).unwrap();
    let mut card = attach(Mock::silent());
    card.load_firmware(&parsed).unwrap();
    assert_eq!(
        card.registers().read32(system::CONTROL).unwrap(),
        2,
        "measuring stays in reset"
    );
    let mut dead = Mock::silent();
    dead.boots = false;
    assert!(matches!(
        attach(dead).load_firmware(&parsed),
        Err(CardError::NotBooted(stage)) if stage == BootStage::Loaded as u32
    ));
}

#[test]
fn damaged_images_never_reach_a_card() {
    let good = image(&[1, 2, 3]);
    let head = IMAGE_HEADER_BYTES as usize;
    let changed = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        Image::parse(&bytes).unwrap_err()
    };
    assert!(matches!(changed(0), ImageProblem::Magic(_)));
    assert_eq!(changed(4), ImageProblem::HeaderCrc);
    assert_eq!(changed(head), ImageProblem::BodyCrc);
    for at in 0..good.len() {
        changed(at);
    }
    assert_eq!(Image::parse(&good[..head]), Err(ImageProblem::Size(head)));
    assert_eq!(Image::parse(&good[..head + 8]), Err(ImageProblem::Length(12)));
    assert_eq!(Image::parse(&[0; 1 << 16]), Err(ImageProblem::Size(1 << 16)));
}

#[test]
fn a_reply_is_found_among_other_words() {
    let state: [u32; State::WORDS] = std::array::from_fn(|i| 100 + i as u32);
    let mut card = attach(Mock::new(move |request| {
        let mut damaged = reply(request, Status::Ok, &state);
        damaged[4] ^= 0x100;
        vec![
            vec![0, 0x5701_0000, 0x1234_5678],
            encode(opcode(request), sequence(request).wrapping_sub(1), 0, &[1; 16]).unwrap(),
            encode(Opcode::StateChange as u32, 9, 0, &[3, 2, 0]).unwrap(),
            damaged,
            reply(request, Status::Ok, &state),
        ]
    }));
    assert_eq!(card.state().unwrap().encode(), state);
    let notices = card.notices().unwrap();
    assert_eq!(notices.len(), 1);
    assert_eq!(
        (notices[0].opcode, &notices[0].payload[..]),
        (Some(Opcode::StateChange), &[3, 2, 0][..])
    );
}

#[test]
fn a_request_that_was_damaged_in_its_sequence_is_told_at_once() {
    // Words of somebody else between the first word and the second.
    let mut card = attach(Mock::new(|request| {
        vec![encode(opcode(request), 0, Status::BadCrc as u16, &[0]).unwrap()]
    }));
    let error = card.state().unwrap_err();
    assert!(
        matches!(
            error,
            CardError::Refused {
                status: Some(Status::BadCrc),
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn refusal_silence_and_a_full_mailbox_are_told() {
    let mut card = attach(Mock::new(|request| vec![reply(request, Status::BadState, &[3])]));
    let error = card.start().unwrap_err();
    assert!(error.to_string().contains("START: BAD_STATE (detail 0x3)"), "{error}");
    let silent = attach(Mock::silent()).stop().unwrap_err();
    assert!(matches!(silent, CardError::NoAnswer(Opcode::Stop, _)));
    let mut deaf = Mock::silent();
    deaf.deaf = true;
    assert!(matches!(attach(deaf).stop(), Err(CardError::MailboxFull(_))));
    let short = attach(agreeing().0).statistics().unwrap_err();
    assert!(matches!(short, CardError::ShortReply(Opcode::Statistics, 1)));
}

#[test]
fn configuration_goes_in_messages_that_fit() {
    let (mock, seen) = agreeing();
    let values: Vec<_> = (0..42)
        .map(|i| (if i == 41 { Key::Epoch } else { Key::Lane }, i))
        .collect();
    attach(mock).configure(&values).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    let want: Vec<u32> = values.iter().flat_map(|&(key, value)| [key as u32, value]).collect();
    assert_eq!(
        seen.iter().flat_map(|(_, words)| words.clone()).collect::<Vec<_>>(),
        want
    );
}

#[test]
fn an_update_sends_the_whole_image() {
    let (mock, seen) = agreeing();
    let parsed = Image::parse(&image(&(0..200).collect::<Vec<_>>())).unwrap();
    attach(mock).update_firmware(&parsed).unwrap();
    let mut sent = Vec::new();
    for (opcode, words) in seen.lock().unwrap().iter() {
        if *opcode == Opcode::UpdateData as u32 {
            assert_eq!(words[0] as usize, 4 * sent.len());
            sent.extend_from_slice(&words[1..]);
        }
    }
    assert_eq!(sent, parsed.words());
}

#[test]
fn the_fault_log_is_read_to_its_end() {
    let mut card = attach(Mock::new(|request| {
        let from = payload(request)[0].max(3);
        let numbers: Vec<u32> = (from..=12).take(7).collect();
        let mut words = vec![12, numbers.len() as u32];
        for sequence in numbers {
            words.extend(FaultEntry::decode(&[sequence, 2, 1, 5, 0, 0, 0, 0]).encode());
        }
        vec![reply(request, Status::Ok, &words)]
    }));
    let log: Vec<u32> = card.fault_log(0).unwrap().iter().map(|entry| entry.sequence).collect();
    assert_eq!(log, (3..=12).collect::<Vec<_>>());
    assert_eq!(card.fault_log(12).unwrap().len(), 1);
}

#[test]
fn the_heartbeat_beats_until_it_is_stopped() {
    let mut card = attach(Mock::silent());
    let heartbeat = card.heartbeat(Duration::from_millis(1), || true).unwrap();
    let mut beats = 0;
    for _ in 0..2000 {
        beats = card.registers().read32(host::HEARTBEAT).unwrap();
        if beats >= 4 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(beats >= 4 && heartbeat.failed().is_none());
    heartbeat.stop().unwrap();
    let last = card.registers().read32(host::HEARTBEAT).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(card.registers().read32(host::HEARTBEAT).unwrap(), last);
}

#[test]
fn the_heartbeat_is_held_back_while_the_host_is_not_alive() {
    let mut card = attach(Mock::silent());
    let alive = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&alive);
    let heartbeat = card
        .heartbeat(Duration::from_millis(1), move || asked.load(Ordering::Relaxed))
        .unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert!(heartbeat.held_back());
    assert_eq!(card.registers().read32(host::HEARTBEAT).unwrap(), 0);
    alive.store(true, Ordering::Relaxed);
    let deadline = Instant::now() + Duration::from_secs(5);
    while card.registers().read32(host::HEARTBEAT).unwrap() < 2 {
        assert!(Instant::now() < deadline);
    }
    assert!(!heartbeat.held_back());
}

/// Registers whose accesses take time: a read of the card's time the next of `takes`, its high word a millisecond.
struct Slow {
    mock: Mock,
    now: Arc<AtomicU64>,
    takes: Vec<u64>,
}

impl Registers for Slow {
    fn read32(&mut self, register: Register) -> Result<u32, AccessError> {
        let takes = match register {
            clock::NOW_LOW => self.takes.pop().unwrap(),
            Register(at) if at == clock::NOW_LOW.0 + 4 => 1_000_000,
            _ => 0,
        };
        let now = self.now.fetch_add(takes, Ordering::Relaxed) + takes / 2;
        if register == clock::NOW_LOW {
            self.mock.write32(clock::NOW_LOW, now as u32)?;
            self.mock.write32(Register(clock::NOW_LOW.0 + 4), (now >> 32) as u32)?;
        }
        self.mock.read32(register)
    }

    fn write32(&mut self, register: Register, value: u32) -> Result<(), AccessError> {
        self.mock.write32(register, value)
    }
}

/// What is told of a card whose clock is this host's, when reads of it take these times; the narrowest of the refused.
fn told_time(takes: [u64; 8], widest: u64) -> Result<(u64, u64), u64> {
    let now = Arc::new(AtomicU64::new(0x1_ffff_0000));
    let pair = Arc::new(Mutex::new(None));
    let inside = Arc::clone(&pair);
    let mock = Mock::new(move |request| {
        let words: [u32; 4] = payload(request).try_into().unwrap();
        let join = |low, high| u64::from(low) | u64::from(high) << 32;
        *inside.lock().unwrap() = Some((join(words[0], words[1]), join(words[2], words[3])));
        vec![reply(request, Status::Ok, &[0, 0])]
    });
    let slow = Slow {
        mock,
        now: Arc::clone(&now),
        takes: takes.into(),
    };
    let mut card = Card::attach(slow, Timing::default()).unwrap();
    match card.time_sync(widest, || now.load(Ordering::Relaxed)) {
        Ok(_) => Ok(pair.lock().unwrap().unwrap()),
        Err(CardError::WidePair(narrowest, _)) => {
            assert_eq!(*pair.lock().unwrap(), None);
            Err(narrowest)
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_time_told_is_that_of_the_read_that_took_least() {
    let (card, host) = told_time([900_000_000, 7000, 2000, 5000, 3000, 4000, 2500, 800_000_000], 2000).unwrap();
    assert_eq!(card, host);
    assert_eq!(
        told_time([900_000_000, 7000, 2001, 5000, 3000, 4000, 2500, 3000], 2000),
        Err(2001)
    );
}

/// A firmware in a few words: what it is in, and what it was told.
#[derive(Default)]
struct Firmware {
    state: u32,
    asked: u32,
    configured: Vec<Vec<(u32, u32)>>,
    /// The state at each TIME_SYNC.
    synchronised: Vec<u32>,
    /// TIME_SYNCs that are doubted.
    doubts: u32,
    faults: Vec<FaultEntry>,
    memory: Memory,
    /// Slot that runs, and what became of the other one.
    slot: u32,
    other: Other,
    /// Boots of the other slot's image that were not confirmed.
    tries: u32,
    confirmed: bool,
}

/// The slot beside the one that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Other {
    /// An update of it gives what is good.
    #[default]
    Good,
    /// An update of it gives what never answers.
    Hangs,
    /// An update of it gives what resets the CPU at once, until all tries are used up.
    Crashes,
    /// An update of it is refused.
    Refused,
}

impl Firmware {
    /// As the boot ROM does.
    fn restart(&mut self, loaded: bool) {
        self.tries += match self.other {
            Other::Crashes => BOOT_TRIES + 1,
            _ => u32::from(!loaded),
        };
        self.slot = u32::from(!loaded && self.tries <= BOOT_TRIES);
        self.state = CardState::Idle as u32;
    }
}

/// What a keeper needs, with all that it told.
struct Kept {
    firmware: Arc<Mutex<Firmware>>,
    events: Arc<Mutex<Vec<Event>>>,
    end: Arc<AtomicBool>,
    epoch: u16,
}

impl Service for Kept {
    type Registers = Mock;

    fn connect(&mut self) -> Result<Mock, AccessError> {
        let firmware = Arc::clone(&self.firmware);
        let faults = self.firmware.lock().unwrap().faults.len() as u32;
        let mock = Mock::new(move |request| {
            let mut firmware = firmware.lock().unwrap();
            let payload = payload(request);
            if firmware.slot == 1 && firmware.other == Other::Hangs {
                return vec![];
            }
            let answer = match Opcode::from_u32(opcode(request)).unwrap() {
                Opcode::Hello => vec![0, 0, firmware.slot, 0, 0, 0],
                Opcode::UpdateData => {
                    let places = (SLOT_B_BASE - RAM_BASE + payload[0]..).step_by(4);
                    firmware
                        .memory
                        .lock()
                        .unwrap()
                        .extend(places.zip(payload[1..].iter().copied()));
                    vec![0]
                }
                Opcode::UpdateEnd if firmware.other == Other::Refused => {
                    return vec![reply(request, Status::Failed, &[ImageError::Abi as u32])];
                }
                Opcode::Confirm => {
                    firmware.confirmed = true;
                    vec![]
                }
                Opcode::GetState => {
                    firmware.asked += 1;
                    // It leaves RUNNING by itself, once.
                    if firmware.asked == 4 {
                        firmware.state = CardState::Fault as u32;
                    }
                    let state = State {
                        state: firmware.state,
                        ..State::default()
                    };
                    state.encode().to_vec()
                }
                Opcode::Statistics => vec![0; 25],
                Opcode::Configure => {
                    let pairs = payload.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                    firmware.configured.push(pairs);
                    vec![]
                }
                Opcode::TimeSync => {
                    let state = firmware.state;
                    firmware.synchronised.push(state);
                    let doubted = firmware.doubts > 0;
                    firmware.doubts = firmware.doubts.saturating_sub(1);
                    vec![0, if doubted { SyncAction::Doubted } else { SyncAction::Set } as u32]
                }
                Opcode::Start => {
                    firmware.state = CardState::Running as u32;
                    vec![]
                }
                Opcode::Stop => {
                    firmware.state = CardState::Idle as u32;
                    vec![]
                }
                Opcode::ReadFaultLog => {
                    let entries = firmware.faults.iter().filter(|entry| entry.sequence >= payload[0]);
                    let words: Vec<_> = entries.flat_map(FaultEntry::encode).collect();
                    [vec![firmware.faults.len() as u32, words.len() as u32 / 8], words].concat()
                }
                _ => vec![],
            };
            vec![reply(request, Status::Ok, &answer)]
        });
        let firmware = Arc::clone(&self.firmware);
        let restarted = move |loaded| firmware.lock().unwrap().restart(loaded);
        let mock = Mock {
            memory: Arc::clone(&self.firmware.lock().unwrap().memory),
            restarted: Box::new(restarted),
            ..mock
        };
        Ok(mock
            .with(host::BOOT_STAGE, BootStage::Tested as u32)
            .with(host::FAULT_COUNT, faults)
            .with(info::CLOCK_KHZ, 300_000)
            .with(info::HEARTBEAT_CLOCKS, 300_000)
            .with(system::CONTROL, 2))
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
        if *event == (Event::Started { epoch: 2 }) {
            self.end.store(true, Ordering::Relaxed);
        }
        self.events.lock().unwrap().push(event.clone());
    }

    fn show(&mut self, _: &Report) {}
}

type Told = (Result<(), CardError>, Vec<String>, Arc<Mutex<Firmware>>);

fn keep(values: Vec<(Key, u32)>) -> Told {
    keep_with(None, values, Firmware::default())
}

fn keep_with(image: Option<Image>, values: Vec<(Key, u32)>, firmware: Firmware) -> Told {
    let firmware = Arc::new(Mutex::new(Firmware {
        state: CardState::Idle as u32,
        ..firmware
    }));
    firmware.lock().unwrap().faults.push(FaultEntry {
        sequence: 1,
        code: 2,
        ..FaultEntry::default()
    });
    let events = Arc::new(Mutex::new(Vec::new()));
    let end = Arc::new(AtomicBool::new(false));
    let kept = Kept {
        firmware: Arc::clone(&firmware),
        events: Arc::clone(&events),
        end: Arc::clone(&end),
        epoch: 0,
    };
    let settings = Settings {
        image,
        values,
        timing: Timing {
            reply: Duration::from_millis(60),
            boot: Duration::from_millis(60),
            ..Timing::default()
        },
        host_version: 1,
    };
    let result = Keeper::new(kept, settings).run(&end);
    let names = events.lock().unwrap().iter().map(Event::name).collect();
    (result, names, firmware)
}

#[test]
fn a_keeper_starts_a_card_again_with_another_epoch_and_another_seed() {
    let (result, names, firmware) = keep(vec![(Key::HostTimeoutUs, 50_000)]);
    result.unwrap();
    let told = [
        "ATTACHED",
        "FIRMWARE",
        "FAULT_WATCHDOG",
        "STARTED",
        "LOST",
        "FIRMWARE",
        "STARTED",
        "STOPPED",
    ];
    assert_eq!(names, told);
    let firmware = firmware.lock().unwrap();
    assert_eq!(firmware.state, CardState::Idle as u32);
    let value = |start: usize, key: Key| {
        let pairs = firmware.configured[start].iter();
        pairs
            .filter(|(k, _)| *k == key as u32)
            .map(|&(_, value)| value)
            .next_back()
    };
    let seed = |start| -> Vec<u32> {
        (Key::Seed0 as u32..=Key::Seed12 as u32)
            .map(|key| value(start, Key::from_u32(key).unwrap()).unwrap())
            .collect()
    };
    assert_ne!(seed(0), seed(1));
    assert_ne!(seed(0), [0; 13]);
    assert_eq!((value(0, Key::Epoch), value(1, Key::Epoch)), (Some(1), Some(2)));
    // A quarter of the 1 ms that the inline path waits.
    assert_eq!(value(1, Key::BeatUs), Some(250));
    assert_eq!(value(1, Key::HostTimeoutUs), Some(50_000));
}

#[test]
fn a_keeper_sets_the_clock_before_anything_is_measured() {
    let synchronised = |source, doubts| {
        let doubting = Firmware {
            doubts,
            ..Firmware::default()
        };
        let (result, _, firmware) = keep_with(None, vec![(Key::ServoSource, source as u32)], doubting);
        result.unwrap();
        let firmware = firmware.lock().unwrap();
        firmware.synchronised.clone()
    };
    let (idle, running) = (CardState::Idle as u32, CardState::Running as u32);
    assert_eq!(synchronised(ServoSource::None, 0), []);
    // Two starts.
    assert_eq!(synchronised(ServoSource::Pps, 0), [idle, idle]);
    assert_eq!(synchronised(ServoSource::Host, 0), [idle, running, running, idle]);
    // A clock that was locked asks for three.
    assert_eq!(synchronised(ServoSource::Pps, 2), [idle, idle, idle, idle]);
}

/// A keeper that has an image, with a card that runs it or another one of the same version.
fn keep_image(same: bool, other: Other) -> Told {
    let wanted = Image::parse(&image(&[1, 2, 3])).unwrap();
    let runs = Image::parse(&image(&[if same { 1 } else { 4 }, 2, 3])).unwrap();
    let firmware = Firmware {
        other,
        ..Firmware::default()
    };
    let places = (SLOT_A_BASE - RAM_BASE..).step_by(4);
    let words = places.zip(runs.words().iter().copied());
    firmware.memory.lock().unwrap().extend(words);
    keep_with(Some(wanted), vec![], firmware)
}

#[test]
fn a_keeper_puts_another_image_beside_the_one_that_runs() {
    let (result, names, firmware) = keep_image(true, Other::Good);
    result.unwrap();
    assert!(!names.contains(&"FIRMWARE_LOADING".to_owned()), "{names:?}");
    assert_eq!(firmware.lock().unwrap().tries, 0);

    let (result, names, firmware) = keep_image(false, Other::Good);
    result.unwrap();
    let told = [
        "ATTACHED",
        "FIRMWARE",
        "FIRMWARE_LOADING",
        "FIRMWARE",
        "FAULT_WATCHDOG",
        "STARTED",
    ];
    assert_eq!(names[..6], told);
    let firmware = firmware.lock().unwrap();
    assert!(firmware.confirmed);
    assert_eq!(
        (firmware.slot, firmware.tries),
        (1, 1),
        "the old one is there, and what was lost later needs no reset"
    );
}

#[test]
fn firmware_that_never_answers_is_given_up_for_the_one_before() {
    let (result, names, firmware) = keep_image(false, Other::Hangs);
    result.unwrap();
    // Tried once; what is lost later is not the image's.
    let told = [
        "ATTACHED",
        "FIRMWARE",
        "FIRMWARE_LOADING",
        "LOST",
        "FIRMWARE",
        "FIRMWARE_GIVEN_UP",
        "FAULT_WATCHDOG",
        "STARTED",
        "LOST",
        "FIRMWARE",
        "STARTED",
        "STOPPED",
    ];
    assert_eq!(names, told);
    let firmware = firmware.lock().unwrap();
    assert_eq!((firmware.slot, firmware.tries), (0, BOOT_TRIES + 1));
}

#[test]
fn firmware_that_crashes_is_given_up_though_the_card_is_never_lost() {
    let (result, names, firmware) = keep_image(false, Other::Crashes);
    result.unwrap();
    let told = [
        "ATTACHED",
        "FIRMWARE",
        "FIRMWARE_LOADING",
        "FIRMWARE",
        "FIRMWARE_GIVEN_UP",
        "FAULT_WATCHDOG",
        "STARTED",
    ];
    assert_eq!(names[..7], told);
    assert_eq!(firmware.lock().unwrap().tries, BOOT_TRIES + 1, "tried once");
}

#[test]
fn a_card_that_never_answers_is_loaded_at_the_first_start_too() {
    let hung = || Firmware {
        slot: 1,
        other: Other::Hangs,
        ..Firmware::default()
    };
    let (result, names, _) = keep_with(Some(Image::parse(&image(&[1])).unwrap()), vec![], hung());
    result.unwrap();
    assert_eq!(names[..4], ["ATTACHED", "LOST", "FIRMWARE_LOADING", "FIRMWARE"]);
    let (result, _, _) = keep_with(None, vec![], hung());
    assert!(
        matches!(result, Err(CardError::NoAnswer(Opcode::Hello, _))),
        "{result:?}"
    );
}

#[test]
fn an_image_that_the_card_refuses_ends_the_first_start_by_name() {
    let (result, _, firmware) = keep_image(false, Other::Refused);
    let said = result.unwrap_err().to_string();
    assert!(said.contains("refused the firmware image (ABI)"), "{said}");
    assert_eq!(firmware.lock().unwrap().tries, 0, "no reset");
}

/// A simulated card's end of the socket: gives these answers, and back what it was asked.
fn serve(name: &str, answers: Vec<[u8; 8]>) -> (SocketRegisters, std::thread::JoinHandle<Vec<[u8; 12]>>) {
    let path = std::env::temp_dir().join(format!("weir-card-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut requests = Vec::new();
        for answer in answers {
            let mut request = [0; 12];
            stream.read_exact(&mut request).unwrap();
            requests.push(request);
            stream.write_all(&answer).unwrap();
        }
        requests
    });
    let registers = SocketRegisters::connect(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    (registers, thread)
}

#[test]
fn the_socket_carries_registers() {
    let (mut registers, card) = serve(
        "carries",
        vec![
            [1, 0, 1, 0, 0x52, 0x49, 0x45, 0x57],
            [1, 0, 2, 0, 0, 0, 0, 0],
            [1, 1, 3, 0, 0, 0, 0, 0],
            [1, 0, 4, 0, 2, 0, 0, 0],
            [1, 0, 5, 0, 1, 0, 0, 0],
        ],
    );
    assert_eq!(registers.read32(info::MAGIC).unwrap(), 0x5745_4952);
    registers.write32(system::SCRATCH, 0x0102_0304).unwrap();
    let refused = registers.read32(Register(0x3ffc)).unwrap_err();
    assert!(refused.to_string().contains("0x3ffc"), "{refused}");
    assert_eq!(registers.read64(clock::NOW_LOW).unwrap(), 1 << 32 | 2);
    let requests = card.join().unwrap();
    assert_eq!(requests[0], [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(requests[1], [1, 2, 2, 0, 0x1c, 1, 0, 0, 4, 3, 2, 1]);
    // The card is gone.
    assert!(matches!(registers.read32(info::MAGIC), Err(AccessError::Link(_))));
    assert!(matches!(registers.read32(info::MAGIC), Err(AccessError::Protocol(_))));
}

#[test]
fn answers_to_something_else_are_no_answers() {
    for (i, answer) in [
        [1, 0, 9, 0, 0, 0, 0, 0],
        [2, 0, 1, 0, 0, 0, 0, 0],
        [1, 2, 1, 0, 0, 0, 0, 0],
    ]
    .into_iter()
    .enumerate()
    {
        let (mut registers, card) = serve(&format!("else{i}"), vec![answer]);
        assert!(matches!(registers.read32(info::MAGIC), Err(AccessError::Protocol(_))));
        card.join().unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever words come before a good reply, it is found, and nothing panics.
    #[test]
    fn garbage_before_a_reply_is_skipped(garbage in prop::collection::vec(prop_oneof![
        any::<u32>(),
        (0u32..=70).prop_map(|length| 0x5701_0200 | length),
    ], 0..60)) {
        let mut card = attach(Mock::new(move |request| {
            // Whoever says that 60 words follow makes the host wait for them.
            vec![garbage.clone(), reply(request, Status::Ok, &[7; 16]), vec![0; 64]]
        }));
        prop_assert_eq!(card.state().unwrap().encode(), [7; 16]);
    }
}
