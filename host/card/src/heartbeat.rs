//! The host's heartbeat: without it the card's firmware puts the link into bypass.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::access::{AccessError, Registers};
use crate::error::CardError;
use crate::registers::host;

/// A thread that moves the card's heartbeat counter on while the host is alive, until this is dropped.
#[derive(Debug)]
pub struct Heartbeat {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    held_back: AtomicBool,
    error: Mutex<Option<AccessError>>,
}

impl Heartbeat {
    /// Begin to beat. The period is to be well below the card's `HOST_TIMEOUT_US`. `alive` is asked before each beat, which
    /// is held back when it says no.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn start(
        mut registers: impl Registers + Send + 'static,
        period: Duration,
        mut alive: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Self, CardError> {
        let (stop, stopped) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let inside = Arc::clone(&shared);
        let failed = Arc::clone(&shared);
        let mut beat = move || {
            let mut count = registers.read32(host::HEARTBEAT)?;
            loop {
                let beats = alive();
                inside.held_back.store(!beats, Ordering::Relaxed);
                if beats {
                    count = count.wrapping_add(1);
                    registers.write32(host::HEARTBEAT, count)?;
                }
                match stopped.recv_timeout(period) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("card heartbeat".into())
            .spawn(move || {
                if let Err(error) = beat() {
                    *failed.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            })
            .map_err(CardError::Thread)?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
            shared,
        })
    }

    /// Whether the host was not alive at the last beat.
    pub fn held_back(&self) -> bool {
        self.shared.held_back.load(Ordering::Relaxed)
    }

    /// Why it ended by itself: the card cannot be reached.
    pub fn failed(&self) -> Option<AccessError> {
        let gone = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        let error = self.shared.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.or_else(|| gone.then_some(AccessError::Protocol("the heartbeat panicked")))
    }

    /// End it.
    ///
    /// # Errors
    /// Why it had ended before.
    pub fn stop(mut self) -> Result<(), AccessError> {
        let failed = self.failed();
        self.end();
        failed.map_or(Ok(()), Err)
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic was told by `failed`.
            let _ = thread.join();
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.end();
    }
}
