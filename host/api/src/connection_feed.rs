//! WatchConnections: the connections that match, then each as it changes.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tonic::Status;
use weir_messages::v1::watch_connections_response::Message;
use weir_messages::v1::{Connection, WatchConnectionsResponse, WatchGap, WatchHeartbeat, WatchLeft, WatchSync};

use crate::facts::{Cursor, Facts};
use crate::filter::Filter;
use crate::flows::matching;
use crate::status;
use crate::streams::{self, Streams};

/// Connections that wait for a slow watcher; beyond that changes stay in the store, where a
/// later change of the same connection takes the place of the earlier.
const QUEUED_MESSAGES: usize = 256;

/// Start a watcher's task; what it tells comes out of the receiver.
pub(crate) fn start(
    facts: Arc<dyn Facts>,
    filter: Filter<Connection>,
    streams: Streams,
    place: OwnedSemaphorePermit,
) -> mpsc::Receiver<Result<WatchConnectionsResponse, Status>> {
    let (sender, receiver) = mpsc::channel(QUEUED_MESSAGES);
    let feed = Feed {
        facts,
        told: (!filter.is_empty()).then(Told::default),
        filter,
        sender,
        _place: place,
    };
    tokio::spawn(feed.run(streams));
    receiver
}

/// One watcher.
struct Feed {
    facts: Arc<dyn Facts>,
    filter: Filter<Connection>,
    /// None where all match for ever.
    told: Option<Told>,
    sender: mpsc::Sender<Result<WatchConnectionsResponse, Status>>,
    _place: OwnedSemaphorePermit,
}

/// The client went away; there is nobody to tell.
struct Gone;

impl Feed {
    async fn run(mut self, streams: Streams) {
        let sender = self.sender.clone();
        tokio::select! {
            _ = self.send_all(&streams) => {}
            () = streams.closed() => streams::end(&sender, status::closing()).await,
            () = sender.closed() => {}
        }
    }

    async fn send_all(&mut self, streams: &Streams) -> Result<(), Gone> {
        let mut following = self.facts.follow();
        // Changes from here on are sent after the snapshot, so that none falls between.
        let cursor = self.facts.cursor();
        self.send_snapshot().await?;
        self.send(Message::Sync(WatchSync {})).await?;
        loop {
            following.borrow_and_update();
            self.send_changes(&cursor).await?;
            while tokio::time::timeout(streams.heartbeat, following.changed())
                .await
                .is_err()
            {
                self.send(Message::Heartbeat(WatchHeartbeat {})).await?;
            }
        }
    }

    async fn send_snapshot(&mut self) -> Result<(), Gone> {
        for (_, connection) in matching(&self.filter, 0, |from, most| self.facts.connections(from, most)) {
            if let Some(told) = &mut self.told {
                told.insert(connection.id, &*self.facts);
            }
            self.send(Message::Connection(Arc::unwrap_or_clone(connection))).await?;
        }
        Ok(())
    }

    async fn send_changes(&mut self, cursor: &Cursor) -> Result<(), Gone> {
        loop {
            let dropped = cursor.take_missed();
            if dropped > 0 {
                self.send(Message::Gap(WatchGap { dropped })).await?;
            }
            let chunk = self.facts.changes(cursor, QUEUED_MESSAGES);
            if chunk.is_empty() {
                return Ok(());
            }
            for connection in chunk {
                let id = connection.id;
                if self.filter.matches(&connection) {
                    if let Some(told) = &mut self.told {
                        told.insert(id, &*self.facts);
                    }
                    self.send(Message::Connection(Arc::unwrap_or_clone(connection))).await?;
                } else if self.told.as_mut().is_some_and(|told| told.ids.remove(&id)) {
                    self.send(Message::Left(WatchLeft { id })).await?;
                }
            }
        }
    }

    async fn send(&self, message: Message) -> Result<(), Gone> {
        self.sender
            .send(Ok(WatchConnectionsResponse { message: Some(message) }))
            .await
            .map_err(|_| Gone)
    }
}

/// The connections that a client takes for matching: those that the store holds, and less than as many that it dropped.
struct Told {
    ids: HashSet<u64>,
    /// With more than so many, those that were dropped are looked for.
    most: usize,
}

impl Default for Told {
    fn default() -> Self {
        Self {
            ids: HashSet::new(),
            most: Self::LEAST,
        }
    }
}

impl Told {
    const LEAST: usize = 10_000;

    fn insert(&mut self, id: u64, facts: &dyn Facts) {
        self.ids.insert(id);
        if self.ids.len() > self.most {
            self.ids.retain(|id| facts.holds(*id));
            self.most = Self::LEAST.max(2 * self.ids.len());
        }
    }
}
