//! Running one command with a time limit, and what it cost.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit};
use wait4::Wait4;

use crate::error::Error;

/// How a command ended and what it used.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Exit code or signal; the signal is ours when `timed_out`.
    pub status: ExitStatus,
    /// It was still running at the limit and was killed.
    pub timed_out: bool,
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// From start to end.
    pub wall: Duration,
    /// Largest resident set, octets. Linux lets a child begin with its parent's, so this process stays small.
    pub peak_memory: u64,
}

impl Outcome {
    /// CPU time in both modes.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }

    /// The exit code or the signal, in words.
    #[must_use]
    pub fn ending(&self) -> String {
        match (self.timed_out, self.status.code(), self.status.signal()) {
            (true, ..) => format!("killed after {:.1} s", self.wall.as_secs_f64()),
            (_, Some(code), _) => format!("exit {code}"),
            (_, None, Some(signal)) => format!("signal {signal}"),
            _ => "ended".to_owned(),
        }
    }
}

/// Starts the command and waits for its end, but not longer than the limit.
pub fn run(command: &mut Command, limit: Duration) -> Result<Outcome, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let begin = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|e| Error::new(format!("cannot start {program}: {e}")))?;
    let timed_out = match ends_within(&child, limit) {
        Ok(ended) => !ended,
        Err(e) => return Err(Error::new(format!("cannot wait for {program}: {e}"))),
    };
    if timed_out {
        child
            .kill()
            .map_err(|e| Error::new(format!("cannot end {program}: {e}")))?;
    }
    let used = child
        .wait4()
        .map_err(|e| Error::new(format!("cannot wait for {program}: {e}")))?;
    Ok(Outcome {
        status: used.status,
        timed_out,
        user: used.rusage.utime,
        system: used.rusage.stime,
        wall: begin.elapsed(),
        peak_memory: used.rusage.maxrss,
    })
}

/// Waits without reaping; false when the limit came first.
fn ends_within(child: &Child, limit: Duration) -> std::io::Result<bool> {
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return Err(std::io::Error::other("not a process id"));
    };
    let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match rustix::event::poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Limits the address space of the commands started from now on (and of this process), and keeps them from writing core files.
pub fn limit_memory(octets: u64) -> Result<(), Error> {
    let set = |resource, value| {
        rustix::process::setrlimit(
            resource,
            Rlimit {
                current: Some(value),
                maximum: Some(value),
            },
        )
        .map_err(|e| {
            Error::new(format!(
                "cannot limit the memory of the command to {octets} octets: {e}"
            ))
        })
    };
    set(Resource::As, octets)?;
    set(Resource::Core, 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_command_that_ends_and_one_that_does_not() {
        let ends = run(Command::new("sh").args(["-c", "exit 3"]), Duration::from_secs(10)).unwrap();
        assert_eq!((ends.status.code(), ends.timed_out), (Some(3), false));
        assert!(ends.peak_memory > 100_000, "octets, not KiB: {}", ends.peak_memory);
        let hangs = run(Command::new("sleep").arg("60"), Duration::from_millis(50)).unwrap();
        assert!(hangs.timed_out && hangs.wall < Duration::from_secs(10));
        assert!(run(&mut Command::new("/no/such/program"), Duration::from_secs(1)).is_err());
    }
}
