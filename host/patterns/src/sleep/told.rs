//! What is said of hosts that sleep.

use weir_analysis::{Group, address, clock, decimal, finding, seconds, several};
use weir_messages::v1::{Finding, FindingValue};

use super::naps::{Nap, Rhythm, are_alike, common, is_regular, right_behind};
use super::sleeper::{AWAKE, Sleeper};
use super::track::QUIET;
use crate::services::Service;
use crate::steps::levels;
use crate::timeline::Timeline;

/// Confidence where the TCP of the host was seldom heard: what holds packets back loses nothing either, so an application
/// that stops is one of two causes.
const HELD_BACK: f64 = 0.5;
/// Standard deviation of those intervals, against their mean, up to which they are a period: 0.26 by chance.
const SPREAD: f64 = 0.12;
/// Where they differ by more than this share of the median, and no more than [`QUIET`] usual pauses, the pauses before
/// them may be what differs.
const DIFFERENT: f64 = 0.2;
/// Share of the silences that come right behind another, from which on they may be pieces of longer ones.
const PIECES: f64 = 0.25;
/// Share of the silences that end with data of several connections at once, below which they are less sure.
const LEAST_AT_ONCE: f64 = 0.25;
/// Confidence with a period or one length, and with neither, where they may be pieces, or where few end at once.
const SURE: f64 = 0.95;
const UNSURE: f64 = 0.6;
/// Sleeps whose times the evidence names.
const NAMED: usize = 5;

/// The finding about hosts that sleep together, and clients of the first that fall silent with it.
pub(super) fn told(first: &Sleeper, with: &[Sleeper], waiting: &[Sleeper], timeline: &Timeline) -> Finding {
    Told::new(first, with, waiting, timeline).finding()
}

/// What a finding says.
struct Told<'a> {
    first: &'a Sleeper<'a>,
    with: &'a [Sleeper<'a>],
    waiting: &'a [Sleeper<'a>],
    /// Addresses of those that sleep.
    hosts: String,
    /// Of the first's sleeps, sorted, s.
    lengths: Vec<f64>,
    /// Usual time from one begin to the next around them, s.
    usual: f64,
    /// The lengths differ by no more than the pauses before them can.
    by_pauses: bool,
    /// How long a sleep is, s.
    gap: f64,
    rhythm: Rhythm,
    is_regular: bool,
    /// That the way did not stand still.
    is_proven: bool,
    /// In all, s, and as a share of the time.
    silent: f64,
    share: f64,
    /// Of what was in progress, s.
    cost: Option<f64>,
    /// Sleeps right behind another, and whether so many are that all may be pieces.
    pieces: usize,
    are_pieces: bool,
    confidence: f64,
}

impl<'a> Told<'a> {
    fn new(first: &'a Sleeper<'a>, with: &'a [Sleeper<'a>], waiting: &'a [Sleeper<'a>], timeline: &Timeline) -> Self {
        let naps = &first.naps;
        let n = naps.len();
        let mut lengths: Vec<f64> = naps.iter().map(Nap::length).collect();
        lengths.sort_by(f64::total_cmp);
        let median = lengths[n / 2];
        let mut usual: Vec<u64> = naps.iter().map(|nap| nap.before).collect();
        usual.sort_unstable();
        let usual = seconds(usual[n / 2]);
        let differ = lengths[n - 1] - lengths[0];
        let by_pauses = differ > DIFFERENT * median && differ <= QUIET * usual;
        let least = naps.iter().map(|nap| nap.to - nap.from).min().unwrap_or(0);
        let rhythm = Rhythm::of(naps);
        let is_regular = is_regular(naps, true) && rhythm.deviation <= SPREAD * rhythm.mean;
        let sleepers: Vec<[u8; 16]> = std::iter::once(first)
            .chain(with)
            .map(|sleeper| sleeper.host.address)
            .collect();
        let cost = cost(naps, &sleepers, timeline);
        let mut hosts: Vec<String> = sleepers.into_iter().map(address).collect();
        hosts.sort();
        let silent: f64 = lengths.iter().sum();
        let (start, end) = timeline.span();
        let pieces = right_behind(naps);
        let are_pieces = pieces as f64 >= PIECES * n as f64;
        let confidence = if are_pieces || (first.at_once as f64) < LEAST_AT_ONCE * n as f64 {
            UNSURE
        } else {
            confidence(&lengths, is_regular)
        };
        Self {
            first,
            with,
            waiting,
            hosts: hosts.join(", "),
            lengths,
            usual,
            by_pauses,
            gap: if by_pauses { seconds(least) } else { median },
            rhythm,
            is_regular,
            is_proven: first.heard as f64 >= AWAKE * n as f64,
            silent,
            share: silent / seconds(end.saturating_sub(start)).max(1e-9),
            cost,
            pieces,
            are_pieces,
            confidence,
        }
    }

    const fn several(&self) -> bool {
        !self.with.is_empty()
    }

    const fn who(&self) -> &'static str {
        if self.several() { "applications" } else { "application" }
    }

    fn finding(self) -> Finding {
        let naps = &self.first.naps;
        let n = naps.len();
        let mut evidence = Vec::new();
        self.silences(&mut evidence);
        self.times(&mut evidence);
        self.others(&mut evidence);
        self.costs(&mut evidence);
        self.doubts(&mut evidence);
        self.next(&mut evidence);
        let mut values = vec![("gapSeconds", self.gap), ("count", n as f64), ("share", self.share)];
        if self.is_regular {
            values.push(("periodSeconds", self.rhythm.mean));
        }
        values.extend(self.cost.map(|cost| ("costSeconds", cost)));
        let mut finding = finding(
            "APPLICATION_SLEEP",
            "WARNING",
            if self.is_proven {
                self.confidence
            } else {
                self.confidence.min(HELD_BACK)
            },
            self.title(),
            evidence,
            &Group::range(naps[0].from, naps[n - 1].to),
            &values,
        );
        finding
            .values
            .insert("hosts".to_owned(), FindingValue::from(self.hosts.as_str()));
        finding.who = self.hosts;
        finding
    }

    fn title(&self) -> String {
        format!(
            "The {} of {}{} stop{} {} for {:.2} s{}",
            self.who(),
            self.hosts,
            match (self.is_proven, self.several()) {
                (true, _) => "",
                (false, true) => ", or the way to them,",
                (false, false) => ", or the way to it,",
            },
            if self.several() { "" } else { "s" },
            if self.several() { "together" } else { "again and again" },
            self.gap,
            if self.is_regular {
                format!(" every {:.1} s", self.rhythm.mean)
            } else {
                String::new()
            }
        )
    }

    /// How long they are, and what shows that only the application stopped.
    fn silences(&self, out: &mut Vec<String>) {
        let first = self.first;
        let n = first.naps.len();
        let (shortest, median, longest) = (self.lengths[0], self.lengths[n / 2], self.lengths[n - 1]);
        out.push(format!(
            "{n} times no data of {} began for {:.3} s ({shortest:.3} to {longest:.3} s), though two connections or more waited for it; otherwise something begins every {:.1} ms",
            self.hosts,
            self.gap,
            self.usual * 1e3
        ));
        let its = if self.several() { "their" } else { "its" };
        out.push(if self.is_proven {
            format!(
                "neither link nor capture stood still: {its} TCP sent ACKs or repeats in {} of the {n} times",
                first.heard
            )
        } else {
            format!(
                "whether the {} or the way stood still is not known: {its} TCP sent ACKs or repeats in {} of the {n} times only, and a link, a switch or a virtual machines' host that holds packets back loses nothing either",
                self.who(),
                first.heard
            )
        });
        out.push(format!(
            "{} with data of several connections at once, as when an application wakes{}",
            several(first.at_once as u64, "of them ends", "of them end"),
            if self.is_proven {
                ""
            } else {
                " or what was held back is let go"
            }
        ));
        if self.by_pauses {
            out.push(format!(
                "they differ by no more than the pauses before them can, so the shortest is told; half are {median:.3} s or longer"
            ));
        }
        if first.opening > 0 {
            out.push(format!(
                "in {} of them connections were opened: what opens them goes on",
                first.opening
            ));
        }
        let strays = first.naps.iter().filter(|nap| nap.strays > 0).count();
        if strays > 0 {
            out.push(format!(
                "in {strays} of them one or two pieces of data passed that TCP had ready or sent again; they do not end a silence here"
            ));
        }
    }

    fn times(&self, out: &mut Vec<String>) {
        let naps = &self.first.naps;
        let n = naps.len();
        out.push(if self.is_regular {
            format!(
                "regularly: every {:.2} s (standard deviation {:.2} s)",
                self.rhythm.mean, self.rhythm.deviation
            )
        } else {
            let whole = seconds(naps[n - 1].from - naps[0].from);
            format!(
                "no period shows: {:.2} s on average from one that was seen to the next",
                whole / (n - 1).max(1) as f64
            )
        });
        let times: Vec<String> = naps.iter().take(NAMED).map(|nap| clock(nap.from)).collect();
        out.push(format!("the first began at {}", times.join(", ")));
    }

    /// Who sleeps with it, and who is silent with it.
    fn others(&self, out: &mut Vec<String>) {
        let first = self.first;
        for other in self.with {
            let pairs = common(&first.naps, &other.naps);
            let mut apart: Vec<u64> = pairs.iter().map(|(a, b)| a.to.abs_diff(b.to)).collect();
            apart.sort_unstable();
            out.push(format!(
                "{} and {} sleep at the same times: {} of {} sleeps are common, and they wake within {:.1} ms of each other (median)",
                address(first.host.address),
                address(other.host.address),
                pairs.len(),
                other.naps.len(),
                seconds(apart.get(apart.len() / 2).copied().unwrap_or(0)) * 1e3
            ));
        }
        for client in self.waiting {
            out.push(format!(
                "{} is silent in {} of the {}, too: it asks {}, so waiting for its answers explains that; whether it sleeps with it is not known",
                address(client.host.address),
                common(&first.naps, &client.naps).len(),
                first.naps.len(),
                address(first.host.address)
            ));
        }
    }

    fn costs(&self, out: &mut Vec<String>) {
        out.push(format!(
            "it costs {:.3} s of every transaction in progress then: {:.1} s in all ({:.1} % of the time) nothing gets on",
            self.gap,
            self.silent,
            self.share * 100.0
        ));
        if let Some(cost) = self.cost {
            out.push(format!(
                "requests from outside that were in progress lost {} s in all",
                decimal(cost, 0)
            ));
        }
    }

    /// What else it may be.
    fn doubts(&self, out: &mut Vec<String>) {
        if self.are_pieces {
            out.push(format!(
                "{} of the {} begin right behind another: they may be pieces of longer sleeps, in which something else of the host went on",
                self.pieces,
                self.first.naps.len()
            ));
        }
        if self.confidence < SURE {
            out.push(
                "it may also be no sleep: silences without a period, of such different lengths or after which little begins also come where work begins and ends in steps, after the sleep of another host or behind a limit of workers"
                    .to_owned(),
            );
        }
        out.push(
            if self.several() {
                "it may also be: within one host we might call it garbage collection; it is both, so look for what they share: the virtual machines' host, storage, a snapshot, a lock or a service that both call"
            } else {
                "it may also be: garbage collection, a lock that all threads need, a virtual machine that is not scheduled (its kernel would then be silent too), or a service behind this host that stops"
            }
            .to_owned(),
        );
    }

    fn next(&self, out: &mut Vec<String>) {
        out.push(format!(
            "next: compare the times with the logs of the {} (garbage collector, checkpoints) and with the scheduler of the hypervisor",
            self.who()
        ));
        if !self.is_proven {
            out.push(
                "next: look at the TCP timestamps behind a silence: what was held back was stamped in it; or capture at the hosts themselves"
                    .to_owned(),
            );
        }
    }
}

/// Time that requests lost which were in progress at services of these hosts in the middle of each sleep, s; what one
/// of the hosts asks of another is a part of that. None without such services.
fn cost(naps: &[Nap], hosts: &[[u8; 16]], timeline: &Timeline) -> Option<f64> {
    let mut total = None;
    let asked =
        |service: &&Service| hosts.contains(&service.key.0) && !hosts.iter().any(|host| service.is_behind(host));
    for service in timeline.services().iter().filter(asked) {
        let (start, width) = (service.load.start(), service.load.width());
        let at_once: Vec<f64> = levels(&service.load, |load| load.progress)
            .map(|level| level.mean)
            .collect();
        let lost = naps.iter().filter_map(|nap| {
            let slice = nap.from.midpoint(nap.to).checked_sub(start)? / width;
            Some(at_once.get(slice as usize)? * nap.length())
        });
        *total.get_or_insert(0.0) += lost.sum::<f64>();
    }
    total
}

/// Of sorted lengths.
fn confidence(lengths: &[f64], is_regular: bool) -> f64 {
    if is_regular || are_alike(lengths) { SURE } else { UNSURE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sleep::fixtures::sleeper;
    use crate::sleep::track::Track;

    #[test]
    fn silences_after_which_little_begins_are_less_sure() {
        let track = Track::default();
        for (at_once, expected) in [(19, SURE), (2, UNSURE)] {
            let sleeper = Sleeper {
                at_once,
                ..sleeper(&track, 0, 0, 500)
            };
            assert_eq!(told(&sleeper, &[], &[], &Timeline::default()).confidence, expected);
        }
    }

    #[test]
    fn where_tcp_was_seldom_heard_the_way_is_as_likely() {
        let track = Track::default();
        for (heard, proven) in [(19, true), (10, true), (2, false), (0, false)] {
            let sleeper = Sleeper {
                heard,
                ..sleeper(&track, 0, 0, 500)
            };
            let found = told(&sleeper, &[], &[], &Timeline::default());
            assert_eq!(found.confidence, if proven { SURE } else { HELD_BACK });
            assert_eq!(found.title.contains(", or the way to it, stops"), !proven, "{found:?}");
            let claims = |line: &String| line.starts_with("neither link nor capture stood still");
            assert_eq!(found.evidence.iter().any(claims), proven, "{found:?}");
        }
    }

    /// Twenty sleeps of 1 s, of which each is seen whole or in two pieces.
    #[test]
    fn pieces_are_less_sure() {
        let track = Track::default();
        for (cut, expected) in [(0, SURE), (2, SURE), (8, UNSURE)] {
            let nap = |from: u64, length: u64| Nap {
                from: from * 1_000_000,
                to: (from + length) * 1_000_000,
                before: 1_000_000,
                strays: 0,
            };
            let naps: Vec<Nap> = (0..20u64)
                .flat_map(|i| {
                    let from = 7_000 * i + 900 * (i % 3);
                    let second = (i < cut).then(|| nap(from + 440, 430));
                    std::iter::once(nap(from, 430)).chain(second)
                })
                .collect();
            let sleeper = Sleeper {
                naps,
                ..sleeper(&track, 0, 0, 430)
            };
            let found = told(&sleeper, &[], &[], &Timeline::default());
            assert_eq!(found.confidence, expected, "{found:?}");
        }
    }

    #[test]
    fn silences_of_all_lengths_without_a_period_are_less_sure() {
        let lengths: Vec<f64> = (0..20).map(|i| 0.3 + 0.015 * f64::from(i)).collect();
        assert_eq!(confidence(&lengths, false), UNSURE);
        assert_eq!(confidence(&lengths, true), SURE);
        // A few pieces and neighbours beside one length.
        let mut most = [0.45; 20];
        (most[0], most[1], most[19]) = (0.3, 0.35, 0.58);
        assert_eq!(confidence(&most, false), SURE);
    }
}
