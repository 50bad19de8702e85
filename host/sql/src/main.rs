//! `weir-sql`: SQL over the store, at the prompt and for programs.
#![forbid(unsafe_code)]

use std::io::{Read, Write};
use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Runtime;
use weir_command::Failure;
use weir_command::output::{Pending, Scratch};
use weir_sql::cli::{Cli, Command, EngineArgs, QueryArgs};
use weir_sql::engine::{Engine, Limits, Query};
use weir_sql::error::Error;
use weir_sql::functions::Hosts;
use weir_sql::{flight, output};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough (`weir-sql query ... | head`) is no failure.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            // Where that cannot be written, either, the exit status tells.
            let _ = writeln!(anstream::stderr(), "weir-sql: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(weir_sql::STACK)
        .enable_all()
        .build()
        .map_err(Failure::new)?;
    match command {
        Command::Query(args) => {
            let result = query(&args, &runtime);
            // What a query that was stopped still computes is of no use to anybody.
            runtime.shutdown_background();
            result
        }
        Command::Serve(args) => {
            let limits = Limits {
                patience: Some(flight::PATIENCE),
                ..args.engine.limits()
            };
            let engine = open(&args.engine, limits)?;
            let served = flight::serve(engine, args.listen, |address| {
                anstream::println!("weir-sql: Flight SQL on grpc://{address}");
            });
            runtime.block_on(served).map_err(Failure::new)
        }
    }
}

fn open(args: &EngineArgs, limits: Limits) -> Result<Engine, Failure> {
    let hosts = match &args.hosts {
        Some(path) => Hosts::read(path).map_err(Error::Store).map_err(Failure::new)?,
        None => Hosts::default(),
    };
    Engine::open(&args.store, limits, hosts).map_err(Failure::new)
}

fn query(args: &QueryArgs, runtime: &Runtime) -> Result<(), Failure> {
    let mut limits = args.engine.limits();
    let mut scratch = None;
    if let Some(spill) = &mut limits.spill {
        // It outlives the engine.
        let scratch = scratch.insert(Scratch::create(&spill.folder)?);
        spill.folder = scratch.path().to_owned();
    }
    let engine = open(&args.engine, limits)?;
    let mut sql = args.sql.clone();
    if sql == "-" {
        sql.clear();
        let read = std::io::stdin().read_to_string(&mut sql);
        read.map_err(|error| Failure::new(format_args!("cannot read the query from standard input: {error}")))?;
    }
    let answer = async { engine.plan(&sql).await.map(Query::run) };
    let mut answer = runtime.block_on(answer).map_err(Failure::new)?;
    let format = args.format();
    let path = args.output.as_deref();
    let mut out = match format.is_text() {
        true => Pending::create(path)?,
        false => Pending::bytes(path)?,
    };
    let written = runtime.block_on(output::write(&mut answer, format, args.rows, &mut out));
    written.map_err(|error| match error {
        Error::Write(error) => Failure::write(out.name(), &error),
        error => Failure::new(error),
    })?;
    out.finish()
}
