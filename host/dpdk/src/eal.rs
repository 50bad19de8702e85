//! The environment of DPDK (EAL): started once per process, in a thread of its own.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::fs::{DirEntry, File};
use std::io::Read;
use std::marker::PhantomData;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use crate::error::{Error, ErrorKind, Result, last_code};
use crate::pool::PoolShelf;
use crate::{affinity, sys};

/// How the environment is started. The default needs no hugepages, no root and no PCI device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EalConfig {
    /// Packet memory in MiB, at least 64. Without hugepages it is touched only as used.
    pub memory_mib: u32,
    /// Take the memory from hugepages (anonymous, no mount needed) instead of ordinary pages.
    pub hugepages: bool,
    /// Look for PCI devices: only for NICs bound to a user-space driver.
    pub pci: bool,
}

impl Default for EalConfig {
    fn default() -> Self {
        Self {
            memory_mib: 512,
            hugepages: false,
            pci: false,
        }
    }
}

/// Set by the first start, whatever came of it: the EAL refuses a second one.
static STARTED: AtomicBool = AtomicBool::new(false);

/// The started environment. Ports and pools keep it alive; when the last of them is gone it is cleaned up.
#[derive(Debug, Clone)]
pub struct Eal {
    shared: Arc<EalShared>,
}

/// What ports and pools hold of the environment.
#[derive(Debug)]
pub(crate) struct EalShared {
    /// Whether PCI devices may be named.
    pub(crate) pci: bool,
    /// Pools without a user, kept for the next one: see `pool`.
    pub(crate) shelf: Mutex<PoolShelf>,
    /// Probing and removing devices is done by one thread at a time.
    pub(crate) probing: Mutex<()>,
}

impl Drop for EalShared {
    fn drop(&mut self) {
        // SAFETY: the EAL was started (the only way to make this value) and no port, pool, burst
        // or registered thread is left, as each of them holds a reference to this value.
        unsafe { sys::rte_eal_cleanup() };
    }
}

impl Eal {
    /// Starts the environment.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyStarted`] when called a second time in this process, also after a failure;
    /// [`ErrorKind::Start`] with DPDK's reason otherwise.
    pub fn init(config: &EalConfig) -> Result<Self> {
        if config.memory_mib < 64 {
            return Err(Error::new(
                ErrorKind::Argument,
                format!(
                    "{} MiB of packet memory is too little; give at least 64",
                    config.memory_mib
                ),
            ));
        }
        check_runtime_directory()?;
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(Error::new(
                ErrorKind::AlreadyStarted,
                "DPDK can be started once per process and was started before; share the first one or use another process",
            ));
        }
        capture_log();
        let arguments = arguments(config)?;
        // The EAL pins the thread that starts it to one CPU: a thread of its own takes
        // the pin away with it, so that the caller's threads stay free.
        let starter = thread::Builder::new()
            .name("eal".to_owned())
            .spawn(move || start(&arguments));
        let outcome = match starter.map(thread::JoinHandle::join) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Error::new(ErrorKind::Start, "the thread that starts DPDK panicked")),
            Err(error) => Err(Error::new(
                ErrorKind::Start,
                format!("no thread could be made to start DPDK: {error}"),
            )),
        };
        outcome.map_err(|error| error.hint(&start_hint(config)))?;
        let shared = EalShared {
            pci: config.pci,
            shelf: Mutex::new(PoolShelf::default()),
            probing: Mutex::new(()),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    pub(crate) fn shared(&self) -> &Arc<EalShared> {
        &self.shared
    }

    /// The version of the DPDK libraries in use, such as `DPDK 22.11.11`.
    pub fn version() -> String {
        // SAFETY: returns a static NUL-terminated string.
        unsafe { std::ffi::CStr::from_ptr(sys::rte_version()) }
            .to_string_lossy()
            .into_owned()
    }
}

/// While it lives, the thread that made it has buffer caches of its own (a lower cost per frame).
#[derive(Debug)]
pub struct RegisteredThread {
    _eal: Arc<EalShared>,
    /// Unregistering is for the thread that registered.
    _not_send: PhantomData<*const ()>,
}

impl RegisteredThread {
    /// Registers the calling thread. `None` when DPDK has no place left: everything works
    /// without, only slower.
    pub(crate) fn new(eal: &Arc<EalShared>) -> Option<Self> {
        // SAFETY: the EAL is started; a thread that is registered already gets an error, not a second place.
        let result = unsafe { sys::rte_thread_register() };
        (result == 0).then(|| Self {
            _eal: Arc::clone(eal),
            _not_send: PhantomData,
        })
    }
}

impl Drop for RegisteredThread {
    fn drop(&mut self) {
        // SAFETY: this thread was registered by `new` and the value cannot leave its thread.
        unsafe { sys::rte_thread_unregister() };
    }
}

fn start(arguments: &[CString]) -> Result<()> {
    // The EAL permutes argv and keeps pointers into it: the strings stay for the life of the process.
    let mut argv: Vec<*mut c_char> = arguments.iter().map(|argument| argument.clone().into_raw()).collect();
    argv.push(std::ptr::null_mut());
    let argv = argv.leak();
    // SAFETY: argv is an array of `arguments.len()` NUL-terminated strings and a null pointer, never
    // freed; STARTED makes this the only call in the process.
    let result = unsafe { sys::rte_eal_init(arguments.len() as c_int, argv.as_mut_ptr()) };
    if result < 0 {
        return Err(Error::dpdk(ErrorKind::Start, "DPDK could not be started", last_code()));
    }
    Ok(())
}

fn arguments(config: &EalConfig) -> Result<Vec<CString>> {
    let mut list: Vec<String> = vec!["weir".to_owned()];
    // One lcore on a CPU this process may use: with no list the EAL makes a thread per CPU.
    list.push(format!("--lcores=0@{}", affinity::first_allowed_cpu()));
    list.push("-m".to_owned());
    list.push(config.memory_mib.to_string());
    list.push("--no-telemetry".to_owned());
    list.push("--log-level=*:4".to_owned());
    if config.hugepages {
        // Together with --no-huge the EAL refuses it.
        list.push("--in-memory".to_owned());
    } else {
        list.push("--no-huge".to_owned());
        list.push("--no-shconf".to_owned());
    }
    if !config.pci {
        list.push("--no-pci".to_owned());
    }
    list.into_iter()
        .map(|argument| {
            CString::new(argument).map_err(|_| Error::new(ErrorKind::Argument, "an argument of DPDK holds a NUL byte"))
        })
        .collect()
}

/// The EAL makes a runtime directory even with nothing to put in it: XDG_RUNTIME_DIR/dpdk/rte, or under
/// /tmp without that variable. Failing there is the usual trouble of an ordinary user, and its own message does not say so.
fn check_runtime_directory() -> Result<()> {
    if affinity::is_root() {
        return Ok(());
    }
    let set = std::env::var_os("XDG_RUNTIME_DIR").filter(|directory| !directory.is_empty());
    let base = PathBuf::from(set.unwrap_or_else(|| "/tmp".into()));
    std::fs::create_dir_all(base.join("dpdk/rte")).map_err(|error| {
        Error::new(
            ErrorKind::Start,
            format!(
                "DPDK needs a runtime directory and cannot use {} ({error}); \
                 set XDG_RUNTIME_DIR to a directory of your own",
                base.join("dpdk").display()
            ),
        )
    })
}

fn start_hint(config: &EalConfig) -> String {
    if config.hugepages {
        hugepages_hint(
            config.memory_mib,
            &free_hugepages(Path::new("/sys/kernel/mm/hugepages")),
        )
    } else {
        "check `ulimit -v` and free memory, or ask for less packet memory".to_owned()
    }
}

/// Sizes of hugepages in KiB, and how many are free of each; empty where the system has none.
fn free_hugepages(folder: &Path) -> BTreeMap<u64, u64> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let pool = |entry: DirEntry| {
        let name = entry.file_name();
        let size = name
            .to_str()?
            .strip_prefix("hugepages-")?
            .strip_suffix("kB")?
            .parse()
            .ok()?;
        let free = std::fs::read_to_string(entry.path().join("free_hugepages")).ok()?;
        Some((size, free.trim().parse().ok()?))
    };
    entries.filter_map(pool).collect()
}

/// What to do about too few hugepages, if it is that.
fn hugepages_hint(mib: u32, free: &BTreeMap<u64, u64>) -> String {
    if free.is_empty() {
        return format!(
            "a PCI device takes {mib} MiB of hugepages, and this kernel has none (no /sys/kernel/mm/hugepages); an eth: port takes ordinary memory"
        );
    }
    let there: Vec<_> = free.iter().map(|(kib, free)| format!("{free} of {kib} kB")).collect();
    let there = there.join(", ");
    let wanted = u64::from(mib) << 10;
    match free.iter().map(|(kib, free)| kib * free).sum::<u64>() >= wanted {
        // More than one node, or what others have taken: the numbers tell.
        true => {
            format!("{mib} MiB of hugepages are wanted and there are enough free (/sys/kernel/mm/hugepages: {there})")
        }
        false => {
            let pages = wanted.div_ceil(2048);
            format!(
                "a PCI device takes {mib} MiB of hugepages, and too few are free (/sys/kernel/mm/hugepages: {there}): sysctl -w \
                 vm.nr_hugepages={pages} reserves them where they are of 2048 kB, the same line in /etc/sysctl.d/ does so at each start of the \
                 machine; an eth: port takes ordinary memory"
            )
        }
    }
}

/// Where the libraries' log goes: a pipe that never blocks, so that a failure can give the
/// reason in its own text and nothing is printed over the program's output.
/// When nobody reads, it fills (64 KiB) and further text is lost: bounded by construction.
static LOG: OnceLock<Mutex<File>> = OnceLock::new();

fn capture_log() {
    let mut ends = [0 as c_int; 2];
    // SAFETY: pipe2 writes two descriptors into the array.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK | libc::O_CLOEXEC) } != 0 {
        return;
    }
    // SAFETY: both descriptors were just made and have no other owner.
    let (reader, writer) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    // SAFETY: the descriptor is open and the stream takes it over for the life of the process.
    let stream = unsafe { libc::fdopen(writer.into_raw_fd(), c"w".as_ptr()) };
    if stream.is_null() {
        return;
    }
    // SAFETY: the stream is open; unbuffered means no memory of ours is used.
    unsafe { libc::setvbuf(stream, std::ptr::null_mut(), libc::_IONBF, 0) };
    // SAFETY: an open stream, never closed; may be set before rte_eal_init.
    unsafe { sys::rte_openlog_stream(stream.cast()) };
    // The reader stays open for ever: a write can never raise SIGPIPE.
    let _ = LOG.set(Mutex::new(reader));
}

/// What the libraries logged since the last call, in one line of at most some hundred characters.
pub(crate) fn log_text() -> String {
    const LONGEST: usize = 400;
    let Some(reader) = LOG.get() else {
        return String::new();
    };
    let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
    let mut bytes = vec![0; 65_536];
    // The pipe does not block and holds no more than this.
    let length = reader.read(&mut bytes).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..length]);
    // What the EAL adds to every driver's message.
    let says_nothing = |line: &str| {
        line.is_empty()
            || line.starts_with("EAL: Driver cannot attach")
            || line.starts_with("EAL: Failed to attach device on primary")
    };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !says_nothing(line)).collect();
    lines.join("; ").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn too_few_hugepages_are_told_with_what_is_there_and_what_to_do() {
        let none = free_hugepages(Path::new("/nonexistent"));
        assert!(hugepages_hint(512, &none).contains("this kernel has none"));
        let told = hugepages_hint(512, &BTreeMap::from([(2048, 3), (1 << 20, 0)]));
        for part in ["takes 512 MiB", "3 of 2048 kB, 0 of 1048576 kB", "vm.nr_hugepages=256"] {
            assert!(told.contains(part), "{told}");
        }
        assert!(hugepages_hint(512, &BTreeMap::from([(1 << 20, 1)])).contains("enough free"));
    }
}
