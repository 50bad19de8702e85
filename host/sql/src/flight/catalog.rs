//! What there is: the catalog, its schema, the tables, and what the server can do.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_flight::error::FlightError;
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables, SqlInfo, SqlNullOrdering,
    SqlSupportedCaseSensitivity, SqlSupportedTransaction,
};

use crate::engine::{CATALOG, SCHEMA};

/// The kind of all tables.
const TABLE: &str = "TABLE";

type Batch = Result<RecordBatch, FlightError>;

pub(super) fn catalogs(query: CommandGetCatalogs) -> Batch {
    let mut builder = query.into_builder();
    builder.append(CATALOG);
    builder.build()
}

pub(super) fn schemas(query: CommandGetDbSchemas) -> Batch {
    let mut builder = query.into_builder();
    builder.append(CATALOG, SCHEMA);
    builder.build()
}

pub(super) fn tables(query: CommandGetTables, tables: Vec<(&str, SchemaRef)>) -> Batch {
    let mut builder = query.into_builder();
    for (name, schema) in tables {
        builder.append(CATALOG, SCHEMA, name, TABLE, &schema)?;
    }
    builder.build()
}

pub(super) fn table_types(query: CommandGetTableTypes) -> Batch {
    let mut builder = query.into_builder();
    builder.append(TABLE);
    builder.build()
}

/// What drivers ask before they ask anything else.
pub(super) fn sql_info() -> Result<SqlInfoData, FlightError> {
    let mut builder = SqlInfoDataBuilder::new();
    builder.append(SqlInfo::FlightSqlServerName, "Weir");
    builder.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    builder.append(SqlInfo::FlightSqlServerArrowVersion, arrow::ARROW_VERSION);
    builder.append(SqlInfo::FlightSqlServerReadOnly, true);
    builder.append(SqlInfo::FlightSqlServerSql, true);
    builder.append(SqlInfo::FlightSqlServerSubstrait, false);
    builder.append(
        SqlInfo::FlightSqlServerTransaction,
        SqlSupportedTransaction::None as i32,
    );
    builder.append(SqlInfo::FlightSqlServerCancel, true);
    builder.append(SqlInfo::SqlDdlCatalog, false);
    builder.append(SqlInfo::SqlDdlSchema, false);
    builder.append(SqlInfo::SqlDdlTable, false);
    builder.append(
        SqlInfo::SqlIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32,
    );
    builder.append(
        SqlInfo::SqlQuotedIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityCaseInsensitive as i32,
    );
    builder.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    builder.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedHigh as i32);
    builder.append(SqlInfo::SqlTransactionsSupported, false);
    builder.build()
}
