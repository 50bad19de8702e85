//! The scenario: what the two legs do to frames, and what the application does.

use crate::error::LabError;
use crate::netns::MTU;
use crate::window_scale::{self, WindowScale};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Most connections of one run: their plans and truth are held in memory.
const MAX_CONNECTIONS: u32 = 100_000;
/// Every request starts with its connection and request number, four bytes each.
pub(crate) const REQUEST_HEADER_LEN: u64 = 8;
/// Longest sensible time, in seconds: a day.
pub const MAX_SECONDS: f64 = 86_400.0;

/// A number that is either fixed (`200`) or drawn uniformly for each use (`[100, 400]`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "neither a number (200) nor a range of two, low and high ([100, 400])"
)]
pub enum Span {
    /// Always this value.
    Fixed(f64),
    /// Low and high end, both included.
    Range([f64; 2]),
}

impl Span {
    /// The two ends.
    pub fn ends(self) -> (f64, f64) {
        match self {
            Span::Fixed(value) => (value, value),
            Span::Range([low, high]) => (low, high),
        }
    }
}

/// Everything that a run needs to know; the TOML file has this shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Prefix of the files written.
    pub name: String,
    /// One line for `--list`.
    pub description: String,
    /// Seed of every random choice (the kernel's own timing stays its own).
    pub seed: u64,
    /// The run is stopped with an error after this many seconds.
    pub time_limit_s: f64,
    /// Bytes kept of each frame in the captures.
    pub snap_length: u32,
    /// Client to middle tap.
    pub leg1: Leg,
    /// Middle tap to server.
    pub leg2: Leg,
    /// What the tap in the middle does to its own capture.
    pub tap: TapConfig,
    /// The request/response application.
    pub app: AppConfig,
    /// What the analysis of the capture must reach; without it the scenario is no test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<PassConfig>,
    /// Kernel settings of the client, such as `"net.ipv4.tcp_sack" = "0"`.
    pub client_sysctl: BTreeMap<String, String>,
    /// Kernel settings of the server.
    pub server_sysctl: BTreeMap<String, String>,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            name: "lab".into(),
            description: String::new(),
            seed: 1,
            time_limit_s: 60.0,
            snap_length: 65_535,
            leg1: Leg::default(),
            leg2: Leg::default(),
            tap: TapConfig::default(),
            app: AppConfig::default(),
            pass: None,
            client_sysctl: BTreeMap::new(),
            server_sysctl: BTreeMap::new(),
        }
    }
}

/// One leg of the path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Leg {
    /// Client to server.
    pub c2s: LinkConfig,
    /// Server to client.
    pub s2c: LinkConfig,
}

/// Misdeeds of the capture: the frames themselves travel on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TapConfig {
    /// Probability that the capture misses a frame.
    pub drop: f64,
    /// Probability that the capture has a frame twice, as with mirror ports.
    pub copy: f64,
    /// How long after the first the second copy comes, microseconds.
    pub copy_us: f64,
}

/// What the analysis must reach, as shares (`docs/src/lab.md`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PassConfig {
    /// Cases of the classes that the scenario is about; fewer test nothing.
    pub at_least: u64,
    /// Losses placed on the right side of the tap, of those placed.
    pub location: f64,
    /// Losses without a place.
    pub unknown: f64,
    /// Losses that a rule excludes.
    pub excluded: f64,
    /// Reordered segments that were called lost.
    pub reordered_as_loss: f64,
    /// Spurious retransmissions that were called so.
    pub spurious: f64,
    /// Frames missed by the capture that were called lost by the network.
    pub capture_blamed: f64,
    /// Copies in the capture that were called copies.
    pub copies: f64,
    /// Transfers whose limits are within 10 points of TCP_INFO.
    pub limits: f64,
    /// Time of these transfers whose limit was called unknown.
    pub limits_unknown: f64,
    /// Transactions whose server time is within 1 ms and 5 % of the application's, or within what it is said to be uncertain by.
    pub server_time: f64,
    /// Transactions whose server time is said to be uncertain by more than 1 ms and 5 %.
    pub server_time_unknown: f64,
    /// As `server_time`, of transactions of which frames were lost or sent again.
    pub server_time_with_loss: f64,
    /// ECN marks at the tap that the records have, of all marks that were made or are there.
    pub marks: f64,
    /// Kinds of findings that must be there.
    pub findings: Vec<String>,
}

impl Default for PassConfig {
    fn default() -> Self {
        PassConfig {
            at_least: 30,
            location: 0.99,
            unknown: 0.03,
            excluded: 0.05,
            reordered_as_loss: 0.01,
            spurious: 0.95,
            capture_blamed: 0.0,
            copies: 0.99,
            limits: 0.85,
            limits_unknown: 0.05,
            server_time: 0.0,
            server_time_unknown: 1.0,
            server_time_with_loss: 0.0,
            marks: 1.0,
            findings: Vec::new(),
        }
    }
}

/// What one direction of one leg does to frames. A frame meets, in this order: loss, the queue and its rate, delay and
/// jitter, reordering, duplication; a box that changes SYNs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkConfig {
    /// Propagation, milliseconds.
    pub delay_ms: f64,
    /// Added delay, uniform from 0 to this; frames keep their order.
    pub jitter_ms: f64,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Rate in Mbit/s of frame bytes (no preamble, no FCS); 0 is unlimited.
    pub rate_mbit: f64,
    /// Bytes that may wait or be in transmission when a rate is set; a frame that does not fit is dropped.
    pub queue_bytes: u64,
    /// Bytes in this queue above which it marks frames that say they know ECN (CE, RFC 3168), the frame itself counted; 0: never.
    /// The marks should keep it from filling: what does not fit is dropped all the same.
    pub ecn_mark_bytes: u64,
    /// IP packets of more bytes that may not be fragmented vanish, and no ICMP tells; 0: none do.
    pub black_hole_above: u32,
    /// What a box does to the window scale option of SYNs and SYN-ACKs: `"remove"` or `{ set = 2 }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_scale: Option<WindowScale>,
    /// Probability that a frame is held back so that later ones overtake it.
    pub reorder: f64,
    /// How long such a frame is held back, milliseconds.
    pub reorder_ms: f64,
    /// Probability that a frame arrives twice.
    pub duplicate: f64,
    /// How long after the first the second copy comes, milliseconds.
    pub duplicate_ms: f64,
    /// Loss that comes and goes with the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub periodic: Option<PeriodicLoss>,
    /// Loss in bursts: runs of frames, however long apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstLoss>,
    /// Probability that a frame without payload, SYN, FIN and RST is lost.
    pub ack_loss: f64,
    /// Loss of frames with SYN only (SYN, or SYN-ACK in the direction from the server).
    pub syn_loss: Vec<SynLoss>,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            delay_ms: 0.0,
            jitter_ms: 0.0,
            loss: 0.0,
            rate_mbit: 0.0,
            queue_bytes: 256 * 1024,
            ecn_mark_bytes: 0,
            black_hole_above: 0,
            window_scale: None,
            reorder: 0.0,
            reorder_ms: 2.0,
            duplicate: 0.0,
            duplicate_ms: 0.1,
            periodic: None,
            burst: None,
            ack_loss: 0.0,
            syn_loss: Vec::new(),
        }
    }
}

/// Within each period, frames of the first `lossy_s` seconds are lost with `probability`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeriodicLoss {
    /// Length of a period, seconds.
    pub period_s: f64,
    /// Lossy part of it, seconds.
    pub lossy_s: f64,
    /// When the first lossy part starts, seconds after the run's start.
    #[serde(default)]
    pub phase_s: f64,
    /// Probability of loss in the lossy part.
    #[serde(default = "certain")]
    pub probability: f64,
}

/// The two-state model of Gilbert (Bell System Technical Journal 39, 1960): every frame may begin or end a burst.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstLoss {
    /// Probability that a burst begins with a frame.
    pub begin: f64,
    /// Probability that it ends before a frame.
    pub end: f64,
    /// Probability of loss in a burst.
    #[serde(default = "certain")]
    pub probability: f64,
}

/// Loss of frames with SYN.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SynLoss {
    /// Probability of loss.
    #[serde(default = "certain")]
    pub probability: f64,
    /// Only frames from or to this port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Let this many matching frames pass first.
    #[serde(default)]
    pub skip: u64,
    /// Lose at most this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

fn certain() -> f64 {
    1.0
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseMode {
    /// The client closes after the last response.
    ClientFin,
    /// The client closes its sending side right after the last request.
    ClientHalfClose,
    /// The server closes after the last response.
    ServerFin,
    /// The client resets after the last response (SO_LINGER 0).
    ClientRst,
}

/// The client and the server. Sizes in bytes, times in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AppConfig {
    /// Connections to the server.
    pub connections: u32,
    /// How many of them at once.
    pub concurrency: u32,
    /// Pause of a worker before it opens its next connection.
    pub connection_gap_ms: Span,
    /// Requests on each connection.
    pub requests: Span,
    /// Request size; at least 8.
    pub request_bytes: Span,
    /// Writes that a request is sent in.
    pub request_chunks: Span,
    /// Pause between these writes.
    pub request_pause_ms: Span,
    /// Pause of the client between a response and its next request.
    pub think_ms: Span,
    /// Pause of the client before each read of a response: a slow reader, whose window closes.
    pub read_pause_ms: f64,
    /// The client gives up when no byte of a response comes for so long; 0: it waits as long as the run may last.
    pub patience_ms: f64,
    /// Work of the server between a request and its response.
    pub server_ms: Span,
    /// Response size.
    pub response_bytes: Span,
    /// Writes that a response is sent in.
    pub response_chunks: Span,
    /// Pause between these writes.
    pub response_pause_ms: Span,
    /// Connection number n closes as entry n modulo the list's length says.
    pub close: Vec<CloseMode>,
    /// TCP_NODELAY on both sides.
    pub nodelay: bool,
    /// SO_SNDBUF of the client; 0 leaves the kernel's choice.
    pub client_sndbuf: u32,
    /// SO_RCVBUF of the client; 0 leaves the kernel's choice.
    pub client_rcvbuf: u32,
    /// SO_SNDBUF of the server; 0 leaves the kernel's choice.
    pub server_sndbuf: u32,
    /// SO_RCVBUF of the server; 0 leaves the kernel's choice.
    pub server_rcvbuf: u32,
    /// Congestion control of the client, such as `cubic`; empty leaves the kernel's choice.
    pub client_congestion: String,
    /// Congestion control of the server.
    pub server_congestion: String,
    /// How often each side looks at TCP_INFO of its sockets; 0: never.
    pub tcp_info_ms: f64,
    /// Port of the server.
    pub port: u16,
    /// Attempts to connect to a port where nothing listens, `port` + 1.
    pub refused: u32,
    /// Attempts to connect to a port whose SYNs leg 2 drops, `port` + 2.
    pub ignored: u32,
    /// How long such an attempt waits.
    pub ignored_timeout_ms: f64,
}

impl Default for AppConfig {
    fn default() -> Self {
        AppConfig {
            connections: 10,
            concurrency: 1,
            connection_gap_ms: Span::Fixed(0.0),
            requests: Span::Fixed(3.0),
            request_bytes: Span::Fixed(200.0),
            request_chunks: Span::Fixed(1.0),
            request_pause_ms: Span::Fixed(0.0),
            think_ms: Span::Fixed(10.0),
            read_pause_ms: 0.0,
            patience_ms: 0.0,
            server_ms: Span::Fixed(5.0),
            response_bytes: Span::Fixed(2000.0),
            response_chunks: Span::Fixed(1.0),
            response_pause_ms: Span::Fixed(0.0),
            close: vec![CloseMode::ClientFin],
            nodelay: true,
            client_sndbuf: 0,
            client_rcvbuf: 0,
            server_sndbuf: 0,
            server_rcvbuf: 0,
            client_congestion: String::new(),
            server_congestion: String::new(),
            tcp_info_ms: 0.0,
            port: 9000,
            refused: 0,
            ignored: 0,
            ignored_timeout_ms: 3500.0,
        }
    }
}

impl AppConfig {
    /// Where nothing listens.
    pub(crate) fn refused_port(&self) -> u16 {
        self.port.saturating_add(1)
    }

    /// Where SYNs are lost.
    pub(crate) fn ignored_port(&self) -> u16 {
        self.port.saturating_add(2)
    }
}

/// The scenarios that come with the program.
const BUILT_IN: [(&str, &str); 40] = [
    ("demo", include_str!("../scenarios/demo.toml")),
    ("clean", include_str!("../scenarios/clean.toml")),
    ("lossy", include_str!("../scenarios/lossy.toml")),
    ("periodic", include_str!("../scenarios/periodic.toml")),
    ("bottleneck", include_str!("../scenarios/bottleneck.toml")),
    ("disorder", include_str!("../scenarios/disorder.toml")),
    ("loss-before", include_str!("../scenarios/loss-before.toml")),
    ("loss-behind", include_str!("../scenarios/loss-behind.toml")),
    ("loss-upload", include_str!("../scenarios/loss-upload.toml")),
    ("loss-acks", include_str!("../scenarios/loss-acks.toml")),
    ("bursts", include_str!("../scenarios/bursts.toml")),
    ("loss-periods", include_str!("../scenarios/loss-periods.toml")),
    ("syn-loss", include_str!("../scenarios/syn-loss.toml")),
    ("reordering", include_str!("../scenarios/reordering.toml")),
    ("late-originals", include_str!("../scenarios/late-originals.toml")),
    ("duplicates", include_str!("../scenarios/duplicates.toml")),
    ("ack-loss", include_str!("../scenarios/ack-loss.toml")),
    ("queue", include_str!("../scenarios/queue.toml")),
    ("queue-behind", include_str!("../scenarios/queue-behind.toml")),
    ("queue-requests", include_str!("../scenarios/queue-requests.toml")),
    ("queue-responses", include_str!("../scenarios/queue-responses.toml")),
    ("capture-drops", include_str!("../scenarios/capture-drops.toml")),
    (
        "capture-drops-loss",
        include_str!("../scenarios/capture-drops-loss.toml"),
    ),
    ("mirror", include_str!("../scenarios/mirror.toml")),
    ("no-sack", include_str!("../scenarios/no-sack.toml")),
    ("no-sack-blackouts", include_str!("../scenarios/no-sack-blackouts.toml")),
    ("no-timestamps", include_str!("../scenarios/no-timestamps.toml")),
    ("everything", include_str!("../scenarios/everything.toml")),
    ("limits-window", include_str!("../scenarios/limits-window.toml")),
    ("limits-buffer", include_str!("../scenarios/limits-buffer.toml")),
    ("limits-link", include_str!("../scenarios/limits-link.toml")),
    ("limits-reader", include_str!("../scenarios/limits-reader.toml")),
    ("limits-turns", include_str!("../scenarios/limits-turns.toml")),
    ("limits-paced", include_str!("../scenarios/limits-paced.toml")),
    ("limits-short", include_str!("../scenarios/limits-short.toml")),
    ("black-hole", include_str!("../scenarios/black-hole.toml")),
    (
        "black-hole-probing",
        include_str!("../scenarios/black-hole-probing.toml"),
    ),
    ("window-scale", include_str!("../scenarios/window-scale.toml")),
    (
        "window-scale-behind",
        include_str!("../scenarios/window-scale-behind.toml"),
    ),
    ("ecn", include_str!("../scenarios/ecn.toml")),
];

impl Scenario {
    /// Names of the built-in scenarios.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// A built-in scenario.
    pub fn built_in(name: &str) -> Result<Scenario, LabError> {
        match BUILT_IN.iter().find(|(built_in_name, _)| *built_in_name == name) {
            Some((_, text)) => Scenario::parse(text, name),
            None => Err(LabError::Scenario {
                source: name.into(),
                problem: format!(
                    "there is none of this name; built in are {}; a file of your own goes with --config",
                    Scenario::built_in_names().collect::<Vec<_>>().join(", ")
                ),
            }),
        }
    }

    /// A scenario from a TOML file.
    pub fn load(path: &Path) -> Result<Scenario, LabError> {
        let text =
            std::fs::read_to_string(path).map_err(LabError::io(format!("reading scenario {}", path.display())))?;
        Scenario::parse(&text, &path.display().to_string())
    }

    /// A scenario from TOML text; `source` names it in errors.
    pub fn parse(text: &str, source: &str) -> Result<Scenario, LabError> {
        let in_source = |problem: String| LabError::Scenario {
            source: source.into(),
            problem,
        };
        let scenario: Scenario = toml::from_str(text).map_err(|error| in_source(error.to_string()))?;
        scenario.check().map_err(in_source)?;
        Ok(scenario)
    }

    /// A congestion control that it wants and that this kernel does not have.
    pub fn missing_congestion_control(&self) -> Option<&str> {
        let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").ok()?;
        [&self.app.client_congestion, &self.app.server_congestion]
            .into_iter()
            .map(String::as_str)
            .find(|wanted| !wanted.is_empty() && !available.split_whitespace().any(|name| name == *wanted))
    }

    /// The scenario as TOML.
    pub fn to_toml(&self) -> Result<String, LabError> {
        toml::to_string(self).map_err(|error| LabError::Scenario {
            source: self.name.clone(),
            problem: error.to_string(),
        })
    }

    /// Refuses what would make no sense or no end; the message says which key and what it may be.
    pub fn check(&self) -> Result<(), String> {
        let name_is_plain = self
            .name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if self.name.is_empty() || self.name.starts_with('.') || !name_is_plain {
            return Err("name must be letters, digits, '-', '_' and '.', as it becomes part of file names".into());
        }
        in_range("time_limit_s", self.time_limit_s, 0.1, MAX_SECONDS)?;
        in_range("snap_length", f64::from(self.snap_length), 54.0, 65_535.0)?;
        for (key, link) in [
            ("leg1.c2s", &self.leg1.c2s),
            ("leg1.s2c", &self.leg1.s2c),
            ("leg2.c2s", &self.leg2.c2s),
            ("leg2.s2c", &self.leg2.s2c),
        ] {
            link.check().map_err(|problem| format!("{key}.{problem}"))?;
        }
        in_range("tap.drop", self.tap.drop, 0.0, 1.0)?;
        in_range("tap.copy", self.tap.copy, 0.0, 1.0)?;
        in_range("tap.copy_us", self.tap.copy_us, 0.0, 1e6)?;
        for key in self.client_sysctl.keys().chain(self.server_sysctl.keys()) {
            let is_plain = key.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
            if !key.starts_with("net.") || !is_plain || key.contains("..") {
                return Err(format!(
                    "sysctl {key:?} must be a name under net., such as net.ipv4.tcp_sack"
                ));
            }
        }
        if let Some(pass) = &self.pass {
            pass.check().map_err(|problem| format!("pass.{problem}"))?;
        }
        self.app.check().map_err(|problem| format!("app.{problem}"))
    }
}

impl PassConfig {
    /// A share that is no share would be kept by every run, or by none.
    fn check(&self) -> Result<(), String> {
        for (key, share) in [
            ("location", self.location),
            ("unknown", self.unknown),
            ("excluded", self.excluded),
            ("reordered_as_loss", self.reordered_as_loss),
            ("spurious", self.spurious),
            ("capture_blamed", self.capture_blamed),
            ("copies", self.copies),
            ("limits", self.limits),
            ("limits_unknown", self.limits_unknown),
            ("server_time", self.server_time),
            ("server_time_unknown", self.server_time_unknown),
            ("server_time_with_loss", self.server_time_with_loss),
            ("marks", self.marks),
        ] {
            in_range(key, share, 0.0, 1.0)?;
        }
        Ok(())
    }
}

impl LinkConfig {
    fn check(&self) -> Result<(), String> {
        let longest_ms = 60_000.0;
        in_range("delay_ms", self.delay_ms, 0.0, longest_ms)?;
        in_range("jitter_ms", self.jitter_ms, 0.0, longest_ms)?;
        in_range("reorder_ms", self.reorder_ms, 0.0, longest_ms)?;
        in_range("duplicate_ms", self.duplicate_ms, 0.0, longest_ms)?;
        in_range("loss", self.loss, 0.0, 1.0)?;
        in_range("reorder", self.reorder, 0.0, 1.0)?;
        in_range("duplicate", self.duplicate, 0.0, 1.0)?;
        in_range("ack_loss", self.ack_loss, 0.0, 1.0)?;
        if let Some(burst) = &self.burst {
            in_range("burst.begin", burst.begin, 0.0, 1.0)?;
            in_range("burst.end", burst.end, 0.0, 1.0)?;
            in_range("burst.probability", burst.probability, 0.0, 1.0)?;
        }
        if self.rate_mbit != 0.0 {
            in_range("rate_mbit", self.rate_mbit, 0.001, 100_000.0)?;
            in_range("queue_bytes", self.queue_bytes as f64, 1514.0, 1e9)?;
        } else if self.ecn_mark_bytes != 0 {
            return Err("ecn_mark_bytes needs a rate_mbit, as there is no queue without".into());
        }
        // Less than what every path must carry (RFC 791) is a mistake; above what the hosts send, it would do nothing.
        if self.black_hole_above != 0 {
            in_range("black_hole_above", f64::from(self.black_hole_above), 68.0, MTU as f64)?;
        }
        if let Some(WindowScale::Set(shift)) = self.window_scale {
            in_range(
                "window_scale.set",
                f64::from(shift),
                0.0,
                f64::from(window_scale::LARGEST),
            )?;
        }
        if let Some(periodic) = &self.periodic {
            in_range("periodic.period_s", periodic.period_s, 0.001, MAX_SECONDS)?;
            in_range("periodic.lossy_s", periodic.lossy_s, 0.0, periodic.period_s)?;
            in_range("periodic.phase_s", periodic.phase_s, 0.0, MAX_SECONDS)?;
            in_range("periodic.probability", periodic.probability, 0.0, 1.0)?;
        }
        for rule in &self.syn_loss {
            in_range("syn_loss.probability", rule.probability, 0.0, 1.0)?;
        }
        Ok(())
    }
}

impl AppConfig {
    fn check(&self) -> Result<(), String> {
        let longest_ms = MAX_SECONDS * 1000.0;
        in_range(
            "connections",
            f64::from(self.connections),
            0.0,
            f64::from(MAX_CONNECTIONS),
        )?;
        in_range("concurrency", f64::from(self.concurrency), 1.0, 1000.0)?;
        in_range("refused", f64::from(self.refused), 0.0, 1000.0)?;
        in_range("ignored", f64::from(self.ignored), 0.0, 1000.0)?;
        in_range("ignored_timeout_ms", self.ignored_timeout_ms, 1.0, longest_ms)?;
        in_range("read_pause_ms", self.read_pause_ms, 0.0, longest_ms)?;
        in_range("patience_ms", self.patience_ms, 0.0, longest_ms)?;
        in_range("tcp_info_ms", self.tcp_info_ms, 0.0, 1000.0)?;
        in_range("port", f64::from(self.port), 1.0, 65_533.0)?;
        span_in_range("connection_gap_ms", self.connection_gap_ms, 0.0, longest_ms)?;
        span_in_range("requests", self.requests, 1.0, 10_000.0)?;
        span_in_range("request_bytes", self.request_bytes, REQUEST_HEADER_LEN as f64, 1e9)?;
        span_in_range("request_chunks", self.request_chunks, 1.0, 10_000.0)?;
        span_in_range("request_pause_ms", self.request_pause_ms, 0.0, longest_ms)?;
        span_in_range("think_ms", self.think_ms, 0.0, longest_ms)?;
        span_in_range("server_ms", self.server_ms, 0.0, longest_ms)?;
        span_in_range("response_bytes", self.response_bytes, 1.0, 1e9)?;
        span_in_range("response_chunks", self.response_chunks, 1.0, 10_000.0)?;
        span_in_range("response_pause_ms", self.response_pause_ms, 0.0, longest_ms)?;
        if self.close.is_empty() {
            return Err("close must name at least one way to close".into());
        }
        Ok(())
    }
}

/// Refuses a value outside of a range; the message says which key, its value and what it may be.
pub fn in_range(key: &str, value: f64, low: f64, high: f64) -> Result<(), String> {
    // Written so that NaN is refused too.
    if value >= low && value <= high {
        Ok(())
    } else {
        Err(format!("{key} is {value}; it must be {low} to {high}"))
    }
}

/// Refuses a span of which an end is outside of a range, or whose first end is above its second.
pub fn span_in_range(key: &str, span: Span, low: f64, high: f64) -> Result<(), String> {
    let (first, last) = span.ends();
    in_range(key, first, low, high)?;
    in_range(key, last, low, high)?;
    if first > last {
        return Err(format!(
            "{key} is [{first}, {last}]; the first must not be above the second"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn built_in_scenarios_are_valid_and_survive_their_own_toml() {
        for name in Scenario::built_in_names() {
            let scenario = Scenario::built_in(name).unwrap();
            assert_eq!(scenario.name, name);
            assert!(!scenario.description.is_empty());
            assert_eq!(Scenario::parse(&scenario.to_toml().unwrap(), name).unwrap(), scenario);
        }
    }

    #[test]
    fn a_full_file_is_read() {
        let text = r#"
            name = "all"
            seed = 7
            [leg1.c2s]
            delay_ms = 1.5
            syn_loss = [{ port = 9000, skip = 3, limit = 1 }]
            window_scale = "remove"
            periodic = { period_s = 2.0, lossy_s = 0.5 }
            [app]
            request_bytes = [100, 400]
            close = ["client_rst", "server_fin"]
            [client_sysctl]
            "net.ipv4.tcp_sack" = "0"
        "#;
        let scenario = Scenario::parse(text, "test").unwrap();
        assert_eq!(scenario.leg1.c2s.delay_ms, 1.5);
        assert_eq!(
            scenario.leg1.c2s.syn_loss,
            [SynLoss {
                probability: 1.0,
                port: Some(9000),
                skip: 3,
                limit: Some(1)
            }]
        );
        assert_eq!(scenario.leg1.c2s.window_scale, Some(WindowScale::Remove));
        assert_eq!(scenario.leg1.c2s.periodic.unwrap().probability, 1.0);
        assert_eq!(scenario.app.request_bytes, Span::Range([100.0, 400.0]));
        assert_eq!(scenario.app.close, [CloseMode::ClientRst, CloseMode::ServerFin]);
        assert_eq!(scenario.leg2, Leg::default());
    }

    #[test]
    fn errors_name_the_key_and_what_it_may_be() {
        for (text, expected) in [
            ("[leg2.s2c]\nloss = 1.5", "leg2.s2c.loss is 1.5; it must be 0 to 1"),
            ("[leg1.c2s]\nloss = nan", "leg1.c2s.loss is NaN"),
            ("[app]\nrequest_bytes = 7", "app.request_bytes is 7; it must be 8"),
            ("[app]\nthink_ms = [5, 1]", "app.think_ms is [5, 1]"),
            ("[app]\nthink_ms = \"5ms\"", "line 2, column 12"),
            ("[app]\nthink_ms = \"5ms\"", "neither a number (200) nor a range"),
            ("[pass]\nlocation = nan", "pass.location is NaN; it must be 0 to 1"),
            ("[pass]\nexcluded = 5", "pass.excluded is 5; it must be 0 to 1"),
            (
                "[leg1.s2c]\necn_mark_bytes = 5000",
                "leg1.s2c.ecn_mark_bytes needs a rate_mbit, as there is no queue without",
            ),
            ("name = \"../x\"", "name must be letters"),
            ("[leg1.c2s]\nlos = 0.1", "unknown field `los`"),
            ("[client_sysctl]\n\"kernel.panic\" = \"1\"", "must be a name under net."),
            ("[app]\nclose = []", "app.close"),
            (
                "[leg1.c2s]\nblack_hole_above = 20",
                "leg1.c2s.black_hole_above is 20; it must be 68 to 1500",
            ),
            (
                "[leg1.c2s]\nwindow_scale = { set = 15 }",
                "leg1.c2s.window_scale.set is 15; it must be 0 to 14",
            ),
        ] {
            let error = Scenario::parse(text, "file.toml").unwrap_err().to_string();
            assert!(error.contains(expected), "{error:?} for {text:?}");
            assert!(error.starts_with("scenario file.toml: "), "{error:?}");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = Scenario::built_in("nonsense").unwrap_err().to_string();
        assert!(error.contains("demo, clean, lossy"), "{error}");
    }
}
