//! `plexus diagnose`.

use super::server::{ClusterFlags, ServerFlags, around, print_unknown};
use super::{Structured, print, structured};
use crate::value::KindWords;
use anyhow::{anyhow, bail};
use clap::Args;
use plexus_cli::diagnose::{
    Diagnosis, diagnose_holder, diagnose_later, diagnose_nad, diagnose_network, diagnose_pod,
};
use plexus_cli::holder::Holder;
use plexus_cli::kinds::{self, Kind};
use plexus_cli::snapshot::{Snapshot, find, name as name_of, namespace as namespace_of, text};
use plexus_cli::text::Screen;
use std::process::ExitCode;

/// The flags of `plexus diagnose`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// pod, network, nad, or a kind of later versions.
    #[arg(value_parser = KindWords(|| vec!["pod", "network", "nad"]), hide_possible_values = true)]
    kind: String,
    /// Its name, as [NAMESPACE/]NAME; of a container on `plexus up` also 4 characters of its id, or more.
    name: String,
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
    let session = flags.server.session()?;
    let namespaced_name = flags.server.namespace_and_name(&session, &flags.name)?;
    let snapshot = around(&session, &kind, &namespaced_name, &flags.cluster)?;
    let (namespace, name) = namespaced_name;
    print_unknown([&snapshot]);
    let diagnosed = diagnosed(&kind, &snapshot, &namespace, &name)?;
    let text = || diagnosed.render(Screen::stdout());
    print(&structured(flags.output, || diagnosed.to_json(), text))?;
    Ok(ExitCode::SUCCESS)
}

fn diagnosed(
    kind: &Kind,
    snapshot: &Snapshot,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Diagnosis> {
    let within = kind.namespaced.then_some(namespace);
    let hidden = |lists: &[&str]| lists.iter().find_map(|list| snapshot.hidden(list, within));
    let missing = |lists: &[&str]| match hidden(lists) {
        Some(why) => anyhow!(
            "whether there is a {} {namespace}/{name} is not known: {why}",
            kind.kind
        ),
        None if kind.namespaced => anyhow!(
            "there is no {} {namespace}/{name}: plexus get {} -A lists all",
            kind.kind,
            kind.plural
        ),
        None => anyhow!(
            "there is no {} {name}: plexus get {} lists all",
            kind.kind,
            kind.plural
        ),
    };
    let later = |kind: &Kind| {
        let mut all = snapshot.waiting.iter();
        all.find(|object| {
            let here = !kind.namespaced || namespace_of(object) == namespace;
            text(object, "/kind") == kind.kind && name_of(object) == name && here
        })
    };
    match kind.kind {
        "Pod" => match find(&snapshot.pods, namespace, name) {
            Some(pod) => Ok(diagnose_pod(snapshot, pod)),
            None => Holder::find(snapshot, namespace, name)
                .map_err(anyhow::Error::msg)?
                .map(|holder| diagnose_holder(snapshot, holder))
                .ok_or_else(|| missing(&["pods", "attachments"])),
        },
        // People say network of whatever a pod names.
        "Network" => find(&snapshot.networks, namespace, name)
            .map(|network| diagnose_network(snapshot, network))
            .or_else(|| {
                find(&snapshot.nads, namespace, name).map(|nad| diagnose_nad(snapshot, nad))
            })
            .or_else(|| {
                let found = later(&kinds::find("MultiNicNetwork").ok()?);
                found.map(|object| diagnose_later(snapshot, object))
            })
            .ok_or_else(|| missing(&["networks", "nads"])),
        "NetworkAttachmentDefinition" => find(&snapshot.nads, namespace, name)
            .map(|nad| diagnose_nad(snapshot, nad))
            .ok_or_else(|| missing(&["nads"])),
        _ if kind.is_later() => later(kind)
            .map(|object| diagnose_later(snapshot, object))
            .ok_or_else(|| missing(&["waiting"])),
        _ => bail!(
            "there is nothing to diagnose about {}: plexus get {} shows all of it",
            kind.plural,
            kind.plural
        ),
    }
}
