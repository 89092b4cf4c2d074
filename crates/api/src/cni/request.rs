//! What the shim sends to the agent: the environment and the configuration, untouched.
//!
//! `POST /cni/{add,del,check,gc,status}` with this as its body.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Command {
    /// ADD
    Add,
    /// DEL
    Del,
    /// CHECK
    Check,
    /// GC
    Gc,
    /// STATUS
    Status,
}

impl Command {
    /// The last part of the path.
    pub fn path(self) -> &'static str {
        match self {
            Command::Add => "add",
            Command::Del => "del",
            Command::Check => "check",
            Command::Gc => "gc",
            Command::Status => "status",
        }
    }

    /// From the value of CNI_COMMAND.
    pub fn from_env(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| {
            command.path().eq_ignore_ascii_case(text)
                && text.bytes().all(|b| b.is_ascii_uppercase())
        })
    }

    /// From the last part of the path.
    pub fn from_path(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.path() == text)
    }

    /// All of them.
    pub const ALL: [Command; 5] = [
        Command::Add,
        Command::Del,
        Command::Check,
        Command::Gc,
        Command::Status,
    ];
}

/// The body. Empty text stands for a variable that is not set.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request<'a> {
    /// CNI_CONTAINERID
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container_id: String,
    /// CNI_NETNS
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub netns: String,
    /// CNI_IFNAME
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ifname: String,
    /// CNI_ARGS
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub args: String,
    /// CNI_PATH
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Standard input.
    #[serde(borrow)]
    pub config: &'a RawValue,
}
