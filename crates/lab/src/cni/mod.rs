//! `plexus-cni`, called as containerd calls it: the node's first configuration list, the same variables, the
//! same standard input, in the node's network namespace. Owns the protocol from the runtime's side; knows
//! nothing of what it asks for.

mod list;
mod run;

pub(crate) use list::{ANNOTATIONS, List, ListError, PORT_MAPPINGS};

use crate::layout::Layout;
use crate::name::NodeName;
use crate::sandbox::Sandbox;
use plexus_kernel::{Netns, named};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// As long as the kubelet gives a runtime.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Why a call did not succeed, in the words that a pod's Event says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The node has no configuration yet.
    #[error(transparent)]
    List(#[from] ListError),
    /// The plugin said no.
    #[error("plugin {plugin} failed ({verb}): {text}")]
    Refused {
        /// Its type.
        plugin: String,
        /// ADD or DEL.
        verb: &'static str,
        /// Its message and details.
        text: String,
    },
    /// The plugin cannot be run.
    #[error("cannot run plugin {}", path.display())]
    Run {
        /// Its path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The node's namespace.
    #[error(transparent)]
    Netns(#[from] plexus_kernel::NetnsError),
}

/// A call for one sandbox on one node.
#[derive(Debug)]
pub(crate) struct Caller<'a> {
    layout: &'a Layout,
    node: NodeName,
    sandbox: &'a Sandbox,
    limit: Duration,
}

impl<'a> Caller<'a> {
    pub(crate) fn new(layout: &'a Layout, node: NodeName, sandbox: &'a Sandbox) -> Self {
        Self {
            layout,
            node,
            sandbox,
            limit: CALL_TIMEOUT,
        }
    }

    /// Sets how long each plugin may take.
    pub(crate) fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// ADD by each plugin of the list in turn, each with the result of the one before; gives the last one's.
    pub(crate) fn add(&self) -> Result<Value, CallError> {
        let list = List::first_of(&self.layout.cni_conf(self.node))?;
        let mut previous = None;
        for plugin in 0..list.plugins() {
            let stdin = list.configuration(plugin, &self.sandbox.runtime_config, previous.as_ref());
            let kind = list.kind(plugin);
            let stdout = self.call("ADD", &kind, &stdin)?;
            previous = Some(result(&kind, &stdout)?);
        }
        Ok(previous.unwrap_or(Value::Null))
    }

    /// DEL by each plugin, the last one first, with the result of the ADD if there is one.
    pub(crate) fn del(&self) -> Result<(), CallError> {
        let list = List::first_of(&self.layout.cni_conf(self.node))?;
        for plugin in (0..list.plugins()).rev() {
            let previous = self.sandbox.result.as_ref();
            let stdin = list.configuration(plugin, &self.sandbox.runtime_config, previous);
            self.call("DEL", &list.kind(plugin), &stdin)?;
        }
        Ok(())
    }

    fn call(&self, verb: &'static str, kind: &str, stdin: &Value) -> Result<String, CallError> {
        let bin = self.layout.cni_bin(self.node);
        let path = bin.join(kind);
        let node = Netns::open(named::path(&self.layout.name().node(self.node)))?;
        let variables = self.variables(verb);
        let ran = node.enter(|| run::run(&path, &variables, stdin.to_string(), self.limit))?;
        let output = ran.map_err(|source| CallError::Run { path, source })?;
        if output.success {
            return Ok(output.stdout);
        }
        Err(CallError::Refused {
            plugin: kind.to_owned(),
            verb,
            text: error_text(&output.stdout, &output.stderr),
        })
    }

    fn variables(&self, verb: &str) -> Vec<(&'static str, String)> {
        let Sandbox {
            uid,
            namespace,
            name,
            container,
            netns,
            ..
        } = self.sandbox;
        let arguments = format!(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name};\
             K8S_POD_INFRA_CONTAINER_ID={container};K8S_POD_UID={uid}"
        );
        let bin = self.layout.cni_bin(self.node);
        vec![
            ("CNI_COMMAND", verb.to_owned()),
            ("CNI_CONTAINERID", container.clone()),
            ("CNI_NETNS", named::path(netns).display().to_string()),
            ("CNI_IFNAME", "eth0".to_owned()),
            ("CNI_ARGS", arguments),
            ("CNI_PATH", bin.display().to_string()),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
        ]
    }
}

/// What an ADD gave. A plugin that says that it succeeded, and not with what, has failed: as containerd sees
/// it.
fn result(plugin: &str, stdout: &str) -> Result<Value, CallError> {
    let parsed = serde_json::from_str::<Value>(stdout).ok();
    parsed.filter(Value::is_object).ok_or_else(|| {
        let error_text: String = stdout.trim().chars().take(200).collect();
        CallError::Refused {
            plugin: plugin.to_owned(),
            verb: "ADD",
            text: format!("it ended well, but printed no result: {error_text:?}"),
        }
    })
}

/// What a plugin said when it failed: its error, or whatever it printed.
fn error_text(stdout: &str, stderr: &str) -> String {
    let error: Value = serde_json::from_str(stdout).unwrap_or(Value::Null);
    let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    let (message, details) = (text("msg"), text("details"));
    match (message, details) {
        ("", "") => {
            let raw = format!("{} {}", stdout.trim(), stderr.trim());
            raw.trim().chars().take(1000).collect()
        }
        (message, "") => message.to_owned(),
        ("", details) => details.to_owned(),
        (message, details) => format!("{message}: {details}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_add_without_a_result_has_failed() {
        let given = result("x", r#"{"cniVersion": "1.1.0"}"#).unwrap();
        assert_eq!(given["cniVersion"], "1.1.0");
        for stdout in ["", "null", "done\n", "[]", "{"] {
            let error = result("x", stdout).unwrap_err().to_string();
            assert!(
                error.contains("plugin x failed (ADD): it ended well"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_a_plugin_said() {
        let error = r#"{"cniVersion": "1.1.0", "code": 11, "msg": "busy", "details": "later"}"#;
        assert_eq!(error_text(error, "noise"), "busy: later");
        assert_eq!(error_text(r#"{"code": 7, "msg": "bad"}"#, ""), "bad");
        assert_eq!(error_text("", " segfault\n"), "segfault");
        assert_eq!(error_text("{", "x"), "{ x");
    }
}
