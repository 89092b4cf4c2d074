//! The configuration file: the flags of a subcommand by their long names, in TOML. A flag wins
//! over the environment, the environment over the file, the file over the default.

use anyhow::{Context, anyhow, bail};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The agent's file, read if it exists and none is named.
pub(crate) const AGENT: &str = "/etc/plexus/agent.toml";
/// The controller's.
pub(crate) const CONTROLLER: &str = "/etc/plexus/controller.toml";

/// The verbs that read a file, and which.
const FILES: [(&str, &str); 2] = [("agent", AGENT), ("controller", CONTROLLER)];

/// The command line together with the flags of the configuration file.
#[derive(Debug)]
pub(crate) struct CommandLine {
    /// The command line.
    arguments: Vec<OsString>,
    /// What the file says and neither the command line nor the environment does.
    added: Vec<String>,
    file: PathBuf,
}

impl CommandLine {
    /// Reads the configuration file, if there is one for this command line.
    pub(crate) fn read(arguments: Vec<OsString>) -> anyhow::Result<Self> {
        let mut command_line = Self {
            arguments,
            added: Vec::new(),
            file: PathBuf::new(),
        };
        let verb = command_line.arguments.get(1);
        let Some((verb, usual)) = verb.and_then(|verb| FILES.iter().find(|(name, _)| verb == name))
        else {
            return Ok(command_line);
        };
        let next = command_line.arguments.get(2);
        if next.is_some_and(|next| is_query(verb, next)) {
            return Ok(command_line);
        }
        let named = named_file(&command_line.arguments);
        command_line.file = named.clone().unwrap_or_else(|| PathBuf::from(usual));
        if named.is_none() && !command_line.file.exists() {
            return Ok(command_line);
        }
        let file = &command_line.file;
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read the configuration file {}", file.display()))?;
        let has = |key: &str| {
            std::env::var_os(variable(key)).is_some()
                || on_command_line(key, &command_line.arguments)
        };
        command_line.added = flags_of(&text, file, &Keys::of(verb), has)?;
        Ok(command_line)
    }

    /// The command line with what the file adds.
    pub(crate) fn all(&self) -> impl Iterator<Item = OsString> {
        let added = self.added.iter().map(OsString::from);
        self.arguments.iter().cloned().chain(added)
    }

    /// Where a wrong value is written, if not on the command line.
    pub(crate) fn explain_error(&self, error: &clap::Error) -> Option<anyhow::Error> {
        let wrong = [ErrorKind::ValueValidation, ErrorKind::InvalidValue];
        let flag = error.get(ContextKind::InvalidArg)?.to_string();
        let key = flag.strip_prefix("--")?.split(' ').next()?;
        if !wrong.contains(&error.kind()) || on_command_line(key, &self.arguments) {
            return None;
        }
        let variable = variable(key);
        let in_file = self.added.iter().any(|added| {
            let rest = added.strip_prefix("--").and_then(|a| a.strip_prefix(key));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        });
        if !in_file && std::env::var_os(&variable).is_none() {
            // By its short name.
            return None;
        }
        let origin = if std::env::var_os(&variable).is_some() {
            variable
        } else {
            format!("{}: {key}", self.file.display())
        };
        let value = error.get(ContextKind::InvalidValue)?.to_string();
        let value: String = value.chars().take(64).collect();
        let remedy = match (error.source(), error.get(ContextKind::ValidValue)) {
            (Some(source), _) => source.to_string(),
            (None, Some(ContextValue::Strings(choices))) => {
                format!("write {}", choices.join(" or "))
            }
            (None, _) => "see `--help`".to_owned(),
        };
        Some(anyhow!("{origin}: the value {value:?} is wrong: {remedy}"))
    }
}

/// Whether this asks whoever serves, instead of serving.
fn is_query(verb: &str, next: &OsString) -> bool {
    let command = crate::Plexus::command();
    let verb = command.find_subcommand(verb);
    verb.is_some_and(|verb| verb.find_subcommand(next).is_some())
}

fn variable(key: &str) -> String {
    format!("PLEXUS_{}", key.to_uppercase().replace('-', "_"))
}

fn on_command_line(key: &str, arguments: &[OsString]) -> bool {
    let is_it = |argument: &str| {
        let rest = argument
            .strip_prefix("--")
            .and_then(|a| a.strip_prefix(key));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    arguments.iter().any(|a| a.to_str().is_some_and(is_it))
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
    verb: &'static str,
}

impl Keys {
    /// The flags of a verb, but those that only make sense on a command line.
    fn of(verb: &'static str) -> Self {
        let command = crate::Plexus::command();
        let verb_command = command.find_subcommand(verb);
        let arguments = verb_command.into_iter().flat_map(Command::get_arguments);
        let keys = arguments.filter_map(|argument| {
            let takes_value = argument.get_action().takes_values();
            Some((argument.get_long()?.to_owned(), takes_value))
        });
        let keys = keys.filter(|(key, _)| !["config", "help", "version"].contains(&&**key));
        Self {
            keys: keys.collect(),
            verb,
        }
    }

    /// Whether the key takes a value; fails if there is no such key.
    fn takes_value(&self, key: &str, path: &Path) -> anyhow::Result<bool> {
        if let Some(takes_value) = self.keys.get(key) {
            return Ok(*takes_value);
        }
        if key == "config" {
            bail!(
                "{}: key {key:?} has no place in a file; give it as a flag",
                path.display()
            );
        }
        let meant = self
            .meant(key)
            .map(|meant| format!(": did you mean {meant:?}? The"))
            .unwrap_or_else(|| "; the".to_owned());
        let known: Vec<&str> = self.keys.keys().map(String::as_str).collect();
        bail!(
            "{}: there is no key {key:?}{meant} keys are {}",
            path.display(),
            known.join(", ")
        )
    }

    /// The key that was probably meant, as the command line would guess it.
    fn meant(&self, key: &str) -> Option<&str> {
        let flag: String = key.chars().take(64).collect();
        let flag = flag.to_lowercase().replace('_', "-");
        if let Some((known, _)) = self.keys.get_key_value(&flag) {
            return Some(known);
        }
        let guess = crate::Plexus::command()
            .try_get_matches_from(["plexus", self.verb, &format!("--{flag}")])
            .err()?;
        let guess = guess.get(ContextKind::SuggestedArg)?.to_string();
        let (known, _) = self.keys.get_key_value(guess.strip_prefix("--")?)?;
        Some(known)
    }
}

fn flags_of(
    text: &str,
    path: &Path,
    keys: &Keys,
    command_line: impl Fn(&str) -> bool,
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
                let expected_text = if takes_value {
                    "a text, a whole number or a list of texts"
                } else {
                    "true or false, without quotes"
                };
                let (path, value) = (path.display(), written(other));
                bail!("{path}: {key} = {value} is wrong: write {expected_text}")
            }
        };
        flags.extend(flag.filter(|_| !command_line(key)));
    }
    Ok(flags)
}

/// A value as it is written in TOML.
fn written(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => {
            let short: String = text.chars().take(64).collect();
            format!("{short:?}")
        }
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(value) => value.to_string(),
        toml::Value::Datetime(time) => time.to_string(),
        toml::Value::Array(items) => {
            let more = if items.len() > 4 { ", …" } else { "" };
            let items: Vec<String> = items.iter().take(4).map(written).collect();
            format!("[{}{more}]", items.join(", "))
        }
        toml::Value::Table(_) => "{…}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn read(text: &str, command_line: &str) -> anyhow::Result<Vec<String>> {
        let path = Path::new("/etc/x.toml");
        flags_of(text, path, &Keys::of("agent"), |key| key == command_line)
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

    #[test]
    fn a_key_that_is_nearly_right_is_named() {
        for (key, meant) in [
            ("state_dir", "state-dir"),
            ("State-Dir", "state-dir"),
            ("LOG_JSON", "log-json"),
            ("sockt", "socket"),
            ("que", "queue"),
        ] {
            let error = read(&format!("{key} = 1"), "").unwrap_err().to_string();
            let expected_text = format!("there is no key {key:?}: did you mean {meant:?}?");
            assert!(error.contains(&expected_text), "{error}");
        }
        for key in ["zzz", "\"\"", "\"=\"", "\"-h\"", "\"\\u0000\"", "conf"] {
            let error = read(&format!("{key} = 1"), "").unwrap_err().to_string();
            assert!(!error.contains("did you mean"), "{error}");
        }
    }

    #[test]
    fn a_wrong_value_is_shown_as_it_is_written() {
        for (text, expected) in [
            (
                "log-json = \"yes\"",
                "log-json = \"yes\" is wrong: write true or false",
            ),
            ("log-json = 1", "log-json = 1 is wrong: write true or false"),
            (
                "queue = 1.5",
                "queue = 1.5 is wrong: write a text, a whole number",
            ),
            ("queue = true", "queue = true is wrong"),
            (
                "allow-delegates = [1, \"a\"]",
                "allow-delegates = [1, \"a\"] is wrong",
            ),
            ("queue = {a = 1}", "queue = {…} is wrong"),
            ("queue = 2026-01-01", "queue = 2026-01-01 is wrong"),
        ] {
            let error = read(text, "").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_wrong_value_is_blamed_on_its_file() {
        let explain_error = |arguments: &[&str], added: &str| {
            let command_line = CommandLine {
                arguments: arguments.iter().map(OsString::from).collect(),
                added: vec![added.to_owned()],
                file: "/etc/x.toml".into(),
            };
            let error = crate::Plexus::try_parse_from(command_line.all()).unwrap_err();
            command_line
                .explain_error(&error)
                .map(|explain_error| explain_error.to_string())
        };
        let agent = ["plexus", "agent"];
        for (added, expected) in [
            (
                "--queue=0",
                "\"0\" is wrong: write a whole number from 1 to 10000",
            ),
            (
                "--queue=abc",
                "\"abc\" is wrong: write a whole number from 1 to 10000",
            ),
            (
                "--log=verbose",
                "\"verbose\" is wrong: \"verbose\" is not a level",
            ),
            ("--allow-delegates=a/b", "\"a/b\" is wrong: "),
        ] {
            let text = explain_error(&agent, added).unwrap();
            assert!(
                text.starts_with("/etc/x.toml: ") && text.contains(expected),
                "{text}"
            );
        }
        assert_eq!(
            explain_error(&["plexus", "agent", "--queue=0"], "--node=x"),
            None
        );
        assert_eq!(
            explain_error(&["plexus", "agent", "--nonsense"], "--node=x"),
            None
        );
        assert_eq!(
            explain_error(&["plexus", "get", "pods", "-o", "xml"], "-A"),
            None
        );
    }
}
