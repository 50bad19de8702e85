//! Runs scenarios through engine and analysis, and reads HTML.
#![allow(dead_code, clippy::unwrap_used)]

use std::cell::RefCell;
use std::path::Path;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use tempfile::tempdir;
use weir_analysis::{Analyzer, Config};
use weir_capture::records;
use weir_engine::Config as EngineConfig;
use weir_messages::v1;
use weir_patterns::Watched;
use weir_report::{Collector, Document, Input, Timing, Trace, report};
use weir_scenario::{Scenario, run};

/// What a capture has to say.
pub struct Read {
    pub files: Vec<String>,
    pub facts: Watched<Collector>,
    pub summary: v1::Summary,
    pub timing: Option<Timing>,
}

impl Read {
    pub fn empty() -> Self {
        let mut facts = Watched::new(Collector::default());
        let summary = Analyzer::new(Config::default()).finish(&mut facts);
        facts.complete();
        Self {
            files: vec!["empty.pcap".to_owned()],
            facts,
            summary,
            timing: None,
        }
    }

    pub fn report(&self) -> Document {
        self.report_with(&[])
    }

    pub fn report_with(&self, traces: &[Trace]) -> Document {
        report(&Input {
            files: &self.files,
            question: None,
            summary: &self.summary,
            timeline: self.facts.timeline(),
            dialogues: self.facts.dialogues(),
            facts: &self.facts.inner,
            traces,
            timing: self.timing.as_ref(),
            taps: &[],
            legs: &[],
            pies: &[],
            comparison: None,
        })
    }
}

/// A built-in scenario, seen at its tap `tap`.
pub fn scenario(name: &str, scale: f64, seed: u64, tap: usize) -> Read {
    let mut scenario = Scenario::load(name).unwrap();
    scenario.scale(scale);
    scenario.seed = seed;
    read_scenario(&scenario, scale, tap)
}

pub fn read_scenario(scenario: &Scenario, scale: f64, tap: usize) -> Read {
    let folder = tempdir().unwrap();
    let made = run(scenario, scale, folder.path()).unwrap();
    read(&made.captures[tap])
}

/// A capture file.
pub fn read(path: &Path) -> Read {
    let mut facts = Watched::new(Collector::default());
    let mut analyzer = Analyzer::new(Config::default());
    records(path, EngineConfig::file(), |records| analyzer.push(records, &mut facts)).unwrap();
    let summary = facts.finish(&mut analyzer);
    let mut timing = facts.inner.timing();
    if let Some(timing) = &mut timing {
        let digests = EngineConfig {
            digests: true,
            ..EngineConfig::file()
        };
        records(path, digests, |records| {
            records.iter().for_each(|record| timing.record(record))
        })
        .unwrap();
    }
    Read {
        files: vec![path.file_name().unwrap().to_string_lossy().into_owned()],
        facts,
        summary,
        timing,
    }
}

/// Elements of an HTML text.
#[derive(Default)]
pub struct Html {
    /// Name and attributes of each element.
    pub elements: Vec<(String, Vec<(String, String)>)>,
    /// All text.
    pub text: String,
    open: Vec<String>,
    pub errors: Vec<String>,
}

struct Checker(RefCell<Html>);

impl TokenSink for Checker {
    type Handle = ();

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<()> {
        let mut html = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => {
                let name = tag.name.to_string();
                let is_void = matches!(name.as_str(), "meta" | "br" | "hr" | "img" | "link" | "input");
                match tag.kind {
                    TagKind::StartTag => {
                        let attributes = tag
                            .attrs
                            .iter()
                            .map(|a| (a.name.local.to_string(), a.value.to_string()));
                        html.elements.push((name.clone(), attributes.collect()));
                        if !is_void {
                            html.open.push(name);
                        }
                    }
                    TagKind::EndTag => {
                        if html.open.pop().as_ref() != Some(&name) {
                            html.errors.push(format!("line {line}: </{name}> does not fit"));
                        }
                    }
                }
            }
            Token::CharacterTokens(text) => html.text.push_str(&text),
            Token::ParseError(error) => html.errors.push(format!("line {line}: {error}")),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Html {
    pub fn parse(text: &str) -> Self {
        let tokenizer = Tokenizer::new(
            Checker(RefCell::default()),
            TokenizerOpts {
                exact_errors: true,
                ..TokenizerOpts::default()
            },
        );
        let input = BufferQueue::default();
        input.push_back(StrTendril::from(text));
        let _ = tokenizer.feed(&input);
        tokenizer.end();
        let mut html = tokenizer.sink.0.into_inner();
        if !html.open.is_empty() {
            html.errors.push(format!("not closed: {:?}", html.open));
        }
        html
    }

    pub fn attributes<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.elements
            .iter()
            .flat_map(|(_, attributes)| attributes)
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}
