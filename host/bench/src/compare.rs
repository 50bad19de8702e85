//! Whole commands side by side: CPU time, memory and packets per CPU second of `weir analyze`, the floor and other tools
//! on the same captures in the same run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::error::Error;
use crate::generate::{self, Kind};
use crate::process::{self, Outcome};
use crate::say;
use crate::truth::{GENERATOR_VERSION, Truth};

/// What is measured.
pub struct Plan {
    /// The command under test.
    pub weir: PathBuf,
    /// Where the captures are made and kept.
    pub directory: PathBuf,
    /// Size of the captures.
    pub scale: f64,
    /// Runs of each command; the least CPU time counts.
    pub runs: u32,
}

/// Seed of the captures: every run measures the same files.
const SEED: u64 = 1;
/// A command that runs longer is given up.
const LIMIT: Duration = Duration::from_secs(900);
/// Scale of the captures on which the answers are checked.
const CHECK_SCALE: f64 = 0.02;

/// What a capture's row of the targets asks.
struct Target {
    /// Million packets per CPU second, at least.
    rate: f64,
    /// Times the rate of tcptrace, at least.
    tcptrace: Option<f64>,
    /// Peak memory in MB (10⁶ octets), below.
    memory: Option<f64>,
}

/// Share of the scale at which a slow tool runs. tcptrace looks connections up in chains, so that its rate falls with their
/// number: it reads the whole capture, except where a run would take minutes (there it is flattered). The rate of tshark
/// hardly depends on the size.
fn share(program: &str, kind: Kind) -> f64 {
    match (program, kind) {
        ("tcptrace", Kind::Minimum) | ("tshark", _) => 0.1,
        _ => 1.0,
    }
}

fn target(kind: Kind) -> Target {
    match kind {
        Kind::Connections => Target {
            rate: 3.0,
            tcptrace: Some(10.0),
            memory: None,
        },
        Kind::Minimum => Target {
            rate: 1.5,
            tcptrace: None,
            memory: Some(600.0),
        },
        Kind::Bulk => Target {
            rate: 4.0,
            tcptrace: None,
            memory: None,
        },
    }
}

/// A command and the capture it reads.
struct Tool {
    label: &'static str,
    program: PathBuf,
    before: &'static [&'static str],
    after: &'static [&'static str],
    capture: PathBuf,
    packets: u64,
    scale: f64,
}

/// The best of several runs.
struct Measured {
    cpu: Duration,
    user: Duration,
    system: Duration,
    wall: Duration,
    peak_memory: u64,
}

impl Tool {
    fn run(&self) -> Result<Outcome, Error> {
        let mut command = Command::new(&self.program);
        command.args(self.before).arg(&self.capture).args(self.after);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let outcome = process::run(&mut command, LIMIT)?;
        if outcome.status.success() && !outcome.timed_out {
            return Ok(outcome);
        }
        let words = std::iter::once(self.program.to_string_lossy().into_owned())
            .chain(self.before.iter().map(|w| (*w).to_owned()))
            .chain(std::iter::once(self.capture.to_string_lossy().into_owned()))
            .chain(self.after.iter().map(|w| (*w).to_owned()));
        Err(Error::new(format!(
            "{}: {}",
            words.collect::<Vec<_>>().join(" "),
            outcome.ending()
        )))
    }
}

/// Makes the captures, checks the answers on small ones, measures, prints. False when an answer is wrong, a run failed or there is no Weir.
pub fn run(plan: &Plan) -> Result<bool, Error> {
    std::fs::create_dir_all(&plan.directory).map_err(|e| Error::file("cannot create", &plan.directory, &e))?;
    let weir = installed(&plan.weir);
    let mut good = weir;
    if weir {
        say!("Answers, on small captures:");
        good &= check_answers(plan)?;
        say!("");
    }
    if !weir {
        say!(
            "{} is not there: `make build` makes it; only the others are measured",
            plan.weir.display()
        );
    }
    for peer in ["tcptrace", "tshark"] {
        if !installed(peer.as_ref()) {
            say!("{peer}: not installed, skipped");
        }
    }
    for kind in Kind::ALL {
        good &= one_capture(plan, kind, weir)?;
    }
    say!(
        "CPU is user + system time of the whole command, the least of {} runs taken in turns; memory is the largest resident set (10^6 octets).\n\
         'x of Weir' is the rate of Weir divided by the tool's. Figures of one machine and one run are comparable, others are not.\n\
         A tool at a smaller scale read a smaller capture of the same kind: the whole one would take minutes.",
        plan.runs
    );
    Ok(good)
}

fn one_capture(plan: &Plan, kind: Kind, weir: bool) -> Result<bool, Error> {
    let (_, truth) = capture(plan, kind, plan.scale)?;
    let tool = |label: &'static str, program: PathBuf, before, after| -> Result<Tool, Error> {
        // To six digits: the scale is part of a file name.
        let scale = (plan.scale * share(label_program(label), kind) * 1e6).round() / 1e6;
        let (capture, truth) = capture(plan, kind, scale)?;
        Ok(Tool {
            label,
            program,
            before,
            after,
            capture,
            packets: truth.packets,
            scale,
        })
    };
    let mut tools = vec![tool("floor", this_program()?, &["floor"], &[])?];
    if weir {
        tools.push(tool("weir analyze", plan.weir.clone(), &["analyze"], &[])?);
        tools.push(tool(
            "weir analyze -f json",
            plan.weir.clone(),
            &["analyze", "-f", "json"],
            &[],
        )?);
    }
    let peers: [(&str, &[&str], &[&str]); 2] = [
        ("tcptrace -n -l -r", &["-n", "-l", "-r"], &[]),
        ("tshark -n -q -z conv,tcp", &["-n", "-q", "-r"], &["-z", "conv,tcp"]),
    ];
    for (label, before, after) in peers {
        let program = Path::new(label_program(label));
        if installed(program) {
            tools.push(tool(label, program.to_owned(), before, after)?);
        }
    }

    let mut best: Vec<Option<Measured>> = tools.iter().map(|_| None).collect();
    let mut failed: Vec<Option<Error>> = tools.iter().map(|_| None).collect();
    for _ in 0..plan.runs {
        for (index, tool) in tools.iter().enumerate() {
            if failed[index].is_none() {
                match tool.run() {
                    Ok(outcome) => keep_best(&mut best[index], &outcome),
                    Err(error) => failed[index] = Some(error),
                }
            }
        }
    }

    say!(
        "\n{}: {} packets, {} connections (at most {} at once), {} transactions, {:.0} octets a frame",
        kind.name(),
        truth.packets,
        truth.connections,
        truth.concurrent,
        truth.transactions,
        truth.frame_bytes as f64 / truth.packets as f64
    );
    say!(
        "  {:<26} {:>6} {:>10} {:>8} {:>8} {:>8} {:>8} {:>9} {:>10} {:>10}",
        "command",
        "scale",
        "packets",
        "user s",
        "system s",
        "CPU s",
        "wall s",
        "memory MB",
        "Mpkt/CPU s",
        "x of Weir"
    );
    let rates: Vec<Option<f64>> = tools
        .iter()
        .zip(&best)
        .map(|(tool, best)| {
            best.as_ref()
                .map(|b| tool.packets as f64 / 1e6 / b.cpu.as_secs_f64().max(1e-6))
        })
        .collect();
    let rate_of = |label: &str| {
        tools
            .iter()
            .position(|tool| tool.label.starts_with(label))
            .and_then(|index| rates[index])
    };
    let weir_rate = rate_of("weir");
    for (index, tool) in tools.iter().enumerate() {
        if let Some(error) = &failed[index] {
            say!("  {:<26} failed: {error}", tool.label);
            continue;
        }
        let (Some(best), Some(rate)) = (&best[index], rates[index]) else {
            continue;
        };
        let ratio = weir_rate.map_or_else(|| "-".to_owned(), |weir| format!("{:.2}", weir / rate));
        say!(
            "  {:<26} {:>6} {:>10} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>9.0} {:>10.2} {:>10}",
            tool.label,
            tool.scale,
            tool.packets,
            best.user.as_secs_f64(),
            best.system.as_secs_f64(),
            best.cpu.as_secs_f64(),
            best.wall.as_secs_f64(),
            best.peak_memory as f64 / 1e6,
            rate,
            ratio
        );
    }
    if let Some(rate) = weir_rate {
        let memory = tools
            .iter()
            .zip(&best)
            .find(|(tool, _)| tool.label.starts_with("weir"))
            .and_then(|(_, best)| best.as_ref());
        print_target(
            &target(kind),
            plan.scale,
            rate,
            rate_of("tcptrace"),
            memory.map(|best| best.peak_memory as f64 / 1e6),
        );
    }
    Ok(failed.iter().all(Option::is_none))
}

fn print_target(target: &Target, scale: f64, rate: f64, tcptrace: Option<f64>, memory: Option<f64>) {
    let verdict = |met: bool| if met { "met" } else { "MISSED" };
    let mut lines = vec![format!(
        "at least {} Mpkt/CPU s: {} ({rate:.2})",
        target.rate,
        verdict(rate >= target.rate)
    )];
    if let (Some(times), Some(other)) = (target.tcptrace, tcptrace) {
        lines.push(format!(
            "at least {times} x tcptrace: {} ({:.1} x)",
            verdict(rate / other >= times),
            rate / other
        ));
    }
    if let (Some(limit), Some(memory)) = (target.memory, memory) {
        lines.push(format!(
            "below {limit} MB: {} ({memory:.0} MB)",
            verdict(memory < limit)
        ));
    }
    let note = if (scale - 1.0).abs() > 1e-9 {
        " (the targets are for scale 1)"
    } else {
        ""
    };
    say!("  targets{note}: {}", lines.join("; "));
}

fn keep_best(best: &mut Option<Measured>, outcome: &Outcome) {
    let peak_memory = best.as_ref().map_or(0, |b| b.peak_memory).max(outcome.peak_memory);
    let wall = best.as_ref().map_or(outcome.wall, |b| b.wall.min(outcome.wall));
    match best {
        Some(before) if before.cpu <= outcome.cpu() => {
            before.peak_memory = peak_memory;
            before.wall = wall;
        }
        _ => {
            *best = Some(Measured {
                cpu: outcome.cpu(),
                user: outcome.user,
                system: outcome.system,
                wall,
                peak_memory,
            })
        }
    }
}

/// The capture of a kind and scale, made unless an equal one lies in the directory.
fn capture(plan: &Plan, kind: Kind, scale: f64) -> Result<(PathBuf, Truth), Error> {
    let path = plan.directory.join(format!("{}-{scale}.pcap", kind.name()));
    if let Ok(truth) = Truth::load(&path)
        && path.is_file()
        && truth.generator == GENERATOR_VERSION
        && truth.seed == SEED
        && truth.name == kind.name()
        && truth.file_bytes() == std::fs::metadata(&path).map_or(0, |m| m.len())
    {
        return Ok((path, truth));
    }
    eprintln!("making {}", path.display());
    let truth = generate::generate(kind, scale, SEED, &path)?;
    Ok((path, truth))
}

/// The answers are checked in a process of its own: it grows with them, and a child begins with the peak of its parent.
fn check_answers(plan: &Plan) -> Result<bool, Error> {
    let mut command = Command::new(this_program()?);
    command.arg("check").arg("--weir").arg(&plan.weir);
    for kind in Kind::ALL {
        command.arg(capture(plan, kind, CHECK_SCALE)?.0);
    }
    Ok(process::run(&mut command, LIMIT)?.status.success())
}

fn this_program() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(|e| Error::new(format!("cannot find this program's file: {e}")))
}

fn label_program(label: &str) -> &str {
    label.split_whitespace().next().unwrap_or(label)
}

/// Whether a program is there: a path, or a name in one of the folders of PATH.
fn installed(program: &Path) -> bool {
    if program.components().count() > 1 {
        return program.is_file();
    }
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        assert!(installed("sh".as_ref()));
        assert!(installed("/bin/sh".as_ref()));
        assert!(!installed("no-such-program-here".as_ref()));
        assert!(!installed("no/such/program".as_ref()));
    }

    #[test]
    fn the_least_cpu_time_counts_and_the_largest_memory() {
        let outcome = |cpu, memory| Outcome {
            status: std::process::ExitStatus::default(),
            timed_out: false,
            user: Duration::from_secs(cpu),
            system: Duration::ZERO,
            wall: Duration::from_secs(cpu),
            peak_memory: memory,
        };
        let mut best = None;
        for (cpu, memory) in [(5, 10), (3, 5), (4, 20)] {
            keep_best(&mut best, &outcome(cpu, memory));
        }
        let best = best.expect("measured");
        assert_eq!(
            (best.cpu, best.wall, best.peak_memory),
            (Duration::from_secs(3), Duration::from_secs(3), 20)
        );
    }
}
