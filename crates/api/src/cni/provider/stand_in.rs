//! `stand-in`, in test builds alone: a network whose links need steps outside the kernel. It asks a program that the
//! test serves for a link, waits until that appears, and puts the pod's link on it.

use super::kind::{Options, ProviderKind, Routing};
use crate::Fields;
use crate::cni::parse::request::RuntimeRequest;
use plexus_types::Feature;
use std::path::PathBuf;

/// Options of `stand-in`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandIn {
    /// Where the test serves HTTP.
    pub socket: PathBuf,
}

impl StandIn {
    /// What holds of all its networks.
    pub const KIND: ProviderKind = ProviderKind {
        name: "stand-in",
        in_config: false,
        is_plugin: true,
        needs: &[Feature::Macvlan],
        routing: Routing::OnLink,
        snat: false,
        host_ports: false,
        capabilities: &["ips"],
        keys: &["socket"],
        own_keys: &[],
        segment: |_| None,
    };
}

impl Options for StandIn {
    fn read(fields: &mut Fields<'_>, _request: &RuntimeRequest) -> Option<Self> {
        let socket = fields.text("socket").map(PathBuf::from);
        if socket.is_none() {
            let remedy = "write the path of the socket that the test serves";
            fields.missing("socket", remedy);
        }
        Some(Self { socket: socket? })
    }
}
