//! What one watcher of findings is told: what is open, then what opens, changes and closes.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tonic::Status;
use weir_messages::v1::finding_change::Kind;
use weir_messages::v1::watch_findings_response::Message;
use weir_messages::v1::{Finding, FindingChange, WatchFindingsResponse, WatchGap, WatchHeartbeat, WatchSync};

use crate::facts::Facts;
use crate::filter::Filter;
use crate::status;
use crate::streams::{self, Streams};

/// Messages that wait for a slow watcher; beyond that changes stay in the store for a while.
const QUEUED: usize = 64;

/// The client went away; there is nobody to tell.
struct Gone;

struct Feed {
    facts: Arc<dyn Facts>,
    filter: Filter<Finding>,
    sender: mpsc::Sender<Result<WatchFindingsResponse, Status>>,
    /// Ids of open findings that the watcher knows.
    known: HashSet<u64>,
    _place: OwnedSemaphorePermit,
}

/// Begin to tell.
pub(crate) fn start(
    facts: Arc<dyn Facts>,
    filter: Filter<Finding>,
    streams: Streams,
    place: OwnedSemaphorePermit,
) -> mpsc::Receiver<Result<WatchFindingsResponse, Status>> {
    let (sender, receiver) = mpsc::channel(QUEUED);
    let mut feed = Feed {
        facts,
        filter,
        sender: sender.clone(),
        known: HashSet::new(),
        _place: place,
    };
    tokio::spawn(async move {
        tokio::select! {
            _ = feed.tell_all(&streams) => {}
            () = streams.closed() => streams::end(&sender, status::closing()).await,
            () = sender.closed() => {}
        }
    });
    receiver
}

impl Feed {
    async fn tell_all(&mut self, streams: &Streams) -> Result<(), Gone> {
        let mut following = self.facts.follow_findings();
        let mut told = self.tell_open().await?;
        loop {
            following.borrow_and_update();
            let (dropped, changes) = self.facts.finding_changes(told);
            if dropped > 0 {
                self.send(Message::Gap(WatchGap { dropped })).await?;
                told = self.tell_open().await?;
                continue;
            }
            for change in changes {
                told += 1;
                self.tell(change).await?;
            }
            while tokio::time::timeout(streams.heartbeat, following.changed())
                .await
                .is_err()
            {
                self.send(Message::Heartbeat(WatchHeartbeat {})).await?;
            }
        }
    }

    /// All that is open, and the number of the last change in it.
    async fn tell_open(&mut self) -> Result<u64, Gone> {
        self.known.clear();
        let (newest, open) = self.facts.open_findings();
        for change in open {
            self.tell(change).await?;
        }
        self.send(Message::Sync(WatchSync {})).await?;
        Ok(newest)
    }

    async fn tell(&mut self, mut change: FindingChange) -> Result<(), Gone> {
        if change.kind() == Kind::Closed {
            if self.known.remove(&change.id) {
                self.send(Message::Change(change)).await?;
            }
            return Ok(());
        }
        if !self.known.contains(&change.id) {
            let matches = change
                .finding
                .as_ref()
                .is_some_and(|finding| self.filter.matches(finding));
            if !matches {
                return Ok(());
            }
            self.known.insert(change.id);
            change.kind = Kind::Opened.into();
        }
        self.send(Message::Change(change)).await
    }

    async fn send(&self, message: Message) -> Result<(), Gone> {
        self.sender
            .send(Ok(WatchFindingsResponse { message: Some(message) }))
            .await
            .map_err(|_| Gone)
    }
}
