//! `kubelab`: real Kubernetes clusters on this machine. See the crate's documentation.
#![allow(clippy::print_stdout, reason = "talking to a terminal is its work")]

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use plexus_kubekit::layout::Layout;
use plexus_kubekit::spec::{Binaries, Cni, PodCidrs, ProxyMode};
use plexus_kubekit::{Cluster, Kube, Lab, Part, Spec, consistency, image, relay};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Parser)]
#[command(about = "Real Kubernetes clusters on this machine, for tests")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Args)]
struct Which {
    /// The lab's name.
    #[arg(long, default_value = "lab")]
    prefix: String,
}

#[derive(Subcommand)]
enum Verb {
    /// Start a lab.
    Up(Box<Up>),
    /// Remove a lab, whatever is left of it.
    Down(Which),
    /// Run kubectl as administrator.
    Kubectl {
        #[command(flatten)]
        which: Which,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run a program on a node, as root.
    Node {
        #[command(flatten)]
        which: Which,
        node: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        argv: Vec<String>,
    },
    /// Start a part that does not run.
    Start(OnePart),
    /// Ask a part to end.
    Stop(OnePart),
    /// Kill a part.
    Kill(OnePart),
    /// Add a node.
    AddNode {
        #[command(flatten)]
        which: Which,
        node: Option<String>,
    },
    /// Take a node away for good.
    RemoveNode(OneNode),
    /// Cut a node's power.
    PowerOff(OneNode),
    /// Boot a node whose power was cut.
    PowerOn(OneNode),
    /// Copy etcd's data aside; prints where.
    Snapshot(Which),
    /// Put etcd's data back.
    Restore {
        #[command(flatten)]
        which: Which,
        copy: PathBuf,
    },
    /// Make Plexus's image anew, and replace its pods.
    Reload {
        #[command(flatten)]
        which: Which,
        /// Instead of the binaries that the lab was started with.
        #[arg(long, requires = "shim")]
        plexus: Option<PathBuf>,
        #[arg(long)]
        shim: Option<PathBuf>,
    },
    /// Say everything on which API, agents, kernels and files disagree.
    Truth(Which),
    /// Carry connections to the API server (started by `up`).
    #[command(hide = true)]
    Relay { state: PathBuf },
}

#[derive(Args)]
struct Up {
    #[command(flatten)]
    which: Which,
    #[arg(long, default_value_t = 2)]
    nodes: u8,
    #[arg(long, value_enum, default_value_t = ProxyMode::Nftables)]
    proxy: ProxyMode,
    /// Who gives the nodes ranges for their pods.
    #[arg(long, value_enum, default_value_t = PodCidrs::Node)]
    pod_cidrs: PodCidrs,
    /// Who connects the pods.
    #[arg(long, value_enum, default_value_t = Cni::Plexus)]
    cni: Cni,
    /// The same as `--cni none`, unless a CNI is chosen too.
    #[arg(long)]
    no_plexus: bool,
    /// The `plexus` program for the image.
    #[arg(long, env = "PLEXUS_BIN", requires = "shim")]
    plexus: Option<PathBuf>,
    /// The static `plexus-cni` for the image.
    #[arg(long, env = "PLEXUS_STATIC_SHIM")]
    shim: Option<PathBuf>,
    /// What to apply to install Plexus.
    #[arg(long, default_value = "deploy/install.yaml")]
    manifest: PathBuf,
    /// FROM=>TO: a replacement in the manifest.
    #[arg(long, value_parser = edit)]
    edit: Vec<(String, String)>,
    /// A further flag of the API server.
    #[arg(long, allow_hyphen_values = true)]
    api_flag: Vec<String>,
    /// A further flag of the controller-manager.
    #[arg(long, allow_hyphen_values = true)]
    controller_flag: Vec<String>,
}

#[derive(Args)]
struct OnePart {
    #[command(flatten)]
    which: Which,
    /// etcd, apiserver, controller-manager, scheduler, n1-containerd, n1-kubelet, n1-kube-proxy.
    part: Part,
}

#[derive(Args)]
struct OneNode {
    #[command(flatten)]
    which: Which,
    node: String,
}

fn main() -> ExitCode {
    match run(Arguments::parse().verb) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("kubelab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Up(arguments) => up(*arguments)?,
        Verb::Down(which) => Lab::down(&which.prefix)?,
        Verb::Kubectl { which, arguments } => {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            return Ok(rendered(&kube(&which)?.kubectl(&arguments, "")?));
        }
        Verb::Node { which, node, argv } => {
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            return Ok(rendered(&kube(&which)?.on_node(&node, &argv)?));
        }
        Verb::Start(one) => lab(&one.which)?.start(&one.part)?,
        Verb::Stop(one) => lab(&one.which)?.stop(&one.part)?,
        Verb::Kill(one) => lab(&one.which)?.kill(&one.part)?,
        Verb::AddNode { which, node } => println!("{}", lab(&which)?.add_node(node.as_deref())?),
        Verb::RemoveNode(one) => lab(&one.which)?.remove_node(&one.node)?,
        Verb::PowerOff(one) => lab(&one.which)?.power_off(&one.node)?,
        Verb::PowerOn(one) => lab(&one.which)?.power_on(&one.node)?,
        Verb::Snapshot(which) => println!("{}", lab(&which)?.snapshot_etcd()?.display()),
        Verb::Restore { which, copy } => lab(&which)?.restore_etcd(&copy)?,
        Verb::Reload {
            which,
            plexus,
            shim,
        } => reload(&lab(&which)?, binaries(plexus, shim))?,
        Verb::Truth(which) => {
            return Ok(print_disagreements(&consistency::disagreements(&kube(
                &which,
            )?)?));
        }
        Verb::Relay { state } => relay::serve(&Layout::at(&state)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn up(arguments: Up) -> Result<()> {
    let started = Instant::now();
    let mut spec = Spec::new(&arguments.which.prefix, arguments.nodes)?;
    spec.proxy = arguments.proxy;
    spec.pod_cidrs = arguments.pod_cidrs;
    spec.cni = match arguments.cni {
        Cni::Plexus if arguments.no_plexus => Cni::None,
        chosen => chosen,
    };
    spec.binaries = binaries(arguments.plexus, arguments.shim);
    if spec.cni == Cni::Plexus {
        let manifest = std::path::absolute(&arguments.manifest).context("no such path")?;
        spec.manifest = Some(manifest);
    }
    spec.edits = arguments.edit;
    spec.api_flags = arguments.api_flag;
    spec.controller_flags = arguments.controller_flag;
    let lab = Lab::up(&spec)?;
    let state = lab.layout().state().display();
    println!("up in {:.1} s", started.elapsed().as_secs_f32());
    println!("export PLEXUS_KUBE_STATE={state} KUBECONFIG={state}/kubeconfig");
    Ok(())
}

fn reload(lab: &Lab, given: Option<Binaries>) -> Result<()> {
    let recorded = lab.spec()?.binaries;
    let binaries = given
        .or(recorded)
        .context("the lab was started without binaries: name them")?;
    lab.load_plexus(image::PLEXUS, &binaries)?;
    lab.restart_plexus()
}

fn binaries(plexus: Option<PathBuf>, shim: Option<PathBuf>) -> Option<Binaries> {
    let (plexus, shim) = plexus.zip(shim)?;
    Some(Binaries { plexus, shim })
}

fn lab(which: &Which) -> Result<Lab> {
    Lab::open(Layout::of(&which.prefix)?.state())
}

fn kube(which: &Which) -> Result<Kube> {
    Kube::open(Layout::of(&which.prefix)?.state())
}

fn print_disagreements(disagreements: &[String]) -> ExitCode {
    for line in disagreements {
        println!("{line}");
    }
    ExitCode::from(u8::from(!disagreements.is_empty()))
}

fn rendered(output: &plexus_kubekit::Output) -> ExitCode {
    print!("{}", output.stdout);
    eprint!("{}", output.stderr);
    ExitCode::from(u8::try_from(output.status).unwrap_or(1))
}

fn edit(text: &str) -> Result<(String, String), String> {
    let (from, to) = text.split_once("=>").ok_or("FROM=>TO expected")?;
    Ok((from.to_owned(), to.to_owned()))
}
