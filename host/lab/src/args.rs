//! Arguments of `weir lab`.

use crate::check::{Check, check};
use crate::config::{PassConfig, Scenario};
use crate::error::LabError;
use crate::run::{LabConfig, LabReport, run};
use std::io::Write;
use std::path::PathBuf;

/// Runs real kernel TCP between two network namespaces over a wire that loses, delays, reorders and duplicates frames
/// as told, and writes captures together with the truth about them, against which --check holds Weir's own answer.
/// Needs root.
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
    /// Also analyses the capture of the tap and holds the answer against the truth; fails unless it keeps the limits of
    /// the scenario's [pass].
    #[arg(long)]
    pub check: bool,
    /// All built-in scenarios that have limits, one after the other, with --check.
    #[arg(long, conflicts_with_all = ["scenario", "config", "print"])]
    pub all: bool,
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
            return self.run_all(out);
        };
        print(out, &text)
    }

    /// Makes the runs and judges them.
    fn run_all(&self, out: &mut dyn Write) -> Result<(), LabError> {
        let scenarios = if self.all {
            let built_in = Scenario::built_in_names().map(Scenario::built_in);
            let all = built_in.collect::<Result<Vec<_>, _>>()?;
            all.into_iter().filter(|scenario| scenario.pass.is_some()).collect()
        } else {
            vec![self.to_scenario()?]
        };
        let program = std::env::current_exe().map_err(LabError::io("finding the running program"))?;
        let (mut total, mut failed) = (Check::default(), Vec::new());
        for mut scenario in scenarios {
            scenario.seed = self.seed.unwrap_or(scenario.seed);
            let config = LabConfig {
                scenario,
                output: self.output.clone().unwrap_or_else(|| PathBuf::from(".")),
                program: program.clone(),
            };
            let scenario = &config.scenario;
            let mut text = format!("{}, seed {}: {}\n", scenario.name, scenario.seed, scenario.description);
            if let Some(missing) = scenario.missing_congestion_control().filter(|_| self.all) {
                print(out, &format!("{text}  skipped: this kernel has no {missing}\n"))?;
                continue;
            }
            let report = run(&config)?;
            if !self.all {
                text += &report.to_string();
            }
            if self.check || self.all {
                let check = check(&report)?;
                text += &check.to_string();
                write_misses(&report, &check)?;
                let failures = check.failures(&scenario.pass.clone().unwrap_or_default());
                for failure in &failures {
                    text += &format!("  FAILED {failure}\n");
                }
                if !failures.is_empty() {
                    failed.push(scenario.name.clone());
                }
                total.add(&check);
            }
            print(out, &text)?;
        }
        if self.all {
            print(out, &format!("all scenarios\n{total}"))?;
            failed.extend(
                total
                    .failures(&PassConfig::default())
                    .into_iter()
                    .map(|f| format!("all: {f}")),
            );
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(LabError::Limits { failed })
        }
    }
}

fn print(out: &mut dyn Write, text: &str) -> Result<(), LabError> {
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(LabError::io("writing to standard output"))
}

/// The judgements that differ, beside the run's other files.
fn write_misses(report: &LabReport, check: &Check) -> Result<(), LabError> {
    let path = report.journeys.with_file_name(format!("{}-misses.txt", report.name));
    let text: String = check.misses().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).map_err(LabError::io(format!("writing {}", path.display())))
}
