//! What a route answers.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::batch::Columns;
use crate::error::Refused;

/// Type of an Arrow IPC stream.
pub const ARROW: &str = "application/vnd.apache.arrow.stream";

/// An answer, ready to be sent.
#[derive(Debug)]
pub struct Reply {
    kind: &'static str,
    pub body: Vec<u8>,
}

impl Reply {
    /// An object.
    pub fn json(value: &impl Serialize) -> Self {
        Self {
            kind: "application/json",
            // Of a message or a value: both can always be written.
            body: serde_json::to_vec(value).unwrap_or_default(),
        }
    }

    /// Columns.
    pub fn columns(columns: Columns) -> Result<Self, Refused> {
        Ok(Self {
            kind: ARROW,
            body: columns.stream().map_err(Refused::internal)?,
        })
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, self.kind)], self.body).into_response()
    }
}
