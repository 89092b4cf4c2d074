//! The configuration file: the flags of a subcommand by their long names, in TOML. A flag wins
//! over the environment, the environment over the file, the file over the default.

use anyhow::{Context, bail};
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
    let added = flags_of(&text, &path, given)?;
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

fn flags_of(text: &str, path: &Path, given: impl Fn(&str) -> bool) -> anyhow::Result<Vec<String>> {
    let table: toml::Table = toml::from_str(text)
        .with_context(|| format!("the configuration file {} is not TOML", path.display()))?;
    let mut flags = Vec::new();
    for (key, value) in &table {
        if key == "config" || key == "probe" {
            bail!(
                "{}: key {key:?} has no place in a file; give it as a flag",
                path.display()
            );
        }
        if given(key) {
            continue;
        }
        match value {
            toml::Value::String(value) => flags.push(format!("--{key}={value}")),
            toml::Value::Integer(value) => flags.push(format!("--{key}={value}")),
            toml::Value::Boolean(true) => flags.push(format!("--{key}")),
            toml::Value::Boolean(false) => {}
            toml::Value::Array(items) if items.iter().all(toml::Value::is_str) => {
                let items: Vec<&str> = items.iter().filter_map(toml::Value::as_str).collect();
                flags.push(format!("--{key}={}", items.join(",")));
            }
            other => bail!(
                "{}: key {key:?} has the value {other:?}, which is not a text, number, boolean or list of texts",
                path.display()
            ),
        }
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_fills_in_what_is_not_given() {
        let text = "node = \"n1\"\nqueue = 16\nlog-json = true\nprobe-x = false\nallow-delegates = [\"a\", \"b\"]\n";
        let flags = flags_of(text, Path::new("f"), |key| key == "node").unwrap();
        assert_eq!(flags, ["--allow-delegates=a,b", "--log-json", "--queue=16"]);
    }

    #[test]
    fn wrong_files_are_named() {
        for text in ["nonsense", "queue = 1.5", "config = \"x\"", "a = [1]"] {
            let error = flags_of(text, Path::new("/etc/x.toml"), |_| false).unwrap_err();
            assert!(error.to_string().contains("/etc/x.toml"), "{error}");
        }
    }
}
