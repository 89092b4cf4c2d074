//! The configuration file: the flags of a subcommand by their long names, in TOML. A flag wins
//! over the environment, the environment over the file, the file over the default.

use anyhow::{Context, bail};
use clap::{Command, CommandFactory};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file that is read if it exists and none is named.
const DEFAULT: &str = "/etc/plexus/agent.toml";

/// Adds what the file says and neither the command line nor the environment does.
pub(crate) fn with_file_defaults(arguments: Vec<OsString>) -> anyhow::Result<Vec<OsString>> {
    if arguments.get(1).is_none_or(|verb| verb != "agent") {
        return Ok(arguments);
    }
    let named = named_file(&arguments);
    let path = named.clone().unwrap_or_else(|| PathBuf::from(DEFAULT));
    if named.is_none() && !path.exists() {
        return Ok(arguments);
    }
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read the configuration file {}", path.display()))?;
    let given = |key: &str| {
        let flag = format!("--{key}");
        let with_value = format!("{flag}=");
        let variable = format!("PLEXUS_{}", key.to_uppercase().replace('-', "_"));
        std::env::var_os(variable).is_some()
            || arguments.iter().any(|a| {
                a.to_str()
                    .is_some_and(|a| a == flag || a.starts_with(&with_value))
            })
    };
    let added = flags_of(&text, &path, &Keys::of_agent(), given)?;
    Ok(arguments
        .iter()
        .cloned()
        .chain(added.into_iter().map(OsString::from))
        .collect())
}

fn named_file(arguments: &[OsString]) -> Option<PathBuf> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--config" {
            return rest.next().map(PathBuf::from);
        }
        if let Some(path) = argument.to_str().and_then(|a| a.strip_prefix("--config=")) {
            return Some(path.into());
        }
    }
    std::env::var_os("PLEXUS_CONFIG").map(PathBuf::from)
}

/// The keys that a file may have.
struct Keys {
    /// By name: whether it takes a value.
    keys: BTreeMap<String, bool>,
}

impl Keys {
    /// The flags of `plexus agent`, but those that only make sense on a command line.
    fn of_agent() -> Self {
        let command = crate::Plexus::command();
        let agent = command.find_subcommand("agent");
        let arguments = agent.into_iter().flat_map(Command::get_arguments);
        let keys = arguments.filter_map(|argument| {
            let takes_value = argument.get_action().takes_values();
            Some((argument.get_long()?.to_owned(), takes_value))
        });
        let keys =
            keys.filter(|(key, _)| !["config", "probe", "help", "version"].contains(&&**key));
        Self {
            keys: keys.collect(),
        }
    }

    /// Whether the key takes a value; fails if there is no such key.
    fn takes_value(&self, key: &str, path: &Path) -> anyhow::Result<bool> {
        if let Some(takes_value) = self.keys.get(key) {
            return Ok(*takes_value);
        }
        if key == "config" || key == "probe" {
            bail!(
                "{}: key {key:?} has no place in a file; give it as a flag",
                path.display()
            );
        }
        let known: Vec<&str> = self.keys.keys().map(String::as_str).collect();
        bail!(
            "{}: there is no key {key:?}; the keys are {}",
            path.display(),
            known.join(", ")
        )
    }
}

fn flags_of(
    text: &str,
    path: &Path,
    keys: &Keys,
    given: impl Fn(&str) -> bool,
) -> anyhow::Result<Vec<String>> {
    let table: toml::Table = toml::from_str(text)
        .with_context(|| format!("the configuration file {} is not TOML", path.display()))?;
    let mut flags = Vec::new();
    for (key, value) in &table {
        let takes_value = keys.takes_value(key, path)?;
        let flag = match value {
            toml::Value::String(value) if takes_value => Some(format!("--{key}={value}")),
            toml::Value::Integer(value) if takes_value => Some(format!("--{key}={value}")),
            toml::Value::Boolean(value) if !takes_value => value.then(|| format!("--{key}")),
            toml::Value::Array(items) if takes_value && items.iter().all(toml::Value::is_str) => {
                let items: Vec<&str> = items.iter().filter_map(toml::Value::as_str).collect();
                Some(format!("--{key}={}", items.join(",")))
            }
            other => {
                let wanted = if takes_value {
                    "a text, a number or a list of texts"
                } else {
                    "true or false"
                };
                let path = path.display();
                bail!("{path}: key {key:?} has the value {other:?}, which is not {wanted}")
            }
        };
        flags.extend(flag.filter(|_| !given(key)));
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, given: &str) -> anyhow::Result<Vec<String>> {
        let path = Path::new("/etc/x.toml");
        flags_of(text, path, &Keys::of_agent(), |key| key == given)
    }

    #[test]
    fn the_file_fills_in_what_is_not_given() {
        let text = "node = \"n1\"\nqueue = 16\nlog-json = true\nallow-delegates = [\"a\", \"b\"]\n";
        let flags = read(text, "node").unwrap();
        assert_eq!(flags, ["--allow-delegates=a,b", "--log-json", "--queue=16"]);
        assert!(read("log-json = false", "").unwrap().is_empty());
    }

    #[test]
    fn wrong_files_are_named() {
        for text in [
            "nonsense",
            "queue = 1.5",
            "queue = true",
            "queue = false",
            "log-json = \"yes\"",
            "allow-delegates = true",
            "allow-delegates = [1]",
            "config = \"x\"",
            "probe = false",
        ] {
            let error = read(text, "").unwrap_err();
            assert!(error.to_string().contains("/etc/x.toml"), "{error}");
        }
    }

    #[test]
    fn unknown_keys_are_refused_whatever_their_value() {
        for value in ["false", "true", "\"x\"", "1", "[]", "{}"] {
            let error = read(&format!("no-such-key = {value}"), "no-such-key").unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("/etc/x.toml") && text.contains("\"no-such-key\""),
                "{text}"
            );
            assert!(text.contains("log-json"), "the keys are named: {text}");
        }
        for key in ["help", "version", "state_dir", "State-Dir"] {
            assert!(read(&format!("{key} = false"), "").is_err(), "{key}");
        }
    }
}
