//! The command line: reads flags, environment and the configuration file, and wires the rooms together.

#![forbid(unsafe_code)]

mod agent;
mod config;
mod context;
mod controller;
mod down;
mod kinds;
mod kubernetes;
mod lab;
mod log;
mod out;
mod paths;
mod query;
mod server;
mod up;
mod user;
mod value;

use clap::{Parser, Subcommand};
use plexus_cni::delegate;
use plexus_kernel::Signals;
use std::path::PathBuf;

/// As much as a first thread has.
const STACK: usize = 8 << 20;

/// Several networks for pods and containers.
#[derive(Debug, Parser)]
#[command(name = "plexus", version, about, max_term_width = 100)]
struct Plexus {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve one node: attach containers to networks, and keep that true until they are gone; or ask who serves it.
    Agent(Box<agent::Flags>),
    /// Serve a cluster: networks, their phases, and what nodes that are gone have left behind; or ask who serves it.
    Controller(Box<controller::Flags>),
    /// Serve the embedded API by itself: the part of Kubernetes's that Plexus uses, for one machine.
    Server(server::Flags),
    /// Serve this machine without Kubernetes: API, controller and agent in one.
    Up(Box<up::Flags>),
    /// Stop what `up` runs, and remove every trace of it from this machine.
    Down(down::Flags),
    /// Virtual nodes on this machine, each with a real agent: to try things out, and for tests.
    Lab(lab::Flags),
    #[command(flatten)]
    User(user::Verb),
}

fn main() -> std::process::ExitCode {
    if let Some((root, plugin)) = in_root() {
        let error = match plexus_kernel::own_proc(&root) {
            Ok(()) => delegate::enter_root_and_exec(&root, &plugin),
            Err(error) => {
                let text = format!("cannot mount /proc for it in {}: {error}", root.display());
                std::io::Error::other(text)
            }
        };
        eprintln!("{}", delegate::complaint(&error));
        return std::process::ExitCode::from(delegate::NOT_EXECUTED);
    }
    plexus_kernel::memory::keep_small();
    beside_the_first_thread(run)
}

/// Where the first thread of a process is, the process is: others look there, and whoever removes a lab ends
/// those who are in its namespaces. So all work is done by another one, which may go where it has to.
fn beside_the_first_thread(work: fn() -> std::process::ExitCode) -> std::process::ExitCode {
    // To be stopped is a matter of the other one too.
    let done = Signals::block().and_then(|signals| {
        let work = move || signals.unblock().map(|()| work());
        let thread = std::thread::Builder::new().name("plexus-main".to_owned());
        let thread = thread.stack_size(STACK).spawn(work)?;
        // What went wrong is said already.
        let panicked = |_| Ok(std::process::ExitCode::from(101));
        thread.join().unwrap_or_else(panicked)
    });
    done.unwrap_or_else(|error| {
        fail(&anyhow::Error::new(error).context("cannot start a thread to work on"))
    })
}

fn run() -> std::process::ExitCode {
    let command_line = match config::CommandLine::read(std::env::args_os().collect()) {
        Ok(command_line) => command_line,
        Err(error) => return fail(&error),
    };
    let command = match Plexus::try_parse_from(command_line.all()) {
        Ok(parsed) => parsed.command,
        Err(error) => match command_line.explain_error(&error) {
            Some(explain_error) => return fail(&explain_error),
            None => error.exit(),
        },
    };
    let done = match command {
        Verb::Agent(flags) => agent::run(*flags),
        Verb::Controller(flags) => controller::run(*flags),
        Verb::Server(flags) => server::run(flags),
        Verb::Up(flags) => up::run(*flags),
        Verb::Down(flags) => down::run(&flags),
        Verb::Lab(flags) => match lab::run(flags) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Verb::User(verb) => match user::run(verb) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// The agent runs plugins of the host by way of ourselves: not a verb for people.
fn in_root() -> Option<(PathBuf, PathBuf)> {
    let mut words = std::env::args_os().skip(1);
    let is_it = words.next()? == delegate::IN_ROOT;
    is_it.then_some((words.next()?.into(), words.next()?.into()))
}

/// One line, with its causes.
fn fail(error: &anyhow::Error) -> std::process::ExitCode {
    eprintln!("plexus: {}", chain(error));
    std::process::ExitCode::FAILURE
}

/// An error and its causes.
fn chain(error: &anyhow::Error) -> String {
    plexus_types::chain(error.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a container's `args` in the manifest, with what the API server fills in.
    fn arguments(verb: &str) -> Vec<String> {
        let manifest = include_str!("../../../deploy/install.yaml");
        let (_, container) = manifest
            .split_once(&format!("command: [/bin/plexus, {verb}]\n"))
            .unwrap();
        let lines = container.lines().map(str::trim);
        let lines = lines.take_while(|line| !matches!(*line, "env:" | "ports:"));
        let command_line = lines.filter_map(|line| line.strip_prefix("- "));
        let filled = command_line.map(|line| {
            line.replace("$(NODE_NAME)", "n1")
                .replace("$(NODE_IPS)", "192.168.77.1,fd00:77::1")
                .replace("$(NAMESPACE)", "plexus-system")
                .replace("$(POD_NAME)", "plexus-controller-5d4f8-x2x9k")
        });
        let words = ["plexus".to_owned(), verb.to_owned()];
        words.into_iter().chain(filled).collect()
    }

    /// A port of the node, also of its loopback, leads to whatever pod has it as hostPort.
    #[test]
    fn no_probe_of_ours_is_answered_by_a_pod() {
        let manifest = include_str!("../../../deploy/install.yaml");
        let lines = || manifest.lines().map(str::trim);
        for key in ["httpGet:", "tcpSocket:", "grpc:"] {
            assert!(!lines().any(|line| line.starts_with(key)), "{key}");
        }
        let probes = lines().filter_map(|line| line.strip_prefix("exec: {command: ["));
        let probes: Vec<Vec<&str>> = probes
            .map(|line| line.trim_end_matches("]}").split(", ").collect())
            .collect();
        assert_eq!(probes.len(), 4, "{probes:?}");
        for probe in probes {
            let parsed = Plexus::try_parse_from(&probe);
            assert!(parsed.is_ok(), "{probe:?}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn the_manifest_says_what_we_understand() {
        for (verb, several) in [("agent", 8), ("controller", 5)] {
            let arguments = arguments(verb);
            assert!(arguments.len() > several, "{arguments:?}");
            assert!(arguments.iter().all(|word| !word.contains('$')));
            let parsed = Plexus::try_parse_from(&arguments);
            assert!(parsed.is_ok(), "{arguments:?}: {}", parsed.unwrap_err());
        }
    }
}
