//! `plexus lab up`: its flags, and progress while it works.

use super::show;
use crate::value;
use anyhow::{Context, bail};
use clap::Args;
use ipnet::IpNet;
use plexus_lab::{Layout, Programs, Step, Wish};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where plugins to execute are looked for, if there are any.
const DELEGATES: &str = "/opt/cni/bin";

/// The flags of `plexus lab up`.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// How many nodes; a lab that has fewer gets more, default 3. At most 200.
    #[arg(long, value_parser = value::number::<1, 200>)]
    nodes: Option<u16>,
    /// NICs of each node besides eth0, each on a network of its own; default 2, at most 8.
    #[arg(long, value_parser = value::number::<0, 8>)]
    nics: Option<u16>,
    /// The default network's subnets, comma-separated; default 10.244.0.0/16,fd00:244::/56.
    #[arg(long, value_delimiter = ',', value_parser = value::cidr)]
    subnets: Vec<IpNet>,
    /// Seconds that a Node must have been gone before its blocks return, from 1 to 3600; default 10.
    #[arg(long, value_parser = value::number::<1, 3600>)]
    node_grace: Option<u16>,
    /// The plexus-cni that nodes get; default: the one beside this program.
    #[arg(long, env = "PLEXUS_CNI_BIN")]
    shim: Option<PathBuf>,
    /// Directory of the plugins to execute; default /opt/cni/bin, if it is there.
    #[arg(long)]
    delegate_bin_dir: Option<PathBuf>,
}

pub(super) fn run(lab: &Layout, flags: Flags) -> anyhow::Result<()> {
    let start = Instant::now();
    let programs = programs(&flags)?;
    let small = |number: u16| u8::try_from(number).unwrap_or(u8::MAX);
    let wish = Wish {
        nodes: flags.nodes.map(small),
        nics: flags.nics.map(small),
        subnets: flags.subnets,
        node_grace: flags.node_grace,
    };
    let mut progress = Progress::new(start);
    let spec = plexus_lab::up(lab, &wish, programs, &mut |step| progress.tell(&step));
    progress.end();
    let spec = spec?;
    let more = match flags.nodes.map(usize::from) {
        Some(wanted) if wanted < spec.nodes.len() => {
            "; it has had more nodes before: `plexus lab remove-node` takes one away"
        }
        _ => "",
    };
    let which = match lab.name().to_string() == super::USUAL {
        true => String::new(),
        false => format!("  export PLEXUS_LAB={}\n", lab.name()),
    };
    show::print(&format!(
        "lab {} is up: {} nodes with eth0 and {} further NICs ({:.1} s){more}\n\
         \n{which}  export KUBECONFIG={}\n  plexus lab run web --node n1\n  plexus lab exec web -- ip addr\n  \
         plexus lab status\n  plexus lab down\n",
        lab.name(),
        spec.nodes.len(),
        spec.nics,
        start.elapsed().as_secs_f64(),
        lab.kubeconfig().display(),
    ))
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

/// Lines for what has been reached; on a terminal the nodes are counted in one line.
struct Progress {
    start: Instant,
    nodes: usize,
    ready: usize,
    terminal: bool,
}

impl Progress {
    fn new(start: Instant) -> Self {
        Self {
            start,
            nodes: 0,
            ready: 0,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    fn tell(&mut self, step: &Step) {
        match step {
            Step::Underlay { nodes, nics } => {
                self.nodes = *nodes;
                let wires = nodes * (usize::from(*nics) + 1);
                self.line(&format!("{nodes} nodes joined by {wires} wires"));
            }
            Step::Ready(name) if name.ends_with("-agent") => {
                self.ready += 1;
                let text = format!("{} of {} agents ready", self.ready, self.nodes);
                if self.terminal && self.ready < self.nodes {
                    self.write(&format!("\r  {text}"));
                } else if self.ready == self.nodes {
                    self.line(&text);
                }
            }
            Step::Ready(name) => self.line(&format!("{name} ready")),
        }
    }

    fn line(&self, text: &str) {
        let took = self.start.elapsed().as_secs_f64();
        let begin = if self.terminal { "\r" } else { "" };
        self.write(&format!("{begin}  {text} ({took:.1} s)\n"));
    }

    fn end(&self) {
        if self.terminal && self.ready > 0 && self.ready < self.nodes {
            self.write("\n");
        }
    }

    /// Who does not want to see it does not stop us.
    fn write(&self, text: &str) {
        let mut out = std::io::stderr();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}
