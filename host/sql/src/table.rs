//! A table of the store as the engine sees it: the files that counted when the query began.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, DFSchema, Result, ScalarValue, Statistics, project_schema};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::listing::helpers::expr_applicable_for_cols;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use weir_store::StoredFile;
use weir_store::tables::Table;

use crate::storage::Storage;

/// What the folders of a table's files are named after, in order.
const PARTITIONS: [&str; 2] = ["tap", "hour"];

/// A table and its files.
#[derive(Debug)]
pub struct StoreTable {
    schema: TableSchema,
    /// Where the column of time is among the stored ones.
    time: usize,
    files: Vec<StoredFile>,
}

impl StoreTable {
    /// A table with these files.
    pub fn new(table: Table, files: Vec<StoredFile>) -> Self {
        let stored: Vec<_> = table.file_schema().fields().iter().map(as_read).collect();
        let stored: SchemaRef = Arc::new(Schema::new(stored));
        let folders = PARTITIONS.map(|name| Arc::new(Field::new(name, DataType::Utf8View, false)));
        Self {
            time: stored.index_of(table.time_column()).unwrap_or_default(),
            schema: TableSchema::builder(stored)
                .with_table_partition_cols(folders.to_vec())
                .build(),
            files,
        }
    }

    /// The files whose folders pass the filters that are about nothing but folders.
    fn pruned(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<&StoredFile>> {
        let about_folders = filters
            .iter()
            .filter(|filter| expr_applicable_for_cols(&PARTITIONS, filter));
        let Some(filter) = conjunction(about_folders.cloned()) else {
            return Ok(self.files.iter().collect());
        };
        let fields: Vec<_> = self.schema.table_partition_cols().iter().cloned().collect();
        let schema = Arc::new(Schema::new(fields));
        let taps = StringViewArray::from_iter_values(self.files.iter().map(|file| folders(file)[0]));
        let hours = StringViewArray::from_iter_values(self.files.iter().map(|file| folders(file)[1]));
        let columns: Vec<ArrayRef> = vec![Arc::new(taps), Arc::new(hours)];
        let values = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        let filter = state.create_physical_expr(filter, &DFSchema::try_from(schema)?)?;
        let pass = filter.evaluate(&values)?.into_array(values.num_rows())?;
        let pass = pass.as_boolean();
        let files = self.files.iter().enumerate();
        Ok(files
            .filter(|(place, _)| pass.is_valid(*place) && pass.value(*place))
            .map(|(_, file)| file)
            .collect())
    }

    /// A file with what the manifest says of it: no footer is read for a plan.
    fn described(&self, file: &StoredFile) -> PartitionedFile {
        let time = |ns| Precision::Exact(ScalarValue::TimestampNanosecond(Some(ns), Some("UTC".into())));
        let mut columns = vec![ColumnStatistics::new_unknown(); self.schema.file_schema().fields().len()];
        columns[self.time] = ColumnStatistics {
            min_value: time(file.from),
            max_value: time(file.to),
            null_count: Precision::Exact(0),
            ..ColumnStatistics::new_unknown()
        };
        let statistics = Statistics {
            num_rows: Precision::Exact(file.rows as usize),
            total_byte_size: Precision::Inexact(file.bytes as usize),
            column_statistics: columns,
        };
        let mut described = PartitionedFile::new(file.path.as_str(), file.bytes);
        // Files never change, but a store may be made anew: what is remembered of a footer must not be another file's.
        described.object_meta.last_modified = UNIX_EPOCH
            .checked_add(Duration::from_nanos(file.to.unsigned_abs()))
            .unwrap_or(UNIX_EPOCH)
            .into();
        described.partition_values = folders(file)
            .map(|value| ScalarValue::Utf8View(Some(value.to_owned())))
            .to_vec();
        described.with_statistics(Arc::new(statistics))
    }
}

/// Tap and hour of a file.
fn folders(file: &StoredFile) -> [&str; 2] {
    file.partition().map_or(["", ""], |(_, tap, hour)| [tap, hour])
}

/// Text is read as views, in which the engine compares and groups fastest, whatever it is stored as.
fn as_read(field: &FieldRef) -> FieldRef {
    let plain = match field.data_type() {
        DataType::Dictionary(_, value) => value,
        other => other,
    };
    if *plain == DataType::Utf8 {
        Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View))
    } else {
        Arc::clone(field)
    }
}

#[async_trait]
impl TableProvider for StoreTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema.table_schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Filters leave out files, row groups and pages; the engine filters rows again.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = state.table_options().parquet.clone();
        let format = ParquetFormat::new().with_options(options);
        let files = self.pruned(state, filters)?.into_iter();
        let files: Vec<_> = files.map(|file| self.described(file)).collect();
        if files.is_empty() {
            return Ok(Arc::new(EmptyExec::new(project_schema(&self.schema(), projection)?)));
        }
        let known = files.iter().filter_map(|file| file.statistics.as_deref());
        let statistics = Statistics::try_merge_iter(known, &self.schema())?;
        let groups = FileGroup::new(files).split_files(state.config().target_partitions());
        let source = format.file_source(self.schema.clone());
        let config = FileScanConfigBuilder::new(Storage::url()?, source)
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        format.create_physical_plan(state, config).await
    }
}
