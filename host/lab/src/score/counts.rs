//! The counts of judgements, and what their limits say.

use std::collections::BTreeMap;
use std::fmt;

use super::kinds::{Answer, Rule, Truth};
use super::share::Share;
use crate::config::PassConfig;

/// Counts of one run, or of several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Score {
    /// Segments at the tap.
    pub matrix: BTreeMap<(Truth, Answer), u64>,
    /// Losses, by where they happened and where Weir says they did.
    pub losses: BTreeMap<(Truth, Answer), u64>,
    /// Losses that are not judged.
    pub excluded: BTreeMap<Rule, u64>,
    /// Judgements that differ, one line each.
    pub misses: Vec<String>,
}

impl Score {
    pub(super) fn segment(&mut self, truth: Truth, answer: Answer, describe: impl Fn() -> String) {
        *self.matrix.entry((truth, answer)).or_default() += 1;
        if !truth.is(answer) {
            self.misses
                .push(format!("segment {truth:?} called {answer:?}: {}", describe()));
        }
    }

    pub(super) fn loss(&mut self, truth: Truth, answer: Answer, describe: impl Fn() -> String) {
        *self.losses.entry((truth, answer)).or_default() += 1;
        if !truth.is(answer) {
            self.misses
                .push(format!("loss {truth:?} called {answer:?}: {}", describe()));
        }
    }

    pub(super) fn exclude(&mut self, rule: Rule) {
        *self.excluded.entry(rule).or_default() += 1;
    }

    /// Adds another run's counts.
    pub fn add(&mut self, other: &Self) {
        for (key, n) in &other.matrix {
            *self.matrix.entry(*key).or_default() += n;
        }
        for (key, n) in &other.losses {
            *self.losses.entry(*key).or_default() += n;
        }
        for (key, n) in &other.excluded {
            *self.excluded.entry(*key).or_default() += n;
        }
        self.misses.extend_from_slice(&other.misses);
    }

    pub(super) fn row(&self, truth: Truth, which: impl Fn(Answer) -> bool) -> u64 {
        let cells = self.matrix.iter().filter(|((t, a), _)| *t == truth && which(*a));
        cells.map(|(_, n)| n).sum()
    }

    pub(super) fn count_losses(&self, which: impl Fn(Truth, Answer) -> bool) -> u64 {
        self.losses
            .iter()
            .filter(|((t, a), _)| which(*t, *a))
            .map(|(_, n)| n)
            .sum()
    }

    /// Losses that were judged.
    pub fn judged(&self) -> u64 {
        self.count_losses(|_, _| true)
    }

    /// What is held against the limits.
    fn shares(&self, pass: &PassConfig) -> [Share; 8] {
        let (judged, excluded) = (self.judged(), self.excluded.values().sum::<u64>());
        let open = |a| matches!(a, Answer::Unknown | Answer::Nothing);
        let unknown = self.count_losses(|_, a| open(a));
        let right = self.count_losses(|t, a| t.is(a));
        let all = |truth| self.row(truth, |_| true);
        let lost = |a| matches!(a, Answer::LostBefore | Answer::LostBehind);
        let copies = all(Truth::Copied) + all(Truth::Mirrored);
        let copies_found =
            self.row(Truth::Copied, |a| a == Answer::Copy) + self.row(Truth::Mirrored, |a| a == Answer::Copy);
        let reordered = all(Truth::Reordered);
        let spurious = all(Truth::Spurious);
        let missed = all(Truth::NotCaptured);
        let blamed = self.row(Truth::NotCaptured, lost);
        let named = self.row(Truth::Spurious, |a| a == Answer::Spurious);
        let unanswered = |which: fn(Truth, Answer) -> bool| {
            let syns = [Truth::LostSyn, Truth::EchoedSyn, Truth::SpuriousSyn];
            syns.iter().map(|&t| self.row(t, |a| which(t, a))).sum()
        };
        [
            Share::at_least("losses placed right", right, judged - unknown, pass.location),
            Share::at_least(
                "SYNs without an answer placed right or not",
                unanswered(Truth::is),
                unanswered(|_, _| true),
                pass.location,
            ),
            Share::at_most("losses without a place", unknown, judged, pass.unknown),
            Share::at_most("losses excluded", excluded, judged + excluded, pass.excluded),
            Share::at_most(
                "reordered called lost",
                self.row(Truth::Reordered, lost),
                reordered,
                pass.reordered_as_loss,
            ),
            Share::at_least("spurious called so", named, spurious, pass.spurious),
            Share::at_most(
                "capture drops blamed on the network",
                blamed,
                missed,
                pass.capture_blamed,
            ),
            Share::at_least("copies called so", copies_found, copies, pass.copies),
        ]
    }

    /// What the limits say: a line each; empty when all are kept.
    pub fn failures(&self, pass: &PassConfig) -> Vec<String> {
        let mut out = Vec::new();
        let cases = self.judged()
            + Truth::ALL
                .iter()
                .filter(|t| {
                    !matches!(
                        t,
                        Truth::New | Truth::SpuriousFin | Truth::LostBefore | Truth::LostBehind
                    )
                })
                .map(|t| self.row(*t, |_| true))
                .sum::<u64>();
        if cases < pass.at_least {
            out.push(format!(
                "{cases} cases are too few to judge: {} are needed (at_least of [pass]), more connections make more",
                pass.at_least
            ));
        }
        out.extend(self.shares(pass).iter().filter_map(Share::failure));
        out
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        table(f, "segments at the tap", &self.matrix)?;
        table(f, "losses", &self.losses)?;
        for (rule, n) in &self.excluded {
            writeln!(f, "  excluded: {n} {}", rule.text())?;
        }
        for s in self.shares(&PassConfig::default()).iter().filter(|s| s.whole > 0) {
            writeln!(f, "{s}")?;
        }
        Ok(())
    }
}

/// A confusion matrix: a row for each truth that occurred.
fn table(f: &mut fmt::Formatter<'_>, title: &str, cells: &BTreeMap<(Truth, Answer), u64>) -> fmt::Result {
    if cells.is_empty() {
        return Ok(());
    }
    write!(f, "  {title:22}")?;
    for answer in Answer::ALL {
        write!(f, "{:>12}", format!("{answer:?}"))?;
    }
    writeln!(f)?;
    for truth in Truth::ALL {
        if !cells.keys().any(|(t, _)| *t == truth) {
            continue;
        }
        write!(f, "    {:20}", format!("{truth:?}"))?;
        for answer in Answer::ALL {
            match cells.get(&(truth, answer)) {
                Some(n) => write!(f, "{n:>12}")?,
                None => write!(f, "{:>12}", "·")?,
            }
        }
        writeln!(f)?;
    }
    Ok(())
}
