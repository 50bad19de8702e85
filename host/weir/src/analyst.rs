//! What the daemon says of captures that clients send: the same as `weir analyze` and `weir compare`.

use weir_analysis::Analyzer;
use weir_api::analyses::{Analyst, Sent};
use weir_capture::CaptureError;
use weir_messages::v1::{Analysis, AnalyzeOptions, Comparison};

use crate::cli::{FlowOptions, PathOptions};
use crate::error::Failure;
use crate::whole::Whole;
use crate::{analyze, compare, taps};

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
        give: &mut dyn FnMut(Analysis) -> bool,
    ) -> Result<Vec<String>, String> {
        let (inputs, names) = inputs(sent);
        let failed = |error: Failure| named(&error, sent);
        let whole = || Whole::kept(None, options.segments);
        let path = PathOptions {
            bandwidth: options.bandwidth_bits_per_second,
            latency: options.latency_seconds,
        };
        let (whole, last, errors) = if let [input] = inputs.as_slice() {
            let mut analyzer = Analyzer::new(path.config());
            let mut whole = analyze::watched(whole(), options.timeline_seconds);
            let read = analyze::read(input, self.0.engine(), None, |records| {
                analyzer.push(records, &mut whole);
            });
            let errors = read.map_err(failed)?.error.into_iter().collect();
            let last = Analysis {
                summary: Some(whole.finish(&mut analyzer)),
                ..Analysis::default()
            };
            (whole.inner, last, errors)
        } else {
            let options = taps::Options {
                inputs: &inputs,
                names: &names,
                flow: &self.0,
                path,
                timeline: options.timeline_seconds,
            };
            let read = taps::read(options, whole).map_err(failed)?;
            let (whole, last) = taps::whole(read.answer, read.summary, read.alignment);
            (whole, last, read.errors)
        };
        whole.parts(last, give);
        Ok(warnings(&errors, sent))
    }

    fn compare(&self, sent: &[Sent; 2]) -> Result<(Comparison, Vec<String>), String> {
        let (inputs, names) = inputs(sent);
        let sample = |input: &str| compare::sample(input, &self.0, None).map_err(|error| named(&error, sent));
        let ((first, one), (second, other)) = (sample(&inputs[0])?, sample(&inputs[1])?);
        let comparison = weir_report::compare::compare([&names[0], &names[1]], [&first, &second]);
        let errors: Vec<CaptureError> = one.into_iter().chain(other).collect();
        Ok((comparison, warnings(&errors, sent)))
    }
}

/// Where they are, and what they are called.
fn inputs(sent: &[Sent]) -> (Vec<String>, Vec<String>) {
    let of = |capture: &Sent| (capture.path.display().to_string(), capture.name.clone());
    sent.iter().map(of).unzip()
}

fn warnings(errors: &[CaptureError], sent: &[Sent]) -> Vec<String> {
    errors.iter().map(|error| named(error, sent)).collect()
}

/// The client knows its captures by their names.
fn named(error: &impl ToString, sent: &[Sent]) -> String {
    sent.iter().fold(error.to_string(), |text, capture| {
        text.replace(&capture.path.display().to_string(), &capture.name)
    })
}
