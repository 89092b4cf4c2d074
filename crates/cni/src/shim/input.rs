//! What the runtime gives us: standard input and the CNI_… variables. Bounded, checked for being
//! JSON, and otherwise passed on untouched: what the fields mean is the agent's business.

use super::{MAX_BODY, Surroundings};
use plexus_api::cni::{Code, Error, MAX_CONFIG, Request, Version};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::Read;

/// Reads standard input to its end, or to the limit.
pub(super) fn read(stdin: &mut dyn Read) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let limit = MAX_CONFIG as u64 + 1;
    stdin.take(limit).read_to_end(&mut bytes).map_err(|error| {
        let msg = format!("cannot read the network configuration from standard input: {error}");
        Error::new(Code::Io, msg, "")
    })?;
    if bytes.len() > MAX_CONFIG {
        let msg = format!(
            "the network configuration on standard input is larger than {MAX_CONFIG} bytes"
        );
        let next =
            "make it smaller: pod annotations given by the runtime are usually the largest part";
        return Err(Error::new(Code::InvalidConfig, msg, next));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let msg = format!("the network configuration on standard input is not UTF-8 at byte {at}");
        Error::new(Code::Decode, msg, "")
    })
}

/// The configuration, and the two fields of it that the shim itself needs.
pub(super) struct Input<'a> {
    /// The version in which we report our own errors.
    pub(super) version: Version,
    /// `agentSocket`
    pub(super) socket: Option<String>,
    /// As it came.
    pub(super) config: &'a RawValue,
}

impl<'a> Input<'a> {
    /// Checks that the text is one JSON object.
    pub(super) fn parse(text: &'a str) -> Result<Self, Error> {
        if text.trim_ascii().is_empty() {
            let next = "give the network configuration as JSON";
            return Err(Error::new(Code::Decode, "standard input is empty", next));
        }
        let config: &RawValue = serde_json::from_str(text).map_err(not_json)?;
        if !config.get().starts_with('{') {
            let msg = "the network configuration on standard input is not a JSON object";
            return Err(Error::new(Code::Decode, msg, ""));
        }
        let peek: Peek<'_> = serde_json::from_str(text).map_err(not_json)?;
        let version = peek.cni_version.and_then(text_of);
        let version = version
            .and_then(|v| Version::parse(&v))
            .unwrap_or(Version::V1_1_0);
        let socket = match peek.agent_socket {
            None => None,
            Some(raw) => Some(text_of(raw).ok_or_else(|| {
                let msg = "agentSocket in the network configuration is not a string";
                let next = "write the absolute path of the agent's socket";
                Error::new(Code::InvalidConfig, msg, next)
            })?),
        };
        Ok(Self {
            version,
            socket,
            config,
        })
    }
}

/// The other keys are skipped, not ignored: the agent reads them.
#[derive(Deserialize)]
struct Peek<'a> {
    #[serde(rename = "cniVersion", borrow)]
    cni_version: Option<&'a RawValue>,
    #[serde(rename = "agentSocket", borrow)]
    agent_socket: Option<&'a RawValue>,
}

fn text_of(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn not_json(error: serde_json::Error) -> Error {
    let msg = format!("the network configuration on standard input is not valid JSON: {error}");
    Error::new(Code::Decode, msg, "")
}

/// The configuration with the CNI_… variables around it. Refuses what is not text.
pub(super) fn request<'a>(
    surroundings: &Surroundings<'_>,
    config: &'a RawValue,
) -> Result<Request<'a>, Error> {
    Ok(Request {
        container_id: variable(surroundings, "CNI_CONTAINERID")?,
        ifname: variable(surroundings, "CNI_IFNAME")?,
        netns: variable(surroundings, "CNI_NETNS")?,
        args: variable(surroundings, "CNI_ARGS")?,
        path: variable(surroundings, "CNI_PATH")?,
        config,
    })
}

/// A request as it is sent.
pub(super) fn body(request: &Request<'_>) -> Result<String, Error> {
    let body = serde_json::to_string(request).map_err(|error| {
        let msg = format!("cannot write the request as JSON: {error}");
        Error::new(Code::Io, msg, "")
    })?;
    if body.len() > MAX_BODY {
        let msg = format!(
            "the CNI_… variables are too large: with the configuration they make {} bytes, at most {MAX_BODY} are carried",
            body.len()
        );
        let next = "shorten CNI_ARGS or CNI_PATH";
        return Err(Error::new(Code::InvalidEnvironment, msg, next));
    }
    Ok(body)
}

/// A variable's text; empty if it is not set.
pub(super) fn variable(surroundings: &Surroundings<'_>, name: &str) -> Result<String, Error> {
    let Some(value) = (surroundings.var)(name) else {
        return Ok(String::new());
    };
    value.into_string().map_err(|value| {
        let shown: String = value.to_string_lossy().chars().take(64).collect();
        let msg = format!("{name} {shown:?} is not UTF-8");
        Error::new(Code::InvalidEnvironment, msg, "")
    })
}
