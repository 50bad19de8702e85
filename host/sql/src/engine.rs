//! The engine: SQL in, batches of rows out, within limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::memory::{MemoryCatalogProvider, MemoryCatalogProviderList, MemorySchemaProvider};
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::ParamValues;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use weir_store::tables::Table;
use weir_store::{Manifest, StoreError};

use crate::depth;
use crate::error::Error;
use crate::functions::{self, Hosts};
use crate::storage::Storage;
use crate::table::StoreTable;
use crate::{extent, placeholders, read_only};

/// Names of the catalog and the schema that hold the tables.
pub const CATALOG: &str = "weir";
/// See [`CATALOG`].
pub const SCHEMA: &str = "store";

/// Most bytes of a query's text: understanding it takes far more memory than the text, which no limit counts.
pub(crate) const LONGEST: usize = 1 << 20;

/// Batches that wait for a slow reader of an answer.
const WAITING: usize = 2;

/// What queries may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Memory of the rows that all running queries hold (groups, sorts, joins), bytes. Buffers of files that are being read
    /// come on top: some ten MB a query.
    pub memory: usize,
    /// Time that an answer may take, without the time in which its reader did not ask for more.
    pub time: Duration,
    /// How long an answer waits for a reader that asks for no more rows, and then ends; without it for as long as it takes.
    pub patience: Option<Duration>,
    /// Where queries that need more memory may put rows.
    pub spill: Option<Spill>,
}

/// A folder for temporary files.
#[derive(Clone, Debug)]
pub struct Spill {
    /// The folder; it must exist.
    pub folder: PathBuf,
    /// Most bytes in it.
    pub bytes: u64,
}

/// A store that can be asked.
pub struct Engine {
    store: PathBuf,
    limits: Limits,
    sessions: Sessions,
}

/// Makes a session over tables. Behind a `dyn`, because a session holds plans and thousands of types in them, and the compiler
/// asks again and again whether what holds an engine may go from thread to thread: two minutes of it.
type Sessions = Box<dyn Fn(Arc<dyn CatalogProviderList>) -> SessionState + Send + Sync>;

impl Engine {
    /// An engine over the store in a folder.
    pub fn open(store: &Path, limits: Limits, hosts: Hosts) -> Result<Self, Error> {
        let store = store
            .canonicalize()
            .map_err(|error| Error::Store(format!("{}: {error}; weir store add makes one", store.display())))?;
        read_manifest(&store)?;
        let runtime = runtime(&store, &limits).map_err(Error::Query)?;
        let mut config = SessionConfig::new()
            .with_default_catalog_and_schema(CATALOG, SCHEMA)
            .with_create_default_catalog_and_schema(false)
            .with_information_schema(true);
        let parquet = &mut config.options_mut().execution.parquet;
        parquet.pushdown_filters = true;
        parquet.reorder_filters = true;
        // What each sort keeps back for merging, out of the limit.
        config.options_mut().execution.sort_spill_reservation_bytes = (limits.memory / 32).min(10 << 20);
        let mut template = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .build();
        register(&mut template, hosts).map_err(Error::Query)?;
        Ok(Self {
            store,
            limits,
            sessions: Box::new(move |tables| {
                SessionStateBuilder::new_from_existing(template.clone())
                    .with_catalog_list(tables)
                    .build()
            }),
        })
    }

    /// What the tables look like, by name.
    pub fn tables(&self) -> Vec<(&'static str, SchemaRef)> {
        let tables = Table::ALL.iter();
        let columns = |table: &Table| plain(&StoreTable::new(*table, Vec::new()).schema());
        tables.map(|table| (table.name(), columns(table))).collect()
    }

    /// A session over what is committed now.
    fn session(&self) -> Result<SessionState, Error> {
        let schema = MemorySchemaProvider::new();
        let manifest = read_manifest(&self.store)?;
        for table in Table::ALL {
            let files = manifest.of(table).cloned().collect();
            schema
                .register_table(table.name().to_owned(), Arc::new(StoreTable::new(table, files)))
                .map_err(Error::Query)?;
        }
        let catalog = MemoryCatalogProvider::new();
        catalog
            .register_schema(SCHEMA, Arc::new(schema))
            .map_err(Error::Query)?;
        let catalogs = MemoryCatalogProviderList::new();
        catalogs.register_catalog(CATALOG.to_owned(), Arc::new(catalog));
        let mut session = (self.sessions)(Arc::new(catalogs));
        // now() is the same in all of a query: it becomes a constant, and leaves out files, only if that is set.
        session.mark_start_execution();
        Ok(session)
    }

    /// Understand a query, over what is committed now.
    pub async fn plan(&self, sql: &str) -> Result<Query, Error> {
        if sql.len() > LONGEST {
            return Err(Error::Length(sql.len()));
        }
        let operators = depth::operators(sql);
        if operators > depth::MOST {
            return Err(Error::Depth(operators));
        }
        let sql = placeholders::numbered(sql);
        let session = self.session()?;
        let dialect = session.config_options().sql_parser.dialect;
        let statement = session.sql_to_statement(&sql, &dialect).map_err(Error::Query)?;
        read_only::check(&statement)?;
        extent::check(&statement)?;
        let plan = session.statement_to_plan(statement).await;
        let plan = plan.map_err(|error| self.error(error))?;
        read_only::check_plan(&plan)?;
        Ok(Query {
            session,
            plan,
            limits: self.limits.clone(),
        })
    }

    fn error(&self, error: DataFusionError) -> Error {
        self.limits.error(error)
    }
}

impl Limits {
    fn error(&self, error: DataFusionError) -> Error {
        Error::from_engine(error, self.memory, self.spill.is_some())
    }
}

fn read_manifest(store: &Path) -> Result<Manifest, Error> {
    Manifest::read(store).map_err(|error| match error {
        StoreError::NotAStore(folder) => Error::Store(format!(
            "{} is no store: it has no manifest; weir store add and weir serve --store make one",
            folder.display()
        )),
        other => Error::Store(other.to_string()),
    })
}

fn runtime(store: &Path, limits: &Limits) -> Result<Arc<RuntimeEnv>, DataFusionError> {
    let pool: Arc<dyn MemoryPool> = match limits.spill {
        Some(_) => Arc::new(FairSpillPool::new(limits.memory)),
        None => Arc::new(GreedyMemoryPool::new(limits.memory)),
    };
    let disk = match &limits.spill {
        Some(spill) => DiskManagerBuilder::default()
            .with_mode(DiskManagerMode::Directories(vec![spill.folder.clone()]))
            .with_max_temp_directory_size(spill.bytes),
        None => DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled),
    };
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(pool)
        .with_disk_manager_builder(disk)
        .build_arc()?;
    // The store's files, and no others.
    runtime.deregister_object_store(ObjectStoreUrl::local_filesystem().as_ref())?;
    runtime.register_object_store(Storage::url()?.as_ref(), Arc::new(Storage::open(store)?));
    Ok(runtime)
}

fn register(session: &mut SessionState, hosts: Hosts) -> Result<(), DataFusionError> {
    use datafusion::execution::FunctionRegistry;
    let limited = functions::limited(session)?;
    for function in functions::scalar(hosts).into_iter().chain(limited) {
        session.register_udf(function)?;
    }
    for function in functions::aggregate() {
        session.register_udaf(function)?;
    }
    session.register_expr_planner(Arc::new(functions::Signed))
}

/// A query that is understood, and what it is asked of.
pub struct Query {
    session: SessionState,
    plan: LogicalPlan,
    limits: Limits,
}

impl Query {
    /// The columns of the answer.
    pub fn schema(&self) -> SchemaRef {
        plain(self.plan.schema().as_arrow())
    }

    /// Names and types of the parameters, as far as they follow from the query; in order.
    pub fn parameters(&self) -> Result<Vec<(String, Option<DataType>)>, Error> {
        let types = self.plan.get_parameter_types().map_err(Error::Query)?;
        let mut types: Vec<_> = types.into_iter().collect();
        types.sort_by_key(|(name, _)| (name.len(), name.clone()));
        Ok(types)
    }

    /// The same query with values for its parameters.
    pub fn with_parameters(self, values: ParamValues) -> Result<Self, Error> {
        let plan = self.plan.with_param_values(values).map_err(Error::Query)?;
        Ok(Self { plan, ..self })
    }

    /// Begin to answer. Must be called in a Tokio runtime.
    pub fn run(self) -> Answer {
        self.run_with(())
    }

    /// The same; lets go of `turn` as soon as nothing is computed any more, however long the reader takes for the last rows.
    pub fn run_with(self, turn: impl Send + 'static) -> Answer {
        let schema = self.schema();
        let Self { session, plan, limits } = self;
        let (sender, batches) = mpsc::channel(WAITING);
        let given = Arc::clone(&schema);
        let allowed = limits.clone();
        let task = tokio::spawn(async move {
            let result = answer(session, plan, &given, &sender, &allowed).await;
            drop(turn);
            if let Err(error) = result {
                // A reader that is gone needs no error.
                let _ = sender.send(Err(error)).await;
            }
        });
        Answer {
            schema,
            batches,
            task,
            left: limits.time,
            limits,
            cancel: Arc::new(Notify::new()),
        }
    }
}

async fn answer(
    session: SessionState,
    plan: LogicalPlan,
    schema: &SchemaRef,
    sender: &mpsc::Sender<Result<RecordBatch, Error>>,
    limits: &Limits,
) -> Result<(), Error> {
    let context = session.task_ctx();
    let plan = DataFrame::new(session, plan).create_physical_plan().await;
    let stream = plan.and_then(yielding).and_then(|plan| execute_stream(plan, context));
    let mut stream = stream.map_err(|error| limits.error(error))?;
    while let Some(batch) = stream.next().await {
        let batch = batch.and_then(|batch| as_plain(&batch, schema));
        let sent = sender.send(Ok(batch.map_err(|error| limits.error(error))?));
        let sent = match limits.patience {
            Some(patience) => tokio::time::timeout(patience, sent)
                .await
                .map_err(|_| Error::Idle(patience))?,
            None => sent.await,
        };
        if sent.is_err() {
            break;
        }
    }
    Ok(())
}

/// The plan with a point to stop at behind each operator that may make many rows of few: without it, a join of a few
/// rows with themselves computes for hours and hears no cancelling.
fn yielding(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let stoppable = plan.transform_up(|plan| {
        let many = matches!(
            plan.cardinality_effect(),
            CardinalityEffect::Unknown | CardinalityEffect::GreaterEqual
        );
        if many && !plan.children().is_empty() {
            Ok(Transformed::yes(Arc::new(CooperativeExec::new(plan)) as _))
        } else {
            Ok(Transformed::no(plan))
        }
    })?;
    Ok(stoppable.data)
}

/// An answer on its way. Dropping it ends the query.
pub struct Answer {
    schema: SchemaRef,
    batches: mpsc::Receiver<Result<RecordBatch, Error>>,
    task: JoinHandle<()>,
    left: Duration,
    limits: Limits,
    cancel: Arc<Notify>,
}

impl Answer {
    /// Its columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// What ends it when notified.
    pub fn cancel(&self) -> Arc<Notify> {
        Arc::clone(&self.cancel)
    }

    /// The next rows. After an error there are no more.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, Error>> {
        let asked = Instant::now();
        let result = tokio::select! {
            biased;
            () = self.cancel.notified() => Some(Err(Error::Cancelled)),
            batch = self.batches.recv() => batch,
            () = tokio::time::sleep(self.left) => Some(Err(Error::Time(self.limits.time))),
        };
        self.left = self.left.saturating_sub(asked.elapsed());
        if matches!(result, Some(Err(_))) {
            self.task.abort();
            self.batches.close();
        }
        result
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The columns as any client understands them: texts as plain UTF-8, not as views or dictionaries.
fn plain(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let data_type = match field.data_type() {
            DataType::Dictionary(_, value) => value.as_ref(),
            other => other,
        };
        let data_type = match data_type {
            DataType::Utf8View => DataType::Utf8,
            DataType::BinaryView => DataType::Binary,
            other => other.clone(),
        };
        Field::new(field.name(), data_type, field.is_nullable())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn as_plain(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, DataFusionError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast(column, field.data_type()));
    let columns = columns.collect::<Result<_, _>>()?;
    // A batch may have rows and no columns.
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &rows)?)
}
