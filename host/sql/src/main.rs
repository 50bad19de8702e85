//! `weir-sql`: SQL over the store, at the prompt and for programs.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::process::ExitCode;

use clap::Parser;
use weir_sql::cli::{Cli, Command, EngineArgs, QueryArgs};
use weir_sql::engine::Engine;
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
            let engine = open(&args.engine)?;
            runtime.block_on(flight::serve(engine, args.listen, |address| {
                anstream::println!("weir-sql: Flight SQL on grpc://{address}");
            }))
        }
    }
}

fn open(args: &EngineArgs) -> Result<Engine, Error> {
    let hosts = match &args.hosts {
        Some(path) => Hosts::read(path).map_err(Error::Store)?,
        None => Hosts::default(),
    };
    Engine::open(&args.store, args.limits(), hosts)
}

async fn query(args: &QueryArgs) -> Result<(), Error> {
    let engine = open(&args.engine)?;
    let mut sql = args.sql.clone();
    if sql == "-" {
        sql.clear();
        std::io::stdin().read_to_string(&mut sql)?;
    }
    let mut answer = engine.plan(&sql).await?.run();
    let out: Box<dyn Write + Send> = match &args.output {
        Some(path) => {
            let file = File::create(path);
            Box::new(file.map_err(|error| std::io::Error::new(error.kind(), format!("{}: {error}", path.display())))?)
        }
        None => Box::new(std::io::stdout()),
    };
    output::write(&mut answer, args.format, args.rows, BufWriter::new(out)).await?;
    Ok(())
}
