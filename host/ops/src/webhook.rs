//! Findings that open, change or close, posted to a URL as they do.
//!
//! The store keeps the last thousand changes, numbered: it is the queue. A receiver that is away is tried again with
//! growing pauses; what it never took is counted. A change may arrive twice, when its answer was lost.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use weir_api::facts::Facts;
use weir_messages::v1::FindingChange;

/// A receiver that takes longer is as good as away.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Pauses before a post is tried again; then it is given up.
const PAUSES: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
    Duration::from_secs(32),
];
/// How long the end of the daemon waits for all that is left: as long nobody forwards on an inline link.
const LAST: Duration = Duration::from_secs(5);
/// How often the store is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Where changes go.
#[derive(Clone, Debug)]
pub struct Url(Uri);

impl std::str::FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|error| format!("{error}"))?;
        match (uri.scheme_str(), uri.host()) {
            (Some("http" | "https"), Some(_)) => Ok(Self(uri)),
            _ => Err("an address as http://HOST:PORT/PATH or https://HOST/PATH".into()),
        }
    }
}

/// Without what may be a secret: receivers often take it in the path.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.0.port().map_or_else(String::new, |port| format!(":{port}"));
        write!(
            f,
            "{}://{}{port}",
            self.0.scheme_str().unwrap_or_default(),
            self.0.host().unwrap_or_default()
        )
    }
}

/// The certificates that a receiver's is checked against; by default those of the system: receivers within a company
/// have their own.
#[derive(Clone, Debug)]
pub struct Roots(RootCerts);

impl Default for Roots {
    fn default() -> Self {
        Self(RootCerts::PlatformVerifier)
    }
}

impl Roots {
    /// Those of a PEM file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |why: String| format!("certificates of the webhook, {}: {why}", path.display());
        let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        let mut certificates = Vec::new();
        for item in parse_pem(&text) {
            if let PemItem::Certificate(certificate) = item.map_err(|error| failed(error.to_string()))? {
                certificates.push(certificate);
            }
        }
        if certificates.is_empty() {
            return Err(failed(
                "there is none in it; a PEM file has BEGIN CERTIFICATE lines".into(),
            ));
        }
        Ok(Self(RootCerts::Specific(Arc::new(certificates))))
    }
}

/// What became of changes.
#[derive(Debug, Default)]
pub struct WebhookCounters {
    delivered: AtomicU64,
    retries: AtomicU64,
    refused: AtomicU64,
    overrun: AtomicU64,
}

impl WebhookCounters {
    /// Delivered, retries, given up as refused, given up as overrun by newer ones.
    pub fn get(&self) -> [u64; 4] {
        [&self.delivered, &self.retries, &self.refused, &self.overrun].map(|counter| counter.load(Ordering::Relaxed))
    }
}

/// Why a post failed, and whether another may succeed.
struct Failed {
    cause: String,
    is_final: bool,
}

/// Posts changes.
#[derive(Debug)]
pub struct Webhook<'a> {
    url: &'a Url,
    counters: &'a WebhookCounters,
    pauses: &'a [Duration],
    last: Duration,
    /// Until when posts may take, once it is time to stop.
    until: Option<Instant>,
    agent: Agent,
    /// The last post failed: said once.
    is_away: bool,
}

impl<'a> Webhook<'a> {
    /// To this address.
    pub fn new(url: &'a Url, roots: Roots, counters: &'a WebhookCounters) -> Self {
        let tls = TlsConfig::builder().root_certs(roots.0).build();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("weir/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build();
        Self {
            url,
            counters,
            pauses: &PAUSES,
            last: LAST,
            until: None,
            agent: config.into(),
            is_away: false,
        }
    }

    /// Post every change of a finding until it is time to `stop`; then each that is left is tried once, up to the first
    /// that is not taken, for a short while. `say` is told when the receiver goes away and comes back, and what it refused.
    pub fn run(mut self, facts: &dyn Facts, stop: impl Fn() -> bool, say: impl Fn(String)) {
        let mut told = 0;
        loop {
            // Asked before looking: what changed before is then in the store.
            let last = stop();
            let (gone, changes) = facts.finding_changes(told);
            if gone > 0 {
                self.counters.overrun.fetch_add(gone, Ordering::Relaxed);
                say(format!(
                    "webhook {}: {gone} changes of findings were overrun by newer ones",
                    self.url
                ));
                told += gone;
            }
            if changes.is_empty() {
                if last {
                    return;
                }
                std::thread::sleep(LOOK);
            }
            for (done, change) in changes.iter().enumerate() {
                told += 1;
                let is_taken = self.deliver(change, &stop, &say);
                if !stop() {
                    continue;
                }
                // A receiver that is away or slow must not hold up the end of the daemon.
                let now = Instant::now();
                let until = *self.until.get_or_insert(now + self.last);
                let left = (changes.len() - done - 1) as u64;
                if left > 0 && (!is_taken || now >= until) {
                    self.counters.refused.fetch_add(left, Ordering::Relaxed);
                    say(format!(
                        "webhook {}: {left} more changes of findings are given up at the end",
                        self.url
                    ));
                    return;
                }
            }
        }
    }

    /// Whether it was taken.
    fn deliver(&mut self, change: &FindingChange, stop: &impl Fn() -> bool, say: &impl Fn(String)) -> bool {
        let mut pauses = self.pauses.iter();
        loop {
            let Err(failed) = self.post(change) else {
                self.counters.delivered.fetch_add(1, Ordering::Relaxed);
                if std::mem::take(&mut self.is_away) {
                    say(format!("webhook {}: takes findings again", self.url));
                }
                return true;
            };
            let pause = pauses.next().filter(|_| !failed.is_final && !stop());
            let Some(pause) = pause else {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                let (url, cause, id) = (self.url, failed.cause, change.id);
                say(format!("webhook {url}: {cause}; a change of finding {id} is given up"));
                return false;
            };
            if !std::mem::replace(&mut self.is_away, true) {
                say(format!("webhook {}: {}; trying again", self.url, failed.cause));
            }
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
            wait(*pause, stop);
        }
    }

    fn post(&self, change: &FindingChange) -> Result<(), Failed> {
        let failed = |cause: String, is_final| Failed { cause, is_final };
        let body = serde_json::to_vec(change).map_err(|error| failed(error.to_string(), true))?;
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(TIMEOUT, |left| left.min(TIMEOUT));
        let answer = self
            .agent
            .post(&self.url.0)
            .config()
            .timeout_global(Some(timeout))
            .build()
            .header("content-type", "application/json")
            .send(&body)
            .map_err(|error| {
                let cause = match error {
                    ureq::Error::Timeout(_) => format!("no answer within {:.1} s", timeout.as_secs_f64()),
                    error => error.to_string(),
                };
                failed(cause, false)
            })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        // RFC 9110 15.5: what the client did wrong stays wrong, but for a timeout (408) and too many requests (429).
        let may_pass = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
        Err(failed(format!("the answer was {status}"), !may_pass))
    }
}

/// Sleep, but wake when it is time to stop.
fn wait(mut pause: Duration, stop: &impl Fn() -> bool) {
    while !pause.is_zero() && !stop() {
        let step = pause.min(LOOK);
        std::thread::sleep(step);
        pause -= step;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use weir_api::facts::{FactStore, Limits};
    use weir_messages::v1::finding_change::Kind;

    use super::*;

    const SHORT: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(2)];

    fn changes(ids: std::ops::Range<u64>) -> Vec<FindingChange> {
        let change = |id| FindingChange {
            id,
            kind: Kind::Opened.into(),
            ..FindingChange::default()
        };
        ids.map(change).collect()
    }

    /// Answers a post with this status, after a while, and returns its body.
    fn answer(listener: &TcpListener, status: u16, after: Duration) -> FindingChange {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut reader = BufReader::new(&mut stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).expect("a header") > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        std::thread::sleep(after);
        // Who posted may have given up.
        let _ = write!(
            stream,
            "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        serde_json::from_slice(&body).expect("a change")
    }

    /// Answers each post with the next status and returns the bodies.
    fn receiver(listener: &TcpListener, statuses: &[u16]) -> Vec<FindingChange> {
        let answer = |&status| answer(listener, status, Duration::ZERO);
        statuses.iter().map(answer).collect()
    }

    /// What a receiver with these answers got of so many changes, the counters, and what was said.
    fn run(number: u64, statuses: &[u16]) -> (Vec<u64>, [u64; 4], Vec<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url: Url = format!("http://{}/hook", listener.local_addr().expect("an address"))
            .parse()
            .expect("a URL");
        let facts = FactStore::new(Limits::default());
        facts.change_findings(changes(1..number + 1));
        let (counters, stop, said) = (
            WebhookCounters::default(),
            AtomicBool::new(false),
            Mutex::new(Vec::new()),
        );
        let bodies = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut webhook = Webhook::new(&url, Roots::default(), &counters);
                webhook.pauses = &SHORT;
                let stop = || stop.load(Ordering::Acquire);
                webhook.run(&facts, stop, |text| said.lock().expect("no panic").push(text));
            });
            let bodies = receiver(&listener, statuses);
            stop.store(true, Ordering::Release);
            bodies
        });
        let ids = bodies.iter().map(|change| change.id).collect();
        (ids, counters.get(), said.into_inner().expect("no panic"))
    }

    #[test]
    fn changes_arrive_in_order() {
        let (ids, counters, said) = run(3, &[200, 204, 202]);
        assert_eq!((ids, counters), (vec![1, 2, 3], [3, 0, 0, 0]));
        assert!(said.is_empty(), "{said:?}");
    }

    #[test]
    fn what_may_pass_is_tried_again() {
        let (ids, counters, said) = run(2, &[503, 429, 200, 200]);
        assert_eq!((ids, counters), (vec![1, 1, 1, 2], [2, 2, 0, 0]));
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("503") && said[1].contains("again"), "{said:?}");
        // A secret in the path is not said.
        assert!(!said[0].contains("hook:") && !said[0].contains("/hook"), "{said:?}");
    }

    #[test]
    fn what_cannot_pass_is_given_up() {
        let (ids, counters, _) = run(3, &[404, 500, 500, 500, 200]);
        assert_eq!((ids, counters), (vec![1, 2, 2, 2, 3], [1, 2, 2, 0]));
    }

    #[test]
    fn what_newer_changes_overran_is_counted() {
        let (ids, counters, said) = run(1003, &[200; 1000]);
        assert_eq!((ids.len(), ids[0], counters), (1000, 4, [1000, 0, 0, 3]));
        assert!(said[0].contains("3 changes"), "{said:?}");
    }

    #[test]
    fn a_receiver_that_is_away_does_not_hold_up_the_end() {
        // Nobody listens there any more.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url: Url = format!("http://{}/", listener.local_addr().expect("an address"))
            .parse()
            .expect("a URL");
        drop(listener);
        let facts = FactStore::new(Limits::default());
        facts.change_findings(changes(1..6));
        let (counters, said) = (WebhookCounters::default(), Mutex::new(Vec::new()));
        Webhook::new(&url, Roots::default(), &counters).run(
            &facts,
            || true,
            |text| said.lock().expect("no panic").push(text),
        );
        assert_eq!(counters.get(), [0, 0, 5, 0]);
        assert_eq!(said.into_inner().expect("no panic").len(), 2);
    }

    #[test]
    fn a_slow_receiver_does_not_hold_up_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url: Url = format!("http://{}/", listener.local_addr().expect("an address"))
            .parse()
            .expect("a URL");
        // It goes with the test.
        std::thread::spawn(move || {
            loop {
                answer(&listener, 204, Duration::from_millis(100));
            }
        });
        let facts = FactStore::new(Limits::default());
        facts.change_findings(changes(1..101));
        let (counters, said) = (WebhookCounters::default(), Mutex::new(Vec::new()));
        let mut webhook = Webhook::new(&url, Roots::default(), &counters);
        webhook.last = Duration::from_millis(250);
        let begin = Instant::now();
        webhook.run(&facts, || true, |text| said.lock().expect("no panic").push(text));
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        let [delivered, retries, given_up, overrun] = counters.get();
        assert!(delivered > 0 && given_up > 0, "{:?}", counters.get());
        assert_eq!((delivered + given_up, retries, overrun), (100, 0, 0));
        let said = said.into_inner().expect("no panic").concat();
        assert!(
            said.contains("more changes of findings are given up at the end"),
            "{said}"
        );
    }

    #[test]
    fn a_file_without_certificates_is_told() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let error = Roots::read(file.path()).expect_err("no certificate");
        assert!(error.contains("BEGIN CERTIFICATE"), "{error}");
        let error = Roots::read(Path::new("/no/such/file")).expect_err("no file");
        assert!(error.contains("/no/such/file"), "{error}");
    }

    #[test]
    fn only_http_is_an_address() {
        for bad in ["", "localhost:80", "ftp://host/x", "/hook", "http://"] {
            assert!(bad.parse::<Url>().is_err(), "{bad}");
        }
        let url: Url = "https://host/secret/token".parse().expect("a URL");
        assert_eq!(url.to_string(), "https://host");
    }
}
