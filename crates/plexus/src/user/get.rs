//! `plexus get`.

use super::server::{ScopedFlags, print_unknown, snapshot};
use super::{Output, print};
use crate::value::{KindWords, every_kind};
use clap::Args;
use plexus_cli::client::Need;
use plexus_cli::get::{TableOptions, chosen, none, render, table};
use plexus_cli::kinds::{self, Kind};
use plexus_cli::output::{Form, objects};
use plexus_cli::snapshot::name;
use plexus_cli::text::Screen;
use serde_json::Value;
use std::process::ExitCode;

/// The flags of `plexus get`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The kinds, comma-separated: networks, pods, blocks, nodes, attachments, nads, …
    #[arg(value_parser = KindWords(every_kind), hide_possible_values = true)]
    pub(super) kinds: String,
    /// Only these.
    pub(super) name: Vec<String>,
    /// Only those with these labels: KEY=VALUE, …
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(super) selector: Option<String>,
    /// After the list, follow what changes: a row for each object that changed or was deleted.
    #[arg(short, long)]
    watch: bool,
    /// In another form.
    #[arg(short, long, value_enum)]
    pub(super) output: Option<Output>,
    #[command(flatten)]
    pub(super) scope: ScopedFlags,
}

pub(super) fn run(flags: &Flags) -> anyhow::Result<ExitCode> {
    let found: Result<Vec<Kind>, String> = flags.kinds.split(',').map(kinds::find).collect();
    let found = found.map_err(anyhow::Error::msg)?;
    for name in &flags.name {
        // The namespace beside it must not be another.
        let _ = flags.scope.server.written_place(name)?;
    }
    let session = flags.scope.server.session()?;
    if flags.watch {
        return super::watch::run(flags, &found, &session);
    }
    let namespace = flags.scope.server.namespace(&session);
    let elsewhere = flags.name.iter().any(|name| name.contains('/'));
    let all = flags.scope.all_namespaces;
    let within = (!all && !elsewhere).then_some(namespace.as_str());
    let form = Output::form(flags.output);
    let mut all_objects = Vec::new();
    for (number, kind) in found.iter().enumerate() {
        let listed = session.list(kind, within, flags.selector.as_deref())?;
        let inside = (!all).then_some(namespace.as_str());
        let chosen = chosen(kind, &listed, inside, &flags.name).map_err(anyhow::Error::msg)?;
        if matches!(form, Form::Json | Form::Yaml) {
            all_objects.extend(chosen.into_iter().cloned());
            continue;
        }
        if form == Form::Name {
            let named = |object: &&Value| kind.named(name(object)) + "\n";
            print(&chosen.iter().map(named).collect::<String>())?;
            continue;
        }
        if number > 0 {
            print("\n")?;
        }
        if chosen.is_empty() {
            eprint!("{}", none(kind, within));
            continue;
        }
        let snapshot = snapshot(&session, beside(kind), within)?;
        print_unknown([&snapshot]);
        let options = TableOptions {
            wide: form == Form::Wide,
            namespaces: all || elsewhere,
            watch: false,
        };
        print(&render(
            &table(kind, &chosen, &snapshot, options),
            Screen::stdout(),
        ))?;
    }
    let single = flags.name.len() == 1 && found.len() == 1;
    if let Some(text) = objects(form, &all_objects, single) {
        print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What a kind's table shows beside its objects.
pub(super) fn beside(kind: &Kind) -> &'static [Need] {
    match kind.kind {
        "Pod" => &[Need::Records],
        "Network" => &[Need::Blocks, Need::Records],
        "Block" => &[Need::Networks, Need::Records],
        "Node" => &[Need::Blocks, Need::Records],
        "ResourceClaim" | "ResourceClaimTemplate" => &[Need::Classes],
        _ => &[],
    }
}
