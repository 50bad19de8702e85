//! AnalysisService: captures that clients send wait in files until all of them is here, and are analysed then.

use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use weir_messages::v1::analyze_captures_request::Message;
use weir_messages::v1::capture_piece::Piece;
use weir_messages::v1::{
    Analysis, AnalyzeCapturesRequest, AnalyzeCapturesResponse, AnalyzeOptions, CapturePiece, CompareCapturesRequest,
    CompareCapturesResponse, Comparison,
};

use crate::status;
use crate::streams::Streams;
use crate::v1::analysis_service_server::AnalysisService;

/// Calls at once: each takes a processor, and its captures' place on disk.
const MOST_CALLS: usize = 2;
/// Bytes of all captures of a call, at most.
const MOST_BYTES: u64 = 4 << 30;
/// Longest name of a capture, in bytes: errors tell of one or two, and clients take 8 KiB of an error, in which each byte of a name may
/// need six.
const LONGEST_NAME: usize = 512;
/// Bytes of a capture that are written at a time: a write for each of many small pieces takes long.
const WRITE: usize = 256 << 10;
/// How long a client may send no byte of a capture, or take no part of an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a client may send.
const LONGEST: Duration = Duration::from_secs(3600);
/// Parts of an answer that wait for a slow client.
const QUEUED: usize = 4;

/// A capture that was sent.
#[derive(Debug)]
pub struct Sent {
    /// As the client calls it.
    pub name: String,
    /// Where it is as long as the call goes on.
    pub path: PathBuf,
}

/// Who asked.
pub trait Client: Sync {
    /// Nobody waits for the answer any more.
    fn is_gone(&self) -> bool;
}

/// Why there is no answer, for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// A capture cannot be read, or they have nothing in common.
    Captures(String),
    /// It would be too large.
    TooLarge(String),
    /// The client went away.
    Gone,
}

/// What the client is to know beside an answer.
pub type Warnings = Vec<String>;

/// Who reads and analyses captures.
pub trait Analyst: Send + Sync + 'static {
    /// Captures of one path, at most.
    fn most(&self) -> usize;

    /// One capture, or several of one path: the parts of the answer go to `give` until it says false.
    ///
    /// # Errors
    /// Why there is none.
    fn analyze(
        &self,
        sent: &[Sent],
        options: AnalyzeOptions,
        client: &dyn Client,
        give: &mut dyn FnMut(Analysis) -> bool,
    ) -> Result<Warnings, NoAnswer>;

    /// What differs.
    ///
    /// # Errors
    /// Why that cannot be told.
    fn compare(&self, sent: &[Sent; 2], client: &dyn Client) -> Result<(Comparison, Warnings), NoAnswer>;
}

/// A client as long as its answer has a receiver, and the server goes on.
struct Waiting<T> {
    answer: mpsc::Sender<T>,
    streams: Streams,
}

impl<T: Send> Client for Waiting<T> {
    fn is_gone(&self) -> bool {
        self.answer.is_closed() || self.streams.is_closing()
    }
}

/// The service.
pub(crate) struct Analyses {
    analyst: Arc<dyn Analyst>,
    streams: Streams,
    calls: Arc<Semaphore>,
}

impl Analyses {
    pub fn new(analyst: Arc<dyn Analyst>, streams: Streams) -> Self {
        Self {
            analyst,
            streams,
            calls: Arc::new(Semaphore::new(MOST_CALLS)),
        }
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Status> {
        let place = Arc::clone(&self.calls).try_acquire_owned();
        place.map_err(|_| status::too_many_analyses(MOST_CALLS))
    }

    /// All that the client sends, piece by piece.
    async fn receive<R>(
        &self,
        mut stream: Streaming<R>,
        mut spool: Spool,
        mut piece: impl FnMut(R, bool) -> Result<Option<CapturePiece>, Status>,
    ) -> Result<Spool, Status> {
        let last = Instant::now() + LONGEST;
        let mut until = Instant::now() + PATIENCE;
        loop {
            let next = tokio::select! {
                next = tokio::time::timeout_at(until.min(last), stream.message()) => next,
                () = self.streams.closed() => return Err(status::closing()),
            };
            let Some(request) = next.map_err(|_| status::slow(PATIENCE, LONGEST))?? else {
                return work(move || spool.written()).await;
            };
            if let Some(piece) = piece(request, spool.sent.is_empty())? {
                let before = spool.bytes;
                match piece.piece {
                    None => {}
                    Some(Piece::Begin(begin)) => spool = work(move || spool.written()?.begin(begin.name)).await?,
                    Some(Piece::Data(data)) => {
                        spool.take(&data)?;
                        if spool.waiting.len() >= WRITE {
                            spool = work(move || spool.written()).await?;
                        }
                    }
                }
                if spool.bytes > before {
                    until = Instant::now() + PATIENCE;
                }
            }
        }
    }
}

/// What would hold up other connections.
async fn work<T: Send + 'static>(work: impl FnOnce() -> Result<T, Status> + Send + 'static) -> Result<T, Status> {
    spawn_blocking(work).await.map_err(|_| status::worker())?
}

#[tonic::async_trait]
impl AnalysisService for Analyses {
    type AnalyzeCapturesStream = ReceiverStream<Result<AnalyzeCapturesResponse, Status>>;

    async fn analyze_captures(
        &self,
        request: Request<Streaming<AnalyzeCapturesRequest>>,
    ) -> Result<Response<Self::AnalyzeCapturesStream>, Status> {
        let place = self.place()?;
        let mut options = None;
        let take = |request: AnalyzeCapturesRequest, is_first: bool| match request.message {
            Some(Message::Options(given)) => {
                if !is_first || options.replace(checked(given)?).is_some() {
                    let message = "options come once, before the first capture";
                    return Err(status::invalid("options", "OPTIONS_LATE", message));
                }
                Ok(None)
            }
            Some(Message::Piece(piece)) => Ok(Some(piece)),
            None => Ok(None),
        };
        let spool = Spool::new(self.analyst.most(), Names::Different)?;
        let spool = self.receive(request.into_inner(), spool, take).await?.complete(1)?;
        let (analyst, options) = (Arc::clone(&self.analyst), options.unwrap_or_default());
        let (sender, receiver) = mpsc::channel(QUEUED);
        let client = Waiting {
            answer: sender.clone(),
            streams: self.streams.clone(),
        };
        let runtime = Handle::current();
        let work = work(move || {
            let (_place, spool) = (place, spool);
            let is_late = Cell::new(false);
            let respond = |part, warnings| {
                let response = Ok(AnalyzeCapturesResponse { part, warnings });
                let sent = runtime.block_on(client.answer.send_timeout(response, PATIENCE));
                is_late.set(sent.is_err());
                sent.is_ok()
            };
            let mut give = |part| respond(Some(part), Vec::new());
            let warnings = analyst.analyze(&spool.sent, options, &client, &mut give);
            let warnings = warnings.map_err(status::no_answer)?;
            if is_late.get() || !warnings.is_empty() && !respond(None, warnings) {
                return Err(status::unread(PATIENCE));
            }
            Ok(())
        });
        tokio::spawn(async move {
            if let Err(error) = work.await {
                // However late it is read: without it, a part of the answer would seem to be all.
                let _ = sender.send(Err(error)).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn compare_captures(
        &self,
        request: Request<Streaming<CompareCapturesRequest>>,
    ) -> Result<Response<CompareCapturesResponse>, Status> {
        let place = self.place()?;
        let spool = Spool::new(2, Names::Any)?;
        let take = |request: CompareCapturesRequest, _| Ok(request.piece);
        let spool = self.receive(request.into_inner(), spool, take).await?.complete(2)?;
        let analyst = Arc::clone(&self.analyst);
        // Dropped with this call.
        let (answer, _waits) = mpsc::channel::<()>(1);
        let client = Waiting {
            answer,
            streams: self.streams.clone(),
        };
        let answer = work(move || {
            let _place = place;
            let Spool { sent, folder, .. } = spool;
            let pair: [Sent; 2] = sent.try_into().map_err(|_| status::worker())?;
            let compared = analyst.compare(&pair, &client);
            drop(folder);
            let (comparison, warnings) = compared.map_err(status::no_answer)?;
            Ok(CompareCapturesResponse {
                comparison: Some(comparison),
                warnings,
            })
        });
        answer.await.map(Response::new)
    }
}

/// As the command line takes them.
fn checked(options: AnalyzeOptions) -> Result<AnalyzeOptions, Status> {
    for (field, value, range) in [
        (
            "bandwidth_bits_per_second",
            options.bandwidth_bits_per_second,
            1e-3..=f64::MAX,
        ),
        ("latency_seconds", options.latency_seconds, 1e-9..=60.0),
        ("timeline_seconds", options.timeline_seconds, 1e-6..=1e6),
    ] {
        if value.is_some_and(|value| !range.contains(&value)) {
            let message = format!("a number from {:e} to {:e}, or not set", range.start(), range.end());
            return Err(status::invalid(field, "OPTION_INVALID", message));
        }
    }
    Ok(options)
}

/// Whether captures may have the same name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Any,
    Different,
}

/// Captures on their way in; the files go with it.
struct Spool {
    folder: TempDir,
    most: usize,
    names: Names,
    sent: Vec<Sent>,
    file: Option<File>,
    /// Bytes of the last one that are still to be written.
    waiting: Vec<u8>,
    bytes: u64,
}

impl Spool {
    fn new(most: usize, names: Names) -> Result<Self, Status> {
        let folder = tempfile::Builder::new().prefix("weir-sent-").tempdir();
        Ok(Self {
            folder: folder.map_err(|error| status::no_room(&error))?,
            most,
            names,
            sent: Vec::new(),
            file: None,
            waiting: Vec::new(),
            bytes: 0,
        })
    }

    fn take(&mut self, data: &[u8]) -> Result<(), Status> {
        if self.file.is_none() {
            let message = "the first piece tells that a capture begins, and its name";
            return Err(status::invalid("piece.data", "CAPTURE_NOT_BEGUN", message));
        }
        self.bytes += data.len() as u64;
        if self.bytes > MOST_BYTES {
            return Err(status::too_large(MOST_BYTES));
        }
        self.waiting.extend_from_slice(data);
        Ok(())
    }

    /// With all that came in its file.
    fn written(mut self) -> Result<Self, Status> {
        if let Some(file) = &mut self.file {
            file.write_all(&self.waiting).map_err(|error| status::no_room(&error))?;
            self.waiting.clear();
        }
        Ok(self)
    }

    fn begin(mut self, name: String) -> Result<Self, Status> {
        let refuse = |reason, message: String| Err(status::invalid("piece.begin", reason, message));
        if self.sent.len() == self.most {
            return refuse("TOO_MANY_CAPTURES", format!("{} captures at most", self.most));
        }
        if name.is_empty() || name.len() > LONGEST_NAME || name.contains(char::is_control) {
            let message = format!("a name has 1 to {LONGEST_NAME} bytes, and no control characters");
            return refuse("CAPTURE_NAME_INVALID", message);
        }
        if self.names == Names::Different && self.sent.iter().any(|sent| sent.name == name) {
            let message = format!("{name} is twice; each capture is one tap of the path");
            return refuse("CAPTURE_NAME_INVALID", message);
        }
        let path = self.folder.path().join(self.sent.len().to_string());
        self.file = Some(File::create_new(&path).map_err(|error| status::no_room(&error))?);
        self.sent.push(Sent { name, path });
        Ok(self)
    }

    /// All is here: at least so many captures.
    fn complete(mut self, least: usize) -> Result<Self, Status> {
        if self.sent.len() < least {
            let message = format!("{} captures were sent; at least {least} are needed", self.sent.len());
            return Err(status::invalid("piece", "CAPTURE_MISSING", message));
        }
        self.file = None;
        Ok(self)
    }
}
