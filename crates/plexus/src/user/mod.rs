//! The user's verbs: flags, and which of `plexus-cli`'s functions they call. The same against the
//! embedded API and a cluster.

mod apply;
mod create;
mod delete;
mod describe;
mod diagnose;
mod doctor;
mod files;
mod get;
mod ipam;
mod plan;
mod server;
mod validate;
mod version;
mod watch;

use crate::out::print;
use clap::{Subcommand, ValueEnum};
use plexus_cli::output::Form;
use std::process::ExitCode;

/// What users do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make objects what files say.
    Apply(apply::Flags),
    /// Make a network.
    #[command(subcommand)]
    Create(create::What),
    /// Delete objects, by name or by file.
    Delete(delete::Flags),
    /// List objects: networks, pods, blocks, nodes, attachments, nads, …
    Get(get::Flags),
    /// Everything about a pod or a network: interfaces, addresses, routes and rules as recorded, and where they came from.
    Describe(describe::Flags),
    /// Why a pod or a network is as it is, or what is missing and what to do next.
    Diagnose(diagnose::Flags),
    /// Addresses.
    #[command(subcommand)]
    Ipam(ipam::What),
    /// Check files without a server: all problems, with line and field.
    Validate(validate::Flags),
    /// The commands that pods of files amount to, without a server and without doing them.
    Plan(plan::Flags),
    /// What is wrong with this machine as a node.
    Doctor(doctor::Flags),
    /// Versions of this program, of the API server and of the agent.
    Version(version::Flags),
    /// The script that completes commands in a shell.
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Does it. The exit code says whether all was well; an error is one more reason to fail.
pub(crate) fn run(verb: Verb) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Apply(flags) => apply::run(&flags),
        Verb::Create(what) => create::run(&what),
        Verb::Delete(flags) => delete::run(&flags),
        Verb::Get(flags) => get::run(&flags),
        Verb::Describe(flags) => describe::run(&flags),
        Verb::Diagnose(flags) => diagnose::run(&flags),
        Verb::Ipam(what) => ipam::run(&what),
        Verb::Validate(flags) => validate::run(&flags),
        Verb::Plan(flags) => plan::run(&flags),
        Verb::Doctor(flags) => doctor::run(&flags),
        Verb::Version(flags) => version::run(&flags),
        Verb::Completion { shell } => completion(shell),
    }
}

fn completion(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut command = <crate::Plexus as clap::CommandFactory>::command();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "plexus", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// `-o`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// A table with more columns.
    Wide,
    /// Names alone.
    Name,
}

impl Output {
    fn form(of: Option<Self>) -> Form {
        match of {
            None => Form::Table,
            Some(Output::Json) => Form::Json,
            Some(Output::Yaml) => Form::Yaml,
            Some(Output::Wide) => Form::Wide,
            Some(Output::Name) => Form::Name,
        }
    }
}

/// `-o` of what is not a list of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Structured {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// `--dry-run`, as kubectl has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum DryRun {
    /// Do it.
    #[default]
    None,
    /// Change nothing, and send nothing to be changed.
    Client,
    /// Let the server check everything, and change nothing.
    Server,
}

impl DryRun {
    /// What follows the word for what was done.
    fn suffix(self) -> &'static str {
        match self {
            DryRun::None => "",
            DryRun::Client => " (dry run)",
            DryRun::Server => " (server dry run)",
        }
    }
}

/// A value in that form, or else the text.
fn structured(
    form: Option<Structured>,
    value: impl FnOnce() -> serde_json::Value,
    text: impl FnOnce() -> String,
) -> String {
    match form {
        Some(Structured::Json) => plexus_cli::output::json_text(&value()),
        Some(Structured::Yaml) => plexus_cli::output::yaml_text(&value()),
        None => text(),
    }
}

/// All is well, or not.
fn code(well: bool) -> ExitCode {
    match well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use crate::Plexus;
    use clap::{CommandFactory, Parser};

    fn parses(line: &str) -> Result<(), String> {
        let words = ["plexus"].into_iter().chain(line.split_whitespace());
        let parsed = Plexus::try_parse_from(words);
        parsed.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn what_users_type() {
        Plexus::command().debug_assert();
        for line in [
            "apply -f a.yaml -f - -n team-a --dry-run=server",
            "apply -f a.yaml --dry-run=client",
            "create network blue --subnet 10.1.0.0/16 --snat --allowed-namespaces Same --dry-run=client -o json",
            "delete network blue green --wait=false",
            "delete network blue --wait --timeout 1m",
            "delete -f a.yaml --ignore-not-found",
            "get networks -A -o wide",
            "get pods -w -A",
            "get pods,networks web -n a -l app=web -o name",
            "describe pod team-a/web --cluster-name east",
            "diagnose network blue --kubeconfig x --context y -o yaml",
            "ipam show blue",
            "validate -R -f examples",
            "plan -f a.yaml --node n2 --pod-cidrs= --uplink eth1 --mtu 9000",
            "doctor -q --no-api --strict",
            "doctor --kernel",
            "agent status --live --socket /a",
            "agent attachments --pod team-a/web",
            "agent metrics",
            "version --client",
            "completion zsh",
        ] {
            assert_eq!(parses(line), Ok(()), "{line}");
        }
        for line in [
            "apply",
            "get",
            "get pods -A -n a",
            "get pods -o xml",
            "delete",
            "delete network",
            "delete network blue -f a.yaml",
            "delete network blue --timeout 7",
            "apply -f a.yaml --dry-run",
            "create network blue --dry-run",
            "create network blue --for Same",
            "describe pod",
            "diagnose pod",
            "plan -f a --mtu 5",
            "agent --node n1 status",
            "agent --probe",
            "completion tcsh",
        ] {
            assert!(parses(line).is_err(), "{line}");
        }
    }

    #[test]
    fn every_shell_is_given_every_verb() {
        for shell in [
            clap_complete::Shell::Bash,
            clap_complete::Shell::Zsh,
            clap_complete::Shell::Fish,
        ] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Plexus::command(), "plexus", &mut script);
            let script = String::from_utf8(script).unwrap();
            for verb in ["diagnose", "validate", "doctor", "--all-namespaces"] {
                let word = verb.trim_start_matches('-');
                assert!(script.contains(word), "{shell}: {verb}");
            }
        }
    }
}
