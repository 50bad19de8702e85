//! CaptureService and ApplianceService: the state of the appliance.

use std::sync::Arc;

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
use crate::streams::{self, Streams};
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
        Ok(Response::new(self.state.status(&self.log, self.facts.as_ref())))
    }

    type WatchEventsStream = ReceiverStream<Result<WatchEventsResponse, Status>>;

    async fn watch_events(
        &self,
        request: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let WatchEventsRequest { after, follow } = request.into_inner();
        let place = self.streams.place()?;
        let (streams, state) = (self.streams.clone(), Arc::clone(&self.state));
        let mut newest = state.events.follow();
        if after > *newest.borrow_and_update() {
            let message =
                "no event has this number yet: the clock was set back, or it is of another daemon; begin with 0";
            return Err(status::invalid("after", "POSITION_UNKNOWN", message));
        }
        let (sender, receiver) = mpsc::channel(EVENTS_WAITING);
        tokio::spawn(async move {
            let _place = place;
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
                        streams::end(&sender, status::closing()).await;
                        return;
                    }
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}
