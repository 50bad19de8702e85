//! All services behind one address.

use std::fmt;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;

use crate::access::{Access, Guard};
use crate::analyses::{Analyses, Analyst};
use crate::appliance::{Appliance, Capture};
use crate::facts::Facts;
use crate::flows::Flows;
use crate::health::Health;
use crate::incoming::incoming;
use crate::log::RecordLog;
use crate::records::Records;
use crate::state::{ApplianceState, CaptureState};
use crate::streams::Streams;
use crate::v1::analysis_service_server::AnalysisServiceServer;
use crate::v1::appliance_service_server::ApplianceServiceServer;
use crate::v1::capture_service_server::CaptureServiceServer;
use crate::v1::flow_service_server::FlowServiceServer;
use crate::v1::record_service_server::RecordServiceServer;

/// Where the server listens unless told otherwise: this machine only.
pub const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 50051);

/// Connections at once.
const MAX_CONNECTIONS: usize = 512;

/// Ask a silent client for a sign of life, and give it up when none comes: a client that vanished
/// without closing must not keep its place.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// What a client may send on a connection before it is read. The HTTP/2 library ends connections on which more small frames wait
/// than go with this; so, it takes what the 1 MiB that a stream may send holds of pieces of 32 bytes and more.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// How often it is looked which services serve.
const LOOK: Duration = Duration::from_millis(500);

/// How long the end of the server waits for running calls. Clients that do not read, or say nothing on a connection, must
/// not keep the daemon from ending.
const GRACE: Duration = Duration::from_secs(5);

/// What the services are about.
pub struct Services {
    /// The record log.
    pub log: Arc<RecordLog>,
    /// What the analysis knows.
    pub facts: Arc<dyn Facts>,
    /// Who reads captures that clients send; without, there is no AnalysisService.
    pub analyst: Option<Arc<dyn Analyst>>,
    /// Counters of the sources.
    pub capture: Arc<CaptureState>,
    /// What only the daemon knows.
    pub appliance: Arc<ApplianceState>,
    /// Who may call them.
    pub access: Access,
    /// Silence after which a stream sends a heartbeat.
    pub heartbeat: Duration,
}

/// Why the server could not run.
#[derive(Debug)]
pub enum ServeError {
    /// The address cannot be listened on.
    Listen(SocketAddr, std::io::Error),
    /// The reflection service refused the descriptors.
    Reflection(tonic_reflection::server::Error),
    /// The transport failed.
    Transport(tonic::transport::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address, error) => {
                write!(
                    f,
                    "gRPC: cannot listen on {address}: {error}; stop what uses it or choose another address"
                )
            }
            Self::Reflection(error) => write!(f, "gRPC reflection: {error}"),
            Self::Transport(error) => write!(f, "gRPC: {error}"),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen(_, error) => Some(error),
            Self::Reflection(error) => Some(error),
            Self::Transport(error) => Some(error),
        }
    }
}

/// What is behind an error that only says that the transport failed.
pub fn cause(error: &tonic::transport::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Serve on an address until `shutdown` resolves; then streams end with UNAVAILABLE and running calls have 5 seconds to
/// finish. Connections that are open then are left to the runtime, which ends them when it ends.
pub async fn serve(
    address: SocketAddr,
    services: Services,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| ServeError::Listen(address, error))?;
    serve_on(listener, services, shutdown).await
}

/// [`serve`] on a socket that listens already.
pub async fn serve_on(
    listener: TcpListener,
    services: Services,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let Services {
        log,
        facts,
        analyst,
        capture,
        appliance,
        access,
        heartbeat,
    } = services;
    let (close, closing) = watch::channel(false);
    let streams = appliance
        .streams
        .get_or_init(|| Streams::new(closing.clone(), heartbeat))
        .clone();

    let (health_reporter, health) = tonic_health::server::health_reporter();
    let analyses = analyst.map(|analyst| Analyses::new(analyst, streams.clone()));
    let mut told = Health::now(&log, &appliance.troubles);
    told.report(&health_reporter, analyses.is_some()).await;
    let looking = {
        let (log, appliance, with_analyses) = (Arc::clone(&log), Arc::clone(&appliance), analyses.is_some());
        async move {
            loop {
                tokio::time::sleep(LOOK).await;
                let now = Health::now(&log, &appliance.troubles);
                if now != told {
                    told = now;
                    now.report(&health_reporter, with_analyses).await;
                }
            }
        }
    };
    let described = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(weir_messages::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let reflection = described().build_v1().map_err(ServeError::Reflection)?;
    // Clients that know only this one are still many: gRPC's own for Python among them.
    let old_reflection = described().build_v1alpha().map_err(ServeError::Reflection)?;

    let connections = incoming(listener, access.identity.as_ref(), MAX_CONNECTIONS);
    let guard = Guard(access.token);
    let analyses = analyses.map(AnalysisServiceServer::new);
    let capture = CaptureServiceServer::new(Capture(capture));
    let records = RecordServiceServer::new(Records::new(Arc::clone(&log), streams.clone()));
    let flows = FlowServiceServer::new(Flows::new(Arc::clone(&facts), Arc::clone(&log), streams.clone()));
    let appliance = ApplianceServiceServer::new(Appliance {
        state: appliance,
        log,
        facts,
        streams,
    });
    let served = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_connection_window_size(CONNECTION_WINDOW)
        // Who looks whether the daemon lives need not be known.
        .add_service(health.accept_compressed(Gzip))
        .add_service(InterceptedService::new(
            reflection.accept_compressed(Gzip),
            guard.clone(),
        ))
        .add_service(InterceptedService::new(
            old_reflection.accept_compressed(Gzip),
            guard.clone(),
        ))
        .add_service(InterceptedService::new(records.accept_compressed(Gzip), guard.clone()))
        .add_service(InterceptedService::new(flows.accept_compressed(Gzip), guard.clone()))
        .add_optional_service(
            analyses.map(|analyses| InterceptedService::new(analyses.accept_compressed(Gzip), guard.clone())),
        )
        .add_service(InterceptedService::new(capture.accept_compressed(Gzip), guard.clone()))
        .add_service(InterceptedService::new(appliance.accept_compressed(Gzip), guard))
        .serve_with_incoming_shutdown(connections, async move {
            shutdown.await;
            close.send_replace(true);
        });
    let overdue = async move {
        let mut closing = closing;
        // The sender is gone once all is served.
        if closing.wait_for(|closing| *closing).await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = served => served.map_err(ServeError::Transport),
        () = overdue => Ok(()),
        () = looking => Ok(()),
    }
}
