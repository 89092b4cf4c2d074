//! The error object of the specification.

use super::Version;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The codes that we use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The configuration's version is not one that we speak.
    IncompatibleVersion,
    /// A field is not understood, or its value not supported.
    UnsupportedField,
    /// The container is unknown: no DEL is needed.
    UnknownContainer,
    /// A CNI_… variable is missing or wrong.
    InvalidEnvironment,
    /// Input or output failed.
    Io,
    /// The input is not JSON.
    Decode,
    /// The configuration is wrong.
    InvalidConfig,
    /// The path is no network namespace.
    InvalidNetns,
    /// Try again later.
    TryAgainLater,
    /// The plugin cannot serve ADDs.
    NotAvailable,
    /// The network could not be set up.
    Failed,
    /// CHECK found that something is missing or altered.
    Altered,
    /// A delegate's own code, passed on.
    Delegate(u32),
}

impl Code {
    /// The number on the wire.
    pub fn number(self) -> u32 {
        match self {
            Code::IncompatibleVersion => 1,
            Code::UnsupportedField => 2,
            Code::UnknownContainer => 3,
            Code::InvalidEnvironment => 4,
            Code::Io => 5,
            Code::Decode => 6,
            Code::InvalidConfig => 7,
            Code::InvalidNetns => 8,
            Code::TryAgainLater => 11,
            Code::NotAvailable => 50,
            Code::Failed => 100,
            Code::Altered => 101,
            Code::Delegate(number) => number,
        }
    }
}

/// One error: what is wrong in `msg`, what to do about it in `details`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What kind.
    pub code: Code,
    /// The object, the field, the value, the cause.
    pub msg: String,
    /// The next step; may be empty.
    pub details: String,
}

impl Error {
    /// An error with a next step.
    pub fn new(code: Code, msg: impl Into<String>, details: impl Into<String>) -> Self {
        Self {
            code,
            msg: msg.into(),
            details: details.into(),
        }
    }

    /// Whether trying again may help.
    pub fn is_pending(&self) -> bool {
        self.code == Code::TryAgainLater
    }

    /// The JSON that goes to standard output.
    pub fn to_json(&self, version: Version) -> String {
        let wire = Wire {
            cni_version: version.as_str(),
            code: self.code.number(),
            msg: &self.msg,
            details: &self.details,
        };
        serde_json::to_string(&wire).unwrap_or_default()
    }

    /// Reads a delegate's error; none if it is not one.
    pub fn from_json(text: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Read {
            code: u32,
            #[serde(default)]
            msg: String,
            #[serde(default)]
            details: String,
        }
        let read: Read = serde_json::from_str(text).ok()?;
        Some(Self {
            code: Code::Delegate(read.code),
            msg: read.msg,
            details: read.details,
        })
    }
}

#[derive(Serialize)]
struct Wire<'a> {
    #[serde(rename = "cniVersion")]
    cni_version: &'static str,
    code: u32,
    msg: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    details: &'a str,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.msg)?;
        if !self.details.is_empty() {
            write!(f, "; {}", self.details)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
