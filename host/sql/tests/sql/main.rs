//! The engine over a store on disk: answers, pruning, limits, what is refused, what a commit changes.

mod answers;
mod extent;
mod functions;
mod placeholders;
mod sample;

use std::path::Path;
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use weir_sql::engine::{Engine, Limits};
use weir_sql::error::Error;
use weir_sql::functions::Hosts;
use weir_store::{Options, Store};

/// A store of 2,000 connections and 20,000 transactions in 3 hours.
const SIZE: sample::Size = sample::Size {
    connections: 2000,
    hours: 3,
};

fn limits() -> Limits {
    Limits {
        memory: 256 << 20,
        time: Duration::from_secs(60),
        patience: None,
        spill: None,
    }
}

fn open(store: &Path) -> Engine {
    Engine::open(store, limits(), Hosts::default()).expect("engine")
}

/// A sample store and an engine over it.
fn sample() -> (tempfile::TempDir, Engine) {
    let folder = tempfile::tempdir().expect("folder");
    sample::write(folder.path(), SIZE);
    let engine = open(folder.path());
    (folder, engine)
}

/// A store without rows and an engine over it.
fn empty() -> (tempfile::TempDir, Engine) {
    let folder = tempfile::tempdir().expect("folder");
    drop(Store::open(folder.path(), Options::default()).expect("store"));
    let engine = open(folder.path());
    (folder, engine)
}

/// The whole answer as one batch.
async fn ask(engine: &Engine, sql: &str) -> Result<RecordBatch, Error> {
    let mut answer = engine.plan(sql).await?.run();
    let mut batches = Vec::new();
    while let Some(batch) = answer.next().await {
        batches.push(batch?);
    }
    Ok(concat_batches(&answer.schema(), &batches).expect("one schema"))
}

/// The answer as text, a row a line, columns apart by "|"; NULL is "-".
async fn text(engine: &Engine, sql: &str) -> String {
    let batch = ask(engine, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let options = FormatOptions::default().with_null("-");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).expect("formatter"))
        .collect();
    let rows = (0..batch.num_rows()).map(|row| {
        let cells: Vec<_> = columns.iter().map(|column| column.value(row).to_string()).collect();
        cells.join("|")
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// The error of a query that must fail.
async fn fails(engine: &Engine, sql: &str) -> Error {
    match ask(engine, sql).await {
        Ok(batch) => panic!("{sql}: {} rows", batch.num_rows()),
        Err(error) => error,
    }
}

/// What EXPLAIN ANALYZE tells.
async fn explain(engine: &Engine, sql: &str) -> String {
    let batch = ask(engine, &format!("EXPLAIN ANALYZE {sql}")).await.expect("explain");
    batch.column(1).as_string::<i32>().value(0).to_owned()
}
