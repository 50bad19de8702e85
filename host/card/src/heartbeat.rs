//! The host's heartbeat: without it the card's firmware puts the link into bypass.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::access::{AccessError, Registers};
use crate::error::CardError;
use crate::registers::host;

/// A thread that moves the card's heartbeat counter on, until this is dropped.
#[derive(Debug)]
pub struct Heartbeat {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<(), AccessError>>>,
}

impl Heartbeat {
    /// Begin to beat. The period is to be well below the card's `HOST_TIMEOUT_US`.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn start(mut registers: impl Registers + Send + 'static, period: Duration) -> Result<Self, CardError> {
        let (stop, stopped) = mpsc::channel();
        let beat = move || {
            let mut count = registers.read32(host::HEARTBEAT)?;
            loop {
                count = count.wrapping_add(1);
                registers.write32(host::HEARTBEAT, count)?;
                match stopped.recv_timeout(period) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("card heartbeat".into())
            .spawn(beat)
            .map_err(CardError::Thread)?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Whether it still beats: not once the card cannot be reached.
    pub fn beats(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// End it.
    ///
    /// # Errors
    /// Why it had ended before.
    pub fn stop(mut self) -> Result<(), AccessError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), AccessError> {
        drop(self.stop.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(AccessError::Protocol("the heartbeat panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.end();
    }
}
