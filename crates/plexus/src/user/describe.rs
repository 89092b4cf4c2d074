//! `plexus describe`.

use super::server::{ClusterFlags, ServerFlags, mention_unknown, world};
use super::{Structured, code, print, structured};
use crate::value::KindWords;
use anyhow::{anyhow, bail};
use clap::Args;
use plexus_cli::client::{Need, Session};
use plexus_cli::describe::{Description, describe_holder, describe_network, describe_pod};
use plexus_cli::holder::Holder;
use plexus_cli::kinds::{self, Kind};
use plexus_cli::text::Screen;
use plexus_cli::world::{World, find};
use std::process::ExitCode;

/// The flags of `plexus describe`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// pod or network.
    #[arg(value_parser = KindWords(|| vec!["pod", "network"]), hide_possible_values = true)]
    kind: String,
    /// Their names, as [NAMESPACE/]NAME; of a container on `plexus up` also 4 characters of its id, or more.
    #[arg(required = true)]
    name: Vec<String>,
    /// In another form.
    #[arg(short, long, value_enum)]
    output: Option<Structured>,
    #[command(flatten)]
    cluster: ClusterFlags,
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
    let screen = match flags.output {
        None => Screen::stdout(),
        Some(_) => Screen::PIPE,
    };
    let (mut found, mut failed, mut worlds) = (Vec::new(), Vec::new(), Vec::new());
    for named in &flags.name {
        let described = look(flags, &session, named).and_then(|(place, world)| {
            let described = described(&kind, &world, &place, screen);
            worlds.push(world);
            described
        });
        match described {
            Ok(described) => found.push(described),
            Err(error) => failed.push(error),
        }
    }
    mention_unknown(&worlds);
    let value = || found.iter().map(Description::to_json).collect();
    let text = || {
        let each = found.iter().map(|one| one.render(screen));
        each.collect::<Vec<_>>().join("\n")
    };
    if !found.is_empty() {
        print(&structured(flags.output, value, text))?;
    }
    for error in &failed {
        eprintln!("plexus: {}", crate::chain(error));
    }
    Ok(code(failed.is_empty()))
}

/// Where an object is by its name, and what there is around it.
fn look(
    flags: &Flags,
    session: &Session,
    named: &str,
) -> anyhow::Result<((String, String), World)> {
    let place = flags.server.place(session, named)?;
    let mut world = world(session, &Need::ALL, Some(&place.0))?;
    world.cluster_name = Some(flags.cluster.cluster_name.clone());
    Ok((place, world))
}

fn described(
    kind: &Kind,
    world: &World,
    (namespace, name): &(String, String),
    screen: Screen,
) -> anyhow::Result<Description> {
    let (found, lists) = match kind.kind {
        "Pod" => {
            let found = match find(&world.pods, namespace, name) {
                Some(pod) => Some(describe_pod(world, pod)),
                None => Holder::find(world, namespace, name)
                    .map_err(anyhow::Error::msg)?
                    .map(|holder| describe_holder(world, holder)),
            };
            (found, &["pods", "attachments"][..])
        }
        _ => {
            let found = find(&world.networks, namespace, name);
            let found = found.map(|network| describe_network(world, network, screen));
            (found, &["networks"][..])
        }
    };
    let hidden = lists
        .iter()
        .find_map(|list| world.hidden(list, Some(namespace)));
    found.ok_or_else(|| match hidden {
        Some(why) => anyhow!(
            "whether there is a {} {namespace}/{name} is not known: {why}",
            kind.kind
        ),
        None => anyhow!("there is no {} {namespace}/{name}", kind.kind),
    })
}
