//! A card: attached, started, asked.

use std::time::{Duration, Instant};

use crate::access::{Registers, Shared};
use crate::error::CardError;
use crate::heartbeat::Heartbeat;
use crate::image::Image;
use crate::mailbox::{Mailbox, Message, Timing};
use crate::protocol::{
    ABI_MAJOR, ABI_MINOR, BootStage, FaultEntry, HelloReply, HelloRequest, IMAGE_HEADER_BYTES, Key, MAX_PAYLOAD_WORDS,
    Opcode, RAM_BASE, ReadFaultLogReply, SLOT_A_BASE, SLOT_B_BASE, State, Statistics, TimeSyncReply, TimeSyncRequest,
    UPDATE_CHUNK_WORDS, UpdateBeginRequest, UpdateDataRequest,
};
use crate::registers::{clock, host, info, mailbox, system};

/// 'WEIR'.
const MAGIC: u32 = 0x5745_4952;
/// Reads of the card's time for one TIME_SYNC: a host that is interrupted in some is not in all.
const PAIRS: u32 = 8;

/// What a card says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Version of the registers: major, minor.
    pub abi: (u32, u32),
    /// Flows that can be open at once.
    pub contexts: u32,
    /// Wire ports.
    pub ports: u32,
    /// Clock of the design.
    pub clock_khz: u32,
    /// Version of the hardware: major 31..16, minor 15..8, patch 7..0.
    pub rtl_version: u32,
}

/// A card that this program may touch.
#[derive(Debug)]
pub struct Card<R> {
    registers: Shared<R>,
    mailbox: Mailbox<Shared<R>>,
    timing: Timing,
    info: Info,
}

impl<R: Registers> Card<R> {
    /// Look at a card, and refuse one whose registers this program does not know.
    ///
    /// # Errors
    /// [`CardError::NoCard`], [`CardError::Abi`], or the card cannot be reached.
    pub fn attach(mut registers: R, timing: Timing) -> Result<Self, CardError> {
        let magic = registers.read32(info::MAGIC)?;
        if magic != MAGIC {
            return Err(CardError::NoCard(magic));
        }
        let abi = registers.read32(info::ABI)?;
        let (major, minor) = (info::ABI_MAJOR.get(abi), info::ABI_MINOR.get(abi));
        if major != ABI_MAJOR || abi < (ABI_MAJOR << 16 | ABI_MINOR) {
            return Err(CardError::Abi { major, minor });
        }
        let info = Info {
            abi: (major, minor),
            contexts: registers.read32(info::CONTEXTS)?,
            ports: registers.read32(info::PORTS)?,
            clock_khz: registers.read32(info::CLOCK_KHZ)?,
            rtl_version: registers.read32(info::RTL_VERSION)?,
        };
        let registers = Shared::new(registers);
        Ok(Self {
            mailbox: Mailbox::new(registers.clone(), timing),
            registers,
            timing,
            info,
        })
    }

    /// What the card says of itself.
    pub fn info(&self) -> Info {
        self.info
    }

    /// The registers, for what has no call here.
    pub fn registers(&mut self) -> &mut Shared<R> {
        &mut self.registers
    }

    /// Load an image with the CPU held in reset and let it boot. The link is in bypass meanwhile.
    ///
    /// # Errors
    /// The firmware did not start.
    pub fn load_firmware(&mut self, image: &Image) -> Result<(), CardError> {
        let registers = &mut self.registers;
        let control = registers.read32(system::CONTROL)?;
        registers.write32(system::CONTROL, system::CONTROL_CPU_RESET.set(control, 1))?;
        registers.write32(host::STATE, 0)?;
        registers.write32(host::BOOT_STAGE, BootStage::Loaded as u32)?;
        registers.write32(host::FIRMWARE_VERSION, 0)?;
        registers.write32(system::LOAD_ADDRESS, SLOT_A_BASE - RAM_BASE)?;
        for &word in image.words() {
            registers.write32(system::LOAD_WRITE, word)?;
        }
        // What was said before the reset has no meaning any more.
        registers.write32(mailbox::REQUEST, mailbox::REQUEST_CLEAR.set(0, 1))?;
        registers.write32(system::CONTROL, system::CONTROL_CPU_RESET.set(control, 0))?;
        self.mailbox = Mailbox::new(registers.clone(), self.timing);
        self.wait_for_boot()
    }

    /// Wait until firmware says that it runs.
    ///
    /// # Errors
    /// [`CardError::NotBooted`], at once when the boot ROM finds no good image.
    pub fn wait_for_boot(&mut self) -> Result<(), CardError> {
        let deadline = Instant::now() + self.timing.boot;
        loop {
            let stage = self.registers.read32(host::BOOT_STAGE)?;
            if stage == BootStage::Firmware as u32 || stage == BootStage::Tested as u32 {
                return Ok(());
            }
            if is_no_image(stage) || Instant::now() >= deadline {
                return Err(CardError::NotBooted(stage));
            }
            std::thread::sleep(self.timing.poll);
        }
    }

    /// Tell each other's versions: the first request.
    ///
    /// # Errors
    /// As for [`Mailbox::request`], as for all that follow.
    pub fn hello(&mut self, host_version: u32) -> Result<HelloReply, CardError> {
        let request = HelloRequest {
            host_version,
            abi: ABI_MAJOR << 16 | ABI_MINOR,
        };
        let reply = self.mailbox.request(Opcode::Hello, &request.encode())?;
        Ok(HelloReply::decode(words(Opcode::Hello, &reply)?))
    }

    /// State of the firmware.
    pub fn state(&mut self) -> Result<State, CardError> {
        let reply = self.mailbox.request(Opcode::GetState, &[])?;
        Ok(State::decode(words(Opcode::GetState, &reply)?))
    }

    /// Set values; all or none of each message's worth, and messages in order.
    pub fn configure(&mut self, values: &[(Key, u32)]) -> Result<(), CardError> {
        for some in values.chunks(MAX_PAYLOAD_WORDS as usize / 2) {
            let payload: Vec<u32> = some.iter().flat_map(|&(key, value)| [key as u32, value]).collect();
            self.mailbox.request(Opcode::Configure, &payload)?;
        }
        Ok(())
    }

    /// Begin to measure.
    pub fn start(&mut self) -> Result<(), CardError> {
        self.mailbox.request(Opcode::Start, &[]).map(|_| ())
    }

    /// End measuring.
    pub fn stop(&mut self) -> Result<(), CardError> {
        self.mailbox.request(Opcode::Stop, &[]).map(|_| ())
    }

    /// Tell the card what time it is. `tai_now` gives the host's TAI in ns; of several reads of the card's time that is
    /// told which took least, with the middle of it.
    ///
    /// # Errors
    /// [`CardError::WidePair`] when none took `widest` ns or less.
    pub fn time_sync(&mut self, widest: u64, tai_now: impl Fn() -> u64) -> Result<TimeSyncReply, CardError> {
        let (card, host) = self.time_pair(widest, &tai_now)?;
        let request = TimeSyncRequest {
            card_low: card as u32,
            card_high: (card >> 32) as u32,
            host_low: host as u32,
            host_high: (host >> 32) as u32,
        };
        let reply = self.mailbox.request(Opcode::TimeSync, &request.encode())?;
        Ok(TimeSyncReply::decode(words(Opcode::TimeSync, &reply)?))
    }

    /// Card time and host time of one moment.
    fn time_pair(&mut self, widest: u64, tai_now: &dyn Fn() -> u64) -> Result<(u64, u64), CardError> {
        let mut narrowest = u64::MAX;
        let mut pair = (0, 0);
        for _ in 0..PAIRS {
            let read = self.registers.read64_timed(clock::NOW_LOW, tai_now)?;
            // A clock that was set backwards meanwhile gives no pair.
            let width = read.after.checked_sub(read.before).unwrap_or(u64::MAX);
            if width < narrowest {
                narrowest = width;
                pair = (read.value, read.before + width / 2);
            }
        }
        if narrowest > widest {
            return Err(CardError::WidePair(narrowest, widest));
        }
        Ok(pair)
    }

    /// Counters.
    pub fn statistics(&mut self) -> Result<Statistics, CardError> {
        let reply = self.mailbox.request(Opcode::Statistics, &[])?;
        Ok(Statistics::decode(words(Opcode::Statistics, &reply)?))
    }

    /// The fault log from an entry's number on, oldest first.
    pub fn fault_log(&mut self, mut from: u32) -> Result<Vec<FaultEntry>, CardError> {
        const HEAD: usize = ReadFaultLogReply::WORDS;
        let mut entries: Vec<FaultEntry> = Vec::new();
        loop {
            let reply = self.mailbox.request(Opcode::ReadFaultLog, &[from])?;
            let head = ReadFaultLogReply::decode(words(Opcode::ReadFaultLog, &reply)?);
            let before = entries.len();
            entries.extend(
                reply[HEAD..]
                    .chunks_exact(FaultEntry::WORDS)
                    .take(head.count as usize)
                    .filter_map(|entry| entry.try_into().ok().map(FaultEntry::decode))
                    // An answer never goes back, so this ends.
                    .filter(|entry| entry.sequence >= from),
            );
            match entries.last() {
                Some(last) if entries.len() > before && last.sequence < head.recorded => from = last.sequence + 1,
                _ => return Ok(entries),
            }
        }
    }

    /// Put an image into the slot that does not run; the next boot tries it, and unless it is confirmed, the fourth goes
    /// back to the one that runs now.
    pub fn update_firmware(&mut self, image: &Image) -> Result<(), CardError> {
        let bytes = 4 * image.words().len() as u32;
        self.mailbox
            .request(Opcode::UpdateBegin, &UpdateBeginRequest { bytes }.encode())?;
        let mut offset = 0;
        for chunk in image.words().chunks(UPDATE_CHUNK_WORDS as usize) {
            let mut payload = UpdateDataRequest { offset }.encode().to_vec();
            payload.extend_from_slice(chunk);
            self.mailbox.request(Opcode::UpdateData, &payload)?;
            offset += 4 * chunk.len() as u32;
        }
        self.mailbox.request(Opcode::UpdateEnd, &[]).map(|_| ())
    }

    /// Which image a slot holds: the CRC of its header, which names it in the card's boot record, too.
    pub fn image_in(&mut self, slot: u32) -> Result<u32, CardError> {
        let base = if slot == 0 { SLOT_A_BASE } else { SLOT_B_BASE };
        let last_of_header = base - RAM_BASE + IMAGE_HEADER_BYTES - 4;
        self.registers.write32(system::LOAD_ADDRESS, last_of_header)?;
        Ok(self.registers.read32(system::LOAD_READ)?)
    }

    /// Reset the CPU, whether or not its firmware answers; it boots. The link is in bypass meanwhile.
    pub fn restart(&mut self) -> Result<(), CardError> {
        let registers = &mut self.registers;
        registers.write32(host::BOOT_STAGE, 0)?;
        registers.write32(system::REQUEST, system::REQUEST_CPU_RESTART.set(0, 1))?;
        // As in load_firmware; what boots says nothing before it is asked.
        registers.write32(mailbox::REQUEST, mailbox::REQUEST_CLEAR.set(0, 1))?;
        self.mailbox = Mailbox::new(registers.clone(), self.timing);
        Ok(())
    }

    /// The image that runs is good.
    pub fn confirm(&mut self) -> Result<(), CardError> {
        self.mailbox.request(Opcode::Confirm, &[]).map(|_| ())
    }

    /// As [`Mailbox::counters`].
    pub fn mailbox_counters(&self) -> (u64, u64, u64) {
        self.mailbox.counters()
    }

    /// What the card said unasked since the last call.
    pub fn notices(&mut self) -> Result<Vec<Message>, CardError> {
        self.mailbox.notices()
    }
}

impl<R: Registers + Send + 'static> Card<R> {
    /// Begin to tell the card that the host is alive, whenever `alive` says so.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn heartbeat(
        &self,
        period: Duration,
        alive: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Heartbeat, CardError> {
        Heartbeat::start(self.registers.clone(), period, alive)
    }
}

/// Whether this boot stage is the end of a boot without a good image; what is wrong with the slots is in its other bytes.
pub(crate) fn is_no_image(stage: u32) -> bool {
    stage & 0xff == BootStage::NoImage as u32
}

fn words<const N: usize>(opcode: Opcode, reply: &[u32]) -> Result<&[u32; N], CardError> {
    reply.first_chunk().ok_or(CardError::ShortReply(opcode, reply.len()))
}
