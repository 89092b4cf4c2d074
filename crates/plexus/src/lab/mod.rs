//! `plexus lab`: flags, and which of `plexus-lab`'s functions they call; prints what those return.

mod show;
mod up;

use crate::log::{self, LogFlags};
use crate::value;
use clap::{Args, Subcommand, ValueEnum};
use plexus_lab::{LabName, Layout, NodeName, Place, PodWish};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// The flags of `plexus lab`.
/// The lab that is meant if none is named.
const USUAL: &str = "lab";

#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Which lab: several can be up at the same time.
    #[arg(
        long,
        global = true,
        env = "PLEXUS_LAB",
        default_value = USUAL,
        value_name = "NAME"
    )]
    lab: LabName,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make a lab, or bring one up again that is not whole; waits until it is ready.
    Up(up::Flags),
    /// Remove the lab with everything in it.
    Down,
    /// Nodes, processes and pods as they are now.
    Status {
        /// As what.
        #[arg(short, long, value_enum)]
        output: Option<Output>,
    },
    /// Make a pod, and wait until it is ready.
    Run(RunFlags),
    /// Run a program of this machine in a pod's network namespace, on a node, or outside.
    Exec(ExecFlags),
    /// Let pods ping each other, and compare what is seen with what must be.
    Ping {
        /// Every pod to every address of every other pod.
        #[arg(long, required = true)]
        all: bool,
        /// As what.
        #[arg(short, long, value_enum)]
        output: Option<Output>,
    },
    /// Kill a node's agent (SIGKILL); it is started again.
    KillAgent {
        /// The node.
        node: NodeName,
        /// Not before `start-agent`.
        #[arg(long)]
        hold: bool,
    },
    /// Start a node's agent that was killed with --hold.
    StartAgent {
        /// The node.
        node: NodeName,
    },
    /// Kill the server (SIGKILL): the API is away until it is started again.
    KillServer {
        /// Not before `start-server`.
        #[arg(long)]
        hold: bool,
    },
    /// Start the server that was killed with --hold.
    StartServer,
    /// Cut all wires of a node: to other nodes and to the API.
    Partition {
        /// The node.
        node: NodeName,
        /// Join them again.
        #[arg(long)]
        heal: bool,
    },
    /// Add a node, and wait until it is ready.
    AddNode,
    /// Switch a node off and remove it, with its pods.
    RemoveNode {
        /// The node.
        node: NodeName,
    },
    /// Print the path of the lab's kubeconfig: export KUBECONFIG=$(plexus lab kubeconfig).
    Kubeconfig,
    /// Start what dies, and be every node's kubelet; `up` starts this.
    #[command(hide = true)]
    Keeper {
        #[command(flatten)]
        log: LogFlags,
    },
}

/// As what something is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
}

#[derive(Debug, Args)]
struct RunFlags {
    /// The pod's name.
    name: String,
    /// Its node; default: the one with the fewest pods.
    #[arg(long)]
    node: Option<NodeName>,
    /// A network besides the default one, as NAME or NAMESPACE/NAME; may be repeated.
    #[arg(long = "network", value_name = "NETWORK")]
    networks: Vec<String>,
    /// Its namespace; made if there is none.
    #[arg(short, long, default_value = "default", value_parser = value::label)]
    namespace: String,
    /// Seconds to wait, from 1 to 600.
    #[arg(long, default_value_t = 30, value_parser = value::number::<1, 600>)]
    timeout: u16,
}

#[derive(Debug, Args)]
struct ExecFlags {
    /// The pod, unless --node or --outside is given.
    #[arg(required_unless_present_any = ["node", "outside"], conflicts_with_all = ["node", "outside"])]
    pod: Option<String>,
    /// The pod's namespace.
    #[arg(short, long, default_value = "default", value_parser = value::label)]
    namespace: String,
    /// On a node instead.
    #[arg(long, conflicts_with = "outside")]
    node: Option<NodeName>,
    /// Outside of the cluster instead, where only the nodes are known.
    #[arg(long)]
    outside: bool,
    /// The program and its arguments, after `--`.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Does it. The exit code says whether all was well; an error is one more reason to fail.
pub(crate) fn run(flags: Flags) -> anyhow::Result<ExitCode> {
    let layout = Layout::of(flags.lab);
    let lab = &layout;
    match flags.verb {
        Verb::Up(flags) => up::run(lab, flags)?,
        Verb::Down => {
            let there = plexus_lab::down(lab)?;
            let said = if there { "is gone" } else { "was not there" };
            show::print(&format!("lab {} {said}\n", lab.name()))?;
        }
        Verb::Status { output } => return status(lab, output),
        Verb::Run(flags) => run_pod(lab, flags)?,
        Verb::Exec(flags) => plexus_lab::exec(lab, &place(&flags), &flags.command)?,
        Verb::Ping { all: _, output } => return ping(lab, output),
        Verb::KillAgent { node, hold } => {
            let killed = plexus_lab::kill_agent(lab, node, hold)?;
            show::print(&format!("agent of {node} {}\n", show::killed(killed)))?;
        }
        Verb::StartAgent { node } => {
            plexus_lab::start_agent(lab, node)?;
            show::print(&format!("agent of {node} ready\n"))?;
        }
        Verb::KillServer { hold } => {
            let killed = plexus_lab::kill_server(lab, hold)?;
            show::print(&format!("server {}\n", show::killed(killed)))?;
        }
        Verb::StartServer => {
            plexus_lab::start_server(lab)?;
            show::print("server ready\n")?;
        }
        Verb::Partition { node, heal } => {
            plexus_lab::partition(lab, node, !heal)?;
            let said = if heal { "joined again" } else { "cut off" };
            show::print(&format!("{node} {said}\n"))?;
        }
        Verb::AddNode => {
            let node = plexus_lab::add_node(lab, &mut |_| {})?;
            show::print(&format!("{node} ready\n"))?;
        }
        Verb::RemoveNode { node } => {
            plexus_lab::remove_node(lab, node)?;
            show::print(&format!("{node} is gone\n"))?;
        }
        Verb::Kubeconfig => show::print(&format!("{}\n", lab.kubeconfig().display()))?,
        Verb::Keeper { log } => {
            log::start(&log)?;
            plexus_lab::keep(lab)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run_pod(lab: &Layout, flags: RunFlags) -> anyhow::Result<()> {
    let wish = PodWish {
        name: flags.name,
        namespace: flags.namespace,
        node: flags.node,
        networks: flags.networks,
    };
    let limit = Duration::from_secs(flags.timeout.into());
    let seen = plexus_lab::run(lab, &wish, limit)?;
    show::print(&format!(
        "pod {} ready on {} ({:.2} s): {}\n",
        wish.name,
        seen.node,
        seen.took.as_secs_f64(),
        seen.addresses.join(", ")
    ))
}

fn place(flags: &ExecFlags) -> Place {
    match (flags.node, &flags.pod) {
        (Some(node), _) => Place::Node(node),
        (None, Some(pod)) => Place::Pod {
            namespace: flags.namespace.clone(),
            name: pod.clone(),
        },
        (None, None) => Place::Outside,
    }
}

/// Fails if something is not as it should be.
fn status(lab: &Layout, output: Option<Output>) -> anyhow::Result<ExitCode> {
    let status = plexus_lab::status(lab)?;
    match output {
        Some(Output::Json) => show::json(&status)?,
        None => show::print(&show::status(&status))?,
    }
    Ok(exit(status.problems().is_empty()))
}

/// Fails if a cell is not as expected, a pod is not seen, or nothing was judged.
fn ping(lab: &Layout, output: Option<Output>) -> anyhow::Result<ExitCode> {
    let matrix = plexus_lab::ping_all(lab)?;
    match output {
        Some(Output::Json) => show::json(&matrix)?,
        None => show::print(&matrix.text())?,
    }
    Ok(exit(matrix.is_well()))
}

fn exit(well: bool) -> ExitCode {
    if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Just {
        #[command(flatten)]
        flags: Flags,
    }

    fn parse(line: &str) -> Result<Flags, clap::Error> {
        let words = ["lab"].into_iter().chain(line.split_whitespace());
        Just::try_parse_from(words).map(|just| just.flags)
    }

    fn place_of(line: &str) -> Place {
        match parse(line).unwrap().verb {
            Verb::Exec(flags) => place(&flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_the_keeper_is_started_with_is_understood() {
        let flags = parse("keeper --lab=x").unwrap();
        assert!(matches!(flags.verb, Verb::Keeper { .. }));
        assert_eq!(flags.lab.as_str(), "x");
    }

    #[test]
    fn a_program_runs_in_one_place() {
        let pod = Place::Pod {
            namespace: "a".to_owned(),
            name: "web".to_owned(),
        };
        assert_eq!(place_of("exec web -n a -- ip addr"), pod);
        assert_eq!(
            place_of("exec --node n2 -- ip route"),
            Place::Node("n2".parse().unwrap())
        );
        assert_eq!(place_of("exec --outside -- ping n1"), Place::Outside);
        for line in [
            "exec -- ip addr",
            "exec web",
            "exec web --node n1 -- ip",
            "exec --node n1 --outside -- ip",
            "exec --node x1 -- ip",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn wrong_names_are_explained() {
        let error = parse("up --lab=A").unwrap_err().to_string();
        assert!(error.contains("lower-case letters"), "{error}");
        let error = parse("kill-agent 1").unwrap_err().to_string();
        assert!(error.contains("n1 to n200"), "{error}");
        assert!(parse("up --nodes 201").is_err());
        assert!(parse("ping").is_err(), "--all must be said");
    }
}
