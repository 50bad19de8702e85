//! Errors as gRPC statuses with `google.rpc.ErrorInfo`: a reason that programs can match.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use weir_messages::Timestamp;

use crate::analyses::NoAnswer;
use crate::filter::FilterError;
use crate::log::LogError;

/// `ErrorInfo.domain` of all errors.
pub const DOMAIN: &str = "weir.v1";

fn status(code: Code, reason: &str, message: impl Into<String>) -> Status {
    Status::with_error_details(
        code,
        message,
        ErrorDetails::with_error_info(reason, DOMAIN, HashMap::new()),
    )
}

/// A field of the request is wrong.
pub(crate) fn invalid(field: &str, reason: &str, message: impl Into<String>) -> Status {
    let message = format!("{field}: {}", message.into());
    let mut details = ErrorDetails::with_error_info(reason, DOMAIN, HashMap::new());
    details.add_bad_request_violation(field, &message);
    Status::with_error_details(Code::InvalidArgument, message, details)
}

/// A range of times of a request; one that cannot be meant selects nothing, or all.
pub(crate) fn times(start: Option<Timestamp>, end: Option<Timestamp>) -> Result<(), Status> {
    for (field, time) in [("start_time", start), ("end_time", end)] {
        if let Some(time) = time.filter(|time| !time.is_valid()) {
            let message = format!(
                "{} s and {} ns are no time: seconds of the years 1 to 9999, and 0 to 999,999,999 ns",
                time.seconds, time.nanos
            );
            return Err(invalid(field, "TIME_INVALID", message));
        }
    }
    match (start, end) {
        (Some(start), Some(end)) if start > end => {
            let message = format!("{start} is after end_time, {end}");
            Err(invalid("start_time", "TIME_INVALID", message))
        }
        _ => Ok(()),
    }
}

pub(crate) fn filter(error: &FilterError) -> Status {
    invalid("filter", "FILTER_INVALID", error.to_string())
}

pub(crate) fn order(error: &FilterError) -> Status {
    invalid("order_by", "ORDER_INVALID", error.to_string())
}

pub(crate) fn not_found(reason: &str, message: impl Into<String>) -> Status {
    status(Code::NotFound, reason, message)
}

/// The list changed between two pages.
pub(crate) fn changed(message: impl Into<String>) -> Status {
    status(Code::Aborted, "LIST_CHANGED", message)
}

pub(crate) fn log(error: &LogError) -> Status {
    status(Code::Internal, "LOG_FAILED", error.to_string())
}

/// A connection is known, and no packet of it.
pub(crate) fn no_packets(id: u64) -> Status {
    let message = format!(
        "the log has no PACKET records of connection {id}: weir serve --digests makes them, or they were removed to keep the log \
         within its limit"
    );
    status(Code::FailedPrecondition, "NO_PACKETS", message)
}

/// A worker of the server ended before it answered.
pub(crate) fn worker() -> Status {
    status(
        Code::Internal,
        "WORKER_FAILED",
        "the server could not finish the request; try again",
    )
}

pub(crate) fn too_many_streams(limit: usize) -> Status {
    status(
        Code::ResourceExhausted,
        "TOO_MANY_STREAMS",
        format!("{limit} streams are open, which is the most; close one"),
    )
}

/// The caller is not known.
pub(crate) fn no_token() -> Status {
    status(
        Code::Unauthenticated,
        "TOKEN_INVALID",
        "the server wants its token: authorization: Bearer TOKEN (weir query and others take it from the file that WEIR_TOKEN_FILE names)",
    )
}

pub(crate) fn too_many_analyses(limit: usize) -> Status {
    status(
        Code::ResourceExhausted,
        "TOO_MANY_ANALYSES",
        format!("{limit} calls with captures go on, which is the most; try again later"),
    )
}

/// The client takes too long to send.
pub(crate) fn slow(silence: Duration, longest: Duration) -> Status {
    status(
        Code::DeadlineExceeded,
        "CLIENT_SLOW",
        format!(
            "no byte of a capture came for {} s, or not all came in {} s; send all captures, then end the stream",
            silence.as_secs(),
            longest.as_secs()
        ),
    )
}

/// The client takes too long to read.
pub(crate) fn unread(patience: Duration) -> Status {
    status(
        Code::DeadlineExceeded,
        "CLIENT_SLOW",
        format!(
            "no part of the answer was taken for {} s: what came is not all",
            patience.as_secs()
        ),
    )
}

pub(crate) fn too_large(limit: u64) -> Status {
    status(
        Code::OutOfRange,
        "CAPTURES_TOO_LARGE",
        format!("the captures have more than {limit} bytes; analyse them with weir analyze FILE..."),
    )
}

/// What was sent cannot be kept.
pub(crate) fn no_room(error: &io::Error) -> Status {
    let message = format!("the server has no room for the captures: {error}");
    status(Code::ResourceExhausted, "NO_ROOM", message)
}

/// What was sent cannot be analysed.
pub(crate) fn no_answer(why: NoAnswer) -> Status {
    match why {
        NoAnswer::Captures(error) => status(Code::InvalidArgument, "CAPTURE_INVALID", error),
        NoAnswer::TooLarge(error) => status(Code::OutOfRange, "ANSWER_TOO_LARGE", error),
        NoAnswer::Gone => closing(),
    }
}

pub(crate) fn closing() -> Status {
    status(
        Code::Unavailable,
        "SHUTTING_DOWN",
        "the server is shutting down; resume when it is back",
    )
}
