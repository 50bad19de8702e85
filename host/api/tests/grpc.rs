//! The services end to end, over loopback.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proptest::prelude::*;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_stream::StreamExt as _;
use tonic::codec::CompressionEncoding;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;
use weir_api::access::{Access, Token};
use weir_api::analyses::{Analyst, Client, NoAnswer, Sent, Warnings};
use weir_api::facts::{FactStore, Limits};
use weir_api::log::{Config, RecordLog};
use weir_api::server::{Services, serve_on};
use weir_api::state::{ApplianceState, CaptureState};
use weir_api::v1::analysis_service_client::AnalysisServiceClient;
use weir_api::v1::appliance_service_client::ApplianceServiceClient;
use weir_api::v1::capture_service_client::CaptureServiceClient;
use weir_api::v1::flow_service_client::FlowServiceClient;
use weir_api::v1::record_service_client::RecordServiceClient;
use weir_messages::Timestamp;
use weir_messages::v1::subscribe_response::Message;
use weir_messages::v1::watch_connections_response::Message as Change;
use weir_messages::v1::*;
use weir_record::raw::BYTES;
use weir_record::time::tai_from_utc;
use weir_record::{FlowId, Header, Kind, Record};

const WAIT: Duration = Duration::from_secs(20);

/// Tells what it was given: a part for each capture.
struct Echo;

impl Analyst for Echo {
    fn most(&self) -> usize {
        3
    }

    fn analyze(
        &self,
        sent: &[Sent],
        options: AnalyzeOptions,
        client: &dyn Client,
        give: &mut dyn FnMut(Analysis) -> bool,
    ) -> Result<Warnings, NoAnswer> {
        for capture in sent {
            let bytes = std::fs::read(&capture.path).unwrap();
            if bytes == b"bad" {
                return Err(NoAnswer::Captures(format!("{}: it is bad", capture.name)));
            }
            assert!(bytes != b"worse", "the analyst fails");
            if bytes == b"long" {
                while !client.is_gone() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                return Err(NoAnswer::Gone);
            }
            let tap = Tap {
                file: capture.name.clone(),
                packets: bytes.iter().map(|byte| u64::from(*byte)).sum(),
                ..Tap::default()
            };
            let part = Analysis {
                taps: vec![tap],
                ..Analysis::default()
            };
            if !give(part) {
                break;
            }
        }
        Ok(options
            .segments
            .then(|| "with segments".to_owned())
            .into_iter()
            .collect())
    }

    fn compare(&self, sent: &[Sent; 2], _: &dyn Client) -> Result<(Comparison, Warnings), NoAnswer> {
        let comparison = Comparison {
            first: sent[0].name.clone(),
            second: sent[1].name.clone(),
            ..Comparison::default()
        };
        Ok((comparison, Vec::new()))
    }
}

struct Server {
    address: SocketAddr,
    log: Arc<RecordLog>,
    facts: Arc<FactStore>,
    capture: Arc<CaptureState>,
    appliance: Arc<ApplianceState>,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(directory: &Path, limit_bytes: u64, limits: Limits) -> Self {
        Self::for_some(directory, limit_bytes, limits, Access::default()).await
    }

    async fn for_some(directory: &Path, limit_bytes: u64, limits: Limits, access: Access) -> Self {
        let log = Arc::new(
            RecordLog::open(Config {
                directory: directory.to_owned(),
                limit_bytes,
            })
            .unwrap(),
        );
        let facts = Arc::new(FactStore::new(limits));
        let capture = Arc::new(CaptureState::default());
        let appliance = Arc::new(ApplianceState::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let services = Services {
            log: log.clone(),
            facts: facts.clone(),
            analyst: Some(Arc::new(Echo)),
            capture: capture.clone(),
            appliance: appliance.clone(),
            access,
            heartbeat: Duration::from_millis(100),
        };
        let (shutdown, stop) = oneshot::channel();
        let task = tokio::spawn(async move {
            serve_on(listener, services, async {
                let _ = stop.await;
            })
            .await
            .unwrap();
        });
        Self {
            address,
            log,
            facts,
            capture,
            appliance,
            shutdown: Some(shutdown),
            task,
        }
    }

    async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address))
            .unwrap()
            .connect()
            .await
            .unwrap()
    }

    async fn records(&self) -> RecordServiceClient<Channel> {
        RecordServiceClient::new(self.channel().await)
    }

    async fn flows(&self) -> FlowServiceClient<Channel> {
        FlowServiceClient::new(self.channel().await)
    }

    /// The answer to captures, sent as these messages: its taps and warnings.
    async fn analyze(
        &self,
        requests: Vec<analyze_captures_request::Message>,
    ) -> Result<(Vec<(String, u64)>, Vec<String>), Status> {
        let requests = requests
            .into_iter()
            .map(|message| AnalyzeCapturesRequest { message: Some(message) });
        let requests = tokio_stream::iter(requests.collect::<Vec<_>>());
        let mut client = AnalysisServiceClient::new(self.channel().await);
        let mut stream = client.analyze_captures(requests).await?.into_inner();
        let (mut taps, mut warnings) = (Vec::new(), Vec::new());
        while let Some(response) = stream.message().await? {
            let told = response.part.into_iter().flat_map(|part| part.taps);
            taps.extend(told.map(|tap| (tap.file, tap.packets)));
            warnings.extend(response.warnings);
        }
        Ok((taps, warnings))
    }

    /// Shut down and close the log.
    async fn stop(mut self) {
        let _ = self.shutdown.take().unwrap().send(());
        tokio::time::timeout(WAIT, self.task).await.unwrap().unwrap();
        // Feeds that were reading hold the log a moment longer.
        while Arc::strong_count(&self.log) > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn record(kind: Kind, flow: u64, sequence: u32) -> Record {
    let time = tai_from_utc(u64::from(sequence) * 1_000_000_000);
    Header {
        sequence,
        flow: FlowId(flow),
        time,
        ..Header::default()
    }
    .start(kind, false)
}

fn records(from: u32, to: u32) -> Vec<Record> {
    (from..to)
        .map(|sequence| record(Kind::Event, u64::from(sequence) % 3, sequence))
        .collect()
}

fn unpack(bytes: &[u8]) -> Vec<Record> {
    assert_eq!(bytes.len() % BYTES, 0);
    bytes
        .chunks(BYTES)
        .map(|bytes| Record::from_slice(bytes).unwrap())
        .collect()
}

fn assert_error(status: &Status, code: Code, reason: &str) {
    assert_eq!(status.code(), code, "{status:?}");
    let info = status.get_details_error_info().unwrap();
    assert_eq!((info.reason.as_str(), info.domain.as_str()), (reason, weir_api::DOMAIN));
}

/// All messages until the end of the log.
async fn to_end(server: &Server, request: SubscribeRequest) -> Vec<SubscribeResponse> {
    let request = SubscribeRequest {
        stop_at_end: true,
        ..request
    };
    let mut stream = server.records().await.subscribe(request).await.unwrap().into_inner();
    let mut messages = Vec::new();
    while let Some(message) = tokio::time::timeout(WAIT, stream.message()).await.unwrap().unwrap() {
        messages.push(message);
    }
    messages
}

#[tokio::test]
async fn subscribe_tells_records_sync_and_heartbeat() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    server.log.append(&records(0, 10)).unwrap();
    let request = SubscribeRequest {
        max_batch_records: 4,
        ..SubscribeRequest::default()
    };
    let mut stream = server.records().await.subscribe(request).await.unwrap().into_inner();
    let mut got = Vec::new();
    let (mut synced_at, mut beats) = (None, 0);
    while got.len() < 15 || beats < 2 {
        let message = tokio::time::timeout(WAIT, stream.message())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        match message.message.unwrap() {
            Message::Batch(batch) => {
                assert_eq!(batch.first_position, got.len() as u64);
                assert!(batch.records.len() <= 4 * BYTES);
                got.extend(unpack(&batch.records));
            }
            Message::Sync(sync) => {
                assert_eq!(got.len(), 10);
                synced_at = Some(sync.position);
                server.log.append(&records(10, 15)).unwrap();
            }
            Message::Heartbeat(beat) => {
                assert!(beat.time.unwrap().seconds > 1_600_000_000);
                beats += 1;
            }
            Message::Gap(gap) => panic!("{gap:?}"),
        }
    }
    assert_eq!(synced_at, Some(10));
    assert_eq!(got, records(0, 15));

    let mut status = ApplianceServiceClient::new(server.channel().await);
    let status = status.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!(
        (
            status.records,
            status.log_next_position,
            status.boot_epoch,
            status.subscribers
        ),
        (15, 15, 1, 1)
    );
    assert!(status.resident_bytes > 1 << 20);

    // Streams do not hold up the end of the server, and know that it was no end of data.
    server.stop().await;
    let end = loop {
        match tokio::time::timeout(WAIT, stream.message()).await.unwrap() {
            Ok(Some(_)) => {}
            end => break end,
        }
    };
    assert_error(&end.unwrap_err(), Code::Unavailable, "SHUTTING_DOWN");
}

#[tokio::test]
async fn missing_records_are_explicit_gaps() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 8 * 1024, Limits::default()).await;
    server.log.append(&records(0, 5)).unwrap();
    let messages = to_end(
        &server,
        SubscribeRequest {
            max_batch_records: 2,
            ..SubscribeRequest::default()
        },
    )
    .await;
    let token = messages[0].resume_token.clone();
    server.log.append(&records(5, 1000)).unwrap();
    let first = server.log.first_position();
    assert!(first > 2);
    let messages = to_end(
        &server,
        SubscribeRequest {
            resume_token: token,
            ..SubscribeRequest::default()
        },
    )
    .await;
    let reclaimed = RecordGap {
        from_position: 2,
        to_position: first - 1,
        reason: "LOG_RECLAIMED".into(),
    };
    assert_eq!(messages[0].message, Some(Message::Gap(reclaimed)));

    // Lost between engine and log: told before the GAP record, and once only.
    let token = messages.last().unwrap().resume_token.clone();
    server
        .log
        .append(&[record(Kind::Event, 0, 1000), record(Kind::Event, 0, 1010)])
        .unwrap();
    let resume = |token: &str| SubscribeRequest {
        resume_token: token.into(),
        ..SubscribeRequest::default()
    };
    let messages = to_end(&server, resume(&token)).await;
    let lost = RecordGap {
        from_position: 1001,
        to_position: 1001,
        reason: "LOST_BEFORE_LOG".into(),
    };
    assert_eq!(messages[1].message, Some(Message::Gap(lost)));
    let Some(Message::Batch(batch)) = &messages[2].message else {
        panic!()
    };
    assert_eq!(unpack(&batch.records)[0].kind(), Some(Kind::Gap));
    assert_eq!(batch.first_position, 1001);
    let again = to_end(&server, resume(&messages[1].resume_token)).await;
    assert_eq!(again[0].message, messages[2].message);
    assert_eq!(
        to_end(&server, resume(&messages[0].resume_token)).await[0].message,
        messages[1].message
    );
}

#[tokio::test]
async fn wrong_tokens_are_refused() {
    let directories = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::start(directories.0.path(), 1 << 20, Limits::default()).await;
    let other = Server::start(directories.1.path(), 1 << 20, Limits::default()).await;
    other.log.append(&records(0, 5)).unwrap();
    let foreign = to_end(&other, SubscribeRequest::default()).await[0]
        .resume_token
        .clone();
    for (token, reason) in [("x", "RESUME_TOKEN_INVALID"), (foreign.as_str(), "OTHER_LOG")] {
        let request = SubscribeRequest {
            resume_token: token.into(),
            ..SubscribeRequest::default()
        };
        let error = server.records().await.subscribe(request).await.unwrap_err();
        assert_error(&error, Code::InvalidArgument, reason);
        assert_eq!(
            error.get_details_bad_request().unwrap().field_violations[0].field,
            "resume_token"
        );
    }
    let query = QueryRecordsRequest {
        page_token: foreign,
        ..QueryRecordsRequest::default()
    };
    let error = server.records().await.query_records(query).await.unwrap_err();
    assert_error(&error, Code::InvalidArgument, "PAGE_TOKEN_INVALID");
    let query = QueryRecordsRequest {
        kinds: vec!["open".into()],
        ..QueryRecordsRequest::default()
    };
    let error = server.records().await.query_records(query).await.unwrap_err();
    assert_error(&error, Code::InvalidArgument, "KIND_UNKNOWN");
    let time = |seconds, nanos| Some(Timestamp { seconds, nanos });
    for (field, start_time, end_time) in [
        ("start_time", time(0, -1), None),
        ("end_time", None, time(0, 1_000_000_000)),
        ("start_time", time(-62_135_596_801, 0), None),
        ("end_time", time(1, 0), time(253_402_300_800, 0)),
        ("start_time", time(1, 1), time(1, 0)),
    ] {
        let query = QueryRecordsRequest {
            start_time,
            end_time,
            ..QueryRecordsRequest::default()
        };
        let timeline = GetTimelineRequest { start_time, end_time };
        for error in [
            server.records().await.query_records(query).await.unwrap_err(),
            server.flows().await.get_timeline(timeline).await.unwrap_err(),
        ] {
            assert_error(&error, Code::InvalidArgument, "TIME_INVALID");
            let field_told = &error.get_details_bad_request().unwrap().field_violations[0].field;
            assert_eq!(field_told, field, "{error}");
        }
    }
}

#[tokio::test]
async fn queries_select_by_flow_kind_and_time_in_pages() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    let all: Vec<Record> = (0..1000)
        .map(|n| record(if n % 2 == 0 { Kind::Open } else { Kind::Rtt }, u64::from(n % 5), n))
        .collect();
    server.log.append(&all).unwrap();
    let request = QueryRecordsRequest {
        flow: 3,
        kinds: vec!["OPEN".into(), "CLOSE".into()],
        start_time: Some("1970-01-01T00:01:40Z".parse().unwrap()),
        end_time: Some("1970-01-01T00:05:00Z".parse().unwrap()),
        page_size: 7,
        ..QueryRecordsRequest::default()
    };
    let expected: Vec<Record> = (100..300)
        .filter(|n| n % 5 == 3 && n % 2 == 0)
        .map(|n| all[n])
        .collect();
    let mut client = server.records().await;
    let (mut got, mut token) = (Vec::new(), String::new());
    loop {
        let request = QueryRecordsRequest {
            page_token: token,
            ..request.clone()
        };
        let page = client.query_records(request.clone()).await.unwrap().into_inner();
        let page_records = unpack(&page.records);
        assert!(page_records.len() <= 7);
        assert!(page.gaps.is_empty());
        got.extend(page_records);
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
        let other = QueryRecordsRequest {
            flow: 4,
            page_token: token.clone(),
            ..request.clone()
        };
        let error = client.query_records(other).await.unwrap_err();
        assert_error(&error, Code::InvalidArgument, "PAGE_TOKEN_OF_OTHER_QUERY");
    }
    assert_eq!(got, expected);
}

fn connection(id: u64, closed: bool) -> Connection {
    Connection {
        id,
        client: Some(Endpoint {
            address: format!("10.0.0.{}", id % 4),
            port: 40_000,
        }),
        close: Some(Close {
            kind: if closed { "CLIENT_FIN" } else { "OPEN" }.into(),
            time: None,
        }),
        ..Connection::default()
    }
}

#[tokio::test]
async fn lists_are_filtered_and_come_in_pages() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(
        directory.path(),
        1 << 20,
        Limits {
            connections: 9000,
            transactions: 100,
            segments: 100,
        },
    )
    .await;
    server
        .facts
        .update_connections((0..10_000).map(|id| connection(id, true)));
    server.facts.update_transactions((0..50).map(|index| Transaction {
        connection_id: 9999,
        index: 49 - index,
        request_bytes: u64::from(index),
        ..Transaction::default()
    }));
    let mut client = server.flows().await;
    let request = ListConnectionsRequest {
        filter: "client.address = 10.0.0.1".into(),
        page_size: 1000,
        ..ListConnectionsRequest::default()
    };
    let (mut ids, mut token) = (Vec::new(), String::new());
    loop {
        let request = ListConnectionsRequest {
            page_token: token,
            ..request.clone()
        };
        let page = client.list_connections(request).await.unwrap().into_inner();
        assert_eq!(page.total_size, 2250);
        ids.extend(page.connections.iter().map(|connection| connection.id));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    let expected: Vec<u64> = (1000..10_000).filter(|id| id % 4 == 1).collect();
    assert_eq!(ids, expected, "the oldest closed ones were dropped");

    let request = ListConnectionsRequest {
        filter: "client.adress = 1".into(),
        ..ListConnectionsRequest::default()
    };
    let error = client.list_connections(request).await.unwrap_err();
    assert_error(&error, Code::InvalidArgument, "FILTER_INVALID");
    assert!(error.message().contains("position 1"), "{error}");

    let answer = client
        .get_connection(GetConnectionRequest { id: 9999 })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.connection.unwrap().id, 9999);
    let indexes: Vec<u32> = answer
        .transactions
        .iter()
        .map(|transaction| transaction.index)
        .collect();
    assert_eq!(indexes, (0..50).collect::<Vec<_>>());
    let error = client.get_connection(GetConnectionRequest { id: 5 }).await.unwrap_err();
    assert_error(&error, Code::NotFound, "CONNECTION_UNKNOWN");

    let request = ListTransactionsRequest {
        filter: "request_bytes >= 45".into(),
        ..Default::default()
    };
    let page = client.list_transactions(request).await.unwrap().into_inner();
    assert_eq!(
        (page.transactions.len(), page.total_size, page.next_page_token.as_str()),
        (5, 5, "")
    );

    // The store of this test holds 100: the first are gone, and keys go on.
    server.facts.add_segments((0..150).map(|n| Segment {
        connection_id: n % 2,
        seq: n as u32,
        place: "BEHIND_TAP".into(),
        ..Segment::default()
    }));
    let request = ListSegmentsRequest {
        filter: "connection_id = 1 AND place = BEHIND_TAP".into(),
        page_size: 30,
        ..ListSegmentsRequest::default()
    };
    let page = client.list_segments(request.clone()).await.unwrap().into_inner();
    assert_eq!(
        (page.segments.len(), page.total_size, page.segments[0].seq),
        (30, 50, 51)
    );
    let next = ListSegmentsRequest {
        page_token: page.next_page_token,
        ..request
    };
    let page = client.list_segments(next).await.unwrap().into_inner();
    assert_eq!((page.segments.len(), page.next_page_token.as_str()), (20, ""));
    assert_eq!(page.segments[19].seq, 149);
    assert_eq!(weir_api::facts::Facts::counts(&*server.facts).dropped_segments, 50);

    let finding = |title: &str| Finding {
        title: title.into(),
        ..Finding::default()
    };
    server.facts.set_findings(vec![finding("a"), finding("b")]);
    let request = ListFindingsRequest {
        page_size: 1,
        ..Default::default()
    };
    let page = client.list_findings(request.clone()).await.unwrap().into_inner();
    assert_eq!((page.findings[0].title.as_str(), page.total_size), ("a", 2));
    let next = ListFindingsRequest {
        page_token: page.next_page_token,
        ..request.clone()
    };
    let page = client.list_findings(next.clone()).await.unwrap().into_inner();
    assert_eq!(
        (page.findings[0].title.as_str(), page.next_page_token.as_str()),
        ("b", "")
    );
    server.facts.set_findings(vec![finding("c")]);
    assert_error(
        &client.list_findings(next).await.unwrap_err(),
        Code::Aborted,
        "LIST_CHANGED",
    );

    // A daemon that is started anew has other items under the same keys.
    let other = tempfile::tempdir().unwrap();
    let other = Server::start(other.path(), 1 << 20, Limits::default()).await;
    other.facts.set_findings(vec![finding("a"), finding("b")]);
    let page = other
        .flows()
        .await
        .list_findings(request.clone())
        .await
        .unwrap()
        .into_inner();
    let foreign = ListFindingsRequest {
        page_token: page.next_page_token,
        ..request
    };
    server.facts.set_findings(vec![finding("a"), finding("b")]);
    assert_error(
        &client.list_findings(foreign).await.unwrap_err(),
        Code::Aborted,
        "LIST_CHANGED",
    );

    server.facts.set_summary(Summary {
        packets: 7,
        ..Summary::default()
    });
    let summary = client.get_summary(GetSummaryRequest {}).await.unwrap().into_inner();
    assert_eq!(summary.summary.unwrap().packets, 7);
}

#[tokio::test]
async fn a_watch_gives_snapshot_sync_and_changes() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(
        directory.path(),
        1 << 20,
        Limits {
            connections: 1000,
            transactions: 10,
            segments: 10,
        },
    )
    .await;
    server
        .facts
        .update_connections((0..100).map(|id| connection(id, false)));
    let request = WatchConnectionsRequest {
        filter: "id >= 90 AND turns < 3".into(),
    };
    let mut stream = server
        .flows()
        .await
        .watch_connections(request)
        .await
        .unwrap()
        .into_inner();
    let mut ids = Vec::new();
    let mut left = Vec::new();
    let mut beats = 0;
    let mut synced = false;
    while beats == 0 || ids.len() < 12 || left.is_empty() {
        match tokio::time::timeout(WAIT, stream.message())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
            .message
            .unwrap()
        {
            Change::Connection(connection) => ids.push((connection.id, connection.turns)),
            Change::Sync(_) => {
                assert_eq!(ids, (90..100).map(|id| (id, 0)).collect::<Vec<_>>());
                synced = true;
                server.facts.update_connections([
                    Connection {
                        turns: 1,
                        ..connection(95, true)
                    },
                    Connection {
                        turns: 1,
                        ..connection(5, true)
                    },
                    Connection {
                        turns: 2,
                        ..connection(200, false)
                    },
                    // One that did not match before, and one that does no more.
                    Connection {
                        turns: 3,
                        ..connection(201, false)
                    },
                    Connection {
                        turns: 3,
                        ..connection(91, false)
                    },
                ]);
            }
            Change::Left(gone) => left.push(gone.id),
            Change::Heartbeat(_) => beats += 1,
            Change::Gap(gap) => panic!("{gap:?}"),
        }
    }
    assert!(synced);
    assert_eq!(ids[10..], [(95, 1), (200, 2)]);
    assert_eq!(left, [91]);
}

#[tokio::test]
async fn a_slow_watch_is_told_of_dropped_changes() {
    let store = FactStore::new(Limits {
        connections: 10,
        transactions: 10,
        segments: 10,
    });
    use weir_api::facts::Facts as _;
    let cursor = store.cursor();
    store.update_connections((0..25).map(|id| connection(id, true)));
    assert_eq!(cursor.take_missed(), 15);
    let ids: Vec<u64> = store
        .changes(&cursor, 100)
        .iter()
        .map(|connection| connection.id)
        .collect();
    assert_eq!(ids, (15..25).collect::<Vec<_>>());
    store.update_connections((25..30).map(|id| connection(id, true)));
    assert_eq!(cursor.take_missed(), 0, "the dropped ones were seen");
    assert_eq!(store.counts().dropped_connections, 20);

    // Closed ones go before open ones, and take their transactions with them.
    let store = FactStore::new(Limits {
        connections: 2,
        transactions: 10,
        segments: 10,
    });
    store.update_connections([connection(1, false), connection(2, true)]);
    store.update_transactions([Transaction {
        connection_id: 2,
        ..Transaction::default()
    }]);
    store.update_connections([connection(3, false)]);
    assert!(store.connection(2).is_none() && store.connection(1).is_some());
    assert_eq!(store.counts().transactions, 0);
    store.update_connections([connection(4, false)]);
    assert!(store.connection(1).is_none() && store.connection(4).is_some());
}

/// A client that reads nothing more, and one that never says a word.
#[tokio::test]
async fn clients_that_stand_still_do_not_hold_up_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path(), 64 << 20, Limits::default()).await;
    server.log.append(&records(0, 200_000)).unwrap();
    server
        .facts
        .update_connections((0..5_000).map(|id| connection(id, true)));
    let findings = (0..200).map(|id| finding_change(id, finding_change::Kind::Opened, "INFO"));
    server.facts.change_findings(findings.collect());
    let request = SubscribeRequest::default();
    let mut subscribed = server.records().await.subscribe(request).await.unwrap().into_inner();
    let (mut flows, request) = (server.flows().await, WatchConnectionsRequest::default());
    let mut connections = flows.watch_connections(request).await.unwrap().into_inner();
    let (mut flows, request) = (server.flows().await, WatchFindingsRequest::default());
    let mut findings = flows.watch_findings(request).await.unwrap().into_inner();
    assert!(subscribed.message().await.unwrap().is_some());
    assert!(connections.message().await.unwrap().is_some());
    assert!(findings.message().await.unwrap().is_some());
    let silent = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let _ = server.shutdown.take().unwrap().send(());
    tokio::time::timeout(WAIT, server.task).await.unwrap().unwrap();
    drop((subscribed, connections, findings, silent));
}

#[tokio::test]
async fn health_tells_what_does_not_serve_until_it_does_again() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    let troubles = &server.appliance.troubles;
    let health = HealthClient::new(server.channel().await);
    // By their names: all, Record, Flow, Capture, Appliance and AnalysisService.
    let serving = async || {
        let mut all = Vec::new();
        for service in ["", "Record", "Flow", "Capture", "Appliance", "Analysis"] {
            let service = match service {
                "" => String::new(),
                name => format!("weir.v1.{name}Service"),
            };
            let request = tonic_health::pb::HealthCheckRequest { service };
            all.push(health.clone().check(request).await.unwrap().into_inner().status == 1);
        }
        all
    };
    let until = async |wanted: [bool; 6]| {
        let reached = async {
            while serving().await != wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let reached = tokio::time::timeout(WAIT, reached).await;
        assert!(reached.is_ok(), "{:?}, not {wanted:?}", serving().await);
    };
    until([true; 6]).await;
    troubles.store.store(true, Ordering::Relaxed);
    until([false, true, true, true, true, true]).await;
    troubles.measuring.store(true, Ordering::Relaxed);
    until([false, false, false, false, true, true]).await;
    troubles.measuring.store(false, Ordering::Relaxed);
    troubles.store.store(false, Ordering::Relaxed);
    until([true; 6]).await;
}

/// Without its log there are no records, and nothing to analyse.
#[tokio::test]
async fn a_log_that_cannot_be_written_does_not_serve() {
    let config = Config {
        directory: "/proc/none".into(),
        limit_bytes: 1 << 20,
    };
    let error = RecordLog::open(config.clone()).unwrap_err();
    let services = Services {
        log: Arc::new(RecordLog::without_files(config, &error)),
        facts: Arc::new(FactStore::new(Limits::default())),
        analyst: None,
        capture: Arc::new(CaptureState::default()),
        appliance: Arc::new(ApplianceState::default()),
        access: Access::default(),
        heartbeat: WAIT,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve_on(listener, services, std::future::pending()));
    let channel = Channel::from_shared(format!("http://{address}"))
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut health = HealthClient::new(channel);
    for (name, status) in [("", 2), ("weir.v1.RecordService", 2), ("weir.v1.CaptureService", 1)] {
        let request = tonic_health::pb::HealthCheckRequest { service: name.into() };
        assert_eq!(
            health.check(request).await.unwrap().into_inner().status,
            status,
            "{name}"
        );
    }
}

#[tokio::test]
async fn capture_status_health_and_reflection_answer() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    let port = server.capture.add_port(3, "net_pcap0", false);
    port.frames.fetch_add(5, Ordering::Relaxed);
    port.untracked[0].fetch_add(2, Ordering::Relaxed);
    let mut client = CaptureServiceClient::new(server.channel().await);
    let status = client
        .get_capture_status(GetCaptureStatusRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!((status.ports[0].port, status.ports[0].frames), (3, 5));
    assert_eq!(status.ports[0].untracked["NOT_IP"], 2);

    let mut health = HealthClient::new(server.channel().await);
    for service in [
        "",
        "weir.v1.RecordService",
        "weir.v1.FlowService",
        "weir.v1.CaptureService",
        "weir.v1.ApplianceService",
    ] {
        let request = tonic_health::pb::HealthCheckRequest {
            service: service.into(),
        };
        assert_eq!(health.check(request).await.unwrap().into_inner().status, 1, "{service}");
    }

    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut reflection = ServerReflectionClient::new(server.channel().await);
    let mut answers = reflection
        .server_reflection_info(tokio_stream::iter([ask]))
        .await
        .unwrap()
        .into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(list) = answer else {
        panic!("{answer:?}")
    };
    assert!(
        list.service
            .iter()
            .any(|service| service.name == "weir.v1.RecordService"),
        "{list:?}"
    );

    use tonic_reflection::pb::v1alpha::ServerReflectionRequest as OldRequest;
    use tonic_reflection::pb::v1alpha::server_reflection_client::ServerReflectionClient as OldClient;
    use tonic_reflection::pb::v1alpha::server_reflection_request::MessageRequest as OldAsk;
    use tonic_reflection::pb::v1alpha::server_reflection_response::MessageResponse as OldAnswer;
    let ask = OldRequest {
        host: String::new(),
        message_request: Some(OldAsk::FileContainingSymbol("weir.v1.FlowService".into())),
    };
    let mut reflection = OldClient::new(server.channel().await);
    let answers = reflection.server_reflection_info(tokio_stream::iter([ask])).await;
    let answer = answers.unwrap().into_inner().message().await.unwrap().unwrap();
    assert!(
        matches!(answer.message_response, Some(OldAnswer::FileDescriptorResponse(_))),
        "{answer:?}"
    );
}

#[tokio::test]
async fn requests_may_be_compressed_and_none_grows_beyond_what_a_message_may_have() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    server.facts.update_connections([connection(1, true)]);
    let mut flows = server.flows().await.send_compressed(CompressionEncoding::Gzip);
    let request = ListConnectionsRequest {
        filter: "id = 1".into(),
        ..ListConnectionsRequest::default()
    };
    assert_eq!(
        flows.list_connections(request).await.unwrap().into_inner().total_size,
        1
    );
    let mut health = HealthClient::new(server.channel().await).send_compressed(CompressionEncoding::Gzip);
    let request = tonic_health::pb::HealthCheckRequest::default();
    assert_eq!(health.check(request).await.unwrap().into_inner().status, 1);

    let request = ListConnectionsRequest {
        filter: " ".repeat(100 << 20),
        ..ListConnectionsRequest::default()
    };
    let error = flows.list_connections(request).await.unwrap_err();
    assert!(error.message().contains("decompress"), "{error:?}");
}

#[tokio::test]
async fn what_waits_for_a_subscriber_is_small_whatever_it_asks_for() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 4 << 20, Limits::default()).await;
    server.log.append(&records(0, 20_000)).unwrap();
    let request = SubscribeRequest {
        max_batch_records: 65_536,
        stop_at_end: true,
        ..SubscribeRequest::default()
    };
    let mut got = Vec::new();
    for message in to_end(&server, request).await {
        if let Some(Message::Batch(batch)) = message.message {
            got.push(batch.records.len() / 64);
        }
    }
    assert!(got.iter().all(|batch| *batch <= 8_192), "{got:?}");
    assert_eq!(got.iter().sum::<usize>(), 20_000);
    server.stop().await;
}

/// Subscribe again and again with the last token, each time for some messages only, while records
/// are appended and the server restarts; every record must come exactly once and in order.
async fn kill_and_resume(kills: Vec<(usize, u32, bool)>, batch: u32) {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    let mut got = Vec::new();
    let mut expected = Vec::new();
    let mut next = 0;
    let mut token = String::new();
    for (messages, appended, restart) in kills {
        if restart {
            server.stop().await;
            server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
            next = 0;
        }
        let mut client = server.records().await;
        let request = SubscribeRequest {
            resume_token: token.clone(),
            max_batch_records: batch,
            stop_at_end: false,
        };
        let mut stream = client.subscribe(request).await.unwrap().into_inner();
        let batch_of_records = records(next, next + appended);
        server.log.append(&batch_of_records).unwrap();
        expected.extend(batch_of_records);
        next += appended;
        for _ in 0..messages {
            let message = tokio::time::timeout(WAIT, stream.message())
                .await
                .unwrap()
                .unwrap()
                .unwrap();
            token = message.resume_token;
            if let Some(Message::Batch(batch)) = message.message {
                got.extend(unpack(&batch.records));
            }
        }
    }
    for message in to_end(
        &server,
        SubscribeRequest {
            resume_token: token,
            ..SubscribeRequest::default()
        },
    )
    .await
    {
        if let Some(Message::Batch(batch)) = message.message {
            got.extend(unpack(&batch.records));
        }
    }
    assert_eq!(got, expected);
    server.stop().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn every_record_exactly_once_wherever_the_connection_dies(
        kills in prop::collection::vec((0_usize..6, 0_u32..60, prop::bool::weighted(0.2)), 1..12),
        batch in prop::sample::select(vec![0_u32, 1, 3, 16]),
    ) {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
            .block_on(kill_and_resume(kills, batch));
    }
}

#[tokio::test]
async fn events_are_sent_and_followed_until_the_server_ends() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    let add = |text: &str| {
        server.appliance.events.add(Event {
            text: text.to_owned(),
            ..Event::default()
        });
    };
    let mut client = ApplianceServiceClient::new(server.channel().await);
    let mut ask = async |after, follow| {
        let request = WatchEventsRequest { after, follow };
        client.watch_events(request).await.unwrap().into_inner()
    };
    add("one");
    add("two");
    let mut all = ask(0, false).await;
    let mut next = async || all.message().await.unwrap().map(|response| response.event.unwrap());
    assert_eq!(
        next().await.map(|event| (event.number, event.text)),
        Some((1, "one".into()))
    );
    assert_eq!(
        next().await.map(|event| (event.number, event.text)),
        Some((2, "two".into()))
    );
    assert_eq!(next().await, None);

    let mut followed = ask(1, true).await;
    let two = tokio::time::timeout(WAIT, followed.message()).await.unwrap().unwrap();
    assert_eq!(two.unwrap().event.unwrap().text, "two");
    add("three");
    let three = tokio::time::timeout(WAIT, followed.message()).await.unwrap().unwrap();
    assert_eq!(three.unwrap().event.unwrap().number, 3);

    let mut status = ApplianceServiceClient::new(server.channel().await);
    let before = status.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!((before.card, before.subscribers), (None, 1));
    let request = WatchEventsRequest { after: 4, follow: true };
    let error = status.watch_events(request).await.unwrap_err();
    assert_error(&error, Code::InvalidArgument, "POSITION_UNKNOWN");
    server.appliance.set_card(CardStatus {
        state: "RUNNING".into(),
        ..CardStatus::default()
    });
    let after = status.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!(after.card.unwrap().state, "RUNNING");
    drop(status);
    let end = tokio::spawn(async move { followed.message().await.unwrap_err().code() });
    server.stop().await;
    assert_eq!(end.await.unwrap(), Code::Unavailable);
}

fn finding_change(id: u64, kind: finding_change::Kind, severity: &str) -> FindingChange {
    FindingChange {
        id,
        kind: kind.into(),
        finding: Some(Finding {
            severity: severity.into(),
            ..Finding::default()
        }),
        ..FindingChange::default()
    }
}

/// The next messages but heartbeats, as (id, kind); a marker has id 0, a gap what it dropped.
async fn findings_told(stream: &mut tonic::Streaming<WatchFindingsResponse>, count: usize) -> Vec<(u64, &'static str)> {
    use watch_findings_response::Message;
    let mut told = Vec::new();
    while told.len() < count {
        let next = tokio::time::timeout(WAIT, stream.message()).await.unwrap();
        told.push(match next.unwrap().unwrap().message.unwrap() {
            Message::Change(change) => (change.id, change.kind().as_str_name()),
            Message::Sync(_) => (0, "SYNC"),
            Message::Gap(gap) => (gap.dropped, "GAP"),
            Message::Heartbeat(_) => continue,
        });
    }
    told
}

#[tokio::test]
async fn findings_open_change_and_close() {
    use finding_change::Kind::{Closed, Opened, Updated};
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    server.facts.change_findings(vec![
        finding_change(1, Opened, "WARNING"),
        finding_change(2, Opened, "INFO"),
        finding_change(3, Opened, "WARNING"),
        finding_change(3, Closed, "WARNING"),
        finding_change(1, Updated, "CRITICAL"),
    ]);
    let request = WatchFindingsRequest {
        filter: "severity != INFO".into(),
    };
    let mut client = server.flows().await;
    let mut stream = client.watch_findings(request).await.unwrap().into_inner();
    let open = findings_told(&mut stream, 2).await;
    assert_eq!(open, [(1, "KIND_OPENED"), (0, "SYNC")]);
    // What comes to match opens for this watcher; what it knows it is told of to the end.
    server.facts.change_findings(vec![
        finding_change(4, Opened, "INFO"),
        finding_change(2, Updated, "WARNING"),
        finding_change(4, Closed, "INFO"),
        finding_change(1, Updated, "INFO"),
        finding_change(1, Closed, "INFO"),
    ]);
    let changes = findings_told(&mut stream, 3).await;
    assert_eq!(changes, [(2, "KIND_OPENED"), (1, "KIND_UPDATED"), (1, "KIND_CLOSED")]);
    let request = WatchFindingsRequest {
        filter: "severity =".into(),
    };
    let error = client.watch_findings(request).await.unwrap_err();
    assert_error(&error, Code::InvalidArgument, "FILTER_INVALID");
}

#[test]
fn changes_of_findings_are_kept_for_a_while() {
    use finding_change::Kind::Opened;
    use weir_api::facts::Facts as _;
    let store = FactStore::new(Limits::default());
    store.change_findings((1..=1500).map(|id| finding_change(id, Opened, "INFO")).collect());
    let (dropped, kept) = store.finding_changes(200);
    assert_eq!((dropped, kept.len(), kept[0].id), (300, 1000, 501));
    let (dropped, kept) = store.finding_changes(1490);
    assert_eq!((dropped, kept.len(), kept[0].id), (0, 10, 1491));
    assert_eq!(store.finding_changes(1500), (0, Vec::new()));
    let (newest, open) = store.open_findings();
    assert_eq!((newest, open.len()), (1500, 1500));
}

fn begins(name: &str) -> analyze_captures_request::Message {
    let begin = capture_piece::Piece::Begin(CaptureBegin { name: name.into() });
    analyze_captures_request::Message::Piece(CapturePiece { piece: Some(begin) })
}

fn bytes(data: &[u8]) -> analyze_captures_request::Message {
    let data = capture_piece::Piece::Data(data.to_vec());
    analyze_captures_request::Message::Piece(CapturePiece { piece: Some(data) })
}

fn options(options: AnalyzeOptions) -> analyze_captures_request::Message {
    analyze_captures_request::Message::Options(options)
}

#[tokio::test]
async fn captures_come_in_pieces_and_the_answer_in_parts() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    let with_segments = options(AnalyzeOptions {
        segments: true,
        ..AnalyzeOptions::default()
    });
    let sent = vec![
        with_segments,
        begins("a"),
        bytes(&[1, 2]),
        bytes(&[]),
        bytes(&[3]),
        begins("empty"),
        begins("c"),
        bytes(&[10; 1000]),
    ];
    let (taps, warnings) = server.analyze(sent).await.unwrap();
    assert_eq!(taps, [("a".into(), 6), ("empty".into(), 0), ("c".into(), 10_000)]);
    assert_eq!(warnings, ["with segments"]);

    let piece = |message| {
        let analyze_captures_request::Message::Piece(piece) = message else {
            unreachable!("a piece")
        };
        CompareCapturesRequest { piece: Some(piece) }
    };
    let mut client = AnalysisServiceClient::new(server.channel().await);
    let two = [begins("good"), bytes(b"1"), begins("bad")].map(piece);
    let answer = client
        .compare_captures(tokio_stream::iter(two))
        .await
        .unwrap()
        .into_inner();
    let comparison = answer.comparison.unwrap();
    assert_eq!((&*comparison.first, &*comparison.second), ("good", "bad"));
    let one = [begins("good"), bytes(b"1")].map(piece);
    let error = client.compare_captures(tokio_stream::iter(one)).await.unwrap_err();
    assert_error(&error, Code::InvalidArgument, "CAPTURE_MISSING");
    let three = [begins("good"), begins("bad"), begins("worse")].map(piece);
    let error = client.compare_captures(tokio_stream::iter(three)).await.unwrap_err();
    assert_error(&error, Code::InvalidArgument, "TOO_MANY_CAPTURES");
}

#[tokio::test]
async fn pieces_may_be_as_small_as_packets_and_come_as_fast_as_they_can() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    let pieces = std::iter::once(begins("a")).chain(std::iter::repeat_with(|| bytes(&[1; 60])).take(30_000));
    let requests = tokio_stream::iter(pieces).then(async |message| {
        // Else the client puts many into one frame.
        tokio::task::yield_now().await;
        AnalyzeCapturesRequest { message: Some(message) }
    });
    let mut client = AnalysisServiceClient::new(server.channel().await);
    let mut answer = client.analyze_captures(requests).await.unwrap().into_inner();
    let part = answer.message().await.unwrap().unwrap().part.unwrap();
    assert_eq!(part.taps[0].packets, 30_000 * 60);
}

#[tokio::test]
async fn what_is_wrong_with_captures_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    let usual = || options(AnalyzeOptions::default());
    let odd = |bandwidth_bits_per_second, latency_seconds, timeline_seconds| {
        options(AnalyzeOptions {
            bandwidth_bits_per_second,
            latency_seconds,
            timeline_seconds,
            segments: false,
        })
    };
    let long = "n".repeat(513);
    for (sent, reason) in [
        (vec![], "CAPTURE_MISSING"),
        (vec![usual()], "CAPTURE_MISSING"),
        (vec![bytes(b"1")], "CAPTURE_NOT_BEGUN"),
        (vec![begins("")], "CAPTURE_NAME_INVALID"),
        (vec![begins("a\nb")], "CAPTURE_NAME_INVALID"),
        (vec![begins(&long)], "CAPTURE_NAME_INVALID"),
        (vec![begins("a"), begins("a")], "CAPTURE_NAME_INVALID"),
        (
            vec![begins("a"), begins("b"), begins("c"), begins("d")],
            "TOO_MANY_CAPTURES",
        ),
        (vec![begins("a"), usual()], "OPTIONS_LATE"),
        (vec![usual(), usual(), begins("a")], "OPTIONS_LATE"),
        (vec![odd(Some(f64::NAN), None, None), begins("a")], "OPTION_INVALID"),
        (vec![odd(None, Some(61.0), None), begins("a")], "OPTION_INVALID"),
        (vec![odd(None, None, Some(1e-10)), begins("a")], "OPTION_INVALID"),
    ] {
        assert_error(&server.analyze(sent).await.unwrap_err(), Code::InvalidArgument, reason);
    }
    let error = server.analyze(vec![begins("x"), bytes(b"bad")]).await.unwrap_err();
    assert_error(&error, Code::InvalidArgument, "CAPTURE_INVALID");
    assert_eq!(error.message(), "x: it is bad");
    let error = server.analyze(vec![begins("x"), bytes(b"worse")]).await.unwrap_err();
    assert_error(&error, Code::Internal, "WORKER_FAILED");
}

#[tokio::test]
async fn an_error_about_the_longest_names_is_small_enough_to_be_taken() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    let longest = (1..)
        .map(|n| "\u{fffd}".repeat(n))
        .take_while(|name| name.len() <= 4096);
    let mut told = 0;
    for name in longest.step_by(17) {
        let error = server.analyze(vec![begins(&name), begins(&name)]).await.unwrap_err();
        assert_error(&error, Code::InvalidArgument, "CAPTURE_NAME_INVALID");
        told += usize::from(error.message().contains(&name));
        // Percent-encoded, and in base64 (gRPC over HTTP2).
        let bytes = 3 * error.message().len() + error.details().len() * 4 / 3;
        assert!(bytes < 7_000, "{} bytes: {bytes}", name.len());
    }
    assert!(told > 5);
}

#[tokio::test]
async fn calls_with_captures_are_few_at_a_time_and_end_with_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    let mut open = Vec::new();
    let mut calls = Vec::new();
    for _ in 0..2 {
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let mut client = AnalysisServiceClient::new(server.channel().await);
        let requests = tokio_stream::wrappers::ReceiverStream::new(receiver);
        calls.push(tokio::spawn(async move { client.analyze_captures(requests).await }));
        sender
            .send(AnalyzeCapturesRequest {
                message: Some(begins("a")),
            })
            .await
            .unwrap();
        open.push(sender);
    }
    let refused = async {
        loop {
            // The first calls may still be on their way.
            match server.analyze(vec![begins("b")]).await {
                Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => return error,
            }
        }
    };
    let error = tokio::time::timeout(WAIT, refused).await.unwrap();
    assert_error(&error, Code::ResourceExhausted, "TOO_MANY_ANALYSES");
    server.stop().await;
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_error(&error, Code::Unavailable, "SHUTTING_DOWN");
    }
}

#[tokio::test]
async fn the_time_line_is_cut_to_what_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    let second = |s: i64| Timestamp::from_unix_nanos(s * 1_000_000_000);
    let slice = |s| TimeSlice {
        start: Some(second(s)),
        requests: s as u64,
        ..TimeSlice::default()
    };
    server.facts.set_timeline((10..20).map(slice).collect());
    let mut client = server.flows().await;
    for (start_time, end_time, expected) in [
        (None, None, 10..20),
        (Some(second(12)), None, 12..20),
        (None, Some(second(12)), 10..12),
        (Some(second(12)), Some(second(15)), 12..15),
        (Some(second(15)), Some(second(15)), 0..0),
    ] {
        let request = GetTimelineRequest { start_time, end_time };
        let answer = client.get_timeline(request).await.unwrap().into_inner();
        let requests: Vec<u64> = answer.slices.iter().map(|slice| slice.requests).collect();
        assert_eq!(requests, expected.collect::<Vec<u64>>());
    }
}

#[tokio::test]
async fn ordered_lists_come_in_pages_too() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    // Many of each duration, so that pages end among equals; more than are taken from the store at a time.
    let turned = |id: u64| Connection {
        duration_seconds: (id * 7 % 11) as f64,
        ..connection(id, true)
    };
    server.facts.update_connections((0..9_000).map(turned));
    let mut client = server.flows().await;
    let request = |page_token: &str| ListConnectionsRequest {
        filter: "client.address = 10.0.0.1".into(),
        order_by: "duration_seconds desc".into(),
        page_size: 700,
        page_token: page_token.into(),
    };
    let mut expected: Vec<u64> = (0..9_000).filter(|id| id % 4 == 1).collect();
    expected.sort_by_key(|id| std::cmp::Reverse(id * 7 % 11));
    let (mut ids, mut tokens) = (Vec::new(), vec![String::new()]);
    loop {
        let page = client
            .list_connections(request(&tokens[tokens.len() - 1]))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(page.total_size, 2250);
        ids.extend(page.connections.iter().map(|connection| connection.id));
        if page.next_page_token.is_empty() {
            break;
        }
        tokens.push(page.next_page_token);
    }
    assert_eq!((ids.len(), tokens.len()), (2250, 4));
    assert_eq!(ids, expected, "of equal ones the first known comes first");

    let error = |order_by: &str, page_token: &str| ListConnectionsRequest {
        order_by: order_by.into(),
        ..request(page_token)
    };
    let wrong = client
        .list_connections(error("duration_secondz", ""))
        .await
        .unwrap_err();
    assert_error(&wrong, Code::InvalidArgument, "ORDER_INVALID");
    let other = client.list_connections(error("id", &tokens[1])).await.unwrap_err();
    assert_error(&other, Code::InvalidArgument, "PAGE_TOKEN_OF_OTHER_QUERY");
    // Where the page ended is not known any more when its last row is elsewhere.
    server.facts.update_connections([turned(ids[0])]);
    assert!(client.list_connections(request(&tokens[1])).await.is_ok());
    let elsewhere = Connection {
        duration_seconds: 0.5,
        ..connection(ids[699], true)
    };
    server.facts.update_connections([elsewhere]);
    let moved = client.list_connections(request(&tokens[1])).await.unwrap_err();
    assert_error(&moved, Code::Aborted, "LIST_CHANGED");

    let finding = |title: &str| Finding {
        title: title.into(),
        ..Finding::default()
    };
    server
        .facts
        .set_findings(vec![finding("a"), finding("c"), finding("b")]);
    let request = ListFindingsRequest {
        order_by: "title desc".into(),
        ..ListFindingsRequest::default()
    };
    let page = client.list_findings(request).await.unwrap().into_inner();
    let titles: Vec<&str> = page.findings.iter().map(|finding| finding.title.as_str()).collect();
    assert_eq!(titles, ["c", "b", "a"]);
}

#[tokio::test]
async fn packets_of_a_connection_come_in_pages() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    server
        .facts
        .update_connections([connection(1, false), connection(2, false)]);
    let header = |flow: u64, sequence: u32| Header {
        sequence,
        flow: FlowId(flow),
        time: tai_from_utc(1_000 * u64::from(sequence)),
        ..Header::default()
    };
    // Each second packet is another connection's; the block of all bytes is told behind the last.
    let packet = |sequence: u32| {
        let packet = weir_record::Packet {
            number: u64::from(sequence) + 1,
            seq: sequence * 10,
            length: 10,
            ..weir_record::Packet::decode(&record(Kind::Packet, 1, 0))
        };
        packet.encode(header(1 + 2 * u64::from(sequence % 2), sequence))
    };
    let mut records: Vec<Record> = (0..10).map(packet).collect();
    let block = weir_record::Block {
        seq: 0,
        bytes: 70,
        ..weir_record::Block::decode(&record(Kind::Block, 1, 0))
    };
    records.push(block.encode(header(1, 10)));
    server.log.append(&records).unwrap();

    let mut client = server.flows().await;
    let mut request = ListPacketsRequest {
        connection_id: 1,
        page_size: 2,
        page_token: String::new(),
    };
    let (mut rows, mut pages) = (Vec::new(), 0);
    loop {
        let page = client.list_packets(request.clone()).await.unwrap().into_inner();
        assert_eq!((page.total_size, page.gaps), (5, 0));
        rows.extend(page.packets);
        pages += 1;
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    assert_eq!(pages, 3);
    let told: Vec<_> = rows.iter().map(|row| (row.number, row.block_bytes)).collect();
    assert_eq!(told, [(1, None), (3, None), (5, None), (7, Some(70)), (9, None)]);
    assert!((rows[1].delta_seconds - 2e-6).abs() < 1e-12);

    let of = |connection_id| ListPacketsRequest {
        connection_id,
        ..ListPacketsRequest::default()
    };
    let error = client.list_packets(of(2)).await.unwrap_err();
    assert_error(&error, Code::FailedPrecondition, "NO_PACKETS");
    let error = client.list_packets(of(9)).await.unwrap_err();
    assert_error(&error, Code::NotFound, "CONNECTION_UNKNOWN");
    let first = client
        .list_packets(ListPacketsRequest { page_size: 2, ..of(1) })
        .await
        .unwrap()
        .into_inner();
    let foreign = ListPacketsRequest {
        page_token: first.next_page_token,
        ..of(3)
    };
    let error = client.list_packets(foreign).await.unwrap_err();
    assert_error(&error, Code::InvalidArgument, "PAGE_TOKEN_OF_OTHER_QUERY");
}

#[tokio::test]
async fn only_who_has_the_token_is_answered() {
    let directory = tempfile::tempdir().unwrap();
    let access = Access {
        token: Some(Token::parse("0123456789abcdef").unwrap()),
        ..Access::default()
    };
    let server = Server::for_some(directory.path(), 1 << 20, Limits::default(), access).await;
    let channel = server.channel().await;
    let ask = async |header: Option<&'static str>| {
        let with = |mut request: tonic::Request<()>| {
            if let Some(header) = header {
                request.metadata_mut().insert("authorization", header.parse().unwrap());
            }
            Ok(request)
        };
        let mut flows = FlowServiceClient::with_interceptor(channel.clone(), with);
        let flows = flows.get_summary(GetSummaryRequest {}).await.map(|_| ());
        let mut records = RecordServiceClient::with_interceptor(channel.clone(), with);
        let records = records.subscribe(SubscribeRequest::default()).await.map(|_| ());
        let mut capture = CaptureServiceClient::with_interceptor(channel.clone(), with);
        let capture = capture.get_capture_status(GetCaptureStatusRequest {}).await.map(|_| ());
        let mut appliance = ApplianceServiceClient::with_interceptor(channel.clone(), with);
        let appliance = appliance.get_status(GetStatusRequest {}).await.map(|_| ());
        let mut analyses = AnalysisServiceClient::with_interceptor(channel.clone(), with);
        let sent = AnalyzeCapturesRequest {
            message: Some(begins("a")),
        };
        let analyses = analyses.analyze_captures(tokio_stream::iter([sent])).await.map(|_| ());
        [flows, records, capture, appliance, analyses]
    };
    for header in [
        None,
        Some("Bearer "),
        Some("Bearer 0123456789abcdeg"),
        Some("Bearer 0123456789abcdef0"),
        Some("0123456789abcdef"),
        Some("Basic 0123456789abcdef"),
    ] {
        for answer in ask(header).await {
            assert_error(&answer.unwrap_err(), Code::Unauthenticated, "TOKEN_INVALID");
        }
    }
    for answer in ask(Some("Bearer 0123456789abcdef")).await {
        answer.unwrap();
    }
    // Health is for whoever looks.
    let mut health = HealthClient::new(channel);
    let request = tonic_health::pb::HealthCheckRequest {
        service: "weir.v1.FlowService".into(),
    };
    let answer = health.check(request).await.unwrap().into_inner();
    assert_eq!(
        answer.status(),
        tonic_health::pb::health_check_response::ServingStatus::Serving
    );
}

#[tokio::test]
async fn an_analysis_that_nobody_waits_for_ends() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), 1 << 20, Limits::default()).await;
    for _ in 0..4 {
        // Its answer never comes: only the end of the call gives the place back.
        let call = server.analyze(vec![begins("a"), bytes(b"long")]);
        assert!(tokio::time::timeout(Duration::from_millis(200), call).await.is_err());
    }
    let short = async {
        while server.analyze(vec![begins("a")]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WAIT, short).await.unwrap();
}
