//! What a lab is asked to be. Kept beside the lab, so that a part that is started again is started
//! the same way.

use crate::layout::{Layout, MAX_NODES};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// How kube-proxy programs the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ProxyMode {
    /// nftables.
    Nftables,
    /// iptables.
    Iptables,
}

/// Whether the cluster gives each node a range for its pods (`Node.spec.podCIDRs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum PodCidrs {
    /// The controller-manager does.
    Node,
    /// Nobody does.
    None,
}

/// Who connects the pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Cni {
    /// Plexus, installed by its manifest; until then the nodes have no configuration.
    Plexus,
    /// The reference plugins `bridge` and `host-local`, with routes between the nodes.
    Bridge,
    /// Nobody: the nodes stay without a configuration, and not ready.
    None,
}

/// Our binaries, for the image that the manifest names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binaries {
    /// The `plexus` program.
    pub plexus: PathBuf,
    /// The static shim `plexus-cni`.
    pub shim: PathBuf,
}

/// A lab to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The lab's name, part of the name of everything that it makes.
    pub prefix: String,
    /// Its nodes, `n1` and so on.
    pub nodes: BTreeSet<String>,
    /// How Services are made.
    pub proxy: ProxyMode,
    /// Who gives ranges to the nodes.
    pub pod_cidrs: PodCidrs,
    /// Who connects the pods.
    pub cni: Cni,
    /// For the image; needed if `cni` is Plexus.
    pub binaries: Option<Binaries>,
    /// What to apply if `cni` is Plexus.
    pub manifest: Option<PathBuf>,
    /// Replacements in the manifest before it is applied: each text must be there.
    pub edits: Vec<(String, String)>,
    /// Further flags of the API server.
    pub api_flags: Vec<String>,
    /// Further flags of the controller-manager.
    pub controller_flags: Vec<String>,
}

impl Spec {
    /// A lab of this many nodes, with the reference plugins.
    pub fn new(prefix: &str, nodes: u8) -> Result<Self> {
        if !(1..=MAX_NODES).contains(&nodes) {
            bail!("{nodes} nodes: 1 to {MAX_NODES} are possible");
        }
        Ok(Self {
            prefix: prefix.to_owned(),
            nodes: (1..=nodes).map(|index| format!("n{index}")).collect(),
            proxy: ProxyMode::Nftables,
            pod_cidrs: PodCidrs::Node,
            cni: Cni::Bridge,
            binaries: None,
            manifest: None,
            edits: Vec::new(),
            api_flags: Vec::new(),
            controller_flags: Vec::new(),
        })
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.cni == Cni::Plexus && (self.binaries.is_none() || self.manifest.is_none()) {
            bail!(
                "Plexus needs its binaries and its manifest: name them, or choose another CNI \
                 (`--cni bridge`)"
            );
        }
        Ok(())
    }

    pub(crate) fn read(layout: &Layout) -> Result<Self> {
        let path = layout.record();
        let failed = || format!("no lab in {}: start one", layout.state().display());
        let text = fs::read_to_string(&path).with_context(failed)?;
        serde_json::from_str(&text).with_context(|| format!("cannot read {}", path.display()))
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<()> {
        let path = layout.record();
        let partial = path.with_extension("partial");
        let write = || -> Result<()> {
            fs::write(&partial, serde_json::to_vec_pretty(self)?)?;
            Ok(fs::rename(&partial, &path)?)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}
