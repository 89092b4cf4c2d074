//! `plexus describe`.

use super::print;
use super::server::{ServerFlags, mention_unknown, world};
use anyhow::{anyhow, bail};
use clap::Args;
use plexus_cli::client::Need;
use plexus_cli::describe::{describe_network, describe_pod};
use plexus_cli::kinds;
use plexus_cli::text::Screen;
use plexus_cli::world::find;
use std::process::ExitCode;

/// The flags of `plexus describe`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// pod or network.
    kind: String,
    /// Their names, as [NAMESPACE/]NAME.
    #[arg(required = true)]
    name: Vec<String>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) fn run(flags: &Flags) -> anyhow::Result<ExitCode> {
    let kind = kinds::find(&flags.kind).map_err(anyhow::Error::msg)?;
    if !["Pod", "Network"].contains(&kind.kind) {
        bail!(
            "describe is for pods and networks: plexus get {} {} -o yaml shows all of it",
            kind.plural,
            flags.name.join(" ")
        );
    }
    let session = flags.server.session()?;
    let screen = Screen::stdout();
    for (number, named) in flags.name.iter().enumerate() {
        let (namespace, name) = flags.server.place(&session, named)?;
        let world = world(&session, &Need::ALL, Some(&namespace))?;
        mention_unknown(&world);
        let objects = match kind.kind {
            "Pod" => &world.pods,
            _ => &world.networks,
        };
        let missing = || match world.unknown.get(kind.plural) {
            Some(why) => anyhow!("{why}"),
            None => anyhow!("there is no {} {namespace}/{name}", kind.kind),
        };
        let object = find(objects, &namespace, &name).ok_or_else(missing)?;
        if number > 0 {
            print("\n")?;
        }
        print(&match kind.kind {
            "Pod" => describe_pod(&world, object, screen),
            _ => describe_network(&world, object, screen),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}
