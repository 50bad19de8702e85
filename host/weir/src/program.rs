//! Programs that are built apart from this one and run as parts of it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use weir_command::Failure;

/// A program beside this one.
pub struct Program {
    /// Its file.
    pub name: &'static str,
    /// The environment variable that names it where it is not found otherwise.
    pub variable: &'static str,
    /// What makes it in the source tree.
    pub make: &'static str,
}

impl Program {
    /// Become it; this only returns when it cannot be started.
    pub fn run(&self, arguments: impl IntoIterator<Item = OsString>) -> Result<ExitCode, Failure> {
        let Self { name, variable, make } = self;
        let program = self.find().ok_or_else(|| {
            Failure::new(format_args!(
                "there is no {name} beside this program, in bin/ or in PATH; build it in the source tree with: {make} (or \
                 name it in {variable})"
            ))
        })?;
        let error = Command::new(&program).args(arguments).exec();
        Err(Failure::new(format_args!(
            "cannot start {}: {error}",
            program.display()
        )))
    }

    fn find(&self) -> Option<PathBuf> {
        if let Some(named) = std::env::var_os(self.variable) {
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
            .map(|folder| folder.join(self.name))
            .find(|program| program.is_file())
    }
}
