//! Captures through the analysis to the page's router, and its answers read back.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::ipc::reader::StreamReader;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use serde_json::Value;
use tower::ServiceExt;
use weir_analysis::{Analyzer, Config};
use weir_capture::records;
use weir_engine::Config as EngineConfig;
use weir_messages::v1::Analysis;
use weir_page::{Captures, Collector, Limits, Progress, Reading, Site, router};
use weir_patterns::Watched;
use weir_record::Record;
use weir_scenario::{Scenario, run};

/// The demo capture.
pub fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo/demo.pcap")
}

/// A small megalodon.
pub fn megalodon(folder: &Path) -> PathBuf {
    const SCALE: f64 = 0.05;
    let text = include_str!("../../../scenario/scenarios/megalodon.toml");
    let mut scenario = Scenario::parse(text, "megalodon").unwrap();
    scenario.scale(SCALE);
    run(&scenario, SCALE, folder).unwrap().captures[0].clone()
}

/// All records of a file, with a PACKET for each packet; the error if it could not be read to its end.
pub fn read_records(path: &Path, mut take: impl FnMut(&[Record])) -> Result<Option<String>, String> {
    let config = EngineConfig {
        digests: true,
        ..EngineConfig::file()
    };
    let mut is_capture = false;
    let read = records(path, config, |some| {
        is_capture |= !some.is_empty();
        take(some);
    });
    match read {
        Err(error) if !is_capture => Err(error.to_string()),
        read => Ok(read.err().map(|error| error.to_string())),
    }
}

/// What `weir view` does.
pub fn read(paths: &[PathBuf], _: &Progress) -> Result<Reading, String> {
    let mut facts = Watched::new(Collector::new(Limits::default()));
    let mut analyzer = Analyzer::new(Config::default());
    let error = read_records(&paths[0], |records| {
        facts.inner.records(records);
        analyzer.push(records, &mut facts);
    })?;
    let summary = facts.finish(&mut analyzer);
    Ok(Reading {
        data: facts.inner.finish(summary, weir_page::Path::default()),
        error,
    })
}

/// What `weir analyze` says.
pub fn analysis(path: &Path) -> Analysis {
    let mut facts = Watched::new(Analysis::default());
    let mut analyzer = Analyzer::new(Config::default());
    read_records(path, |records| analyzer.push(records, &mut facts)).unwrap();
    let summary = facts.finish(&mut analyzer);
    Analysis {
        summary: Some(summary),
        ..facts.inner
    }
}

/// The page.
pub struct Page(pub Router);

impl Page {
    pub async fn of(paths: &[&Path]) -> Self {
        let captures = Arc::new(Captures::new(Arc::new(read)));
        for path in paths {
            captures
                .open("capture.pcap".into(), vec![path.to_path_buf()], None)
                .unwrap();
        }
        let page = Self(router(captures, Site::default()));
        for id in 1..=paths.len() {
            page.settled(&id.to_string()).await;
        }
        page
    }

    /// Its object once it is read.
    pub async fn settled(&self, id: &str) -> Value {
        loop {
            let object = self.json(&format!("/captures/{id}")).await;
            if object["state"] != "READING" {
                return object;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn ask(&self, method: Method, path: &str, body: Body) -> (StatusCode, Vec<u8>) {
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header("host", "127.0.0.1")
            .body(body)
            .unwrap();
        let response = self.0.clone().oneshot(request).await.unwrap();
        let status = response.status();
        (status, to_bytes(response.into_body(), usize::MAX).await.unwrap().into())
    }

    async fn good(&self, path: &str) -> Vec<u8> {
        let (status, body) = self.ask(Method::GET, path, Body::empty()).await;
        assert_eq!(status, StatusCode::OK, "{path}: {}", String::from_utf8_lossy(&body));
        body
    }

    pub async fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.good(path).await).unwrap()
    }

    /// Columns; also how many bytes they took.
    pub async fn table(&self, path: &str) -> Table {
        let body = self.good(path).await;
        let bytes = body.len();
        let mut reader = StreamReader::try_new(std::io::Cursor::new(body), None).unwrap();
        let batch = reader.next().unwrap().unwrap();
        assert!(reader.next().is_none());
        Table { batch, bytes }
    }

    /// The message of a refusal.
    pub async fn refused(&self, path: &str, code: u16) -> String {
        let (status, body) = self.ask(Method::GET, path, Body::empty()).await;
        let text = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(status.as_u16(), code, "{path}: {text}");
        let error: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(error["error"]["code"], code, "{text}");
        error["error"]["message"].as_str().unwrap().to_owned()
    }
}

/// An answer in columns.
pub struct Table {
    pub batch: RecordBatch,
    pub bytes: usize,
}

impl Table {
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    pub fn says(&self, name: &str) -> String {
        self.batch.schema().metadata()[name].clone()
    }

    fn column(&self, name: &str) -> ArrayRef {
        Arc::clone(
            self.batch
                .column_by_name(name)
                .unwrap_or_else(|| panic!("no column {name}")),
        )
    }

    pub fn numbers(&self, name: &str) -> Vec<Option<f64>> {
        let numbers = cast(&self.column(name), &DataType::Float64).unwrap();
        numbers.as_primitive::<Float64Type>().iter().collect()
    }

    pub fn sum(&self, name: &str) -> f64 {
        // Not sum(): that of nothing is -0.
        self.numbers(name)
            .into_iter()
            .flatten()
            .fold(0.0, |sum, number| sum + number)
    }

    pub fn texts(&self, name: &str) -> Vec<Option<String>> {
        let texts = cast(&self.column(name), &DataType::Utf8).unwrap();
        let texts = texts.as_string::<i32>();
        texts.iter().map(|text| text.map(str::to_owned)).collect()
    }

    pub fn flags(&self, name: &str) -> Vec<Option<bool>> {
        self.column(name).as_boolean().iter().collect()
    }
}
