//! Serves a record log that grows while clients read: `serve_log [RECORDS]`.
//!
//! Prints `listening on ADDRESS`, appends RECORDS records (default 100,000) in small batches, each
//! with its number as sequence number, and serves until its input ends.

use std::error::Error;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use weir_api::access::Access;
use weir_api::facts::{FactStore, Limits};
use weir_api::log::{Config, RecordLog};
use weir_api::server::{Services, serve_on};
use weir_api::state::{ApplianceState, CaptureState};
use weir_record::{Header, Kind};

const BATCH: u32 = 500;

fn main() -> Result<(), Box<dyn Error>> {
    let records: u32 = std::env::args().nth(1).map_or(Ok(100_000), |records| records.parse())?;
    let directory = tempfile::tempdir()?;
    let config = Config {
        directory: directory.path().to_owned(),
        limit_bytes: 1 << 30,
    };
    let log = Arc::new(RecordLog::open(config)?);
    let services = Services {
        log: Arc::clone(&log),
        facts: Arc::new(FactStore::new(Limits::default())),
        analyst: None,
        capture: Arc::new(CaptureState::default()),
        appliance: Arc::new(ApplianceState::default()),
        access: Access::default(),
        heartbeat: Duration::from_secs(1),
    };

    let (stop, stopped) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = stop.send(());
    });
    std::thread::spawn(move || {
        for first in (0..records).step_by(BATCH as usize) {
            let batch: Vec<_> = (first..records.min(first + BATCH))
                .map(|sequence| {
                    Header {
                        sequence,
                        ..Header::default()
                    }
                    .start(Kind::Event, false)
                })
                .collect();
            if let Err(error) = log.append(&batch) {
                eprintln!("{error}");
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    tokio::runtime::Runtime::new()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("listening on {}", listener.local_addr()?);
        serve_on(listener, services, async {
            let _ = stopped.await;
        })
        .await?;
        Ok(())
    })
}
