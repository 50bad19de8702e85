//! The filter language of gRPC and the command line: a subset of AIP-160.
//!
//! ```text
//! filter      = [ expression ]
//! expression  = sequence { "AND" sequence }
//! sequence    = factor { factor }                 side by side: both
//! factor      = term { "OR" term }                OR binds tighter than AND
//! term        = [ "NOT" | "-" ] ( restriction | "(" expression ")" )
//! restriction = path ( "=" | "!=" | "<" | "<=" | ">" | ">=" | ":" ) value | text
//! path        = name { "." name }                 names as in the proto or as in JSON
//! ```
//! See `docs/src/filter.md` for what each comparison means.
//!
//! ```
//! use weir_api::filter::Filter;
//! use weir_messages::v1::{Connection, Endpoint};
//!
//! let filter = Filter::parse(r#"client.address = "10.0.*" AND durationSeconds < 50ms"#)?;
//! let client = Endpoint { address: "10.0.0.7".into(), port: 40_000 };
//! assert!(filter.matches(&Connection { client: Some(client), ..Connection::default() }));
//! # Ok::<(), weir_api::filter::FilterError>(())
//! ```

mod error;
mod fields;
mod lexer;
mod near;
mod order;
mod parser;
mod pattern;
mod target;
mod test;

use std::marker::PhantomData;

pub use error::FilterError;
pub use fields::{Field, Fields, Kind, Step, Value};
pub use order::{Order, text_order};
use test::Test;

/// Longest filter, in bytes.
pub const MAX_BYTES: usize = 8192;

/// A filter over messages of type `T`. An empty filter matches all.
#[derive(Clone, Debug)]
pub struct Filter<T> {
    node: Node,
    about: PhantomData<fn(&T)>,
}

#[derive(Clone, Debug)]
enum Node {
    /// All of them; matches when there are none.
    All(Vec<Node>),
    /// At least one of them.
    Any(Vec<Node>),
    Not(Box<Node>),
    /// A value at the end of the path passes the test.
    Field {
        path: Vec<Step>,
        test: Test,
    },
    /// Some text of the message holds this one.
    Text(String),
}

impl<T: Fields> Filter<T> {
    /// Read a filter; errors say where and what was expected.
    pub fn parse(filter: &str) -> Result<Self, FilterError> {
        Ok(Self {
            node: parser::parse(filter, T::SCHEMA)?,
            about: PhantomData,
        })
    }

    /// Whether the filter holds for a message.
    pub fn matches(&self, message: &T) -> bool {
        matches(&self.node, message)
    }

    /// Whether the filter is empty.
    pub fn is_empty(&self) -> bool {
        matches!(&self.node, Node::All(nodes) if nodes.is_empty())
    }
}

/// Depth of the recursion is bounded by the parser.
fn matches<T: Fields>(node: &Node, message: &T) -> bool {
    match node {
        Node::All(nodes) => nodes.iter().all(|node| matches(node, message)),
        Node::Any(nodes) => nodes.iter().any(|node| matches(node, message)),
        Node::Not(node) => !matches(node, message),
        Node::Field { path, test } => message.visit(path, &mut |value| test.passes(value)),
        Node::Text(part) => message.texts(&mut |text| pattern::holds(text, part)),
    }
}
