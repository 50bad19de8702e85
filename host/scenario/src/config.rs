//! The description of a scenario: the TOML file has the shape of [`Scenario`].

mod check;

use crate::congestion::Algorithm;
use crate::error::ScenarioError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
pub use weir_lab::config::Span;
use weir_lab::rng::Rng;

/// Everything that a run needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Prefix of the files written.
    pub name: String,
    /// One line for `--list`.
    pub description: String,
    /// Seed of every random choice.
    #[serde(default = "one")]
    pub seed: u64,
    /// Time of the start, UTC seconds since 1970.
    #[serde(default = "default_start")]
    pub start_unix_s: u64,
    /// Taps stop after this long, seconds; what is under way then stays unfinished.
    pub duration_s: f64,
    /// Bytes kept of each frame in the captures. Payload is zeros whatever is kept.
    #[serde(default = "default_snap")]
    pub snap_length: u32,
    /// The machines.
    pub host: Vec<Host>,
    /// What is between them.
    pub path: Vec<Path_>,
    /// What listens.
    pub service: Vec<Service>,
    /// Kinds of request and response.
    pub exchange: BTreeMap<String, Exchange>,
    /// Kinds of connection.
    pub dialogue: BTreeMap<String, Dialogue>,
    /// Connections that a service makes to the next tier.
    #[serde(default)]
    pub pool: BTreeMap<String, Pool>,
    /// Users.
    pub load: Vec<Load>,
    /// Applications that stop for a while.
    #[serde(default)]
    pub sleep: Vec<Sleep>,
    /// Taps that are not perfect.
    #[serde(default)]
    pub tap: BTreeMap<String, Tap>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name in this file.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// `linux` or `windows`: where the settings of its TCP begin.
    pub stack: String,
    /// Settings of its TCP that differ (keys of [`Stack`]).
    #[serde(default)]
    pub tcp: toml::Table,
    /// First and last ephemeral port.
    #[serde(default = "default_ports")]
    pub ports: [u16; 2],
    /// Where it begins to give them out; the first if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_port: Option<u16>,
}

/// How a host's TCP behaves. `stacks/*.toml` hold the two that a host can begin with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// Congestion control.
    pub congestion: Algorithm,
    /// Initial window, segments.
    pub initial_window: u32,
    /// Maximum segment size offered. With timestamps, segments carry 12 bytes less.
    pub mss: u16,
    /// Receive buffer: the largest window.
    pub window_bytes: u32,
    /// Shift offered; below 0: the option is not sent.
    pub window_scale: i8,
    /// SACK permitted (RFC 2018).
    pub sack: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: Timestamps,
    /// Most bytes in flight, whatever the windows allow.
    pub send_buffer: u64,
    /// No Nagle.
    pub nodelay: bool,
    /// How long an ACK may wait, milliseconds.
    pub delayed_ack_ms: f64,
    /// Segments after which an ACK does not wait.
    pub ack_every: u32,
    /// A segment with PSH is acknowledged at once (Linux), but not in a conversation: after an answer within
    /// `delayed_ack_ms`, until an ACK waited in vain for the next.
    pub ack_pushed: bool,
    /// First wait for an answer to a SYN, seconds; it doubles.
    pub syn_timeout_s: f64,
    /// SYNs after the first.
    pub syn_retries: u32,
    /// From this SYN on (the first is 1) without scale and timestamps; 0: never.
    pub bare_syn_from: u32,
    /// First wait for the ACK of a SYN-ACK, seconds; it doubles.
    pub syn_ack_timeout_s: f64,
    /// SYN-ACKs repeated because of that wait.
    pub syn_ack_retries: u32,
    /// A half-open connection is forgotten this long after its last SYN, seconds...
    pub half_open_s: f64,
    /// ...plus up to this much.
    pub half_open_spread_s: f64,
    /// With a RST to the client.
    pub half_open_reset: bool,
    /// Retransmission timer before a round trip is known, seconds.
    pub initial_rto_s: f64,
    /// Floor of the retransmission timer, milliseconds.
    pub min_rto_ms: f64,
    /// The floor holds for the variance part (Linux), not for the whole.
    pub min_rto_is_variance: bool,
    /// Timeouts in a row before the connection is given up.
    pub data_retries: u32,
    /// Tail loss probe (RFC 8985 7).
    pub tail_loss_probe: bool,
    /// TIME-WAIT, seconds.
    pub time_wait_s: f64,
    /// Idle time before a keep-alive, seconds; 0: none.
    pub keep_alive_s: f64,
    /// Time to live.
    pub ttl: u8,
}

/// A stack's use of timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Timestamps {
    /// In its SYNs, and where the peer has them.
    Offer,
    /// Where the peer's SYN has them.
    Accept,
    /// Not at all.
    Never,
}

const STACKS: [(&str, &str); 2] = [
    ("linux", include_str!("../stacks/linux.toml")),
    ("windows", include_str!("../stacks/windows.toml")),
];

impl Host {
    /// Its TCP settings.
    pub fn stack(&self) -> Result<Stack, String> {
        let Some((_, text)) = STACKS.iter().find(|(name, _)| *name == self.stack) else {
            return Err(format!(
                "host {}: stack `{}` is neither linux nor windows",
                self.name, self.stack
            ));
        };
        let mut table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
        table.extend(self.tcp.clone());
        let stack: Stack = table
            .try_into()
            .map_err(|error| format!("host {}: tcp: {error}", self.name))?;
        stack
            .check()
            .map_err(|problem| format!("host {}: tcp: {problem}", self.name))?;
        Ok(stack)
    }
}

/// What lies between two hosts: leg, tap, leg, tap, ... leg.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "Path")]
pub struct Path_ {
    /// The two hosts; `forward` is from the first to the second.
    pub between: [String; 2],
    /// One tap fewer than legs: names, in the order of the first host to the second. A name can stand in several paths.
    pub taps: Vec<String>,
    /// The legs.
    pub leg: Vec<Leg>,
}

/// A leg.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Leg {
    /// From the first host to the second.
    pub forward: Link,
    /// From the second to the first.
    pub backward: Link,
    /// Connections whose setup this leg disturbs, in batches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub syn_batches: Vec<SynBatches>,
}

/// One direction of a leg. In this order: loss, queue and rate, delay and jitter; frames keep their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Link {
    /// Propagation, milliseconds.
    pub delay_ms: f64,
    /// Added delay, uniform from 0 to this.
    pub jitter_ms: f64,
    /// Rate in Mbit/s of frame bytes; 0 is unlimited.
    pub rate_mbit: f64,
    /// Bytes that may wait or be in transmission; a frame that does not fit is dropped.
    pub queue_bytes: u64,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Probability that a frame with SYN is lost.
    pub syn_loss: f64,
    /// Loss that comes and goes with the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub periodic: Option<Periodic>,
    /// Loss in bursts (Gilbert and Elliott).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// Larger frames vanish without a word; 0: none do.
    pub black_hole_above: u32,
    /// Takes the window scale option out of SYNs and SYN-ACKs.
    pub strip_window_scale: bool,
    /// Routers: what it takes off the time to live.
    pub hops: u8,
    /// Another route from some moment on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reroute: Option<Reroute>,
    /// Some frames take another way, and others overtake them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detour: Option<Detour>,
    /// Everything waits now and then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall: Option<Stall>,
}

impl Default for Link {
    fn default() -> Self {
        Link {
            delay_ms: 0.0,
            jitter_ms: 0.0,
            rate_mbit: 1000.0,
            queue_bytes: 1 << 20,
            loss: 0.0,
            syn_loss: 0.0,
            periodic: None,
            burst: None,
            black_hole_above: 0,
            strip_window_scale: false,
            hops: 0,
            reroute: None,
            detour: None,
            stall: None,
        }
    }
}

/// Within each period, frames of the first `lossy_s` seconds are lost with `probability`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Periodic {
    /// Length of a period, seconds.
    pub period_s: f64,
    /// Lossy part of it, seconds.
    pub lossy_s: f64,
    /// When the first lossy part starts, seconds.
    #[serde(default)]
    pub phase_s: f64,
    /// Probability of loss in the lossy part.
    pub probability: f64,
    /// Frames with SYN are late in the lossy part, by so many milliseconds.
    #[serde(default = "zero")]
    pub setup_delay_ms: Span,
}

/// Two states: in the bad one frames are lost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Probability, per frame, that the bad state begins.
    pub enter: f64,
    /// Probability, per frame, that it ends.
    pub leave: f64,
    /// Probability of loss in it.
    pub probability: f64,
}

/// From `at_s` on another delay and other routers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reroute {
    /// When, seconds.
    pub at_s: f64,
    /// The new propagation, milliseconds.
    pub delay_ms: f64,
    /// The new `hops`.
    pub hops: u8,
}

/// Frames that come later than they would; nothing waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detour {
    /// Probability that a frame takes it.
    pub probability: f64,
    /// How much later, milliseconds.
    pub later_ms: Span,
}

/// Within each period, what enters in the first `length_s` seconds leaves after them, in order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Length of a period, seconds.
    pub period_s: f64,
    /// How long everything waits, seconds.
    pub length_s: f64,
    /// When the first stall starts, seconds.
    #[serde(default)]
    pub phase_s: f64,
}

/// Batches of connections whose SYNs or SYN-ACKs are lost: at the start of each batch the next connections share it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SynBatches {
    /// First batch, seconds.
    pub from_s: f64,
    /// No batch after this, seconds.
    pub to_s: f64,
    /// How many.
    pub batches: u32,
    /// Each interval between batches is the one before times this: below 1 they come faster and faster.
    #[serde(default = "unity")]
    pub interval_factor: f64,
    /// Connections of all batches together.
    pub connections: u32,
    /// SYNs lost of each.
    #[serde(default)]
    pub lose_syns: u32,
    /// SYN-ACKs lost of each.
    #[serde(default)]
    pub lose_syn_acks: u32,
}

/// What listens on a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its name in this file.
    pub name: String,
    /// The host it runs on.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// It listens on so many ports in a row, and each new connection goes to the next.
    #[serde(default = "one_port")]
    pub ports: u16,
    /// Requests in work at once; 0: no limit.
    #[serde(default)]
    pub workers: u32,
    /// A worker stays with its connection from the first request to the close.
    #[serde(default)]
    pub worker_per_connection: bool,
    /// Processors that requests in work share equally, at most one each; may be a fraction; 0: no limit.
    #[serde(default)]
    pub cpus: f64,
    /// Half-open connections that it keeps; SYNs beyond are ignored; 0: no limit.
    #[serde(default)]
    pub backlog: u32,
    /// Answers every SYN with RST.
    #[serde(default)]
    pub refuses: bool,
}

/// A request and its response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// Writes of the request: [`Writes`].
    pub request: String,
    /// Time for each `~` in the request, milliseconds.
    #[serde(default = "zero")]
    pub request_pause_ms: Span,
    /// Processor time before the response, milliseconds; shared processors make it longer.
    #[serde(default = "zero")]
    pub cpu_ms: Span,
    /// Exchanges of the next tier made before the response.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// Pause before each call, milliseconds.
    #[serde(default = "zero")]
    pub call_gap_ms: Span,
    /// The pool that makes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Responses, one of which is drawn.
    pub response: Vec<Response>,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// Its writes: [`Writes`].
    pub writes: String,
    /// How often it is drawn, against the others.
    #[serde(default = "unity")]
    pub weight: f64,
    /// Time before it that takes no processor, milliseconds.
    #[serde(default = "zero")]
    pub wait_ms: Span,
    /// Time for each `~` in it, milliseconds.
    #[serde(default = "zero")]
    pub pause_ms: Span,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Close {
    /// The client closes after the last response.
    ClientFin,
    /// The client closes its sending side right after the last request.
    ClientHalfClose,
    /// The server closes after the last response.
    ServerFin,
    /// The client resets after the last response.
    ClientRst,
    /// The client sends a last request (`abandons`) and closes at once.
    ClientAbandons,
    /// Nobody closes.
    Never,
}

/// A kind of connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialogue {
    /// The client's host.
    pub client: String,
    /// The service.
    pub service: String,
    /// Exchanges at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
    /// Exchanges after it, in turn. A pool brings its own instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub body: Vec<String>,
    /// How many of them; absent: until the load is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Span>,
    /// The client's pause between a response and the next request, milliseconds.
    #[serde(default = "zero")]
    pub think_ms: Span,
    /// How it ends.
    pub close: Close,
    /// The request that a client that abandons sends last; without a pause, as it closes at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandons: Option<String>,
    /// Bytes that the client writes before it closes (`client_fin`); 0: none.
    #[serde(default)]
    pub farewell: u32,
    /// Bytes that the server writes when the client has closed; 0: none.
    #[serde(default)]
    pub farewell_reply: u32,
    /// The client reads slowly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<Reader>,
}

/// An application that reads `bytes` every `every_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reader {
    /// Bytes of one read.
    pub bytes: u64,
    /// Time between reads, milliseconds.
    pub every_ms: f64,
}

/// Connections of one tier to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Their kind.
    pub dialogue: String,
    /// Most at once, at the start.
    pub limit: f64,
    /// The limit rises by so many a second while calls wait.
    #[serde(default)]
    pub grow_per_s: f64,
    /// The limit rises no further.
    #[serde(default)]
    pub max: f64,
    /// A connection serves many calls; else one.
    #[serde(default)]
    pub reuse: bool,
}

/// Users of one dialogue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// What they do.
    pub dialogue: String,
    /// When they start, seconds.
    #[serde(default)]
    pub from_s: f64,
    /// No new connection or request after this, seconds.
    pub to_s: f64,
    /// Users at once: each opens the next connection when its last is done.
    #[serde(default)]
    pub users: f64,
    /// They start within so many milliseconds.
    #[serde(default = "zero")]
    pub spread_ms: Span,
    /// Pause of a user before the next connection, milliseconds.
    #[serde(default = "zero")]
    pub gap_ms: Span,
    /// Connections a second that come by chance, whatever became of those before.
    #[serde(default)]
    pub per_s: f64,
}

/// Applications of these hosts stop together, again and again; their TCP goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sleep {
    /// The hosts.
    pub hosts: Vec<String>,
    /// From the start of one sleep to that of the next, seconds.
    pub every_s: Span,
    /// How long, milliseconds.
    pub length_ms: Span,
}

/// What is wrong with a tap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tap {
    /// It begins so many seconds late.
    pub from_s: f64,
    /// It sees only what goes from the first host of a path to the second.
    pub one_way: bool,
    /// Probability that it misses a frame.
    pub miss: f64,
    /// Probability that it writes a frame twice.
    pub duplicate: f64,
    /// How long after the first the second copy is stamped, microseconds.
    pub duplicate_us: f64,
    /// Its clock minus the true time at the start, microseconds.
    pub offset_us: f64,
    /// Its clock gains so many microseconds a second.
    pub skew_ppm: f64,
}

/// Writes of an application, from text: sizes with spaces between, `N*K` for K writes of N bytes, `A-B` for a size drawn
/// from A to B, `~` for a pause: one before a write, and in a request none before the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Writes(Vec<Write>);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Write {
    Bytes(u32, u32),
    Pause,
}

/// Most writes of a message: they are held in memory.
const MAX_WRITES: usize = 1_000_000;

/// A write drawn: the pause before it is due, and its bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drawn {
    /// A pause comes first.
    pub pause: bool,
    /// Bytes.
    pub bytes: u32,
}

impl Writes {
    /// Reads the text.
    pub fn parse(text: &str) -> Result<Writes, String> {
        let wrong =
            |word: &str| format!("`{word}` in `{text}` is not a size (29), several (29*5), a range (10-90) or ~");
        let mut writes = Vec::new();
        for word in text.split_whitespace() {
            if word == "~" {
                if writes.last() == Some(&Write::Pause) {
                    return Err(format!(
                        "`{text}` has a pause right behind another: one may be as long as both"
                    ));
                }
                writes.push(Write::Pause);
                continue;
            }
            let (size, times) = word.split_once('*').unwrap_or((word, "1"));
            let (low, high) = size.split_once('-').unwrap_or((size, size));
            let number = |text: &str| text.parse::<u32>().map_err(|_| wrong(word));
            let (low, high, times) = (number(low)?, number(high)?, number(times)?);
            if low == 0 || high < low || times == 0 || times > 100_000 {
                return Err(wrong(word));
            }
            if writes.len() + times as usize > MAX_WRITES {
                return Err(format!("more than {MAX_WRITES} writes, with `{word}`"));
            }
            writes.extend((0..times).map(|_| Write::Bytes(low, high)));
        }
        match writes.last() {
            Some(Write::Bytes(..)) => Ok(Writes(writes)),
            _ => Err(format!("`{text}` must end with a size")),
        }
    }

    fn begins_with_pause(&self) -> bool {
        self.0.first() == Some(&Write::Pause)
    }

    fn has_pause(&self) -> bool {
        self.0.contains(&Write::Pause)
    }

    /// Draws the sizes.
    pub fn draw(&self, rng: &mut Rng) -> Vec<Drawn> {
        let mut drawn = Vec::with_capacity(self.0.len());
        let mut pause = false;
        for write in &self.0 {
            match *write {
                Write::Pause => pause = true,
                Write::Bytes(low, high) => {
                    let bytes = if low == high {
                        low
                    } else {
                        rng.between(low.into(), high.into()) as u32
                    };
                    drawn.push(Drawn { pause, bytes });
                    pause = false;
                }
            }
        }
        drawn
    }
}

/// A time drawn from a span of milliseconds.
pub(crate) fn draw_ms(rng: &mut Rng, span: Span) -> crate::Time {
    let (low, high) = span.ends();
    if low == high {
        return crate::from_ms(low);
    }
    crate::from_ms(low + (high - low) * rng.unit())
}

fn one() -> u64 {
    1
}
fn one_port() -> u16 {
    1
}
fn unity() -> f64 {
    1.0
}
fn zero() -> Span {
    Span::Fixed(0.0)
}
fn default_start() -> u64 {
    1_700_000_000
}
fn default_snap() -> u32 {
    96
}
fn default_ports() -> [u16; 2] {
    [49152, 65535]
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        /// The scenarios that come with the program.
        const BUILT_IN: &[(&str, &str)] = &[$(($name, include_str!(concat!("../scenarios/", $name, ".toml")))),*];
    };
}
built_in!(
    "megalodon",
    "healthy",
    "abortive-close",
    "ack-loss",
    "app-sleep",
    "bandwidth-limited",
    "burst-loss",
    "capacity-ceiling",
    "capture-loss",
    "connection-per-transaction",
    "delayed-ack",
    "half-open",
    "keep-alive",
    "late-capture",
    "latency-bound",
    "mirror-duplicates",
    "mtu-black-hole",
    "one-sided",
    "periodic-loss",
    "port-exhaustion",
    "port-recycling",
    "port-scan",
    "random-loss",
    "receiver-limited",
    "refused",
    "reordering",
    "request-pauses",
    "response-bands",
    "route-change",
    "sender-limited",
    "slow-ramp",
    "small-window",
    "stalls",
    "syn-flood",
    "syn-loss",
    "tiny-segments",
    "window-scale-mishap",
    "zero-window",
);

impl Scenario {
    /// Names of the built-in scenarios.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// A built-in scenario by name, or a TOML file by path (which ends in `.toml`).
    pub fn load(name: &str) -> Result<Scenario, ScenarioError> {
        if name.ends_with(".toml") {
            let text = std::fs::read_to_string(Path::new(name))
                .map_err(ScenarioError::io(format!("reading scenario {name}")))?;
            return Scenario::parse(&text, name);
        }
        match BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            Some((_, text)) => Scenario::parse(text, name),
            None => Err(ScenarioError::Description {
                source: name.into(),
                problem: "there is none of this name; --list shows those built in, a file of your own ends in .toml"
                    .into(),
            }),
        }
    }

    /// A scenario from TOML text; `source` names it in errors.
    pub fn parse(text: &str, source: &str) -> Result<Scenario, ScenarioError> {
        let in_source = |problem: String| ScenarioError::Description {
            source: source.into(),
            problem,
        };
        let scenario: Scenario = toml::from_str(text).map_err(|error| in_source(error.to_string()))?;
        scenario.check().map_err(in_source)?;
        Ok(scenario)
    }

    /// The scenario as TOML.
    pub fn to_toml(&self) -> Result<String, ScenarioError> {
        toml::to_string(self).map_err(|error| ScenarioError::Description {
            source: self.name.clone(),
            problem: error.to_string(),
        })
    }

    /// The same with another amount of everything that is a number of users, workers, processors, pooled connections,
    /// ports or disturbed connections; times stay. A service of a tenth is a machine of a tenth.
    pub fn scale(&mut self, factor: f64) {
        let count = |n: u32| {
            if n == 0 {
                0
            } else {
                ((f64::from(n) * factor).round() as u32).max(1)
            }
        };
        for host in &mut self.host {
            let ports = f64::from(host.ports[1] - host.ports[0]) + 1.0;
            let keep = (ports * factor).round().clamp(1.0, ports) as u16;
            let first = host.ports[0];
            host.ports[1] = first + (keep - 1);
            host.next_port = host
                .next_port
                .map(|next| first + (f64::from(next - first) / ports * f64::from(keep)) as u16);
        }
        for leg in self.path.iter_mut().flat_map(|path| &mut path.leg) {
            for batches in &mut leg.syn_batches {
                batches.connections = count(batches.connections);
            }
        }
        for service in &mut self.service {
            service.workers = count(service.workers);
            service.backlog = count(service.backlog);
            service.cpus *= factor;
        }
        for pool in self.pool.values_mut() {
            pool.limit = (pool.limit * factor).max(1.0);
            pool.max = (pool.max * factor).max(1.0);
            pool.grow_per_s *= factor;
        }
        for load in &mut self.load {
            if load.users > 0.0 {
                load.users = (load.users * factor).round().max(1.0);
            }
            load.per_s *= factor;
        }
    }

    pub(crate) fn host_index(&self, name: &str) -> Result<usize, String> {
        let place = self.host.iter().position(|host| host.name == name);
        place.ok_or_else(|| format!("there is no host `{name}`"))
    }

    pub(crate) fn service_index(&self, name: &str) -> Result<usize, String> {
        let place = self.service.iter().position(|service| service.name == name);
        place.ok_or_else(|| format!("there is no service `{name}`"))
    }

    fn paths_between<'a>(&'a self, a: &'a str, b: &'a str) -> impl Iterator<Item = (usize, bool)> + 'a {
        let paths = self.path.iter().enumerate();
        paths.filter_map(move |(index, path)| match [&*path.between[0], &*path.between[1]] {
            [first, second] if first == a && second == b => Some((index, true)),
            [first, second] if first == b && second == a => Some((index, false)),
            _ => None,
        })
    }

    /// The path between two hosts, and whether the first is at its beginning.
    pub(crate) fn path_index(&self, from: usize, to: usize) -> Option<(usize, bool)> {
        self.paths_between(&self.host[from].name, &self.host[to].name).next()
    }

    fn exchange_named(&self, name: &str) -> Result<&Exchange, String> {
        self.exchange
            .get(name)
            .ok_or_else(|| format!("there is no exchange `{name}`"))
    }

    fn dialogue_named(&self, name: &str) -> Result<&Dialogue, String> {
        self.dialogue
            .get(name)
            .ok_or_else(|| format!("there is no dialogue `{name}`"))
    }
}
