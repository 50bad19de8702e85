//! CaptureService and ApplianceService: the state of the appliance.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use weir_messages::v1::{
    GetCaptureStatusRequest, GetCaptureStatusResponse, GetStatusRequest, GetStatusResponse, WatchEventsRequest,
    WatchEventsResponse,
};

use crate::facts::Facts;
use crate::log::RecordLog;
use crate::state::{ApplianceState, CaptureState};
use crate::status;
use crate::streams::Streams;
use crate::v1::appliance_service_server::ApplianceService;
use crate::v1::capture_service_server::CaptureService;

/// CaptureService.
pub(crate) struct Capture(pub Arc<CaptureState>);

#[tonic::async_trait]
impl CaptureService for Capture {
    async fn get_capture_status(
        &self,
        _: Request<GetCaptureStatusRequest>,
    ) -> Result<Response<GetCaptureStatusResponse>, Status> {
        Ok(Response::new(self.0.status()))
    }
}

/// Events on their way to one client.
const EVENTS_WAITING: usize = 64;

/// ApplianceService.
pub(crate) struct Appliance {
    pub state: Arc<ApplianceState>,
    pub log: Arc<RecordLog>,
    pub facts: Arc<dyn Facts>,
    pub streams: Streams,
}

#[tonic::async_trait]
impl ApplianceService for Appliance {
    async fn get_status(&self, _: Request<GetStatusRequest>) -> Result<Response<GetStatusResponse>, Status> {
        let counts = self.facts.counts();
        Ok(Response::new(GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            start_time: Some(self.state.start_time),
            boot_epoch: u32::from(self.log.epoch()),
            records: self.log.appended(),
            log_first_position: self.log.first_position(),
            log_next_position: self.log.next_position(),
            log_bytes: self.log.bytes(),
            log_limit_bytes: self.log.limit_bytes(),
            flows_in_table: self.state.flows_in_table.load(Ordering::Relaxed),
            connections: counts.connections,
            transactions: counts.transactions,
            subscribers: u32::try_from(self.streams.open()).unwrap_or(u32::MAX),
            resident_bytes: resident_bytes().unwrap_or(0),
            card: self.state.card(),
        }))
    }

    type WatchEventsStream = ReceiverStream<Result<WatchEventsResponse, Status>>;

    async fn watch_events(
        &self,
        request: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let WatchEventsRequest { after, follow } = request.into_inner();
        let place = self.streams.place()?;
        let (streams, state) = (self.streams.clone(), Arc::clone(&self.state));
        let (sender, receiver) = mpsc::channel(EVENTS_WAITING);
        tokio::spawn(async move {
            let _place = place;
            let mut newest = state.events.follow();
            let mut last = after;
            loop {
                newest.borrow_and_update();
                for event in state.events.after(last) {
                    last = event.number;
                    let response = WatchEventsResponse { event: Some(event) };
                    if sender.send(Ok(response)).await.is_err() {
                        return;
                    }
                }
                if !follow {
                    return;
                }
                tokio::select! {
                    changed = newest.changed() => if changed.is_err() { return },
                    () = sender.closed() => return,
                    () = streams.closed() => {
                        let _ = sender.send(Err(status::closing())).await;
                        return;
                    }
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

/// Memory of this process, from `/proc/self/status` (proc(5), VmRSS in kB).
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
