//! `plexus apply`.

use super::files::{FileFlags, objects};
use super::server::ServerFlags;
use super::{DryRun, code, print};
use anyhow::bail;
use clap::Args;
use plexus_api::later::{self, Classes};
use plexus_api::manifest::{Level, describe_kind};
use plexus_cli::client::{Session, in_order, object_name, object_name_in};
use plexus_cli::kinds;
use plexus_cli::snapshot::name;
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
    /// Change nothing: `client` says what is there already, `server` lets the server check everything.
    #[arg(
        long,
        value_enum,
        value_name = "MODE",
        require_equals = true,
        default_value_t,
        hide_default_value = true
    )]
    dry_run: DryRun,
    /// Send also what this program thinks is wrong.
    #[arg(long)]
    skip_validation: bool,
}

pub(super) fn run(flags: &Flags) -> anyhow::Result<ExitCode> {
    let sources = flags.files.sources()?;
    let session = flags.server.session();
    let namespace = match &session {
        Ok(session) => flags.server.namespace(session),
        // What is wrong with the files is said first.
        Err(_) => flags.server.written_namespace(),
    };
    let report = validate(&sources, &namespace);
    if !report.is_valid() && !flags.skip_validation {
        let problems = report.only(&[Level::Problem]);
        eprint!("{}", problems.render(Screen::stderr()));
        bail!("nothing was applied: correct what is said above, or use --skip-validation");
    }
    let mut objects = objects(sources)?;
    for object in &mut objects {
        match plexus_api::translate(object) {
            Ok(notes) => {
                for notes in notes {
                    eprintln!("{}: {notes}", object_name(object));
                }
            }
            Err(text) => bail!("{}: spec.networks: {text}", object_name(object)),
        }
    }
    named(&objects)?;
    let session = session?;
    let classes = classes(&session, &objects);
    let mut well = true;
    let mut defined = false;
    for number in in_order(&objects) {
        let Some(object) = objects.get(number) else {
            continue;
        };
        let wait_for_kind = defined && flags.dry_run == DryRun::None;
        let applied = match flags.dry_run {
            DryRun::Client => session.would_apply(object, &namespace),
            dry_run => session.apply(
                object,
                &namespace,
                flags.force_conflicts,
                dry_run == DryRun::Server,
                wait_for_kind,
            ),
        };
        match applied {
            Ok(applied) => {
                let suffix = flags.dry_run.suffix();
                let what = object_name_in(object, &namespace);
                print(&format!("{what} {}{suffix}\n", applied.word()))?;
                if let Some(text) = later::waits(object, &classes) {
                    eprintln!("{}: {text}", object_name(object));
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

/// What is applied is known by its name: a server makes up none for it.
fn named(objects: &[Value]) -> anyhow::Result<()> {
    let nameless = objects.iter().filter(|object| name(object).is_empty());
    let nameless: Vec<String> = nameless.map(describe_kind).collect();
    if nameless.is_empty() {
        return Ok(());
    }
    bail!(
        "nothing was applied: apply needs metadata.name, and there is none (generateName does not count) in {}: write \
         one, or use kubectl create",
        nameless.join(", ")
    )
}

/// The device classes by which a claim among the objects is ours: those of the server, as far as it shows them, and
/// those of the files, which replace them.
fn classes(session: &Session, objects: &[Value]) -> Classes {
    let mut kinds_of = objects.iter().filter_map(later::kind_of);
    let has_claim = kinds_of.any(|later| later.kind.starts_with("ResourceClaim"));
    let kind = kinds::find("deviceclasses").ok().filter(|_| has_claim);
    let listed = kind.and_then(|kind| session.list(&kind, None, None).ok());
    Classes::of(listed.unwrap_or_default().iter().chain(objects))
}

#[cfg(test)]
mod tests {
    use super::named;
    use serde_json::json;

    #[test]
    fn what_has_no_name_is_refused_before_anything_is_applied() {
        let web = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}});
        let job = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "job-"}});
        assert!(named(std::slice::from_ref(&web)).is_ok());
        let notes = named(&[web, job]).unwrap_err().to_string();
        for words in ["nothing was applied", "Pod job-", "kubectl create"] {
            assert!(notes.contains(words), "{notes}");
        }
    }
}
