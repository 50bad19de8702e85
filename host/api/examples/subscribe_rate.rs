//! Records per second through Subscribe over loopback, server and client in one process:
//! `cargo run --release -p weir-api --example subscribe_rate [RECORDS]`.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use weir_api::access::Access;
use weir_api::facts::{FactStore, Limits};
use weir_api::log::{Config, RecordLog};
use weir_api::server::{Services, serve_on};
use weir_api::state::{ApplianceState, CaptureState};
use weir_api::v1::record_service_client::RecordServiceClient;
use weir_messages::v1::SubscribeRequest;
use weir_messages::v1::subscribe_response::Message;
use weir_record::raw::BYTES;
use weir_record::{Header, Kind};

fn main() -> Result<(), Box<dyn Error>> {
    let records: u32 = std::env::args()
        .nth(1)
        .map_or(Ok(10_000_000), |records| records.parse())?;
    let directory = tempfile::tempdir()?;
    let config = Config {
        directory: directory.path().to_owned(),
        limit_bytes: 4 << 30,
    };
    let log = Arc::new(RecordLog::open(config)?);
    let start = Instant::now();
    for first in (0..records).step_by(1000) {
        let batch: Vec<_> = (first..records.min(first + 1000))
            .map(|sequence| {
                Header {
                    sequence,
                    ..Header::default()
                }
                .start(Kind::Event, false)
            })
            .collect();
        log.append(&batch)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("append: {:.2} M records/s", f64::from(records) / seconds / 1e6);

    tokio::runtime::Runtime::new()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let services = Services {
            log,
            facts: Arc::new(FactStore::new(Limits::default())),
            analyst: None,
            capture: Arc::new(CaptureState::default()),
            appliance: Arc::new(ApplianceState::default()),
            access: Access::default(),
            heartbeat: Duration::from_secs(1),
        };
        tokio::spawn(serve_on(listener, services, std::future::pending()));
        let mut client = RecordServiceClient::connect(format!("http://{address}")).await?;
        let request = SubscribeRequest {
            stop_at_end: true,
            ..SubscribeRequest::default()
        };
        let start = Instant::now();
        let mut stream = client.subscribe(request).await?.into_inner();
        let mut received = 0;
        while let Some(message) = stream.message().await? {
            if let Some(Message::Batch(batch)) = message.message {
                received += batch.records.len() / BYTES;
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "subscribe: {received} records, {:.2} M records/s",
            received as f64 / seconds / 1e6
        );
        Ok(())
    })
}
