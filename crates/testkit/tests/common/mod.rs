//! What the tests of `plexus up` share: the user's commands against it, its files.
#![allow(dead_code, reason = "each test uses a part of it")]

use plexus_testkit::{Node, PLEXUS, Up, bin, within};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

/// More than anything takes that is not waited for by somebody else.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

#[track_caller]
pub(crate) fn eventually(what: &str, question: impl FnMut() -> bool) {
    assert!(within(TIMEOUT, question), "not within {TIMEOUT:?}: {what}");
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A command of the user against what is up on a node.
pub(crate) fn plexus(node: &Node, words: &[&str]) -> Output {
    let mut command = Command::new(bin(PLEXUS));
    command.args(words).env("KUBECONFIG", Up::kubeconfig(node));
    node.ns().enter(|| command.output()).unwrap()
}

/// What an Event is about, as `kind namespace/name`.
pub(crate) fn about(event: &Value) -> String {
    let object = &event["involvedObject"];
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    format!("{} {}/{}", text("kind"), text("namespace"), text("name"))
}

/// Reads files of a test.
pub(crate) struct Files;

impl Files {
    /// The names in a directory, sorted.
    pub(crate) fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// The configuration of a conflist's only plugin, as a runtime gives it.
    pub(crate) fn config(node: &Node, conflist: &str) -> Value {
        let text = std::fs::read_to_string(node.cni_conf().join(conflist)).unwrap();
        let list: Value = serde_json::from_str(&text).unwrap();
        let mut config = list["plugins"][0].clone();
        config["name"] = list["name"].clone();
        config["cniVersion"] = "1.1.0".into();
        config
    }
}
