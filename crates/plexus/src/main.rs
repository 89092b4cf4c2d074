//! The command line. Holds no logic: it reads flags, environment and the configuration file, and
//! wires the rooms together.

#![forbid(unsafe_code)]

mod agent;
mod config;
mod value;

use clap::{Parser, Subcommand};

/// Several networks for pods and containers.
#[derive(Debug, Parser)]
#[command(name = "plexus", version, about, max_term_width = 100)]
struct Plexus {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve one node: attach containers to networks, and keep that true until they are gone.
    Agent(agent::Flags),
}

fn main() -> std::process::ExitCode {
    let given = match config::Given::read(std::env::args_os().collect()) {
        Ok(given) => given,
        Err(error) => return fail(&error),
    };
    let command = match Plexus::try_parse_from(given.all()) {
        Ok(parsed) => parsed.command,
        Err(error) => match given.blame(&error) {
            Some(blame) => return fail(&blame),
            None => error.exit(),
        },
    };
    let done = match command {
        Verb::Agent(flags) => agent::run(flags),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// One line, with its causes.
fn fail(error: &anyhow::Error) -> std::process::ExitCode {
    eprintln!("plexus: {error:#}");
    std::process::ExitCode::FAILURE
}
