//! What all long streams share: how many there may be, and the end of the server.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tonic::Status;

use crate::status;

/// Most Subscribe and Watch streams at once; each holds a few batches in memory.
pub const MAX_STREAMS: usize = 256;

/// How long the last message of a stream waits for a client that does not read.
const LAST_WORD: Duration = Duration::from_secs(1);

/// End a stream with this status, as far as its client reads.
pub(crate) async fn end<T>(sender: &mpsc::Sender<Result<T, Status>>, status: Status) {
    let _ = sender.send_timeout(Err(status), LAST_WORD).await;
}

/// Shared by the services with long streams.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    places: Arc<Semaphore>,
    closing: watch::Receiver<bool>,
    /// Silence after which a stream shows that it lives.
    pub heartbeat: Duration,
}

impl Streams {
    pub fn new(closing: watch::Receiver<bool>, heartbeat: Duration) -> Self {
        Self {
            places: Arc::new(Semaphore::new(MAX_STREAMS)),
            closing,
            heartbeat,
        }
    }

    /// A place for one more stream, held until dropped.
    pub fn place(&self) -> Result<OwnedSemaphorePermit, Status> {
        Arc::clone(&self.places)
            .try_acquire_owned()
            .map_err(|_| status::too_many_streams(MAX_STREAMS))
    }

    pub fn open(&self) -> usize {
        MAX_STREAMS - self.places.available_permits()
    }

    /// The server shuts down, or is gone.
    pub fn is_closing(&self) -> bool {
        *self.closing.borrow() || self.closing.has_changed().is_err()
    }

    /// Resolves when the server shuts down, or is gone.
    pub async fn closed(&self) {
        let mut closing = self.closing.clone();
        let _ = closing.wait_for(|closing| *closing).await;
    }
}
