//! Lines to standard error.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use weir_command::Failure;

/// Lines that wait at most for a standard error that takes none.
const WAITING: usize = 1000;
/// How long the end waits for it.
const PATIENCE: Duration = Duration::from_secs(1);

static LINES: OnceLock<Lines> = OnceLock::new();

/// A line to standard error. One that cannot be written (a full disk, a closed pipe) is given up: there is nowhere to
/// tell of it, and what measures goes on.
pub fn line(text: impl Display) {
    match LINES.get() {
        Some(lines) => lines.add(text.to_string()),
        None => write(anstream::stderr(), text),
    }
}

/// From here on nobody waits for standard error, which may be held up for long (a terminal that is stopped, a reader of a
/// pipe that hangs): a thread writes the lines.
pub fn without_waiting() -> Result<(), Failure> {
    let lines = LINES.get_or_init(Lines::default);
    std::thread::Builder::new()
        .name("lines".into())
        .spawn(|| lines.write_to(anstream::stderr()))
        .map(|_| ())
        .map_err(Failure::new)
}

/// Before the process ends: wait a moment until all lines are written.
pub fn settle() {
    if let Some(lines) = LINES.get() {
        lines.settle(PATIENCE);
    }
}

/// In one piece: others may write there, too.
fn write(mut out: impl Write, text: impl Display) {
    let _ = out.write_all(format!("{text}\n").as_bytes());
}

/// Lines on their way.
#[derive(Default)]
struct Lines {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<String>,
    /// Lines for which there was no room since the last one.
    left_out: u64,
    writing: bool,
}

impl Waiting {
    /// The next line to write.
    fn next(&mut self) -> Option<String> {
        let line = self.lines.pop_front();
        line.or_else(|| match std::mem::take(&mut self.left_out) {
            0 => None,
            number => Some(format!(
                "weir: {number} lines were left out here: nobody took them; weir query events has the newest"
            )),
        })
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.left_out == 0
    }
}

impl Lines {
    fn add(&self, line: String) {
        let mut waiting = self.lock();
        // Behind a gap there is none until the gap is told, so that it stands where it is.
        if waiting.lines.len() < WAITING && waiting.left_out == 0 {
            waiting.lines.push_back(line);
        } else {
            waiting.left_out += 1;
        }
        self.changed.notify_all();
    }

    /// As they come, one after another.
    fn write_to(&self, mut out: impl Write) {
        loop {
            let mut waiting = self.wait_while(|waiting| waiting.is_empty());
            let line = waiting.next();
            waiting.writing = true;
            drop(waiting);
            if let Some(line) = line {
                write(&mut out, line);
            }
            self.lock().writing = false;
            self.changed.notify_all();
        }
    }

    fn settle(&self, patience: Duration) {
        let is_under_way = |waiting: &mut Waiting| waiting.writing || !waiting.is_empty();
        drop(self.changed.wait_timeout_while(self.lock(), patience, is_under_way));
    }

    fn wait_while(&self, condition: impl FnMut(&mut Waiting) -> bool) -> MutexGuard<'_, Waiting> {
        self.changed
            .wait_while(self.lock(), condition)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Instant;

    use super::*;

    /// Tells of each piece, and takes it when it is let.
    struct Held(Sender<String>, Receiver<()>);

    impl Write for Held {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // Nobody is left to be told once the test has ended.
            let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
            let _ = self.1.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_reader_that_hangs_and_what_it_missed_is_told() {
        let lines: &Lines = Box::leak(Box::default());
        let ((tell, told), (let_go, may_go)) = (channel(), channel());
        std::thread::spawn(|| lines.write_to(Held(tell, may_go)));
        lines.add("first".into());
        let within = Duration::from_secs(10);
        assert_eq!(told.recv_timeout(within).as_deref(), Ok("first\n"));
        (0..WAITING + 7).for_each(|number| lines.add(number.to_string()));
        let begin = Instant::now();
        lines.settle(Duration::from_millis(20));
        assert!(begin.elapsed() >= Duration::from_millis(20));
        drop(let_go);
        lines.settle(within);
        lines.add("last".into());
        lines.settle(within);
        let rest: Vec<_> = told.try_iter().collect();
        assert_eq!(rest.len(), WAITING + 2);
        assert_eq!(
            (&*rest[0], &*rest[WAITING - 1], &*rest[WAITING + 1]),
            ("0\n", "999\n", "last\n")
        );
        assert!(
            rest[WAITING].starts_with("weir: 7 lines were left out here"),
            "{rest:?}"
        );
    }
}
