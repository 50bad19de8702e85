//! Transfers that send buffers, receivers' windows or the link held.

use weir_messages::v1;

use super::LIMIT_LEAST;
use crate::ceilings::{at_unscaled_most, sender_bytes};
use crate::flow::Flow;
use crate::given::Given;
use crate::group::{Group, finding};
use crate::limits::Cause;
use crate::message::seconds;
use crate::numbers::{connections, decimal, duration};
use crate::setup::Unscaled;
use crate::shares::Measure;

/// Transfers that one limit held.
#[derive(Clone, Debug, Default)]
struct Limited {
    group: Group,
    ns: u64,
    /// Of that, because of queues, what windows and send buffers were full for as well.
    queued_ns: u64,
    /// Connections whose receivers' windows have a scale that was not seen, and their part of the time, ns.
    unscaled: u64,
    unscaled_ns: u64,
    /// Whose windows are as large as they can be without a scale, which the handshakes lack, and their part of the time, ns.
    full: [u64; UNAGREED.len()],
    full_ns: u64,
    /// Of the connection that it cost most: ns, bytes in flight (or bytes/s), round trips.
    most: (u64, f64, Measure),
}

/// Who left the window scale out (RFC 7323 2.2), and what an expert makes of it.
const UNAGREED: [(Unscaled, &str); 3] = [
    (
        Unscaled::Server,
        "the client offered it and the server did not answer it: the server does not scale (also one that answers by SYN cookies without timestamps), or a firewall or load balancer between takes the option out",
    ),
    (
        Unscaled::Client,
        "the SYN has none at the tap, and the SYN-ACK answers one: a box between the client and the server changes the option",
    ),
    (
        Unscaled::Both,
        "the client does not offer it: its system is set so or too old for it, or a box before the tap takes the option out",
    ),
];

/// Kinds of findings about limits, what they are about, the key of their value, what else it may be, and what to do.
const LIMITS: [(&str, &str, &str, [&str; 2]); 3] = [
    (
        "SENDER_LIMITED",
        "The senders' buffers held transfers",
        "bytes",
        [
            "it may also be an application that writes a fixed amount and waits for its acknowledgment",
            "next: raise the sender's buffer (SO_SNDBUF or its autotuning limit) to the rate wanted times the round trip",
        ],
    ),
    (
        "RECEIVER_LIMITED",
        "The receivers' windows held transfers",
        "bytes",
        [
            "it may also be a receiving application that reads slowly: its windows would then go up and down",
            "next: raise the receiver's buffer (SO_RCVBUF or its autotuning limit) to the rate wanted times the round trip",
        ],
    ),
    (
        "BANDWIDTH_LIMITED",
        "The link was busy",
        "bitsPerSecond",
        [
            "it may also be a shaper or a policer with that rate, below the link's own",
            "next: a faster link, less data (compression, caching), or other times for bulk transfers",
        ],
    ),
];
/// From this share of its direction's transfers on, a limit is worth pointing out.
const LIMIT_SHARE: u64 = 4;
/// Of one transfer in so many, or one second of them, a limit is less sure: each has a small chance to be told wrongly.
const LIMIT_SELDOM: u64 = 100;

/// By limit, and all that one could have held.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitedTransfers {
    limited: [Limited; LIMITS.len()],
    /// Transfers that a limit could have held so long, and their time, ns.
    transfers: u64,
    transfers_ns: u64,
}

impl LimitedTransfers {
    /// A connection that is over.
    pub fn connection(&mut self, flow: &Flow, m: Measure, given: Given) {
        let Some(limits) = flow.extras.limits() else { return };
        for (side, t) in limits.sides.iter().enumerate() {
            let by = &t.total.by;
            if by.sum() >= LIMIT_LEAST {
                self.transfers += 1;
                self.transfers_ns = self.transfers_ns.saturating_add(by.sum());
            }
            let rate = given.link.or(t.link()).unwrap_or(0.0);
            // What is full because most of the round trip is a queue would only make that longer.
            let (window, buffer) = (t.total.queued_window, t.total.queued_buffer);
            let costs = [
                (
                    by.of(Cause::SendBuffer).saturating_sub(buffer),
                    f64::from(sender_bytes(flow, side).unwrap_or(0)),
                    0,
                ),
                (
                    by.of(Cause::ReceiverWindow).saturating_sub(window),
                    f64::from(t.receiver_bytes),
                    0,
                ),
                (t.total.busy(), rate * 8.0, window.saturating_add(buffer)),
            ];
            for (limited, (ns, value, queued)) in self.limited.iter_mut().zip(costs) {
                if ns < LIMIT_LEAST || ns < by.sum() / LIMIT_SHARE || value == 0.0 {
                    continue;
                }
                limited.group.add(flow);
                limited.ns = limited.ns.saturating_add(ns);
                limited.queued_ns = limited.queued_ns.saturating_add(queued);
                if flow.setup.scale(1 - side).is_none() {
                    limited.unscaled += 1;
                    limited.unscaled_ns = limited.unscaled_ns.saturating_add(ns);
                }
                if let Some(by) = at_unscaled_most(flow, 1 - side) {
                    for (n, (who, _)) in limited.full.iter_mut().zip(UNAGREED) {
                        *n += u64::from(who == by);
                    }
                    limited.full_ns = limited.full_ns.saturating_add(ns);
                }
                if ns > limited.most.0 {
                    limited.most = (ns, value, m);
                }
            }
        }
    }

    pub fn findings(&self) -> impl Iterator<Item = v1::Finding> {
        (0..LIMITS.len()).filter_map(|which| self.finding(which))
    }

    fn finding(&self, which: usize) -> Option<v1::Finding> {
        let limited = &self.limited[which];
        let (kind, title, key, otherwise) = LIMITS[which];
        let (ns, value, m) = limited.most;
        let trip = m.path_trip().unwrap_or(0);
        if limited.group.count() == 0 {
            return None;
        }
        let cost = seconds(limited.ns);
        let mut evidence = vec![format!(
            "{} waited {} s in all; most: {} s",
            connections(limited.group.count()),
            decimal(cost, 3),
            decimal(seconds(ns), 3)
        )];
        let rate = if key == "bytes" {
            evidence.push(format!(
                "no more than {} bytes were in flight there, for no other reason",
                decimal(value, 0)
            ));
            (trip > 0).then(|| value * 8.0 / seconds(trip))
        } else {
            Some(value)
        };
        if let Some(rate) = rate {
            let path = if trip > 0 {
                let which = if m.is_given() { "given" } else { "smallest" };
                format!(" over the {which} round trip, {}", duration(trip))
            } else {
                String::new()
            };
            evidence.push(format!("that is {} Mbit/s at most{path}", decimal(rate / 1e6, 2)));
        }
        if limited.queued_ns >= LIMIT_LEAST {
            evidence.push(format!(
                "in {} s windows or send buffers were full as well, because of a queue that never ran empty: larger ones would make that longer, and nothing faster",
                decimal(seconds(limited.queued_ns), 3)
            ));
        }
        let count = limited.group.count();
        let is_seldom =
            LIMIT_SELDOM * count < self.transfers && LIMIT_SELDOM.saturating_mul(limited.ns) < self.transfers_ns;
        if is_seldom {
            evidence.push(format!(
                "seldom: {count} of {} transfers, {} s of {} s: so few may be told wrongly",
                self.transfers,
                decimal(cost, 3),
                decimal(seconds(self.transfers_ns), 0)
            ));
        }
        if limited.unscaled > 0 {
            evidence.push(format!(
                "the handshakes of {} were not seen, so the scale of their receivers' windows is not known: {}",
                connections(limited.unscaled),
                if kind == "RECEIVER_LIMITED" {
                    "it is inferred, as what was in flight fills a window of one scale; a send buffer of that size looks the same"
                } else {
                    "these may have been full"
                }
            ));
        }
        let is_unsure = is_seldom || 2 * limited.unscaled_ns > limited.ns;
        let mut values = vec![
            (key, value),
            ("seconds", cost),
            ("costSeconds", cost),
            ("rttSeconds", seconds(trip)),
            ("ceilingBitsPerSecond", rate.unwrap_or(0.0)),
        ];
        let [mut may_be, mut next] = otherwise;
        if kind == "RECEIVER_LIMITED" && limited.full_ns > 0 {
            values.push(("withoutScaling", limited.full.iter().sum::<u64>() as f64));
            evidence.push(format!(
                "{} s of it are of windows that are as large as they can be without scaling, 65,535 bytes, whatever the buffer is (RFC 7323): the handshake has no window scale on both sides",
                decimal(seconds(limited.full_ns), 3)
            ));
            let told = limited.full.iter().zip(UNAGREED).filter(|(n, _)| **n > 0);
            evidence.extend(told.map(|(n, (_, why))| format!("in {}: {why}", connections(*n))));
            if 2 * limited.full_ns >= limited.ns {
                may_be =
                    "it may also be that the receiver's buffer is no larger than that, either: then both are needed";
                next = "next: let both ends agree on window scaling (capture the SYN and the SYN-ACK at both ends to see who leaves it out): without it a larger buffer (SO_RCVBUF) changes nothing; several connections side by side do";
            }
        }
        evidence.extend([may_be, next].map(str::to_owned));
        Some(finding(
            kind,
            "WARNING",
            if is_unsure { 0.5 } else { 0.8 },
            format!("{title} for {} s", decimal(cost, 3)),
            evidence,
            &limited.group,
            &values,
        ))
    }
}
