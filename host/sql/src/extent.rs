//! How much there is to plan in a query. Planning puts what a WITH names wherever the name stands, so thirty lines that
//! each name the line before twice would be a billion tables; and it compares each column of a SELECT with all others. It
//! has no limit of memory or time, so what is too much is refused before.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, ObjectName, Query, Select, SelectItem, SetExpr, Visit, Visitor};
use weir_store::tables::Table;

use crate::error::Error;

/// Tables of a query at most, all that a WITH's name stands for among them.
const TABLES: usize = 250;
/// Columns of a SELECT at most, those that `*` stands for among them.
const COLUMNS: usize = 2000;
/// WITH inside a WITH at most: the engine looks at each level twice, so at the innermost one 2^8 times.
const LEVELS: usize = 8;

/// Columns of what is no table of the store: more than any table of the information schema or function has.
const OTHERS: usize = 32;

/// Refuse a statement that is too much to plan.
pub fn check(statement: &Statement) -> Result<(), Error> {
    match statement {
        Statement::Statement(statement) => check_parsed(statement),
        Statement::Explain(explain) => check(&explain.statement),
        _ => Ok(()),
    }
}

fn check_parsed(statement: &ast::Statement) -> Result<(), Error> {
    match statement.visit(&mut Extents::default()) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// What a query, or what stands behind a name, takes to plan.
#[derive(Clone, Copy, Default)]
struct Extent {
    tables: usize,
    /// Of the answer.
    columns: usize,
}

/// A query that is being walked through.
#[derive(Default)]
struct Level {
    /// So far.
    extent: Extent,
    /// Columns of what its FROMs have named so far, and how many of these were named before its present SELECT.
    named: usize,
    before: usize,
    /// Names of its WITHs whose queries come next, the next one last.
    coming: Vec<String>,
    /// Names that are known outside of it, the first of [`Extents::names`].
    outside: usize,
    /// It is the query of a WITH: its name.
    name: Option<String>,
}

#[derive(Default)]
struct Extents {
    levels: Vec<Level>,
    names: Vec<(String, Extent)>,
}

impl Visitor for Extents {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        // The queries of a WITH are walked through before anything else of the query that it belongs to.
        let name = self.levels.last_mut().and_then(|level| level.coming.pop());
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.levels.push(Level {
            coming: with.rev().map(|cte| cte.alias.name.value.to_lowercase()).collect(),
            outside: self.names.len(),
            name,
            ..Level::default()
        });
        let nested = self.levels.iter().filter(|level| level.name.is_some()).count();
        within(
            nested,
            LEVELS,
            "WITH inside one another",
            "write them one after the other",
        )
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        let Some(level) = self.levels.pop() else {
            return ControlFlow::Continue(());
        };
        let mut extent = level.extent;
        extent.columns = match &*query.body {
            SetExpr::Values(values) => values.rows.first().map_or(0, |row| row.content.len()),
            // Its parts are queries in parentheses.
            _ if extent.columns == 0 => level.named,
            _ => extent.columns,
        };
        self.names.truncate(level.outside);
        match level.name {
            Some(name) => {
                // What has no table is something, too.
                extent.tables = extent.tables.max(1);
                self.names.push((name, extent));
                ControlFlow::Continue(())
            }
            None => self.add(extent),
        }
    }

    fn pre_visit_select(&mut self, _: &Select) -> ControlFlow<Error> {
        if let Some(level) = self.levels.last_mut() {
            level.before = level.named;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        let Some(level) = self.levels.last_mut() else {
            return ControlFlow::Continue(());
        };
        let columns = select.projection.iter().map(|item| match item {
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => level.named - level.before,
            _ => 1,
        });
        let columns = columns.fold(0, usize::saturating_add);
        level.extent.columns = level.extent.columns.max(columns);
        within(columns, COLUMNS, "columns in one SELECT", "name those that you need")
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Error> {
        let parts = relation.0.iter().filter_map(|part| part.as_ident());
        let name = parts
            .map(|part| part.value.to_lowercase())
            .collect::<Vec<_>>()
            .join(".");
        let known = self.names.iter().rev().find(|(known, _)| *known == name);
        let extent = known.map_or_else(|| of_table(&name), |(_, extent)| *extent);
        self.add(extent)
    }
}

impl Extents {
    /// Something stands in the present query.
    fn add(&mut self, part: Extent) -> ControlFlow<Error> {
        let Some(level) = self.levels.last_mut() else {
            return ControlFlow::Continue(());
        };
        level.named = level.named.saturating_add(part.columns);
        level.extent.tables = level.extent.tables.saturating_add(part.tables);
        within(
            level.extent.tables,
            TABLES,
            "tables, where each name of a WITH counts as what stands behind it",
            "ask in parts",
        )
    }
}

fn of_table(name: &str) -> Extent {
    let stored = Table::ALL
        .into_iter()
        .find(|table| table.name() == name.rsplit('.').next().unwrap_or(name));
    Extent {
        tables: 1,
        // And the two of the folders.
        columns: stored.map_or(OTHERS, |table| table.file_schema().fields().len() + 2),
    }
}

fn within(has: usize, may: usize, what: &'static str, instead: &'static str) -> ControlFlow<Error> {
    if has > may {
        return ControlFlow::Break(Error::Extent { may, what, instead });
    }
    ControlFlow::Continue(())
}
