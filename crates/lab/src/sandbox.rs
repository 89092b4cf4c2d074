//! A pod's sandbox: a network namespace with a name, and a record of how `plexus-cni` was called for it. The
//! record is written before the namespace is made and removed after it is gone, so that a keeper that dies in
//! between finds what it has begun.

use crate::error::LabError;
use crate::files;
use crate::layout::Layout;
use crate::name::NodeName;
use plexus_kernel::{Netns, named, wires};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs;
use std::net::IpAddr;

/// A sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sandbox {
    /// The pod.
    pub uid: String,
    /// Its namespace in the API.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// CNI_CONTAINERID.
    pub container: String,
    /// The name of its network namespace; empty for a pod that has its node's.
    pub netns: String,
    /// The `runtimeConfig` of plugins that ask for it, by capability. Files of sandboxes call it `told`.
    #[serde(rename = "told")]
    pub runtime_config: Map<String, Value>,
    /// What became of the ADD; none while it is under way.
    pub result: Option<Value>,
}

impl Sandbox {
    /// A new one, with an id that no other has; makes nothing.
    pub(crate) fn new(
        layout: &Layout,
        uid: &str,
        (namespace, name): (&str, &str),
        runtime_config: Map<String, Value>,
    ) -> Result<Self, LabError> {
        if !is_plain(uid) {
            return Err(LabError::Refused(format!(
                "pod {namespace}/{name} has no UID that can name a file"
            )));
        }
        let container = new_id()?;
        Ok(Self {
            uid: uid.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            netns: layout.name().sandbox(&container),
            container,
            runtime_config,
            result: None,
        })
    }

    /// Records it and makes its namespace, with the loopback up, as a runtime does.
    pub(crate) fn make(&self, layout: &Layout, node: NodeName) -> Result<(), LabError> {
        self.write(layout, node)?;
        named::ensure(&self.netns)?;
        let netns = Netns::open(named::path(&self.netns))?;
        wires::bring_loopback_up(&netns).map_err(LabError::wires("bring up lo of a sandbox"))
    }

    /// Removes its namespace, then its record; what is gone already is fine.
    pub(crate) fn remove(&self, layout: &Layout, node: NodeName) -> Result<(), LabError> {
        named::remove(&self.netns)?;
        files::remove(&layout.sandbox(node, &self.uid))
    }

    /// Records it.
    pub(crate) fn write(&self, layout: &Layout, node: NodeName) -> Result<(), LabError> {
        files::put_json(&layout.sandbox(node, &self.uid), self)
    }

    /// Whether its ADD succeeded and its namespace is there.
    pub(crate) fn is_ready(&self) -> bool {
        self.result.is_some() && Netns::open(named::path(&self.netns)).is_ok()
    }

    /// The first address of each family, as the runtime reports them to the kubelet.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        let ips = self.result.as_ref().and_then(|result| result.get("ips"));
        let ips = ips.and_then(Value::as_array).into_iter().flatten();
        let mut found: Vec<IpAddr> = Vec::new();
        for ip in ips {
            let text = ip
                .get("address")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let bare = text.split('/').next().unwrap_or_default();
            if let Ok(address) = bare.parse::<IpAddr>()
                && !found.iter().any(|a| a.is_ipv4() == address.is_ipv4())
            {
                found.push(address);
            }
        }
        found
    }
}

/// The recorded sandboxes of a node; a record that cannot be read is left out.
pub(crate) fn of_node(layout: &Layout, node: NodeName) -> Vec<Sandbox> {
    let entries = fs::read_dir(layout.sandboxes(node)).into_iter().flatten();
    let records = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let mut found: Vec<Sandbox> = records
        .filter_map(|path| files::get_json(&path).ok().flatten())
        .collect();
    found.sort_by(|a, b| (&a.namespace, &a.name, &a.uid).cmp(&(&b.namespace, &b.name, &b.uid)));
    found
}

/// The nodes that have a directory, whether they are part of the lab or not any more.
pub(crate) fn nodes(layout: &Layout) -> Vec<NodeName> {
    let entries = fs::read_dir(layout.dir()).into_iter().flatten().flatten();
    let mut nodes: Vec<NodeName> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    nodes.sort();
    nodes
}

/// The recorded sandboxes of all nodes.
pub(crate) fn all(layout: &Layout) -> Vec<(NodeName, Sandbox)> {
    nodes(layout)
        .into_iter()
        .flat_map(|node| of_node(layout, node).into_iter().map(move |s| (node, s)))
        .collect()
}

/// 64 hexadecimal digits, as containerd has them.
fn new_id() -> Result<String, LabError> {
    let source = "/proc/sys/kernel/random/uuid";
    let mut id = String::new();
    for _ in 0..2 {
        let text = fs::read_to_string(source)
            .map_err(LabError::file("read", std::path::Path::new(source)))?;
        id.extend(text.chars().filter(char::is_ascii_hexdigit));
    }
    Ok(id)
}

fn is_plain(uid: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !uid.is_empty() && uid.len() <= 64 && uid.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;
    use serde_json::json;

    #[test]
    fn recorded_made_and_removed() {
        let scratch = Scratch::new();
        let name = format!("u{}", std::process::id());
        let layout = Layout::in_root(&scratch.0, name.parse().unwrap());
        let node: NodeName = "n1".parse().unwrap();
        fs::create_dir_all(layout.sandboxes(node)).unwrap();
        let sandbox = Sandbox::new(&layout, "1-2", ("default", "web"), Map::new()).unwrap();
        assert_eq!(sandbox.container.len(), 64);
        assert!(layout.name().owns(&sandbox.netns), "{}", sandbox.netns);
        named::prepare().unwrap();
        sandbox.make(&layout, node).unwrap();
        assert!(!sandbox.is_ready(), "no ADD yet");
        let done = Sandbox {
            result: Some(json!({"ips": [
                {"address": "10.0.0.2/32"}, {"address": "fd00::2/128"}, {"address": "10.0.0.3/24"}]})),
            ..sandbox.clone()
        };
        done.write(&layout, node).unwrap();
        assert!(done.is_ready());
        let texts: Vec<_> = done.addresses().iter().map(IpAddr::to_string).collect();
        assert_eq!(texts, ["10.0.0.2", "fd00::2"]);
        assert_eq!(all(&layout), [(node, done.clone())]);
        done.remove(&layout, node).unwrap();
        done.remove(&layout, node).unwrap();
        assert!(!done.is_ready());
        assert!(all(&layout).is_empty());
    }

    #[test]
    fn a_uid_cannot_leave_its_directory() {
        let layout = Layout::of("x".parse().unwrap());
        for uid in ["", "../x", "a/b", "a b"] {
            let made = Sandbox::new(&layout, uid, ("a", "b"), Map::new());
            assert!(made.is_err(), "{uid:?}");
        }
    }
}
