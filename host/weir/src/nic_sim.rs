//! `weir nic-sim`: finds the simulated card and becomes it.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::cli::NicSimArgs;
use crate::error::Failure;

/// The program of `make nic-sim`.
const PROGRAM: &str = "weir-nic-sim";
/// Names it where it is not found otherwise.
const VARIABLE: &str = "WEIR_NIC_SIM";

/// Run the command; it only returns when the program cannot be started.
pub fn run(args: &NicSimArgs) -> Result<ExitCode, Failure> {
    let program = find().ok_or_else(|| {
        Failure::new(format_args!(
            "there is no {PROGRAM} beside this program, in bin/ or in PATH; build it in the source tree with: make nic-sim \
             (or name it in {VARIABLE})"
        ))
    })?;
    let error = Command::new(&program).args(&args.options).exec();
    Err(Failure::new(format_args!(
        "cannot start {}: {error}",
        program.display()
    )))
}

fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Some(named.into());
    }
    let beside = std::env::current_exe()
        .ok()
        .and_then(|exe| exe.parent().map(PathBuf::from));
    let path = std::env::var_os("PATH").unwrap_or_default();
    beside
        .into_iter()
        .chain([PathBuf::from("bin")])
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(PROGRAM))
        .find(|program| program.is_file())
}
