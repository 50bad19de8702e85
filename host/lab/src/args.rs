//! Arguments of `weir lab`.

use crate::config::Scenario;
use crate::error::LabError;
use crate::run::{LabConfig, run};
use std::io::Write;
use std::path::PathBuf;

/// Runs real kernel TCP between two network namespaces over a wire that loses, delays, reorders and duplicates frames
/// as told, and writes captures together with the truth about them. Needs root.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// A built-in scenario.
    #[arg(long, value_name = "NAME", default_value = "demo", conflicts_with = "config")]
    pub scenario: String,
    /// A scenario of your own (TOML; start from the output of --print).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory for the captures and truth files; made if absent.
    #[arg(short, long, value_name = "DIR", required_unless_present_any = ["list", "print"])]
    pub output: Option<PathBuf>,
    /// Replaces the scenario's seed.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Lists the built-in scenarios.
    #[arg(long)]
    pub list: bool,
    /// Prints the scenario with every setting, and runs nothing.
    #[arg(long)]
    pub print: bool,
}

impl Args {
    /// The scenario asked for.
    pub fn to_scenario(&self) -> Result<Scenario, LabError> {
        let mut scenario = match &self.config {
            Some(path) => Scenario::load(path)?,
            None => Scenario::built_in(&self.scenario)?,
        };
        if let Some(seed) = self.seed {
            scenario.seed = seed;
        }
        Ok(scenario)
    }

    /// Does what was asked; text for the user goes to `out`.
    pub fn execute(&self, out: &mut dyn Write) -> Result<(), LabError> {
        let text = if self.list {
            let mut list = String::new();
            for name in Scenario::built_in_names() {
                list += &format!("{name:12} {}\n", Scenario::built_in(name)?.description);
            }
            list
        } else if self.print {
            self.to_scenario()?.to_toml()?
        } else {
            let program = std::env::current_exe().map_err(LabError::io("finding the running program"))?;
            let config = LabConfig {
                scenario: self.to_scenario()?,
                output: self.output.clone().unwrap_or_else(|| PathBuf::from(".")),
                program,
            };
            run(&config)?.to_string()
        };
        out.write_all(text.as_bytes())
            .map_err(LabError::io("writing to standard output"))
    }
}
