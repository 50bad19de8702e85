//! `weir serve`.
use std::process::ExitCode;
use crate::cli::{CaptureArgs, ServeArgs};
use crate::error::Failure;
pub fn run(_: &ServeArgs) -> Result<ExitCode, Failure> { Ok(ExitCode::SUCCESS) }
pub fn capture(_: &CaptureArgs) -> Result<ExitCode, Failure> { Ok(ExitCode::SUCCESS) }
