//! `weir view`: captures in the analyst's page.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use weir_align::Aligner;
use weir_analysis::Analyzer;
use weir_api::access::Access;
use weir_capture::CaptureFile;
use weir_command::Failure;
use weir_command::signals::signal;
use weir_page::{Captures, Collector, Limits, Progress, Reading, Site};
use weir_patterns::Watched;

use crate::cli::{FlowOptions, PageOptions, PathOptions, ViewArgs};
use crate::serve::listen;
use crate::{access, say, source, taps};

/// Run the command.
pub fn run(args: &ViewArgs) -> Result<ExitCode, Failure> {
    let mut paths = Vec::new();
    for input in &args.inputs {
        let path = PathBuf::from(input);
        if !path.is_file() {
            let why = if source::is_url(input) {
                "a daemon shows its own page (weir serve --page)"
            } else if path.exists() || source::comes_once(input) {
                "not a capture file: the page reads it when it is asked to, so it is no pipe, folder or standard input"
            } else {
                "no such file"
            };
            return Err(Failure::new(format_args!("{input}: {why}")));
        }
        paths.push(path);
    }
    let access = access::of(&args.access)?;
    let (known, flow) = (args.path, args.flow);
    let captures = Arc::new(Captures::new(Arc::new(
        move |paths: &[PathBuf], progress: &Progress| {
            let read = read(paths, known, flow, progress);
            // Who waits at the terminal sees it, too.
            read.inspect_err(|error| {
                if !progress.is_cancelled() {
                    say::line(format_args!("weir: {error}"));
                }
            })
        },
    )));
    if let Some(first) = paths.first() {
        let name = |path: &Path| {
            path.file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into())
        };
        let name = match paths.len() {
            1 => name(first),
            _ => paths.iter().map(|path| name(path)).collect::<Vec<String>>().join(", "),
        };
        captures.open(name, paths, None).map_err(Failure::new)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)?;
    let listener = runtime.block_on(listen(args.listen, "--listen"))?;
    let address = listener.local_addr().map_err(Failure::new)?;
    if let Some(line) = access::open_to([address.ip()], &access) {
        say::line(format_args!("weir: {line}"));
    }
    anstream::println!("{}://{address}", access::scheme(&access));
    let served = weir_page::serve(listener, captures, site(&args.page, access), signal());
    runtime.block_on(served);
    // What is still being read is not waited for.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// As the options say.
pub fn site(options: &PageOptions, access: Access) -> Site {
    let beside = || {
        let program = std::env::current_exe().ok();
        let folder = program.as_deref().and_then(Path::parent);
        folder.unwrap_or(Path::new(".")).join("page")
    };
    let files = options.page_files.clone().unwrap_or_else(beside);
    if !files.join("index.html").is_file() {
        say::line(format_args!(
            "weir: there is no page in {}; make page builds it, --page-files says where it is",
            files.display()
        ));
    }
    Site {
        files,
        hosts: options.page_host.clone(),
        access,
    }
}

/// One capture, or several of one path.
pub fn read(paths: &[PathBuf], known: PathOptions, flow: FlowOptions, progress: &Progress) -> Result<Reading, String> {
    let mut alignment = None;
    let mut path = &paths[0];
    if paths.len() > 1 {
        let inputs: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let aligner = Aligner::new(inputs.iter().cloned()).keep_sightings();
        let (found, _) = taps::align(aligner, &inputs, &source::Options::of(taps::engine(&flow)), |_, _| {})
            .map_err(|error| error.to_string())?;
        let found = found.map_err(|error| error.to_string())?;
        path = &paths[found.nearest_client];
        alignment = Some(found);
    }
    let options = source::Options::of(weir_engine::Config {
        digests: true,
        ..flow.engine()
    })
    .suited(path, source::say);
    let mut analyzer = Analyzer::new(known.config());
    let mut facts = Watched::new(Collector::new(Limits::default()));
    let file = CaptureFile::open(path).map_err(|error| error.to_string())?;
    let take = |records: &[weir_record::Record]| {
        facts.inner.records(records);
        analyzer.push(records, &mut facts);
    };
    let watch = |read, whole| {
        progress.at(read, whole);
        match progress.is_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let outcome = source::read_watched(file, &options, take, watch).map_err(|error| error.to_string())?;
    if progress.is_cancelled() {
        return Err("closed".into());
    }
    if let Some(alignment) = &alignment {
        facts.lost_between(taps::lost_between(alignment));
    }
    let alignment = alignment.unwrap_or_default();
    let summary = facts.finish(&mut analyzer);
    for connection in facts.inner.connections_mut() {
        taps::explain(connection, &alignment.legs, &alignment.lost_setups);
    }
    let several = weir_page::Path {
        taps: alignment.taps,
        legs: alignment.legs,
        pies: alignment.pies,
        sightings: alignment.sightings,
    };
    Ok(Reading {
        data: facts.inner.finish(summary, several),
        error: outcome.error.map(|error| error.to_string()),
    })
}
