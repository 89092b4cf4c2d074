//! `runtimeConfig`: what the runtime adds per container. Keys arrive in any case, lists as null
//! (Go programs write them so).

use plexus_types::Mac;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The key under which containerd and CRI-O pass a pod's annotations.
pub const POD_ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";

/// What the runtime asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Runtime {
    /// `ips`, each with a prefix length if one is written.
    pub ips: Vec<(IpAddr, Option<u8>)>,
    /// `mac`.
    pub mac: Option<Mac>,
    /// `portMappings`, where the cluster says which networks there are; else they are for plugins
    /// only. Those without a port of the node ask for nothing and are left out.
    pub port_mappings: Vec<PortMapping>,
    /// `io.kubernetes.cri.pod-annotations`: those of [`ANNOTATIONS`](crate::pod::ANNOTATIONS). None:
    /// the runtime sent none, which does not mean that there are none.
    pub annotations: Option<BTreeMap<String, String>>,
    /// Everything as it came, for plugins that we execute; the annotations only if one takes them.
    pub raw: Map<String, Value>,
}

/// A port of the node that leads to a port of the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortMapping {
    /// The node's port.
    pub host_port: u16,
    /// The pod's.
    pub container_port: u16,
    /// The transport.
    pub protocol: Protocol,
    /// Only this address of the node; none: all.
    pub host_ip: Option<IpAddr>,
}

impl PortMapping {
    /// As the reference plugin `portmap` takes it.
    pub fn to_json(&self) -> Value {
        let mut mapping = serde_json::json!({
            "hostPort": self.host_port,
            "containerPort": self.container_port,
            "protocol": self.protocol.as_str(),
        });
        if let (Some(ip), Some(map)) = (self.host_ip, mapping.as_object_mut()) {
            map.insert("hostIP".to_owned(), Value::String(ip.to_string()));
        }
        mapping
    }
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// As configurations write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        }
    }

    /// Reads one, in any case; empty text is TCP.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "" | "tcp" => Some(Protocol::Tcp),
            "udp" => Some(Protocol::Udp),
            "sctp" => Some(Protocol::Sctp),
            _ => None,
        }
    }
}
