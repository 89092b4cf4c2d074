//! `plexus describe`.

use super::server::{ClusterFlags, ServerFlags, around, print_unknown};
use super::{Structured, code, print, structured};
use crate::value::KindWords;
use anyhow::{anyhow, bail};
use clap::Args;
use plexus_cli::client::Session;
use plexus_cli::describe::{Description, describe_holder, describe_network, describe_pod};
use plexus_cli::holder::Holder;
use plexus_cli::kinds::{self, Kind};
use plexus_cli::snapshot::{Snapshot, find};
use plexus_cli::text::Screen;
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
        let described =
            fetch(flags, &kind, &session, named).and_then(|(namespaced_name, snapshot)| {
                let described = described(&kind, &snapshot, &namespaced_name, screen);
                worlds.push(snapshot);
                described
            });
        match described {
            Ok(described) => found.push(described),
            Err(error) => failed.push(error),
        }
    }
    print_unknown(&worlds);
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
fn fetch(
    flags: &Flags,
    kind: &Kind,
    session: &Session,
    named: &str,
) -> anyhow::Result<((String, String), Snapshot)> {
    let namespaced_name = flags.server.namespace_and_name(session, named)?;
    let snapshot = around(session, kind, &namespaced_name, &flags.cluster)?;
    Ok((namespaced_name, snapshot))
}

fn described(
    kind: &Kind,
    snapshot: &Snapshot,
    (namespace, name): &(String, String),
    screen: Screen,
) -> anyhow::Result<Description> {
    let (found, lists) = match kind.kind {
        "Pod" => {
            let found = match find(&snapshot.pods, namespace, name) {
                Some(pod) => Some(describe_pod(snapshot, pod)),
                None => Holder::find(snapshot, namespace, name)
                    .map_err(anyhow::Error::msg)?
                    .map(|holder| describe_holder(snapshot, holder)),
            };
            (found, &["pods", "attachments"][..])
        }
        _ => {
            let found = find(&snapshot.networks, namespace, name);
            let found = found.map(|network| describe_network(snapshot, network, screen));
            (found, &["networks"][..])
        }
    };
    let hidden = lists
        .iter()
        .find_map(|list| snapshot.hidden(list, Some(namespace)));
    found.ok_or_else(|| match hidden {
        Some(why) => anyhow!(
            "whether there is a {} {namespace}/{name} is not known: {why}",
            kind.kind
        ),
        None => anyhow!("there is no {} {namespace}/{name}", kind.kind),
    })
}
