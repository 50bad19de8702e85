//! RecordService: the record log over gRPC.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use weir_messages::Timestamp;
use weir_messages::v1::subscribe_response::Message;
use weir_messages::v1::{
    Heartbeat, QueryRecordsRequest, QueryRecordsResponse, RecordBatch, RecordGap, SubscribeRequest, SubscribeResponse,
    SyncMarker,
};
use weir_record::raw::BYTES;
use weir_record::time::tai_from_utc;
use weir_record::{Kind, Record};

use crate::checksum::fnv1a;
use crate::log::{LogError, PlaceError, Read, RecordLog};
use crate::status;
use crate::streams::{self, Streams};
use crate::token::{self, Purpose};
use crate::v1::record_service_server::RecordService;

/// Most records in a batch, also when the client does not choose: 512 KiB. A client that does not read has about five of them in memory,
/// waiting, encoded and on their way, and there may be [`streams::MAX_STREAMS`] of those.
const MAX_BATCH: u32 = 8_192;
/// Most records in a page.
const MAX_PAGE: u32 = 65_536;
const DEFAULT_PAGE: u32 = 1_024;
/// Batches that wait for a slow client; beyond that the log is the buffer.
const QUEUED_MESSAGES: usize = 2;
/// Records looked at for one page of a query; a page may end early and still have a next one.
const MAX_SCANNED: u64 = 1 << 20;
const SCAN_RECORDS: usize = 8_192;

const LOG_RECLAIMED: &str = "LOG_RECLAIMED";
const LOST_BEFORE_LOG: &str = "LOST_BEFORE_LOG";

/// The service.
#[derive(Debug)]
pub(crate) struct Records {
    log: Arc<RecordLog>,
    streams: Streams,
}

impl Records {
    pub fn new(log: Arc<RecordLog>, streams: Streams) -> Self {
        Self { log, streams }
    }
}

#[tonic::async_trait]
impl RecordService for Records {
    type SubscribeStream = ReceiverStream<Result<SubscribeResponse, Status>>;

    async fn subscribe(&self, request: Request<SubscribeRequest>) -> Result<Response<Self::SubscribeStream>, Status> {
        let request = request.into_inner();
        let (position, gap_told) = start(&self.log, &request.resume_token)?;
        let (sender, receiver) = mpsc::channel(QUEUED_MESSAGES);
        let feed = Feed {
            sync_at: self.log.next_position(),
            log: Arc::clone(&self.log),
            position,
            gap_told,
            batch: match request.max_batch_records {
                0 => MAX_BATCH as usize,
                most => most.min(MAX_BATCH) as usize,
            },
            stop_at_end: request.stop_at_end,
            sender,
            _place: self.streams.place()?,
        };
        let streams = self.streams.clone();
        tokio::spawn(feed.run(streams));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn query_records(
        &self,
        request: Request<QueryRecordsRequest>,
    ) -> Result<Response<QueryRecordsResponse>, Status> {
        let log = Arc::clone(&self.log);
        let request = request.into_inner();
        let answer = tokio::task::spawn_blocking(move || query(&log, &request));
        answer.await.map_err(|_| status::worker())?.map(Response::new)
    }
}

/// Position at which a subscription begins, and whether the client was already told of the GAP
/// record that may stand there.
fn start(log: &RecordLog, token: &str) -> Result<(u64, bool), Status> {
    if token.is_empty() {
        return Ok((log.first_position(), false));
    }
    let [id, epoch, position, told] = token::decode(Purpose::Resume, token).ok_or_else(|| {
        status::invalid(
            "resume_token",
            "RESUME_TOKEN_INVALID",
            "this is no token of Subscribe; send one as it was received, or none",
        )
    })?;
    place(log, "resume_token", [id, epoch, position]).map(|position| (position, told != 0))
}

/// Check a place in the log that came out of a token.
fn place(log: &RecordLog, field: &str, [id, epoch, position]: [u64; 3]) -> Result<u64, Status> {
    if id != log.id() {
        return Err(status::invalid(
            field,
            "OTHER_LOG",
            "the token is of another log; begin without a token",
        ));
    }
    let place = u16::try_from(epoch)
        .map_err(|_| PlaceError::UnknownEpoch)
        .and_then(|epoch| log.resume(epoch, position));
    place.map_err(|error| {
        let message = match error {
            PlaceError::Future => "the token is of a position that was not written yet",
            PlaceError::UnknownEpoch => "the log no longer reaches back to this token; begin without a token",
        };
        status::invalid(field, "POSITION_UNKNOWN", message)
    })
}

/// One subscription.
struct Feed {
    log: Arc<RecordLog>,
    /// Next position to send.
    position: u64,
    gap_told: bool,
    /// End of the log when the subscription began.
    sync_at: u64,
    batch: usize,
    stop_at_end: bool,
    sender: mpsc::Sender<Result<SubscribeResponse, Status>>,
    _place: OwnedSemaphorePermit,
}

/// The client went away; there is nobody to tell.
struct Gone;

impl Feed {
    async fn run(mut self, streams: Streams) {
        let sender = self.sender.clone();
        let end = tokio::select! {
            end = self.send_all(&streams) => end,
            () = streams.closed() => Ok(Err(status::closing())),
            () = sender.closed() => Err(Gone),
        };
        if let Ok(Err(status)) = end {
            streams::end(&sender, status).await;
        }
    }

    /// Until the end that the client asked for, an error of the log, or the client goes.
    async fn send_all(&mut self, streams: &Streams) -> Result<Result<(), Status>, Gone> {
        let mut following = self.log.follow();
        let mut synced = false;
        loop {
            if !synced && self.position >= self.sync_at {
                synced = true;
                self.send(Message::Sync(SyncMarker {
                    position: self.position,
                }))
                .await?;
                if self.stop_at_end {
                    return Ok(Ok(()));
                }
            }
            // Marked as seen before reading: what is appended after the read wakes the wait.
            following.borrow_and_update();
            let until_sync = usize::try_from(self.sync_at - self.position.min(self.sync_at)).unwrap_or(usize::MAX);
            let most = if synced { self.batch } else { self.batch.min(until_sync) };
            let (log, position) = (Arc::clone(&self.log), self.position);
            let reading = tokio::task::spawn_blocking(move || {
                let mut bytes = Vec::new();
                log.read(position, most, &mut bytes).map(|read| (read, bytes))
            });
            match reading.await {
                Err(_) => return Ok(Err(status::worker())),
                Ok(Err(error)) => return Ok(Err(status::log(&error))),
                Ok(Ok((Read::Records(_), bytes))) => self.send_records(bytes).await?,
                Ok(Ok((Read::Reclaimed { to }, _))) => {
                    let gap = gap(self.position, to, LOG_RECLAIMED);
                    self.position = to + 1;
                    self.send(Message::Gap(gap)).await?;
                }
                Ok(Ok((Read::End, _))) => {
                    while tokio::time::timeout(streams.heartbeat, following.changed())
                        .await
                        .is_err()
                    {
                        let time = SystemTime::now()
                            .duration_since(SystemTime::UNIX_EPOCH)
                            .unwrap_or_default();
                        let time = Timestamp {
                            seconds: time.as_secs() as i64,
                            nanos: time.subsec_nanos() as i32,
                        };
                        self.send(Message::Heartbeat(Heartbeat { time: Some(time) })).await?;
                    }
                }
            }
        }
    }

    /// Send the records at `self.position`, each GAP record at the head of a batch with a gap
    /// message before it.
    async fn send_records(&mut self, mut bytes: Vec<u8>) -> Result<(), Gone> {
        while !bytes.is_empty() {
            if is_gap(&bytes) && !self.gap_told {
                self.gap_told = true;
                self.send(Message::Gap(gap(self.position, self.position, LOST_BEFORE_LOG)))
                    .await?;
            }
            let length = bytes
                .chunks(BYTES)
                .skip(1)
                .position(is_gap)
                .map_or(bytes.len(), |at| (at + 1) * BYTES);
            let rest = bytes.split_off(length);
            let first_position = self.position;
            self.position += (length / BYTES) as u64;
            self.gap_told = false;
            self.send(Message::Batch(RecordBatch {
                records: bytes,
                first_position,
            }))
            .await?;
            bytes = rest;
        }
        Ok(())
    }

    async fn send(&self, message: Message) -> Result<(), Gone> {
        let words = [
            self.log.id(),
            u64::from(self.log.epoch()),
            self.position,
            u64::from(self.gap_told),
        ];
        let response = SubscribeResponse {
            message: Some(message),
            resume_token: token::encode(Purpose::Resume, words),
        };
        self.sender.send(Ok(response)).await.map_err(|_| Gone)
    }
}

fn gap(from_position: u64, to_position: u64, reason: &str) -> RecordGap {
    RecordGap {
        from_position,
        to_position,
        reason: reason.to_owned(),
    }
}

pub(crate) fn is_gap(record: &[u8]) -> bool {
    record.first() == Some(&(Kind::Gap as u8))
}

/// What a query asks of a record.
struct Wanted {
    flow: u64,
    /// Bit `n` is kind number `n`; 0: all.
    kinds: u32,
    /// TAI ns, the end excluded.
    times: std::ops::Range<u64>,
}

impl Wanted {
    fn new(request: &QueryRecordsRequest) -> Result<Self, Status> {
        let mut kinds = 0;
        for name in &request.kinds {
            let kind = Kind::ALL.iter().find(|kind| kind.name() == name).ok_or_else(|| {
                let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
                let found: String = name.chars().take(40).collect();
                status::invalid(
                    "kinds",
                    "KIND_UNKNOWN",
                    format!("{found:?} is none of {}", names.join(", ")),
                )
            })?;
            kinds |= 1 << *kind as u32;
        }
        status::times(request.start_time, request.end_time)?;
        let tai = |time: &Timestamp| tai_from_utc(u64::try_from(time.unix_nanos()).unwrap_or(0));
        let start = request.start_time.as_ref().map_or(0, tai);
        let end = request.end_time.as_ref().map_or(u64::MAX, tai);
        Ok(Self {
            flow: request.flow,
            kinds,
            times: start..end,
        })
    }

    fn takes(&self, record: &Record) -> bool {
        (self.flow == 0 || record.flow().0 == self.flow)
            && (self.kinds == 0 || record.kind().is_some_and(|kind| self.kinds & (1 << kind as u32) != 0))
            && self.times.contains(&record.time())
    }

    /// Ties a page token to its query.
    fn fingerprint(&self) -> u64 {
        u64::from(fnv1a(
            format!("{} {} {:?}", self.flow, self.kinds, self.times).as_bytes(),
        ))
    }
}

fn query(log: &RecordLog, request: &QueryRecordsRequest) -> Result<QueryRecordsResponse, Status> {
    let wanted = Wanted::new(request)?;
    let page_bytes = BYTES
        * match request.page_size {
            0 => DEFAULT_PAGE as usize,
            size => size.min(MAX_PAGE) as usize,
        };
    let mut position = if request.page_token.is_empty() {
        log.first_position()
    } else {
        let words = token::decode(Purpose::RecordPage, &request.page_token);
        let [id, epoch, position, fingerprint] = words.ok_or_else(|| {
            status::invalid(
                "page_token",
                "PAGE_TOKEN_INVALID",
                "this is no token of QueryRecords; send one as it was received, or none",
            )
        })?;
        if fingerprint != wanted.fingerprint() {
            let message = "the token is of a query with other fields; keep all but page_size unchanged between pages";
            return Err(status::invalid("page_token", "PAGE_TOKEN_OF_OTHER_QUERY", message));
        }
        place(log, "page_token", [id, epoch, position])?
    };

    let mut response = QueryRecordsResponse::default();
    let mut scanned = 0;
    let mut bytes = Vec::new();
    let mut at_end = false;
    while !at_end && scanned < MAX_SCANNED && response.records.len() < page_bytes {
        bytes.clear();
        match log
            .read(position, SCAN_RECORDS, &mut bytes)
            .map_err(|error: LogError| status::log(&error))?
        {
            Read::End => at_end = true,
            Read::Reclaimed { to } => {
                response.gaps.push(gap(position, to, LOG_RECLAIMED));
                position = to + 1;
            }
            Read::Records(count) => {
                scanned += count;
                for bytes in bytes.chunks_exact(BYTES) {
                    if response.records.len() == page_bytes {
                        break;
                    }
                    if is_gap(bytes) {
                        response.gaps.push(gap(position, position, LOST_BEFORE_LOG));
                    }
                    position += 1;
                    if Record::from_slice(bytes).is_ok_and(|record| wanted.takes(&record)) {
                        response.records.extend_from_slice(bytes);
                    }
                }
            }
        }
    }
    if !at_end && position < log.next_position() {
        let words = [log.id(), u64::from(log.epoch()), position, wanted.fingerprint()];
        response.next_page_token = token::encode(Purpose::RecordPage, words);
    }
    Ok(response)
}
