//! Where the time of transactions went, by service and request. [`MOST`] kinds of them are told apart, from [`EXACT`] on
//! by the first digits of their sizes alone; what comes after those is counted by service, of as many at most (4 MB).

use std::cmp::Reverse;
use std::collections::HashMap;

use weir_messages::v1;

use crate::collect::{Service, masked};
use crate::document::Text;
use crate::figures::service_name;
use crate::format::{count, seconds};
use crate::scale::Histogram;

const MOST: usize = 64;
const EXACT: usize = 32;
/// The request of a setup, and of those that are not told apart.
pub(crate) const SETUP: &str = "setup";
const OTHER: &str = "other";
/// A request that takes so much of its service's time is named.
const MOST_OF_IT: f64 = 0.5;

/// A part of the time, s.
type Part = fn(&v1::TimeShares) -> f64;

/// Categories of the diagnosis that are parts of the time, and which part.
pub(crate) const PARTS: [(&str, Part); 6] = [
    ("CLIENT_PROCESSING", |time| time.client_processing_seconds),
    ("SERVER_PROCESSING", |time| time.server_processing_seconds),
    ("LATENCY", |time| time.latency_seconds.unwrap_or(0.0)),
    ("BANDWIDTH", |time| time.bandwidth_seconds),
    ("CONGESTION", |time| time.congestion_seconds),
    ("PROTOCOL", |time| time.protocol_seconds),
];

/// Transactions of one service with the same request.
#[derive(Debug)]
struct Kind {
    service: Service,
    request: Box<str>,
    /// In the order of [`PARTS`].
    parts: [Histogram; PARTS.len()],
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    kinds: Vec<Kind>,
    /// Number in `kinds`.
    numbers: HashMap<Service, HashMap<Box<str>, usize>>,
}

impl Spent {
    /// A transaction is over.
    pub fn add(&mut self, service: Service, request: &str, time: &v1::TimeShares) {
        let Some(kind) = self.kind(service, request) else {
            return;
        };
        for (histogram, (_, of)) in kind.parts.iter_mut().zip(PARTS) {
            histogram.add((1e9 * of(time)) as u64);
        }
    }

    fn kind(&mut self, service: Service, request: &str) -> Option<&mut Kind> {
        let known = |request: &str| self.numbers.get(&service)?.get(request).copied();
        if let Some(number) = known(request) {
            return self.kinds.get_mut(number);
        }
        let request: Box<str> = match self.kinds.len() {
            0..EXACT => request.into(),
            EXACT..MOST => masked(request).into(),
            _ => OTHER.into(),
        };
        if let Some(number) = known(&request) {
            return self.kinds.get_mut(number);
        }
        if self.kinds.len() == 2 * MOST {
            return None;
        }
        let number = self.kinds.len();
        self.numbers.entry(service).or_default().insert(request.clone(), number);
        self.kinds.push(Kind {
            service,
            request,
            parts: Default::default(),
        });
        self.kinds.last_mut()
    }

    /// Which service took most of a part of the time, and with which request if one has most of that, in a sentence.
    pub fn most(&self, category: &str) -> Option<Text> {
        let part = PARTS.iter().position(|(name, _)| *name == category)?;
        let mut services: HashMap<Service, Histogram> = HashMap::new();
        for kind in &self.kinds {
            services.entry(kind.service).or_default().join(&kind.parts[part]);
        }
        let (service, all) = services
            .into_iter()
            .filter(|(_, all)| all.sum() > 0)
            .max_by_key(|(service, all)| (all.sum(), Reverse(*service)))?;
        let of_it = |kind: &&Kind| {
            kind.service == service
                && *kind.request != *OTHER
                && kind.parts[part].sum() as f64 >= MOST_OF_IT * all.sum() as f64
        };
        let (request, times) = match self.kinds.iter().find(of_it) {
            Some(kind) => (Some(&*kind.request), &kind.parts[part]),
            None => (None, &all),
        };
        let service = service_name(service);
        let several = |one: &str, many: &str| match times.count() {
            1 => format!("1 {one}"),
            n => format!("{} {many}", count(n)),
        };
        let text = Text::from(format!("{} of it in ", seconds(times.sum() as f64 / 1e9)));
        let text = match request {
            None => text.plain(format!("{} with {service}", several("transaction", "transactions"))),
            Some(SETUP) => text.plain(format!(
                "{} to {service}",
                several("connection setup", "connection setups")
            )),
            // A greeting, or the end of a response that began before the capture.
            Some("") => text.plain(format!(
                "what {service} sends before any request, {}",
                several("time", "times")
            )),
            Some(request) => text
                .plain(format!("{} ", several("request", "requests")))
                .code(request)
                .plain(format!(" to {service}")),
        };
        Some(match times.count() {
            1 => text,
            _ => text.plain(format!(
                ": {} in the median, {} at most",
                seconds(times.quantile(0.5)),
                seconds(times.max())
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: Service = ([1; 16], 443);

    fn server(s: f64) -> v1::TimeShares {
        v1::TimeShares {
            server_processing_seconds: s,
            total_seconds: s,
            ..v1::TimeShares::default()
        }
    }

    #[test]
    fn who_took_most_of_a_part_is_named() {
        let mut spent = Spent::default();
        assert_eq!(spent.most("SERVER_PROCESSING"), None);
        for (request, s) in [
            ("blk[200]", 2.0),
            ("blk[200]", 4.0),
            ("blk[300]", 5.0),
            ("blk[200]", 2.0),
        ] {
            spent.add(SERVICE, request, &server(s));
        }
        let text = format!("{:?}", spent.most("SERVER_PROCESSING"));
        assert!(
            text.contains("8.00 s of it in ") && text.contains("3 requests "),
            "{text}"
        );
        assert!(text.contains("2.00 s in the median, 4.00 s at most"), "{text}");
        // None of the requests has most of it.
        spent.add(SERVICE, "blk[400]", &server(5.0));
        let text = format!("{:?}", spent.most("SERVER_PROCESSING"));
        assert!(
            text.contains("18.00 s of it in ") && text.contains("5 transactions with "),
            "{text}"
        );
        assert!(text.contains(", 5.00 s at most"), "{text}");
        assert_eq!(spent.most("LATENCY"), None);
        assert_eq!(spent.most("CONNECTION_RESETS"), None);
    }

    #[test]
    fn kinds_stay_bounded() {
        let mut spent = Spent::default();
        for size in 1..5000 {
            spent.add(
                (u128::from(size % 7u16).to_be_bytes(), 443),
                &format!("blk[{size}]"),
                &server(1.0),
            );
        }
        assert_eq!(spent.kinds.len(), MOST + 7);
        let count = |kind: &Kind| kind.parts[1].count();
        assert_eq!(spent.kinds.iter().map(count).sum::<u64>(), 4999);
    }
}
