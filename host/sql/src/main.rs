//! `weir-sql`: SQL over the store, at the prompt and for programs.
#![forbid(unsafe_code)]

use std::io::{ErrorKind, Read, Write};
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use weir_sql::cli::{Cli, Command, EngineArgs, QueryArgs};
use weir_sql::destination::Destination;
use weir_sql::engine::{Engine, Limits};
use weir_sql::error::Error;
use weir_sql::functions::Hosts;
use weir_sql::{flight, output};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough (`weir-sql query ... | head`) is no failure.
        Err(Error::Write(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            // Where that cannot be written, either, the exit status tells.
            let _ = writeln!(anstream::stderr(), "weir-sql: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(weir_sql::STACK)
        .enable_all()
        .build()?;
    match command {
        Command::Query(args) => {
            let result = runtime.block_on(query(&args));
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
            runtime.block_on(flight::serve(engine, args.listen, |address| {
                anstream::println!("weir-sql: Flight SQL on grpc://{address}");
            }))
        }
    }
}

fn open(args: &EngineArgs, limits: Limits) -> Result<Engine, Error> {
    let hosts = match &args.hosts {
        Some(path) => Hosts::read(path).map_err(Error::Store)?,
        None => Hosts::default(),
    };
    Engine::open(&args.store, limits, hosts)
}

async fn query(args: &QueryArgs) -> Result<(), Error> {
    let engine = open(&args.engine, args.engine.limits())?;
    let mut sql = args.sql.clone();
    if sql == "-" {
        sql.clear();
        std::io::stdin().read_to_string(&mut sql)?;
    }
    let mut answer = engine.plan(&sql).await?.run();
    let format = args.format();
    let mut destination = Destination::create(args.output.as_deref(), format.is_text())?;
    let interrupted = interrupted(destination.is_unfinished());
    tokio::select! {
        // First of all it listens for signals.
        biased;
        () = interrupted => return Err(Error::Cancelled),
        written = output::write(&mut answer, format, args.rows, &mut destination) => written?,
    };
    destination.finish()
}

/// Ctrl-C or SIGTERM, where there is something to remove; otherwise they end the program by themselves.
async fn interrupted(is_awaited: bool) {
    let terminated = is_awaited.then(|| signal(SignalKind::terminate()));
    match terminated {
        Some(Ok(mut terminated)) => tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminated.recv() => {}
        },
        _ => std::future::pending().await,
    }
}
