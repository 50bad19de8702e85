//! The signals that end a command: SIGINT, SIGTERM and SIGHUP.

use std::io;

use tokio::signal::unix::{self, Signal, SignalKind};

/// At the first signal to end, `clean` up and end the process as a shell tells of one that a signal has ended.
pub(crate) fn end_at_signal(clean: impl FnOnce() + Send + 'static) -> io::Result<()> {
    with_signals(move |next| {
        let number = next();
        clean();
        std::process::exit(128 + number);
    })
}

/// A thread that is given a function which waits for the next signal, and tells its number.
pub fn with_signals(body: impl FnOnce(&mut dyn FnMut() -> i32) + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::new()?
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || body(&mut || runtime.block_on(signals.next()).as_raw_value()))
        .map(|_| ())
}

/// Completes at a signal to end.
pub async fn signal() {
    match Signals::new() {
        Ok(mut signals) => {
            signals.next().await;
        }
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}

/// SIGINT, SIGTERM and SIGHUP, as they come.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None: whoever started the process wants it to go on without a terminal (nohup).
    hang_up: Option<Signal>,
}

impl Signals {
    /// From now on; inside a runtime.
    fn new() -> io::Result<Self> {
        let hang_up = (!is_ignored(SignalKind::hangup())).then(|| unix::signal(SignalKind::hangup()));
        Ok(Self {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hang_up: hang_up.transpose()?,
        })
    }

    async fn next(&mut self) -> SignalKind {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = hang_up => SignalKind::hangup(),
        }
    }
}

/// Whether the process ignores a signal, as far as the system tells.
fn is_ignored(signal: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (signal.as_raw_value() - 1) != 0)
}
