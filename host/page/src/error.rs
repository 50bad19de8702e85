//! Why a request was refused, as the client gets it.

use std::fmt;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// A refused request.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Invalid,
    Denied,
    NotFound,
    NotReady,
    TooLarge,
    TooMany,
    Internal,
}

impl Kind {
    /// HTTP code, and the name as in `google.rpc.Code`.
    const fn code(self) -> (StatusCode, &'static str) {
        match self {
            Self::Invalid => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT"),
            Self::Denied => (StatusCode::FORBIDDEN, "PERMISSION_DENIED"),
            Self::NotFound => (StatusCode::NOT_FOUND, "NOT_FOUND"),
            Self::NotReady => (StatusCode::CONFLICT, "FAILED_PRECONDITION"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "OUT_OF_RANGE"),
            Self::TooMany => (StatusCode::TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
        }
    }
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        impl Refused {
            $($(#[$doc])* pub fn $name(message: impl fmt::Display) -> Self {
                Self { kind: Kind::$kind, message: message.to_string() }
            })*
        }
    };
}

refusals! {
    /// A parameter is wrong.
    invalid => Invalid;
    /// It comes from elsewhere.
    denied => Denied;
    /// There is no such thing.
    not_found => NotFound;
    /// It is not read yet, or could not be.
    not_ready => NotReady;
    /// The upload is too large.
    too_large => TooLarge;
    /// Too many captures are open.
    too_many => TooMany;
    /// Weir's own fault, or the machine's.
    internal => Internal;
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (code, status) = self.kind.code();
        let error = json!({ "code": code.as_u16(), "status": status, "message": self.message });
        (code, axum::Json(json!({ "error": error }))).into_response()
    }
}
