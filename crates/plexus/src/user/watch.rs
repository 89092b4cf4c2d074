//! `plexus get -w`: the list, then a row for each object that changes, until whoever reads has seen enough.

use super::Output;
use super::get::{Flags, beside};
use super::server::{print_unknown, snapshot};
use crate::out::print_to_reader;
use anyhow::bail;
use plexus_cli::client::Session;
use plexus_cli::get::{TableOptions, chosen, none, table};
use plexus_cli::kinds::Kind;
use plexus_cli::output::{Form, json_text, yaml_text};
use plexus_cli::snapshot::name;
use plexus_cli::text::Screen;
use serde_json::Value;
use std::process::ExitCode;

pub(super) fn run(flags: &Flags, kinds: &[Kind], session: &Session) -> anyhow::Result<ExitCode> {
    let [kind] = kinds else {
        bail!(
            "--watch follows one kind: {} are {}",
            flags.kinds,
            kinds.len()
        );
    };
    let namespace = flags.scope.server.namespace(session);
    let elsewhere = flags.name.iter().any(|name| name.contains('/'));
    let all = flags.scope.all_namespaces;
    let within = (!all && !elsewhere).then_some(namespace.as_str());
    let mut rows = Rows {
        kind,
        form: Output::form(flags.output),
        options: TableOptions {
            wide: flags.output == Some(Output::Wide),
            namespaces: all || elsewhere,
            watch: true,
        },
        widths: None,
    };
    let inside = (!all).then_some(namespace.as_str());
    let mut followed = session.follow(kind, within, flags.selector.as_deref());
    let first = followed.next_changes()?;
    let mut told = chosen(kind, &first, inside, &flags.name).map_err(anyhow::Error::msg)?;
    if told.is_empty() {
        eprint!("{}", none(kind, within));
    }
    let mut next;
    loop {
        let beside = || -> anyhow::Result<_> {
            let snapshot = snapshot(session, beside(kind), within)?;
            print_unknown([&snapshot]);
            Ok(snapshot)
        };
        if !told.is_empty() && !print_to_reader(&rows.text(&told, beside)?)? {
            return Ok(ExitCode::SUCCESS);
        }
        next = followed.next_changes()?;
        // What is not named is nobody's business; that one of the names is not among these is no failure now.
        told = match flags.name.is_empty() {
            true => chosen(kind, &next, inside, &[]).map_err(anyhow::Error::msg)?,
            false => flags
                .name
                .iter()
                .filter_map(|name| chosen(kind, &next, inside, std::slice::from_ref(name)).ok())
                .flatten()
                .collect(),
        };
    }
}

/// How objects are told.
struct Rows<'k> {
    kind: &'k Kind,
    form: Form,
    options: TableOptions,
    /// Those of the columns of the first table; none before there is one.
    widths: Option<Vec<usize>>,
}

impl Rows<'_> {
    fn text(
        &mut self,
        objects: &[&Value],
        beside: impl FnOnce() -> anyhow::Result<plexus_cli::snapshot::Snapshot>,
    ) -> anyhow::Result<String> {
        let each = |text: &dyn Fn(&Value) -> String| objects.iter().map(|one| text(one)).collect();
        Ok(match self.form {
            Form::Json => each(&json_text),
            Form::Yaml => each(&|object| format!("---\n{}", yaml_text(object))),
            Form::Name => each(&|object| self.kind.named(name(object)) + "\n"),
            Form::Table | Form::Wide => {
                let table = table(self.kind, objects, &beside()?, self.options);
                // Rows that come later may be longer than a terminal is wide.
                let screen = Screen {
                    width: None,
                    ..Screen::stdout()
                };
                match &self.widths {
                    Some(widths) => table.render_rows(widths, screen),
                    None => {
                        self.widths = Some(table.widths());
                        table.render(screen)
                    }
                }
            }
        })
    }
}
