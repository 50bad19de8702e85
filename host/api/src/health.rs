//! Which services do their work: what `grpc.health.v1` tells.

use std::sync::atomic::{AtomicBool, Ordering};

use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::analyses::Analyses;
use crate::appliance::{Appliance, Capture};
use crate::flows::Flows;
use crate::log::RecordLog;
use crate::records::Records;
use crate::v1::analysis_service_server::AnalysisServiceServer;
use crate::v1::appliance_service_server::ApplianceServiceServer;
use crate::v1::capture_service_server::CaptureServiceServer;
use crate::v1::flow_service_server::FlowServiceServer;
use crate::v1::record_service_server::RecordServiceServer;

/// What keeps the daemon from its work, while it does; what fails for good ends it.
#[derive(Debug, Default)]
pub struct Troubles {
    /// Frames are not measured any more (an inline path goes on without).
    pub measuring: AtomicBool,
    /// What is found is not stored: the disk is full, or the store cannot be written.
    pub store: AtomicBool,
}

/// What serves at one moment. A service serves if what it tells is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    /// Counters of the ports are those of what passes.
    capture: bool,
    /// What passes comes into the log, and so to the analysis.
    records: bool,
    /// The daemon as a whole.
    all: bool,
}

impl Health {
    pub fn now(log: &RecordLog, troubles: &Troubles) -> Self {
        let capture = !troubles.measuring.load(Ordering::Relaxed);
        let records = capture && !log.fails();
        Self {
            capture,
            records,
            all: records && !troubles.store.load(Ordering::Relaxed),
        }
    }

    pub async fn report(self, reporter: &HealthReporter, with_analyses: bool) {
        let mut services = vec![
            ("", self.all),
            (RecordServiceServer::<Records>::NAME, self.records),
            (FlowServiceServer::<Flows>::NAME, self.records),
            (CaptureServiceServer::<Capture>::NAME, self.capture),
            (ApplianceServiceServer::<Appliance>::NAME, true),
        ];
        if with_analyses {
            services.push((AnalysisServiceServer::<Analyses>::NAME, true));
        }
        for (name, serves) in services {
            let status = match serves {
                true => ServingStatus::Serving,
                false => ServingStatus::NotServing,
            };
            reporter.set_service_status(name, status).await;
        }
    }
}
