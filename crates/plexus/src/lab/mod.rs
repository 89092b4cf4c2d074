//! `plexus lab`: flags, and which of `plexus-lab`'s functions they call; prints what those return.

mod progress;
mod show;
mod up;

use crate::context::{self, OurContext};
use crate::log::{self, LogFlags};
use crate::out::print_bytes;
use crate::value;
use clap::{Args, Subcommand, ValueEnum};
use plexus_cli::text::Screen;
use plexus_lab::{ExecTarget, LabError, LabName, Layout, NodeName, Part, PodRequest};
use progress::{Progress, Waiting};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The lab that is meant if none is named.
const USUAL: &str = "lab";

/// The flags of `plexus lab`.
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
    /// Remove the lab with everything in it, also programs that run in its namespaces.
    Down,
    /// The labs of this machine.
    List {
        /// As what.
        #[arg(short, long, value_enum)]
        output: Option<Output>,
    },
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
    /// Let every pod ping every address of every other pod, and compare what is seen with what must be; of more than
    /// 20 pods only what is wrong is shown.
    Ping {
        /// As what.
        #[arg(short, long, value_enum)]
        output: Option<Output>,
    },
    /// Print what a process has said.
    Logs(LogsFlags),
    /// Kill a process (SIGKILL); it is started again. Exits with 3 if it does not run.
    Kill {
        /// server, controller, or a node for its agent.
        target: Part,
        /// Not before `start`.
        #[arg(long)]
        hold: bool,
    },
    /// Start a process that was killed with --hold, and wait until it is ready.
    Start {
        /// server, controller, or a node for its agent.
        target: Part,
    },
    /// Cut all wires of a node: to other nodes and to the API.
    Cut {
        /// The node.
        node: NodeName,
    },
    /// Join the wires of a node that was cut off.
    Heal {
        /// The node.
        node: NodeName,
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
    /// The pod's name, as [NAMESPACE/]NAME.
    name: String,
    /// Its node; default: the one with the fewest pods.
    #[arg(long)]
    node: Option<NodeName>,
    /// A network besides the default one, as NAME or NAMESPACE/NAME; may be repeated.
    #[arg(long = "network", value_name = "NETWORK")]
    networks: Vec<String>,
    /// Its namespace; made if there is none; default: default.
    #[arg(short, long, value_parser = value::label)]
    namespace: Option<String>,
    /// Seconds to wait, from 1 to 600.
    #[arg(long, default_value_t = 30, value_parser = value::number::<1, 600>)]
    timeout: u16,
}

#[derive(Debug, Args)]
struct ExecFlags {
    /// The pod, as [NAMESPACE/]NAME, unless --node or --outside is given.
    #[arg(required_unless_present_any = ["node", "outside"], conflicts_with_all = ["node", "outside"])]
    pod: Option<String>,
    /// The pod's namespace; default: default.
    #[arg(short, long, value_parser = value::label)]
    namespace: Option<String>,
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

#[derive(Debug, Args)]
struct LogsFlags {
    /// server, controller, keeper, or a node for its agent.
    target: Part,
    /// Go on with what it says from now on, until the lab is gone.
    #[arg(short, long)]
    follow: bool,
    /// Only so many lines of what it has said.
    #[arg(long, value_name = "LINES")]
    tail: Option<usize>,
}

/// What `kill` exits with if there is nobody to kill.
const NOBODY: u8 = 3;

/// Does it. The exit code says whether all was well; an error is one more reason to fail.
pub(crate) fn run(flags: Flags) -> anyhow::Result<ExitCode> {
    let done = act(flags);
    if let Err(error) = &done
        && let Some(LabError::DoesNotRun { .. }) = error.downcast_ref()
    {
        crate::fail(error);
        return Ok(ExitCode::from(NOBODY));
    }
    done
}

fn act(flags: Flags) -> anyhow::Result<ExitCode> {
    let layout = Layout::of(flags.lab);
    let lab = &layout;
    match flags.verb {
        Verb::Up(flags) => up::run(lab, flags)?,
        Verb::Down => down(lab)?,
        Verb::Status { output } => return status(lab, output),
        Verb::Run(flags) => run_pod(lab, flags)?,
        Verb::Exec(flags) => plexus_lab::exec(lab, &exec_target(&flags)?, &flags.command)?,
        Verb::Ping { output } => return ping(lab, output),
        Verb::List { output } => list(output)?,
        Verb::Logs(flags) => logs(lab, &flags)?,
        Verb::Kill { target, hold } => {
            let killed = plexus_lab::kill(lab, target, hold)?;
            show::print(&format!("{} {}\n", name_of(target), show::killed(killed)))?;
        }
        Verb::Start { target } => {
            plexus_lab::start(lab, target)?;
            show::print(&format!("{} ready\n", name_of(target)))?;
        }
        Verb::Cut { node } => {
            plexus_lab::partition(lab, node, true)?;
            show::print(&format!("{node} cut off\n"))?;
        }
        Verb::Heal { node } => {
            plexus_lab::partition(lab, node, false)?;
            show::print(&format!("{node} joined again\n"))?;
        }
        Verb::AddNode => add_node(lab)?,
        Verb::RemoveNode { node } => remove_node(lab, node)?,
        Verb::Kubeconfig => {
            let file = plexus_lab::kubeconfig(lab)?;
            show::print(&format!("{}\n", file.display()))?;
        }
        Verb::Keeper { log } => {
            log::start(&log)?;
            plexus_lab::run_keeper(lab)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A process as sentences call it.
fn name_of(part: Part) -> String {
    match part {
        Part::Agent(node) => format!("agent of {node}"),
        part => part.to_string(),
    }
}

fn list(output: Option<Output>) -> anyhow::Result<()> {
    let labs = plexus_lab::list()?;
    match output {
        Some(Output::Json) => show::json(&labs),
        None if labs.is_empty() => {
            eprintln!("no lab on this machine: `plexus lab up` makes one");
            Ok(())
        }
        None => show::print(&show::labs(&labs).render(Screen::stdout())),
    }
}

fn logs(lab: &Layout, flags: &LogsFlags) -> anyhow::Result<()> {
    let mut written = Ok(true);
    plexus_lab::logs(lab, flags.target, flags.tail, flags.follow, &mut |bytes| {
        written = print_bytes(bytes);
        matches!(written, Ok(true))
    })?;
    written.map(drop)
}

/// The context of a lab's API.
fn context_of(lab: &Layout, kubeconfig: Option<&Path>) -> anyhow::Result<OurContext> {
    Ok(OurContext {
        name: format!("plexus-lab-{}", lab.name()),
        server: lab.dir().join("server"),
        note: lab.dir().join("context"),
        place: context::kubeconfig_path(kubeconfig)?,
    })
}

fn down(lab: &Layout) -> anyhow::Result<()> {
    // First what leads users to it: nobody is sent to a server that is being removed.
    if rustix::process::geteuid().is_root() {
        context_of(lab, None)?.remove()?;
    }
    let name = format!("lab {}", lab.name());
    let progress = Progress::new(Instant::now());
    let there = plexus_lab::down(lab, &mut |step| progress.print_removal(&name, step))?;
    let state = if there { "is gone" } else { "was not there" };
    show::print(&format!("{name} {state}\n"))
}

fn add_node(lab: &Layout) -> anyhow::Result<()> {
    let mut progress = Progress::new(Instant::now());
    let node = plexus_lab::add_node(lab, &mut |step| progress.print_step(&step));
    progress.end();
    show::print(&format!("{} ready\n", node?))
}

fn remove_node(lab: &Layout, node: NodeName) -> anyhow::Result<()> {
    let name = node.to_string();
    let progress = Progress::new(Instant::now());
    plexus_lab::remove_node(lab, node, &mut |step| progress.print_removal(&name, step))?;
    show::print(&format!("{name} is gone\n"))
}

fn run_pod(lab: &Layout, flags: RunFlags) -> anyhow::Result<()> {
    let (namespace, name) = pod(&flags.name, flags.namespace.as_deref())?;
    let request = PodRequest {
        name,
        namespace,
        node: flags.node,
        networks: flags.networks,
    };
    let limit = Duration::from_secs(flags.timeout.into());
    let waiting = Waiting::for_what(format!("waiting for pod {}", request.name));
    let seen = plexus_lab::run(lab, &request, limit);
    drop(waiting);
    let seen = seen?;
    show::print(&format!(
        "pod {} ready on {} ({:.2} s): {}\n",
        request.name,
        seen.node,
        seen.took.as_secs_f64(),
        seen.addresses.join(", ")
    ))
}

fn exec_target(flags: &ExecFlags) -> anyhow::Result<ExecTarget> {
    Ok(match (flags.node, &flags.pod) {
        (Some(node), _) => ExecTarget::Node(node),
        (None, Some(written)) => {
            let (namespace, name) = pod(written, flags.namespace.as_deref())?;
            ExecTarget::Pod { namespace, name }
        }
        (None, None) => ExecTarget::Outside,
    })
}

/// The namespace and the name of a pod.
fn pod(written: &str, beside: Option<&str>) -> anyhow::Result<(String, String)> {
    let (namespace, name) = value::namespace_and_name(written, beside)?;
    let namespace = value::label(namespace.unwrap_or("default")).map_err(anyhow::Error::msg)?;
    Ok((namespace, name.to_owned()))
}

/// Fails if something is not as it should be.
fn status(lab: &Layout, output: Option<Output>) -> anyhow::Result<ExitCode> {
    let status = plexus_lab::status(lab)?;
    match output {
        Some(Output::Json) => show::json(&status)?,
        None => show::print(&show::status(&status, Screen::stdout()))?,
    }
    Ok(exit(status.problems().is_empty()))
}

/// Fails if a cell is not as expected, a pod is not seen, or nothing was judged.
fn ping(lab: &Layout, output: Option<Output>) -> anyhow::Result<ExitCode> {
    let waiting = Waiting::for_what("every pod pings every other".to_owned());
    let matrix = plexus_lab::ping_all(lab);
    drop(waiting);
    let matrix = matrix?;
    match output {
        Some(Output::Json) => show::json(&matrix)?,
        None => show::print(&matrix.text(Screen::stdout().width))?,
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

    fn target_of(line: &str) -> ExecTarget {
        match parse(line).unwrap().verb {
            Verb::Exec(flags) => exec_target(&flags).unwrap(),
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
        let pod = ExecTarget::Pod {
            namespace: "a".to_owned(),
            name: "web".to_owned(),
        };
        assert_eq!(target_of("exec web -n a -- ip addr"), pod);
        assert_eq!(target_of("exec a/web -- ip addr"), pod);
        assert_eq!(target_of("exec a/web -n a -- ip addr"), pod);
        assert_eq!(
            target_of("exec --node n2 -- ip route"),
            ExecTarget::Node("n2".parse().unwrap())
        );
        assert_eq!(target_of("exec --outside -- ping n1"), ExecTarget::Outside);
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
        let error = parse("cut 1").unwrap_err().to_string();
        assert!(error.contains("n1 to n200"), "{error}");
        let error = parse("kill n201").unwrap_err().to_string();
        assert!(
            error.contains("write server, controller, or a node"),
            "{error}"
        );
        assert!(parse("up --nodes 201").is_err());
    }

    #[test]
    fn processes_are_called_by_one_word() {
        for (word, part) in [
            ("server", Part::Server),
            ("controller", Part::Controller),
            ("n2", Part::Agent("n2".parse().unwrap())),
            ("n2-agent", Part::Agent("n2".parse().unwrap())),
        ] {
            for line in [format!("kill {word} --hold"), format!("start {word}")] {
                match parse(&line).unwrap().verb {
                    Verb::Kill { target, .. } | Verb::Start { target } => assert_eq!(target, part),
                    other => panic!("{other:?}"),
                }
            }
        }
        for line in [
            "list -o json",
            "logs keeper",
            "logs n1 -f --tail 3",
            "heal n1",
            "ping",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
        for line in ["logs", "kill", "start", "cut", "heal server", "ping --all"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
