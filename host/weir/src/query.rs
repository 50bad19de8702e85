//! `weir query`: ask a daemon.
use std::process::ExitCode;
use weir_record::Record;
use crate::cli::QueryArgs;
use crate::error::Failure;
pub fn run(_: &QueryArgs) -> Result<ExitCode, Failure> { Ok(ExitCode::SUCCESS) }
pub fn all_records(_: &str, _: impl FnMut(&[Record])) -> Result<(), Failure> { Ok(()) }
