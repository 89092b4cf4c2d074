//! `plexus apply`.

use super::files::{FileFlags, objects};
use super::server::ServerFlags;
use super::{code, print};
use anyhow::bail;
use clap::Args;
use plexus_api::manifest::Level;
use plexus_cli::client::{in_order, shown, shown_in};
use plexus_cli::text::Screen;
use plexus_cli::validate::validate;
use serde_json::Value;
use std::process::ExitCode;

/// The flags of `plexus apply`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    files: FileFlags,
    #[command(flatten)]
    server: ServerFlags,
    /// Take over fields that others own.
    #[arg(long)]
    force_conflicts: bool,
    /// Let the server check everything, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Send also what this program thinks is wrong.
    #[arg(long)]
    skip_validation: bool,
}

pub(super) fn run(flags: &Flags) -> anyhow::Result<ExitCode> {
    let sources = flags.files.sources()?;
    let report = validate(&sources);
    if !report.is_valid() && !flags.skip_validation {
        let problems = report.only(&[Level::Problem]);
        eprint!("{}", problems.render(Screen::stderr()));
        bail!("nothing was applied: correct what is said above, or use --skip-validation");
    }
    let mut objects = objects(sources)?;
    for object in &mut objects {
        match plexus_api::translate(object) {
            Ok(said) => {
                for said in said {
                    eprintln!("{}: {said}", shown(object));
                }
            }
            Err(text) => bail!("{}: spec.networks: {text}", shown(object)),
        }
    }
    let session = flags.server.session()?;
    let namespace = flags.server.namespace(&session);
    let mut well = true;
    let mut defined = false;
    for number in in_order(&objects) {
        let Some(object) = objects.get(number) else {
            continue;
        };
        let patience = defined && !flags.dry_run;
        let (force, dry_run) = (flags.force_conflicts, flags.dry_run);
        match session.apply(object, &namespace, force, dry_run, patience) {
            Ok(applied) => {
                let suffix = if dry_run { " (dry run)" } else { "" };
                let what = shown_in(object, &namespace);
                print(&format!("{what} {}{suffix}\n", applied.word()))?;
                if let Some(text) = plexus_api::later::waits(object) {
                    eprintln!("{}: {text}", shown(object));
                }
                defined |= object.get("kind") == Some(&Value::from("CustomResourceDefinition"));
            }
            Err(error) => {
                well = false;
                eprintln!("plexus: {}", crate::chain(&anyhow::Error::from(error)));
            }
        }
    }
    Ok(code(well))
}
