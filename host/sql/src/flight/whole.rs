//! GetSchema beside what Arrow's Flight SQL service has: it has none.

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, PollInfo, SchemaResult, Ticket,
};
use tonic::{Request, Streaming};

use super::{Reply, Service};

/// The service as clients see it.
pub(super) struct Whole(pub Service);

#[tonic::async_trait]
impl FlightService for Whole {
    type HandshakeStream = <Service as FlightService>::HandshakeStream;
    type ListFlightsStream = <Service as FlightService>::ListFlightsStream;
    type DoGetStream = <Service as FlightService>::DoGetStream;
    type DoPutStream = <Service as FlightService>::DoPutStream;
    type DoActionStream = <Service as FlightService>::DoActionStream;
    type ListActionsStream = <Service as FlightService>::ListActionsStream;
    type DoExchangeStream = <Service as FlightService>::DoExchangeStream;

    /// The schema of what GetFlightInfo tells of, for every command that it takes.
    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Reply<SchemaResult> {
        let info = FlightService::get_flight_info(&self.0, request).await?;
        Ok(info.map(|info| SchemaResult { schema: info.schema }))
    }

    async fn handshake(&self, request: Request<Streaming<HandshakeRequest>>) -> Reply<Self::HandshakeStream> {
        FlightService::handshake(&self.0, request).await
    }

    async fn list_flights(&self, request: Request<Criteria>) -> Reply<Self::ListFlightsStream> {
        FlightService::list_flights(&self.0, request).await
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Reply<FlightInfo> {
        FlightService::get_flight_info(&self.0, request).await
    }

    async fn poll_flight_info(&self, request: Request<FlightDescriptor>) -> Reply<PollInfo> {
        FlightService::poll_flight_info(&self.0, request).await
    }

    async fn do_get(&self, request: Request<Ticket>) -> Reply<Self::DoGetStream> {
        FlightService::do_get(&self.0, request).await
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Reply<Self::DoPutStream> {
        FlightService::do_put(&self.0, request).await
    }

    async fn do_exchange(&self, request: Request<Streaming<FlightData>>) -> Reply<Self::DoExchangeStream> {
        FlightService::do_exchange(&self.0, request).await
    }

    async fn do_action(&self, request: Request<Action>) -> Reply<Self::DoActionStream> {
        FlightService::do_action(&self.0, request).await
    }

    async fn list_actions(&self, request: Request<Empty>) -> Reply<Self::ListActionsStream> {
        FlightService::list_actions(&self.0, request).await
    }
}
