//! `plexus delete`.

use super::files::objects;
use super::server::ServerFlags;
use super::{code, print};
use crate::value::{KindWords, every_kind};
use anyhow::bail;
use clap::Args;
use plexus_cli::client::{Deleted, in_order, named, object_name_in};
use plexus_cli::input::sources;
use plexus_cli::kinds::{self, Kind};
use plexus_cli::snapshot::{condition, text};
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The flags of `plexus delete`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The kind: network, pod, nad, …
    #[arg(required_unless_present = "filename", requires = "name", value_parser = KindWords(every_kind), hide_possible_values = true)]
    kind: Option<String>,
    /// The names, each as [NAMESPACE/]NAME.
    name: Vec<String>,
    /// The objects of a file, a directory, or - for standard input; may be repeated.
    #[arg(short, long = "filename", value_name = "FILE", conflicts_with = "kind")]
    filename: Vec<PathBuf>,
    /// Look into the directories of a directory too.
    #[arg(short = 'R', long, requires = "filename")]
    recursive: bool,
    /// What is not there is no failure.
    #[arg(long)]
    ignore_not_found: bool,
    /// Wait until the objects are gone.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    wait: bool,
    /// How long to wait for each, such as 30s or 1m30s, at most 1h; it is a failure if it is not gone then.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = crate::value::duration)]
    timeout: Duration,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) fn run(flags: &Flags) -> anyhow::Result<ExitCode> {
    let objects = named_objects(flags)?;
    let session = flags.server.session()?;
    let namespace = flags.server.namespace(&session);
    let wait = flags.wait.then_some(flags.timeout);
    let mut well = true;
    for object in &objects {
        match session.delete(object, &namespace, wait) {
            Ok(Deleted::Gone) => {
                print(&format!("{} deleted\n", object_name_in(object, &namespace)))?
            }
            Ok(Deleted::Going(now)) if !flags.wait => print(&format!(
                "{} is being deleted{}\n",
                object_name_in(object, &namespace),
                held_by(&now)
            ))?,
            Ok(Deleted::Going(now)) => {
                well = false;
                eprintln!(
                    "plexus: {} is being deleted, and is not gone after {} s{}",
                    object_name_in(object, &namespace),
                    flags.timeout.as_secs_f64(),
                    held_by(&now)
                );
            }
            Ok(Deleted::Absent) if flags.ignore_not_found => {}
            Ok(Deleted::Absent) => {
                well = false;
                eprintln!(
                    "plexus: {} is not there",
                    object_name_in(object, &namespace)
                );
            }
            Err(error) => {
                well = false;
                eprintln!("plexus: {}", crate::chain(&anyhow::Error::from(error)));
            }
        }
    }
    Ok(code(well))
}

/// By name, or the objects of files from the last to the first.
fn named_objects(flags: &Flags) -> anyhow::Result<Vec<Value>> {
    if let Some(word) = &flags.kind {
        let kind = kinds::find(word).map_err(anyhow::Error::msg)?;
        let each = flags.name.iter().map(|name| by_name(&kind, name, flags));
        return each.collect();
    }
    let mut objects = objects(sources(&flags.filename, flags.recursive)?)?;
    for object in &mut objects {
        // What else is wrong with it does not matter now.
        let _ = plexus_api::translate(object);
    }
    let order = in_order(&objects);
    let each = order.into_iter().rev();
    Ok(each
        .filter_map(|number| objects.get(number).cloned())
        .collect())
}

fn by_name(kind: &Kind, written: &str, flags: &Flags) -> anyhow::Result<Value> {
    if !kind.namespaced {
        if written.contains('/') {
            bail!(
                "{} are in no namespace: write the name alone, not {written}",
                kind.plural
            );
        }
        return Ok(named(&kind.api_version(), kind.kind, None, written));
    }
    let (namespace, name) = flags.server.written_place(written)?;
    Ok(named(&kind.api_version(), kind.kind, namespace, name))
}

/// Why an object is still there.
fn held_by(object: &Value) -> String {
    let in_use = condition(object, "InUse").filter(|one| text(one, "/status") == "True");
    if let Some(condition) = in_use {
        return format!(": {}", text(condition, "/message"));
    }
    let finalizers = object.pointer("/metadata/finalizers");
    let finalizers = finalizers.and_then(Value::as_array).map(Vec::as_slice);
    let names = finalizers.unwrap_or_default().iter();
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();
    if !names.is_empty() {
        return format!(": it waits for {} (its finalizers)", names.join(", "));
    }
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds");
    match grace.and_then(Value::as_u64) {
        Some(seconds) if seconds > 0 => {
            format!(": whoever runs it has {seconds} s to end it, and removes it then")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::held_by;
    use serde_json::json;

    #[test]
    fn what_an_object_waits_for_is_said() {
        let held =
            json!({"metadata": {"finalizers": ["a/b", "c/d"], "deletionGracePeriodSeconds": 0}});
        assert_eq!(held_by(&held), ": it waits for a/b, c/d (its finalizers)");
        let pod = json!({"metadata": {"deletionGracePeriodSeconds": 30}});
        assert!(held_by(&pod).contains("30 s"), "{}", held_by(&pod));
        assert_eq!(held_by(&json!({"metadata": {}})), "");
        let used = json!({"status": {"conditions": [
            {"type": "InUse", "status": "True", "message": "2 pods use it"}]}});
        assert_eq!(held_by(&used), ": 2 pods use it");
    }
}
