//! Which statements may run: those that only read.

use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SQLOptions;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

use crate::error::Error;

/// Refuse a statement that does anything but read.
pub fn check(statement: &Statement) -> Result<(), Error> {
    match statement {
        Statement::Statement(statement) => match statement.as_ref() {
            ast::Statement::Query(_)
            | ast::Statement::ShowTables { .. }
            | ast::Statement::ShowColumns { .. }
            | ast::Statement::ShowFunctions { .. }
            | ast::Statement::ShowVariable { .. }
            | ast::Statement::ExplainTable { .. } => Ok(()),
            ast::Statement::Explain { statement, .. } => check(&Statement::Statement(statement.clone())),
            other => Err(refuse(&other.to_string())),
        },
        Statement::Explain(explain) => check(&explain.statement),
        other => Err(refuse(&other.to_string())),
    }
}

/// The same of the plan: a second fence, for what a query may hide.
pub fn check_plan(plan: &LogicalPlan) -> Result<(), Error> {
    let reading = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    reading
        .verify_plan(plan)
        .map_err(|error| Error::ReadOnly(error.strip_backtrace()))
}

/// The first two words of a statement are enough to know it.
fn refuse(statement: &str) -> Error {
    let words: Vec<_> = statement.split_whitespace().take(2).collect();
    Error::ReadOnly(words.join(" "))
}
