//! `plexus ipam`.

use super::server::{ServerFlags, snapshot};
use super::{Structured, print, structured};
use anyhow::anyhow;
use clap::{Args, Subcommand};
use plexus_cli::client::Need;
use plexus_cli::ipam::{show, to_json};
use plexus_cli::snapshot::find;
use plexus_cli::text::Screen;
use std::process::ExitCode;

/// What about addresses.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// How full a network is: by subnet, node and block.
    Show(Flags),
}

/// The flags of `plexus ipam show`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The network, as [NAMESPACE/]NAME.
    network: String,
    /// In another form.
    #[arg(short, long, value_enum)]
    output: Option<Structured>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) fn run(what: &What) -> anyhow::Result<ExitCode> {
    let What::Show(flags) = what;
    let session = flags.server.session()?;
    let (namespace, name) = flags.server.namespace_and_name(&session, &flags.network)?;
    let needs = [Need::Networks, Need::Blocks, Need::Requests, Need::Records];
    let snapshot = snapshot(&session, &needs, None)?;
    if let Some(why) = snapshot.unknown.values().next() {
        return Err(anyhow!("{why}"));
    }
    let network = find(&snapshot.networks, &namespace, &name)
        .ok_or_else(|| anyhow!("there is no Network {namespace}/{name}: plexus get networks -A"))?;
    let unreadable = |error| anyhow!("Network {namespace}/{name} cannot be read: {error}");
    let text = show(network, &snapshot, Screen::stdout()).map_err(unreadable)?;
    let value = to_json(network, &snapshot).map_err(unreadable)?;
    print(&structured(flags.output, || value, || text))?;
    Ok(ExitCode::SUCCESS)
}
