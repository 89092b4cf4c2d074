//! `plexus lab up`: its flags, and what it says when it is done or interrupted.

use super::progress::Progress;
use super::show;
use crate::value::{self, Cidrs};
use anyhow::{Context, bail};
use clap::Args;
use ipnet::IpNet;
use plexus_kernel::Signals;
use plexus_lab::{Layout, Programs, Topology, UpOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where plugins to execute are looked for, if there are any.
const DELEGATES: &str = "/opt/cni/bin";

/// The flags of `plexus lab up`.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// The nodes and their NICs, with the subnets of these, from a YAML file; `-` is standard input. Instead of --nodes
    /// and --nics.
    #[arg(short, long = "filename", value_name = "FILE", conflicts_with_all = ["nodes", "nics"])]
    file: Option<PathBuf>,
    /// How many nodes; a lab that has fewer gets more, default 3. At most 200.
    #[arg(long, value_parser = value::number::<1, 200>)]
    nodes: Option<u16>,
    /// NICs of each node besides eth0, each on a network of its own; default 2, at most 8.
    #[arg(long, value_parser = value::number::<0, 8>)]
    nics: Option<u16>,
    /// The default network's subnets, comma-separated; default 10.244.0.0/16,fd00:244::/56.
    #[arg(long, value_delimiter = ',', value_parser = value::cidr)]
    subnets: Vec<IpNet>,
    /// The ranges that the subnets of `routed` Networks must be in, comma-separated, nothing for none; default: private and
    /// unique local addresses.
    #[arg(long, value_parser = value::cidrs)]
    allowed_subnets: Option<Cidrs>,
    /// Seconds that a Node must have been gone before its blocks return, from 1 to 3600; default 10.
    #[arg(long, value_parser = value::number::<1, 3600>)]
    node_grace: Option<u16>,
    /// The kubeconfig that gets the context `plexus-lab-NAME`; default: that of KUBECONFIG, else ~/.kube/config.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The plexus-cni that nodes get; default: the one beside this program.
    #[arg(long, env = "PLEXUS_CNI_BIN")]
    shim: Option<PathBuf>,
    /// Directory of the plugins to execute; default /opt/cni/bin, if it is there.
    #[arg(long)]
    delegate_bin_dir: Option<PathBuf>,
}

pub(super) fn run(lab: &Layout, flags: Flags) -> anyhow::Result<()> {
    let start = Instant::now();
    print_if_interrupted(lab)?;
    let programs = programs(&flags)?;
    let small = |number: u16| u8::try_from(number).unwrap_or(u8::MAX);
    let options = UpOptions {
        nodes: flags.nodes.map(small),
        nics: flags.nics.map(small),
        topology: flags.file.as_deref().map(topology).transpose()?,
        subnets: flags.subnets,
        allowed_subnets: flags.allowed_subnets.map(|ranges| ranges.0),
        node_grace: flags.node_grace,
    };
    let wanted = match &options.topology {
        Some(topology) => Some(topology.node_count()),
        None => flags.nodes.map(usize::from),
    };
    let mut progress = Progress::new(start);
    let spec = plexus_lab::up(lab, &options, programs, &mut |step| {
        progress.print_step(&step)
    });
    progress.end();
    let spec = spec?;
    let said = super::context_of(lab, flags.kubeconfig.as_deref())?.put(&lab.kubeconfig())?;
    let said = match said {
        Some(said) => format!("{said}\n"),
        None => format!("  export KUBECONFIG={}\n", lab.kubeconfig().display()),
    };
    let more = match wanted {
        Some(wanted) if wanted < spec.nodes.len() => {
            "; it has had more nodes before: `plexus lab remove-node` takes one away"
        }
        _ => "",
    };
    let which = match is_usual(lab) {
        true => String::new(),
        false => format!("  export PLEXUS_LAB={}\n", lab.name()),
    };
    let nics = match spec.further_nics() {
        (least, most) if least == most => most.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    show::print(&format!(
        "lab {} is up: {} nodes with eth0 and {nics} further NICs ({:.1} s){more}\n\
         {said}\n{which}  plexus lab run web --node n1\n  plexus lab exec web -- ip addr\n  \
         plexus lab status\n  plexus lab down\n",
        lab.name(),
        spec.nodes.len(),
        start.elapsed().as_secs_f64(),
    ))
}

/// What the file says.
fn topology(path: &Path) -> anyhow::Result<Topology> {
    let (name, text) = match path == Path::new("-") {
        true => {
            let text = std::io::read_to_string(std::io::stdin());
            ("standard input".to_owned(), text)
        }
        false => (path.display().to_string(), std::fs::read_to_string(path)),
    };
    let text = text.with_context(|| format!("cannot read {name}: is it there, and a text?"))?;
    Ok(Topology::parse(&name, &text)?)
}

/// Whether it is the lab that is meant if none is named.
fn is_usual(lab: &Layout) -> bool {
    lab.name().as_str() == super::USUAL
}

/// Ctrl-C ends whoever waits; what has been made of the lab stays, and it is said what to do with it.
fn print_if_interrupted(lab: &Layout) -> anyhow::Result<()> {
    let signals = Signals::block().context("cannot block signals")?;
    let lab = match is_usual(lab) {
        true => String::new(),
        false => format!(" --lab {}", lab.name()),
    };
    std::thread::spawn(move || {
        let Ok(signal) = signals.wait() else {
            return;
        };
        let text = format!(
            "\ninterrupted: what was begun of the lab stays, and may come up by itself; `plexus lab{lab} up` goes on \
             with it, `plexus lab{lab} down` removes it\n"
        );
        let _ = std::io::stderr().write_all(text.as_bytes());
        std::process::exit(128 + signal);
    });
    Ok(())
}

fn programs(flags: &Flags) -> anyhow::Result<Programs> {
    let plexus = std::env::current_exe().context("cannot find this program's own file")?;
    let shim = flags.shim.clone().or_else(plexus_agent::shim_beside_us);
    let Some(shim) = shim else {
        bail!(
            "there is no plexus-cni beside {}: name it with --shim",
            plexus.display()
        );
    };
    let shim = shim
        .canonicalize()
        .with_context(|| format!("cannot find --shim {}", shim.display()))?;
    let usual = Path::new(DELEGATES);
    let delegates = match &flags.delegate_bin_dir {
        Some(dir) => Some(
            dir.canonicalize()
                .with_context(|| format!("cannot find --delegate-bin-dir {}", dir.display()))?,
        ),
        None => usual.is_dir().then(|| usual.to_owned()),
    };
    Ok(Programs {
        plexus,
        shim,
        delegates,
    })
}
