//! Queries over Arrow Flight SQL: what ADBC and JDBC drivers speak.
//!
//! The server keeps nothing between calls but the queries that run: tickets and prepared statements carry their own text
//! and parameters.

mod catalog;
mod keys;
mod statement;
mod types;
mod whole;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::sql::metadata::{SqlInfoData, XdbcTypeInfoData};
use arrow_flight::sql::server::{FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, CommandGetCatalogs,
    CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
    CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandPreparedStatementQuery, CommandStatementQuery, CommandStatementUpdate, DoPutPreparedStatementResult,
    ProstMessageExt, SqlInfo, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightDescriptor,
    FlightEndpoint, FlightInfo, IpcMessage, SchemaAsIpc, Ticket,
};
use futures::{Stream, TryStreamExt, stream};
use prost::Message;
use prost::bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use weir_command::signals::signal;

use crate::engine::Engine;
use crate::error::Error;
use statement::{Running, Statement};
use whole::Whole;

/// Queries that are answered at a time; further ones wait their turn.
const AT_ONCE: usize = 16;

/// How long a query keeps its turn while its client takes no rows: a few that were left half read would keep all others
/// from theirs.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A client that vanished without closing must not keep its query.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// What clients send to cancel, beside the older CancelQuery.
const CANCEL_FLIGHT_INFO: &str = "CancelFlightInfo";

type DoGet = <Service as FlightService>::DoGetStream;
type Reply<T> = Result<Response<T>, Status>;

/// Serve until interrupted; `ready` is told the address.
pub async fn serve(engine: Engine, listen: SocketAddr, ready: impl FnOnce(SocketAddr)) -> Result<(), Error> {
    let cannot = |error: &dyn std::fmt::Display| Error::Listen(format!("{listen}: {error}"));
    let listener = TcpListener::bind(listen).await.map_err(|error| cannot(&error))?;
    ready(listener.local_addr().map_err(|error| cannot(&error))?);
    let service = FlightServiceServer::new(Whole(Service::new(engine)?));
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .add_service(service)
        .serve_with_incoming(TcpIncoming::from(listener));
    tokio::select! {
        result = server => result.map_err(|error| cannot(&error)),
        () = signal() => Ok(()),
    }
}

/// The Flight SQL service of one engine.
struct Service {
    engine: Engine,
    info: SqlInfoData,
    types: XdbcTypeInfoData,
    running: Arc<Running>,
    turns: Arc<Semaphore>,
}

impl Service {
    fn new(engine: Engine) -> Result<Self, Error> {
        Ok(Self {
            info: catalog::sql_info().map_err(|error| Error::Listen(error.to_string()))?,
            types: types::types().map_err(|error| Error::Listen(error.to_string()))?,
            engine,
            running: Arc::default(),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// What a client needs to fetch the rows of a statement.
    async fn statement_info(&self, statement: Statement, descriptor: FlightDescriptor) -> Reply<FlightInfo> {
        let query = statement.plan(&self.engine).await?;
        let ticket = TicketStatementQuery {
            statement_handle: self.running.named(statement).encode_to_vec().into(),
        };
        info(&query.schema(), &ticket, descriptor)
    }

    async fn rows(&self, statement: Statement) -> Reply<DoGet> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| Status::unavailable("the server stops"))?;
        let answer = statement.plan(&self.engine).await?.run_with(turn);
        let schema = answer.schema();
        let place = Arc::clone(&self.running).enter(statement.id, answer.cancel());
        let batches = stream::unfold(Some((answer, place)), |state| async {
            let (mut answer, place) = state?;
            match answer.next().await? {
                Ok(batch) => Some((Ok(batch), Some((answer, place)))),
                Err(error) => Some((Err(FlightError::from(Status::from(error))), None)),
            }
        });
        let encoder = FlightDataEncoderBuilder::new().with_schema(schema);
        Ok(Response::new(Box::pin(encoder.build(batches).map_err(Status::from))))
    }

    fn cancel(&self, info: &FlightInfo) -> Result<(), Status> {
        let ticket = info.endpoint.first().and_then(|endpoint| endpoint.ticket.as_ref());
        let ticket = ticket.ok_or_else(|| Status::invalid_argument("the FlightInfo to cancel has no ticket"))?;
        let ticket = arrow_flight::sql::Any::decode(&*ticket.ticket).ok();
        let ticket = ticket.and_then(|any| any.unpack::<TicketStatementQuery>().ok().flatten());
        let ticket = ticket.ok_or_else(|| Status::invalid_argument("the FlightInfo to cancel is that of no query"))?;
        if self
            .running
            .cancel(&Statement::decode_handle(&ticket.statement_handle)?.id)
        {
            Ok(())
        } else {
            Err(Status::not_found("this query does not run"))
        }
    }
}

/// The answer to GetFlightInfo: the columns, and the command again as the ticket.
fn info(schema: &Schema, ticket: &impl ProstMessageExt, descriptor: FlightDescriptor) -> Reply<FlightInfo> {
    let ticket = Ticket::new(ticket.as_any().encode_to_vec());
    let info = FlightInfo::new()
        .try_with_schema(schema)
        .map_err(|error| Status::internal(error.to_string()))?
        .with_endpoint(FlightEndpoint::new().with_ticket(ticket))
        .with_descriptor(descriptor);
    Ok(Response::new(info))
}

/// A batch as the answer to DoGet.
fn one(batch: Result<RecordBatch, FlightError>) -> Reply<DoGet> {
    let batch = batch.map_err(Status::from)?;
    let encoder = FlightDataEncoderBuilder::new().with_schema(batch.schema());
    let stream = encoder.build(stream::once(async { Ok(batch) }));
    Ok(Response::new(Box::pin(stream.map_err(Status::from))))
}

fn schema_bytes(schema: &Schema) -> Result<Bytes, Status> {
    let IpcMessage(bytes) = SchemaAsIpc::new(schema, &Default::default())
        .try_into()
        .map_err(|error: arrow::error::ArrowError| Status::internal(error.to_string()))?;
    Ok(bytes)
}

#[tonic::async_trait]
impl FlightSqlService for Service {
    type FlightService = Self;

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Reply<FlightInfo> {
        self.statement_info(Statement::new(query.query), request.into_inner())
            .await
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Reply<FlightInfo> {
        let statement = Statement::decode_handle(&query.prepared_statement_handle)?;
        self.statement_info(statement, request.into_inner()).await
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Reply<FlightInfo> {
        info(&query.into_builder().schema(), &query, request.into_inner())
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Reply<FlightInfo> {
        info(&query.clone().into_builder().schema(), &query, request.into_inner())
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Reply<FlightInfo> {
        info(&query.clone().into_builder().schema(), &query, request.into_inner())
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Reply<FlightInfo> {
        info(&query.into_builder().schema(), &query, request.into_inner())
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Reply<FlightInfo> {
        info(
            &query.clone().into_builder(&self.info).schema(),
            &query,
            request.into_inner(),
        )
    }

    async fn get_flight_info_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Reply<FlightInfo> {
        info(&keys::PRIMARY, &query, request.into_inner())
    }

    async fn get_flight_info_exported_keys(
        &self,
        query: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Reply<FlightInfo> {
        info(&keys::FOREIGN, &query, request.into_inner())
    }

    async fn get_flight_info_imported_keys(
        &self,
        query: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Reply<FlightInfo> {
        info(&keys::FOREIGN, &query, request.into_inner())
    }

    async fn get_flight_info_cross_reference(
        &self,
        query: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Reply<FlightInfo> {
        info(&keys::FOREIGN, &query, request.into_inner())
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Reply<FlightInfo> {
        info(&self.types.schema(), &query, request.into_inner())
    }

    async fn do_get_statement(&self, ticket: TicketStatementQuery, _: Request<Ticket>) -> Reply<DoGet> {
        self.rows(Statement::decode_handle(&ticket.statement_handle)?).await
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        _: Request<Ticket>,
    ) -> Reply<DoGet> {
        self.rows(Statement::decode_handle(&query.prepared_statement_handle)?)
            .await
    }

    async fn do_get_catalogs(&self, query: CommandGetCatalogs, _: Request<Ticket>) -> Reply<DoGet> {
        one(catalog::catalogs(query))
    }

    async fn do_get_schemas(&self, query: CommandGetDbSchemas, _: Request<Ticket>) -> Reply<DoGet> {
        one(catalog::schemas(query))
    }

    async fn do_get_tables(&self, query: CommandGetTables, _: Request<Ticket>) -> Reply<DoGet> {
        one(catalog::tables(query, self.engine.tables()))
    }

    async fn do_get_table_types(&self, query: CommandGetTableTypes, _: Request<Ticket>) -> Reply<DoGet> {
        one(catalog::table_types(query))
    }

    async fn do_get_sql_info(&self, query: CommandGetSqlInfo, _: Request<Ticket>) -> Reply<DoGet> {
        one(query.into_builder(&self.info).build())
    }

    async fn do_get_primary_keys(&self, _: CommandGetPrimaryKeys, _: Request<Ticket>) -> Reply<DoGet> {
        one(Ok(RecordBatch::new_empty(Arc::clone(&keys::PRIMARY))))
    }

    async fn do_get_exported_keys(&self, _: CommandGetExportedKeys, _: Request<Ticket>) -> Reply<DoGet> {
        one(Ok(RecordBatch::new_empty(Arc::clone(&keys::FOREIGN))))
    }

    async fn do_get_imported_keys(&self, _: CommandGetImportedKeys, _: Request<Ticket>) -> Reply<DoGet> {
        one(Ok(RecordBatch::new_empty(Arc::clone(&keys::FOREIGN))))
    }

    async fn do_get_cross_reference(&self, _: CommandGetCrossReference, _: Request<Ticket>) -> Reply<DoGet> {
        one(Ok(RecordBatch::new_empty(Arc::clone(&keys::FOREIGN))))
    }

    async fn do_get_xdbc_type_info(&self, query: CommandGetXdbcTypeInfo, _: Request<Ticket>) -> Reply<DoGet> {
        one(query.into_builder(&self.types).build())
    }

    async fn do_put_statement_update(
        &self,
        update: CommandStatementUpdate,
        _: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        // An update is refused, or it is none; the engine says why.
        self.engine.plan(&update.query).await?;
        Err(Status::invalid_argument(
            "this statement has rows: execute it as a query",
        ))
    }

    /// Values for the parameters of a prepared statement: they become part of its handle.
    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let statement = Statement::decode_handle(&query.prepared_statement_handle)?;
        let data = request.into_inner().map_err(FlightError::from);
        let batches: Vec<_> = FlightRecordBatchStream::new_from_flight_data(data)
            .try_collect()
            .await?;
        let statement = statement.with_parameters(&batches)?;
        Ok(DoPutPreparedStatementResult {
            prepared_statement_handle: Some(statement.encode_to_vec().into()),
        })
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        _: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let statement = Statement::new(query.query);
        let query = statement.plan(&self.engine).await?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: statement.encode_to_vec().into(),
            dataset_schema: schema_bytes(&query.schema())?,
            parameter_schema: schema_bytes(&statement::parameters(&query)?)?,
        })
    }

    async fn do_action_close_prepared_statement(
        &self,
        _: ActionClosePreparedStatementRequest,
        _: Request<Action>,
    ) -> Result<(), Status> {
        Ok(())
    }

    async fn do_action_cancel_query(
        &self,
        query: ActionCancelQueryRequest,
        _: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        let info = FlightInfo::decode(query.info).map_err(|error| Status::invalid_argument(error.to_string()))?;
        self.cancel(&info)?;
        // The numbers of both actions' results are the same.
        let result = CancelStatus::Cancelled.into();
        Ok(ActionCancelQueryResult { result })
    }

    async fn list_custom_actions(&self) -> Option<Vec<Result<ActionType, Status>>> {
        Some(vec![Ok(ActionType {
            r#type: CANCEL_FLIGHT_INFO.to_owned(),
            description: "Cancels a query: a CancelFlightInfoRequest, answered by a CancelFlightInfoResult".to_owned(),
        })])
    }

    async fn do_action_fallback(&self, request: Request<Action>) -> Reply<<Self as FlightService>::DoActionStream> {
        let action = request.into_inner();
        if action.r#type != CANCEL_FLIGHT_INFO {
            return Err(Status::invalid_argument(format!(
                "there is no action {:?}",
                action.r#type
            )));
        }
        let request = CancelFlightInfoRequest::decode(action.body);
        let request = request.map_err(|error| Status::invalid_argument(error.to_string()))?;
        self.cancel(&request.info.unwrap_or_default())?;
        let result = CancelFlightInfoResult::new(CancelStatus::Cancelled);
        let result = arrow_flight::Result::new(result.encode_to_vec());
        let results: Pin<Box<dyn Stream<Item = _> + Send>> = Box::pin(stream::once(async { Ok(result) }));
        Ok(Response::new(results))
    }

    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::ReadOnly(_) | Error::Query(_) | Error::Length(_) | Error::Depth(_) | Error::Extent { .. } => {
                Self::invalid_argument(text)
            }
            Error::Time(_) => Self::deadline_exceeded(text),
            Error::Memory { .. } => Self::resource_exhausted(text),
            Error::Cancelled => Self::cancelled(text),
            Error::Idle(_) => Self::aborted(text),
            Error::Store(_) | Error::Listen(_) | Error::Write(_) => Self::internal(text),
        }
    }
}
