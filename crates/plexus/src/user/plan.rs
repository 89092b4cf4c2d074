//! `plexus plan`.

use super::files::{FileFlags, objects};
use super::server::ClusterFlags;
use super::{code, print};
use crate::value::{self, Cidrs};
use anyhow::bail;
use clap::Args;
use plexus_cli::plan::{DescribedNode, plan};
use plexus_cli::text::Screen;
use plexus_types::IfName;
use std::net::IpAddr;
use std::process::ExitCode;

/// The flags of `plexus plan`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    files: FileFlags,
    /// The node's name.
    #[arg(long, default_value = "n1")]
    node: String,
    /// The node's address on the underlay.
    #[arg(long, default_value = "192.0.2.1")]
    node_ip: IpAddr,
    /// The link of the node's default route.
    #[arg(long, default_value = "eth0")]
    uplink: IfName,
    /// MTU of that link.
    #[arg(long, default_value_t = 1500, value_parser = value::number::<576, 65535>)]
    mtu: u16,
    /// The node's podCIDRs, comma-separated; none if another CNI makes the first interface.
    #[arg(long, default_value = "10.244.0.0/24", value_parser = value::cidrs)]
    pod_cidrs: Cidrs,
    /// The cluster's pod and service CIDRs, comma-separated.
    #[arg(long, default_value = "10.244.0.0/16,10.96.0.0/12", value_parser = value::cidrs)]
    cluster_cidrs: Cidrs,
    #[command(flatten)]
    cluster: ClusterFlags,
}

pub(super) fn run(flags: &Flags) -> anyhow::Result<ExitCode> {
    let objects = objects(flags.files.sources()?)?;
    let described = DescribedNode {
        node: flags.node.clone(),
        node_ip: flags.node_ip,
        uplink: flags.uplink.clone(),
        mtu: flags.mtu.into(),
        pod_cidrs: flags.pod_cidrs.0.clone(),
        cluster_cidrs: flags.cluster_cidrs.0.clone(),
        cluster_name: flags.cluster.cluster_name.clone(),
    };
    let planned = plan(objects, &described, Screen::stdout());
    if planned.pods == 0 {
        bail!("there is no pod in these files: add one, and the networks that it names");
    }
    print(&planned.text)?;
    Ok(code(planned.failed == 0))
}
