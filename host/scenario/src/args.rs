//! Arguments of `weir scenario`.

use crate::config::Scenario;
use crate::error::ScenarioError;
use crate::sim::run;
use std::io::Write;
use std::path::PathBuf;

/// Simulates hosts, applications and links at the level of TCP, and writes a capture for each tap together with the
/// truth about everything that happened. The same scenario, scale and seed give the same files.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// A built-in scenario, or a TOML file of your own (start from the output of --print).
    #[arg(value_name = "NAME", required_unless_present = "list")]
    pub scenario: Option<String>,
    /// Directory for the captures and truth files; made if absent.
    #[arg(short, long, value_name = "DIR", required_unless_present_any = ["list", "print"])]
    pub output: Option<PathBuf>,
    /// Users, workers, processors and pools times this; times stay as they are.
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub scale: f64,
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
    pub fn to_scenario(&self) -> Result<Scenario, ScenarioError> {
        let mut scenario = Scenario::load(self.scenario.as_deref().unwrap_or_default())?;
        if !(self.scale > 0.0 && self.scale <= 100.0) {
            return Err(ScenarioError::Description {
                source: scenario.name,
                problem: format!("--scale {} must be above 0 and at most 100", self.scale),
            });
        }
        scenario.scale(self.scale);
        // What is right may be too much a hundred times.
        scenario.check().map_err(|problem| ScenarioError::Description {
            source: format!("{} with --scale {}", scenario.name, self.scale),
            problem,
        })?;
        if let Some(seed) = self.seed {
            scenario.seed = seed;
        }
        Ok(scenario)
    }

    /// Does what was asked; text for the user goes to `out`.
    pub fn execute(&self, out: &mut dyn Write) -> Result<(), ScenarioError> {
        let text = if self.list {
            let mut list = String::new();
            for name in Scenario::built_in_names() {
                list += &format!("{name:22} {}\n", Scenario::load(name)?.description);
            }
            list
        } else if self.print {
            self.to_scenario()?.to_toml()?
        } else {
            let folder = self.output.clone().unwrap_or_else(|| PathBuf::from("."));
            run(&self.to_scenario()?, self.scale, &folder)?.to_string()
        };
        out.write_all(text.as_bytes())
            .map_err(ScenarioError::io("writing to standard output"))
    }
}
