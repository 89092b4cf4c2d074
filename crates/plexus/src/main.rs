//! The command line. Holds no logic: it reads flags, environment and the configuration file, and
//! wires the rooms together.

#![forbid(unsafe_code)]

mod agent;
mod config;

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
    let arguments = match config::with_file_defaults(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(error) => return fail(&error),
    };
    let done = match Plexus::parse_from(arguments).command {
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
