//! Every counter and state of the daemon, one family each. `docs/src/metrics.md` explains them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use weir_api::facts::Facts;
use weir_api::log::RecordLog;
use weir_api::state::{ApplianceState, CaptureState};
use weir_messages::v1::{CardPortStatus, CardStatus, GetCaptureStatusResponse, PortStatus, RecordLinkStatus};

use crate::analysis::{AnalysisCounters, Counts};
use crate::page::{Family, Page};
use crate::store::StoreCounters;
use crate::webhook::WebhookCounters;

/// Where the figures come from.
#[derive(Clone)]
pub struct Sources {
    /// The record log.
    pub log: Arc<RecordLog>,
    /// What the analysis knows.
    pub facts: Arc<dyn Facts>,
    /// Counters of the ports.
    pub capture: Arc<CaptureState>,
    /// What only the daemon knows.
    pub appliance: Arc<ApplianceState>,
    /// What the analysis told.
    pub analysis: Arc<AnalysisCounters>,
    /// Of the store, if there is one.
    pub store: Option<Arc<StoreCounters>>,
    /// Of the webhook; all 0 without one.
    pub webhook: Arc<WebhookCounters>,
}

/// The page of all metrics.
#[derive(Debug)]
pub struct Metrics(Registry);

impl Metrics {
    /// Of these sources.
    pub fn new(sources: Sources) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(sources));
        Self(registry)
    }

    /// The page as of now, in OpenMetrics text.
    pub fn page(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        encode(&mut page, &self.0)?;
        Ok(page)
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

impl Collector for Sources {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        let capture = self.capture.status();
        self.process(&mut page)?;
        ports(&mut page, &capture)?;
        if let Some(link) = &capture.link {
            record_link(&mut page, link)?;
        }
        self.log(&mut page)?;
        if let Some(card) = self.appliance.card() {
            card_state(&mut page, &card)?;
            card_ports(&mut page, &card.ports)?;
        }
        analysis(&mut page, &self.analysis.get())?;
        self.findings(&mut page)?;
        self.memory(&mut page)?;
        if let Some(store) = &self.store {
            store.encode(&mut page)?;
        }
        self.webhook(&mut page)
    }
}

/// As a label: numbers are no text.
fn text(number: u32) -> String {
    number.to_string()
}

impl Sources {
    fn process(&self, page: &mut Page<'_>) -> fmt::Result {
        let status = self.appliance.status(&self.log, self.facts.as_ref());
        page.gauges("weir_build_info", "The version that runs", |family| {
            family.gauge(&[("version", &status.version)], 1u64)
        })?;
        let start = self.appliance.start_time.unix_nanos() as f64 / 1e9;
        page.gauge(
            "process_start_time_seconds",
            "Start of the daemon, seconds since 1970",
            start,
        )?;
        page.gauge(
            "process_resident_memory_bytes",
            "Memory of the daemon",
            status.resident_bytes as f64,
        )?;
        page.gauge(
            "weir_flows_in_table",
            "Flows that the engine or the card holds now",
            status.flows_in_table as f64,
        )?;
        let clock = &self.appliance.clock;
        page.counts(
            "weir_clock_steps",
            "Times that the system's clock, by which records are stamped, was set",
            |family| {
                family.sample(&[("direction", "back")], clock.back.load(Ordering::Relaxed))?;
                family.sample(&[("direction", "forward")], clock.forward.load(Ordering::Relaxed))
            },
        )?;
        page.gauge(
            "weir_clock_behind_seconds",
            "How far the system's clock is behind the times that records have, after it was set back: these stand still until it has caught up",
            clock.behind_ns.load(Ordering::Relaxed) as f64 / 1e9,
        )?;
        page.gauge(
            "weir_subscribers",
            "gRPC streams that are open (subscribe and watch)",
            status.subscribers,
        )
    }

    fn log(&self, page: &mut Page<'_>) -> fmt::Result {
        page.count(
            "weir_log_records",
            "Records appended to the log since the daemon started",
            self.log.appended(),
        )?;
        page.count(
            "weir_log_lost_records",
            "Records that did not come into the log: it could not be written, or its disk was too slow for an inline path",
            self.log.lost(),
        )?;
        page.gauge(
            "weir_log_failing",
            "1 while the log cannot be written",
            u8::from(self.log.fails()),
        )?;
        page.gauge(
            "weir_log_first_position",
            "Position of the oldest record in the log; positions count records and are never used again",
            self.log.first_position() as f64,
        )?;
        page.gauge(
            "weir_log_next_position",
            "Position that the next record will have",
            self.log.next_position() as f64,
        )?;
        page.gauge("weir_log_bytes", "Size of the log", self.log.bytes() as f64)?;
        page.gauge(
            "weir_log_limit_bytes",
            "Size from which the oldest records go",
            self.log.limit_bytes() as f64,
        )?;
        page.gauge(
            "weir_boot_epoch",
            "Number of this stretch of records: it grows with each start of the daemon or of its card",
            self.log.epoch(),
        )?;
        let recovery = self.log.recovery();
        page.gauge(
            "weir_log_recovery_cut_bytes",
            "Bytes of a torn end that were cut when the log was opened",
            recovery.cut_bytes as f64,
        )?;
        page.gauge(
            "weir_log_recovery_damaged_files",
            "Files of the log that were set aside as damaged when it was opened",
            recovery.damaged.len() as f64,
        )
    }

    fn findings(&self, page: &mut Page<'_>) -> fmt::Result {
        let (changes, open) = self.facts.open_findings();
        let mut by_kind = BTreeMap::<[&str; 2], u64>::new();
        for finding in open.iter().filter_map(|change| change.finding.as_ref()) {
            *by_kind.entry([&finding.kind, &finding.severity]).or_default() += 1;
        }
        page.gauges("weir_findings_open", "Findings that are open now", |family| {
            for ([kind, severity], number) in &by_kind {
                family.gauge(&[("kind", kind), ("severity", severity)], *number)?;
            }
            Ok(())
        })?;
        page.count(
            "weir_finding_changes",
            "Findings that opened, changed or closed",
            changes,
        )
    }

    /// Facts in memory, for queries.
    fn memory(&self, page: &mut Page<'_>) -> fmt::Result {
        let counts = self.facts.counts();
        let kinds = [
            ("connections", counts.connections, counts.dropped_connections),
            ("transactions", counts.transactions, counts.dropped_transactions),
            ("segments", counts.segments, counts.dropped_segments),
        ];
        page.gauges("weir_facts_held", "Facts in memory for queries", |family| {
            kinds
                .iter()
                .try_for_each(|(what, held, _)| family.gauge(&[("what", what)], *held))
        })?;
        page.counts(
            "weir_facts_dropped",
            "Facts that left memory because newer ones came",
            |family| {
                kinds
                    .iter()
                    .try_for_each(|(what, _, gone)| family.sample(&[("what", what)], *gone))
            },
        )
    }

    fn webhook(&self, page: &mut Page<'_>) -> fmt::Result {
        let [delivered, retries, refused, gone] = self.webhook.get();
        page.count(
            "weir_webhook_delivered",
            "Changes of findings that the webhook's receiver took",
            delivered,
        )?;
        page.count(
            "weir_webhook_retries",
            "Posts that failed and were tried again",
            retries,
        )?;
        page.counts(
            "weir_webhook_given_up",
            "Changes of findings that the receiver never took: refused or tried too often, or overrun by newer ones",
            |family| {
                family.sample(&[("reason", "refused")], refused)?;
                family.sample(&[("reason", "overrun")], gone)
            },
        )
    }
}

fn ports(page: &mut Page<'_>, capture: &GetCaptureStatusResponse) -> fmt::Result {
    let mut each = |name: &str, help: &str, value: fn(&PortStatus) -> u64| {
        page.counts(name, help, |family| {
            capture
                .ports
                .iter()
                .try_for_each(|port| family.sample(&[("port", &text(port.port)), ("device", &port.name)], value(port)))
        })
    };
    each("weir_capture_packets", "Frames received", |port| port.frames)?;
    each("weir_capture_tracked_packets", "Frames counted in a flow", |port| {
        port.tracked
    })?;
    each(
        "weir_capture_dropped_packets",
        "Frames lost before Weir, as the source says; weir_capture_drops_known tells whether it can",
        |port| port.dropped,
    )?;
    each(
        "weir_capture_clamped_times",
        "Frames whose time ran backwards and was moved forward",
        |port| port.clamped,
    )?;
    page.family(
        "weir_capture",
        "Bytes on the wire of the frames received",
        Some(&Unit::Bytes),
        MetricType::Counter,
        |family| {
            capture
                .ports
                .iter()
                .try_for_each(|port| family.sample(&[("port", &text(port.port)), ("device", &port.name)], port.bytes))
        },
    )?;
    page.counts(
        "weir_capture_untracked_packets",
        "Frames counted in no flow, by reason",
        |family| {
            for port in &capture.ports {
                for (reason, count) in &port.untracked {
                    let number = text(port.port);
                    family.sample(&[("port", &number), ("device", &port.name), ("reason", reason)], *count)?;
                }
            }
            Ok(())
        },
    )?;
    page.gauges(
        "weir_capture_drops_known",
        "1 where the source can tell how many frames it lost",
        |family| {
            for port in &capture.ports {
                let labels = [("port", &*text(port.port)), ("device", &port.name)];
                family.gauge(&labels, u64::from(port.drops_known))?;
            }
            Ok(())
        },
    )?;
    page.gauges(
        "weir_capture_port_up",
        "1 where the interface can receive: set up, with a carrier; no sample where there is no interface",
        |family| {
            for port in &capture.ports {
                if let Some(up) = port.link_up {
                    family.gauge(&[("port", &*text(port.port)), ("device", &port.name)], u64::from(up))?;
                }
            }
            Ok(())
        },
    )?;
    page.count(
        "weir_capture_unmeasured_packets",
        "Frames received and not measured, because measuring had failed; the inline path forwards them",
        capture.unmeasured,
    )?;
    page.gauge(
        "weir_capture_finished",
        "1 when the sources have ended (a replayed file)",
        u8::from(capture.finished),
    )?;
    page.count(
        "weir_inline_forwarded_packets",
        "Frames forwarded by the inline path",
        capture.forwarded,
    )?;
    page.count(
        "weir_inline_dropped_packets",
        "Frames that the inline path did not forward: too long for the other side, not sent or dropped by its interface, or the port's ring was full when they came",
        capture.forward_drops,
    )
}

fn by_name(family: &mut Family<'_>, label: &str, map: &BTreeMap<String, u64>) -> fmt::Result {
    map.iter()
        .try_for_each(|(name, count)| family.sample(&[(label, name)], *count))
}

fn record_link(page: &mut Page<'_>, link: &RecordLinkStatus) -> fmt::Result {
    page.count(
        "weir_link_frames",
        "Record frames of the card that were used",
        link.frames,
    )?;
    page.count("weir_link_records", "Records in them", link.records)?;
    page.count(
        "weir_link_lost_frames",
        "Record frames missing by the numbers in the frames",
        link.lost_frames,
    )?;
    page.count(
        "weir_link_lost_records",
        "Records missing by the numbers in the frames",
        link.lost_records,
    )?;
    page.count(
        "weir_link_restarts",
        "Times that the card began to number anew",
        link.restarts,
    )?;
    page.counts(
        "weir_link_refused_frames",
        "Record frames not used, by reason",
        |family| by_name(family, "reason", &link.refused),
    )
}

fn card_state(page: &mut Page<'_>, card: &CardStatus) -> fmt::Result {
    let mut state = |name: &str, help: &str, label: &str, value: &str| {
        page.gauges(name, help, |family| family.gauge(&[(label, value)], 1u64))
    };
    state(
        "weir_card_phase",
        "Where the service is with the card",
        "phase",
        &card.phase,
    )?;
    state("weir_card_state", "State of the card's firmware", "state", &card.state)?;
    state(
        "weir_card_clock_state",
        "State of the card's clock",
        "state",
        &card.servo_state,
    )?;
    state(
        "weir_card_firmware_info",
        "Firmware that the card runs",
        "version",
        &card.firmware_version,
    )?;
    page.gauges(
        "weir_card_unhealthy",
        "Reasons for which the link is in bypass; no sample: it is measured",
        |family| {
            card.unhealthy
                .iter()
                .try_for_each(|reason| family.gauge(&[("reason", reason)], 1u64))
        },
    )?;
    page.gauge(
        "weir_card_clock_offset_seconds",
        "Offset of the card's clock from its master",
        f64::from(card.servo_offset_ns) / 1e9,
    )?;
    page.gauge("weir_card_slot", "Slot that the firmware runs from", card.slot)?;
    page.gauge(
        "weir_card_confirmed",
        "1 when the running firmware is confirmed",
        u8::from(card.confirmed),
    )?;
    page.count("weir_card_boots", "Boots since power came", card.boots.into())?;
    page.gauge("weir_card_contexts", "Flows that the card has room for", card.contexts)?;
    page.gauge("weir_card_contexts_in_use", "Flows that it has", card.contexts_in_use)?;
    page.gauge(
        "weir_card_contexts_used",
        "Flows that it has had at most",
        card.contexts_used,
    )?;
    page.count(
        "weir_card_starts",
        "Starts of measuring since the service began",
        card.starts,
    )?;
    // From the last start on: a reset of a counter, as a restart is.
    page.count(
        "weir_card_bypasses",
        "Times that the link went to bypass since the last start",
        card.bypasses.into(),
    )?;
    page.counts("weir_card_faults", "Faults that the card told, by code", |family| {
        by_name(family, "code", &card.faults)
    })?;
    page.counts(
        "weir_card_garbage_words",
        "Words between host and card that belonged to no message",
        |family| {
            family.sample(&[("direction", "to_card")], card.garbage_to_card)?;
            family.sample(&[("direction", "to_host")], card.garbage_to_host)
        },
    )?;
    page.count("weir_card_records_made", "Records that the card made", card.records_in)?;
    page.count("weir_card_records_sent", "Records that the card sent", card.records_out)?;
    page.count(
        "weir_card_records_dropped",
        "Records that the card left out because they could not leave",
        card.records_left_out.into(),
    )
}

fn card_ports(page: &mut Page<'_>, ports: &[CardPortStatus]) -> fmt::Result {
    let mut each = |name: &str, help: &str, value: fn(&CardPortStatus) -> u32| {
        page.counts(name, help, |family| {
            (0..)
                .zip(ports)
                .try_for_each(|(number, port)| family.sample(&[("port", &text(number))], value(port)))
        })
    };
    each("weir_card_port_frames_in", "Frames that came in", |port| port.frames_in)?;
    each("weir_card_port_frames_out", "Frames that went out", |port| {
        port.frames_out
    })?;
    each(
        "weir_card_port_dropped_frames",
        "Frames that the inline path dropped",
        |port| port.frames_dropped,
    )?;
    each(
        "weir_card_port_takeovers",
        "Times that the path changed between measured and bypass",
        |port| port.takeovers,
    )?;
    each(
        "weir_card_port_unmeasured_words",
        "Words of frames that were forwarded but lost before measuring",
        |port| port.unmeasured,
    )?;
    page.gauges(
        "weir_card_port_measured",
        "1: frames that come in here pass through the measured stage; 0: bypass",
        |family| {
            (0..)
                .zip(ports)
                .try_for_each(|(number, port)| family.gauge(&[("port", &text(number))], u64::from(port.measured)))
        },
    )
}

fn analysis(page: &mut Page<'_>, counts: &Counts) -> fmt::Result {
    page.counts(
        "weir_connections",
        "TCP connections that ended, by outcome of the setup and kind of closure",
        |family| {
            counts.connections.iter().try_for_each(|([outcome, close], count)| {
                family.sample(&[("outcome", outcome), ("close", close)], *count)
            })
        },
    )?;
    page.counts("weir_transactions", "Transactions that ended", |family| {
        counts
            .transactions
            .iter()
            .try_for_each(|([kind], count)| family.sample(&[("kind", kind)], *count))
    })?;
    page.counts(
        "weir_segments",
        "Segments that came twice, late or never: what they were, why, and where a packet was lost",
        |family| {
            counts.segments.iter().try_for_each(|([class, cause, place], count)| {
                family.sample(&[("class", class), ("cause", cause), ("place", place)], *count)
            })
        },
    )?;
    page.count(
        "weir_data_packets",
        "TCP data packets of connections that ended",
        counts.data_packets,
    )?;
    page.count(
        "weir_retransmitted_packets",
        "Retransmissions among weir_data_packets",
        counts.retransmitted_packets,
    )?;
    page.gauge(
        "weir_requests_waiting",
        "Requests of open connections that have no response yet, and may get one",
        counts.waiting as f64,
    )?;
    page.histogram(
        "weir_setup_duration",
        "First SYN to the end of the setup",
        &counts.setups,
    )?;
    page.histogram(
        "weir_response_duration",
        "Last packet of a request to the last packet of its response",
        &counts.responses,
    )?;
    let health = &counts.health;
    page.count(
        "weir_analysis_records",
        "Records that the analysis read",
        health.records,
    )?;
    page.counts(
        "weir_analysis_gaps",
        "Records that the analysis missed or could not use, by reason",
        |family| {
            for (reason, count) in [
                ("missing", health.missing),
                ("unknown", health.unknown),
                ("stray", health.stray),
                ("homeless", health.homeless),
            ] {
                family.sample(&[("reason", reason)], count)?;
            }
            Ok(())
        },
    )?;
    page.count(
        "weir_analysis_replaced_flows",
        "Flows whose end was not told before another took their place",
        health.replaced,
    )?;
    page.count(
        "weir_analysis_reclaimed_records",
        "Records that the log gave up before the analysis read them; weir_analysis_gaps has them as missing, too",
        counts.reclaimed,
    )
}
