//! What the daemon says of captures that clients send: the same as `weir analyze` and `weir compare`.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_analysis::Analyzer;
use weir_api::analyses::{Analyst, Client, NoAnswer, Sent, Warnings};
use weir_engine::Config;
use weir_messages::v1::{Analysis, AnalyzeOptions, Comparison};

use crate::cli::{FlowOptions, PathOptions};
use crate::whole::Whole;
use crate::{analyze, compare, source, taps};

/// Bytes of connections, transactions and verdicts of an answer, at most: the daemon has other work.
const MOST: usize = 512 << 20;
/// Flows of a capture at once, at most; packets of others are counted as `TABLE_FULL`.
const FLOWS: u32 = 1 << 20;

/// Reads them with the daemon's options of flows.
pub struct Reader(pub FlowOptions);

impl Analyst for Reader {
    fn most(&self) -> usize {
        weir_align::MAX_TAPS
    }

    fn analyze(
        &self,
        sent: &[Sent],
        options: AnalyzeOptions,
        client: &dyn Client,
        give: &mut dyn FnMut(Analysis) -> bool,
    ) -> Result<Warnings, NoAnswer> {
        let call = Call::new(sent, client);
        let (inputs, names) = call.inputs();
        let whole = || Whole::kept(None, options.segments);
        let path = PathOptions {
            bandwidth: options.bandwidth_bits_per_second,
            latency: options.latency_seconds,
        };
        let (whole, last, warnings) = if let [input] = inputs.as_slice() {
            let mut analyzer = Analyzer::new(path.config());
            let mut whole = analyze::watched(whole(), options.timeline_seconds);
            let read = analyze::read_with(input, &call.options(self.0.engine()), |records| {
                analyzer.push(records, &mut whole);
                call.look(whole.inner.bytes());
            });
            let warnings = call.warnings([call.outcome(read)?]);
            let last = Analysis {
                summary: Some(whole.finish(&mut analyzer)),
                ..Analysis::default()
            };
            (whole.inner, last, warnings)
        } else {
            let options = taps::Options {
                inputs: &inputs,
                names: &names,
                reading: call.options(taps::engine(&self.0)),
                path,
                timeline: options.timeline_seconds,
            };
            let mut sizes = vec![0; inputs.len()];
            let read = taps::read(options, whole, |tap, whole: &Whole| {
                sizes[tap] = whole.bytes();
                call.look(sizes.iter().sum());
            });
            let read = call.outcome(read)?;
            let (whole, last) = taps::whole(read.answer, read.summary, read.alignment);
            (whole, last, call.warnings(read.outcomes))
        };
        whole.parts(last, give);
        Ok(warnings)
    }

    fn compare(&self, sent: &[Sent; 2], client: &dyn Client) -> Result<(Comparison, Warnings), NoAnswer> {
        let call = Call::new(sent, client);
        let (inputs, names) = call.inputs();
        let options = call.options(self.0.engine());
        let sample = |input: &str| call.outcome(compare::sample(input, &options, || call.look(0)));
        let ((first, one), (second, other)) = (sample(&inputs[0])?, sample(&inputs[1])?);
        let comparison = weir_report::compare::compare([&names[0], &names[1]], [&first, &second]);
        Ok((comparison, call.warnings([one, other])))
    }
}

/// Reading for a client, as long as it waits and there is room.
struct Call<'a> {
    sent: &'a [Sent],
    client: &'a dyn Client,
    /// Readers are to end.
    stop: Arc<AtomicBool>,
    is_large: Cell<bool>,
}

impl<'a> Call<'a> {
    fn new(sent: &'a [Sent], client: &'a dyn Client) -> Self {
        Self {
            sent,
            client,
            stop: Arc::default(),
            is_large: Cell::new(false),
        }
    }

    /// Where the captures are, and what they are called.
    fn inputs(&self) -> (Vec<String>, Vec<String>) {
        let of = |capture: &Sent| (capture.path.display().to_string(), capture.name.clone());
        self.sent.iter().map(of).unzip()
    }

    fn options(&self, engine: Config) -> source::Options {
        source::Options {
            stop: Some(Arc::clone(&self.stop)),
            ..source::Options::of(Config {
                contexts: FLOWS,
                ..engine
            })
        }
    }

    /// So many bytes wait to be told: whether to go on.
    fn look(&self, bytes: usize) {
        self.is_large.set(bytes > MOST);
        if self.is_large.get() || self.client.is_gone() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// What was read, unless there is nothing to say of it.
    fn outcome<T>(&self, read: Result<T, impl ToString>) -> Result<T, NoAnswer> {
        if self.is_large.get() {
            return Err(NoAnswer::TooLarge(
                "what is found in the captures is too much for one answer; analyse them with weir analyze FILE..."
                    .into(),
            ));
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(NoAnswer::Gone);
        }
        read.map_err(|error| NoAnswer::Captures(self.named(&error)))
    }

    fn warnings(&self, outcomes: impl IntoIterator<Item = source::Outcome>) -> Warnings {
        let told = |outcome: source::Outcome| {
            outcome
                .note
                .into_iter()
                .chain(outcome.error.map(|error| error.to_string()))
        };
        outcomes
            .into_iter()
            .flat_map(told)
            .map(|text| self.named(&text))
            .collect()
    }

    /// The client knows its captures by their names.
    fn named(&self, text: &impl ToString) -> String {
        self.sent.iter().fold(text.to_string(), |text, capture| {
            text.replace(&capture.path.display().to_string(), &capture.name)
        })
    }
}
