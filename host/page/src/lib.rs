//! What the analyst's page asks for: tables and aggregates as Arrow over HTTP.
#![forbid(unsafe_code)]
