//! Statements as clients hold them, and those that run.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use datafusion::common::{ParamValues, ScalarValue};
use prost::Message;
use prost::bytes::Bytes;
use tokio::sync::Notify;
use tonic::Status;

use crate::engine::{Engine, Query};
use crate::error::Error;

/// A query and the values of its parameters: the content of tickets and of the handles of prepared statements.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Statement {
    /// Tells a query that runs from others; empty in prepared statements.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The text.
    #[prost(string, tag = "2")]
    pub sql: String,
    /// A row of values as an Arrow IPC stream; empty: there are none.
    #[prost(bytes = "bytes", tag = "3")]
    pub parameters: Bytes,
}

impl Statement {
    pub(super) fn new(sql: String) -> Self {
        Self { sql, ..Self::default() }
    }

    /// From a ticket or a handle.
    pub(super) fn decode_handle(handle: &Bytes) -> Result<Self, Status> {
        Self::decode(handle.clone()).map_err(|_| Status::invalid_argument("this ticket or handle is not from here"))
    }

    /// The same statement with these values.
    pub(super) fn with_parameters(self, batches: &[RecordBatch]) -> Result<Self, Status> {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let Some(row) = batches.iter().find(|batch| batch.num_rows() == 1).filter(|_| rows == 1) else {
            let text = format!("a query takes one row of parameters, not {rows}");
            return Err(Status::invalid_argument(text));
        };
        let bytes = StreamWriter::try_new(Vec::new(), &row.schema()).and_then(|mut writer| {
            writer.write(row)?;
            writer.into_inner()
        });
        Ok(Self {
            parameters: bytes.map_err(|error| Status::internal(error.to_string()))?.into(),
            ..self
        })
    }

    pub(super) async fn plan(&self, engine: &Engine) -> Result<Query, Error> {
        let query = engine.plan(&self.sql).await?;
        if self.parameters.is_empty() {
            return Ok(query);
        }
        let row =
            StreamReader::try_new(&*self.parameters, None).and_then(|reader| reader.collect::<Result<Vec<_>, _>>());
        let row = row.map_err(|error| Error::Query(error.into()))?;
        let columns = row.iter().flat_map(RecordBatch::columns);
        let values = columns.map(|column| ScalarValue::try_from_array(column, 0));
        let values = values.collect::<Result<Vec<_>, _>>().map_err(Error::Query)?;
        query.with_parameters(ParamValues::from(values))
    }
}

/// The parameters of a query as columns; of a type that does not follow from the query, NULL's.
pub(super) fn parameters(query: &Query) -> Result<Schema, Error> {
    let parameters = query.parameters()?.into_iter();
    let fields = parameters.map(|(name, data_type)| Field::new(name, data_type.unwrap_or(DataType::Null), true));
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// The queries that run, by id.
pub(super) struct Running {
    queries: Mutex<HashMap<String, Arc<Notify>>>,
    next: AtomicU64,
    /// When the server started: ids of another run of it are others.
    started: u128,
}

impl Default for Running {
    fn default() -> Self {
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            queries: Mutex::default(),
            next: AtomicU64::default(),
            started: started.unwrap_or_default().as_nanos(),
        }
    }
}

impl Running {
    fn queries(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The statement with an id of its own.
    pub(super) fn named(&self, statement: Statement) -> Statement {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Statement {
            id: format!("{:x}-{number}", self.started),
            ..statement
        }
    }

    /// A query begins; it has ended when the place is dropped.
    pub(super) fn enter(self: Arc<Self>, id: String, cancel: Arc<Notify>) -> Place {
        self.queries().insert(id.clone(), cancel);
        Place { running: self, id }
    }

    /// Cancel a query; false: it does not run.
    pub(super) fn cancel(&self, id: &str) -> bool {
        let query = self.queries().get(id).cloned();
        query.inspect(|query| query.notify_one()).is_some()
    }
}

/// A query's place among those that run.
pub(super) struct Place {
    running: Arc<Running>,
    id: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.running.queries().remove(&self.id);
    }
}
